// Chart draws the bars of the README from a table: go run ./bench/chart <docs/lab/cpu.csv >docs/cpu.svg
package main

import (
	"encoding/csv"
	"fmt"
	"html"
	"io"
	"os"
	"strconv"
)

// Sizes in pixels.
const (
	width  = 720 // of the picture
	row    = 30  // from one bar to the next
	top    = 44  // above the first bar
	left   = 270 // where bars begin
	unit   = 360 // length of a bar of 1
	height = 18  // of a bar
)

func main() {
	if err := draw(os.Stdout, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// draw writes the picture of a table: a line of headings, then name and ratio. Lines that begin with # are left out.
func draw(w io.Writer, table io.Reader) error {
	r := csv.NewReader(table)
	r.Comment, r.FieldsPerRecord = '#', 2
	lines, err := r.ReadAll()
	if err != nil {
		return fmt.Errorf("cannot read the table: %w", err)
	}
	if len(lines) < 2 {
		return fmt.Errorf("cannot draw the table: %d lines", len(lines))
	}
	lines = lines[1:]
	bottom := top + row*len(lines)
	p := printer{w: w}
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="14">`+"\n", width, bottom+30)
	p.printf(`<title>Processor time of Turnout, HAProxy = 1</title>` + "\n")
	p.printf(`<rect width="100%%" height="100%%" fill="#ffffff"/>` + "\n")
	p.printf(`<text x="%d" y="24" font-weight="bold" fill="#222222">Processor time of Turnout, HAProxy = 1 (less is better)</text>`+"\n", left-250)
	for i, line := range lines {
		ratio, err := strconv.ParseFloat(line[1], 64)
		if err != nil || ratio <= 0 || ratio > 1.2 {
			return fmt.Errorf("cannot draw %q: a ratio above 0 and up to 1.2 is wanted", line)
		}
		y := top + row*i
		p.printf(`<text x="%d" y="%d" text-anchor="end" fill="#222222">%s</text>`+"\n", left-10, y+14, html.EscapeString(line[0]))
		p.printf(`<rect x="%d" y="%d" width="%.0f" height="%d" fill="#2b6cb0"/>`+"\n", left, y, ratio*unit, height)
		p.printf(`<text x="%.0f" y="%d" fill="#222222">%s</text>`+"\n", left+ratio*unit+8, y+14, html.EscapeString(line[1]))
	}
	p.printf(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#c53030" stroke-dasharray="4 3"/>`+"\n", left+unit, top-6, left+unit, bottom)
	p.printf(`<text x="%d" y="%d" text-anchor="middle" fill="#c53030">HAProxy</text>`+"\n", left+unit, bottom+18)
	p.printf("</svg>\n")
	return p.err
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}
