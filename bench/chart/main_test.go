package main

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var docs = filepath.Join("..", "..", "docs")

// TestPictureIsThatOfTheTable: docs/cpu.svg was drawn from docs/lab/cpu.csv as it is.
func TestPictureIsThatOfTheTable(t *testing.T) {
	table, err := os.ReadFile(filepath.Join(docs, "lab", "cpu.csv"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(docs, "cpu.svg"))
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := draw(&got, bytes.NewReader(table)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Error("docs/cpu.svg is another picture: go run ./bench/chart <docs/lab/cpu.csv >docs/cpu.svg")
	}
}

// TestTableIsMeasured: each figure of the picture stands in the table of docs/performance.md.
func TestTableIsMeasured(t *testing.T) {
	file, err := os.Open(filepath.Join(docs, "lab", "cpu.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r := csv.NewReader(file)
	r.Comment = '#'
	lines, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(docs, "performance.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		work, _, _ := strings.Cut(line[0], ", per MiB")
		found := false
		for row := range strings.Lines(string(page)) {
			cells := strings.Split(strings.TrimSpace(row), " | ")
			found = found || strings.HasPrefix(row, "| "+work) && strings.TrimSuffix(cells[len(cells)-1], " |") == line[1]
		}
		if !found {
			t.Errorf("%q is not in docs/performance.md", line)
		}
	}
}

func TestWhatCannotBeDrawn(t *testing.T) {
	for _, table := range []string{"", "work,ratio\n", "work,ratio\na,x\n", "work,ratio\na,0\n", "work,ratio\na,2\n", "work\na\n"} {
		if err := draw(new(bytes.Buffer), strings.NewReader(table)); err == nil {
			t.Errorf("%q is drawn", table)
		}
	}
}
