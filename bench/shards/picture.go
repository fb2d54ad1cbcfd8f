package main

import (
	"fmt"
	"image/color"
	"io"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The colours of the two loads.
var (
	blue = color.RGBA{R: 0x2b, G: 0x6c, B: 0xb0, A: 0xff}
	red  = color.RGBA{R: 0xc5, G: 0x30, B: 0x30, A: 0xff}
	grey = color.RGBA{R: 0x99, G: 0x99, B: 0x99, A: 0xff}
)

// pictureName is the file of a strategy's picture, below docs/lab.
func pictureName(strategy string) string { return "shards-" + strings.ToLower(strategy) + ".svg" }

// picture draws the spread of load over time, as SVG.
func picture(w io.Writer, r *Result) error {
	const width, height = 18 * vg.Centimeter, 6 * vg.Centimeter
	canvas := vgsvg.NewWith(vgsvg.UseWH(2*width, height))
	panels := [][]*plot.Plot{{panel(r, "max/mean", 1, 1), panel(r, "Gini coefficient", 2, 0)}}
	for _, p := range panels[0] {
		if p == nil {
			return fmt.Errorf("there are %d samples", len(r.Samples))
		}
	}
	tiles := draw.Tiles{Rows: 1, Cols: 2, PadX: vg.Centimeter, PadRight: vg.Centimeter / 2}
	for i, row := range plot.Align(panels, tiles, draw.New(canvas)) {
		for j, c := range row {
			panels[i][j].Draw(c)
		}
	}
	_, err := canvas.WriteTo(w)
	return err //nolint:wrapcheck // the caller names the picture
}

// panel is one measure of routes and of requests over time; nil without samples.
func panel(r *Result, what string, column int, least float64) *plot.Plot {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s: %s of load per router", r.Strategy, what)
	p.X.Label.Text = "virtual minutes"
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	most := least
	for i, name := range []string{"routes", "requests per second"} {
		points := make(plotter.XYs, 0, len(r.Samples))
		for _, s := range r.Samples {
			// While few are placed, nothing can be even.
			if s[0] >= r.Phases[0].Minutes/10 {
				points = append(points, plotter.XY{X: s[0], Y: s[column+2*i]})
				most = max(most, s[column+2*i])
			}
		}
		line, err := plotter.NewLine(points)
		if err != nil || len(points) == 0 {
			return nil
		}
		line.Color = []color.Color{blue, red}[i]
		line.Width = vg.Points(1.5)
		p.Add(line)
		p.Legend.Add(name, line)
	}
	p.Y.Min, p.Y.Max = least, most+(most-least)*0.35 // room for the legend
	if most <= least {
		p.Y.Max = least + 0.1
	}
	for i, phase := range r.Phases[1:] {
		mark, err := plotter.NewLine(plotter.XYs{{X: phase.From, Y: p.Y.Min}, {X: phase.From, Y: p.Y.Max}})
		if err != nil {
			return nil
		}
		mark.Color, mark.Dashes = grey, []vg.Length{vg.Points(3), vg.Points(2)}
		text, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: phase.From, Y: p.Y.Max}}, Labels: []string{" " + phase.Name + " "}})
		if err != nil {
			return nil
		}
		text.TextStyle[0].YAlign = draw.YTop
		if i == 0 {
			text.TextStyle[0].XAlign = draw.XRight // the next is near
		}
		p.Add(mark, text)
	}
	return p
}
