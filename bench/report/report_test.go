package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

func side(name string, micros, ratio float64) Side {
	s := Side{Name: name, Micros: micros, Samples: []float64{micros}, Rate: 100, P50: 1, P99: 2, Resident: 30, Peak: 40}
	if ratio > 0 {
		s.Ratio = &Range{Median: ratio, Lowest: ratio - 0.01, Most: ratio + 0.01}
	}
	return s
}

// some are results of three cases.
func some() *Results {
	plain := func(name, chart string, at, micros float64) Case {
		return Case{Name: name, About: "about " + name, Unit: "request", Wanted: 0.8, Chart: chart, At: at, Sides: []Side{
			side(Turnout, micros, 0), side(Least, micros/0.7, 0.7), side(Nginx, micros/0.9, 0.9), side(Full, micros, 0), side(Template, 2*micros, 0.5),
		}}
	}
	return &Results{
		Date: "2026-01-02", Mode: "all", Rounds: 3, Seconds: 1, Others: 0.3, Versions: map[string]string{"haproxy": "2.6", "nginx": "1.22"},
		Cases: []Case{plain("h1-64", ChartConnections, 64, 12), plain("h1-512", ChartConnections, 512, 15), plain("get-64k", ChartBody, 65536, 30), plain("routes-10k", ChartRoutes, 10000, 14)},
	}
}

func TestVerdictIsAboutTheCheaperPeer(t *testing.T) {
	c := some().Cases[0]
	if v := c.Verdict(); v != "missed" { // 0.9 of nginx, which is the cheaper one
		t.Errorf("got %q", v)
	}
	c.Wanted = 0.9
	if v := c.Verdict(); v != "met" {
		t.Errorf("got %q", v)
	}
	c.Wanted = 0
	if v := c.Verdict(); v != "" {
		t.Errorf("nothing is wanted: %q", v)
	}
}

func TestRangeOf(t *testing.T) {
	if r := RangeOf([]float64{5, 1, 9}); r != (Range{5, 1, 9}) {
		t.Errorf("%+v", r)
	}
	if r := RangeOf([]float64{4, 1, 2, 3}); r != (Range{2.5, 1, 4}) {
		t.Errorf("%+v", r)
	}
}

func TestPrintSaysThatTheMachineWasBusy(t *testing.T) {
	var out bytes.Buffer
	r := some()
	if err := r.Print(&out); err != nil || !strings.Contains(out.String(), "busy: other programs had 30 %") {
		t.Errorf("%v\n%s", err, &out)
	}
	row := strings.Fields(strings.Split(out.String(), "\n")[4])
	if got := strings.Join(row, " "); got != "h1-64 least request 12.0 17.1 0.70 0.69–0.71 0.80, missed 1.00 / 2.00 1.00 / 2.00 30 / 30 40 / 40 0" && got != "h1-64 least request 12.0 17.1 0.70 0.69–0.71 0.80, missed 1.00 / 1.00 2.00 / 2.00 30 / 30 40 / 40 0" {
		t.Errorf("row is %q", got)
	}
	r.Others = 0.01
	out.Reset()
	if err := r.Print(&out); err != nil || strings.Contains(out.String(), "busy: other") {
		t.Errorf("a quiet machine is called busy: %v\n%s", err, &out)
	}
}

func TestReplaceKeepsWhatIsAround(t *testing.T) {
	text := []byte("before\n<!-- results: a -->\nold\n<!-- end of results -->\nbetween\n<!-- results: b -->\n<!-- end of results -->\nafter\n")
	got, err := replace(text, "b", "new\n")
	if err != nil || string(got) != strings.Replace(string(text), "b -->\n", "b -->\nnew\n", 1) {
		t.Errorf("%v:\n%s", err, got)
	}
	got, err = replace(text, "a", "new\n")
	if err != nil || string(got) != strings.Replace(string(text), "old\n", "new\n", 1) {
		t.Errorf("%v:\n%s", err, got)
	}
	if _, err := replace(text, "c", "new\n"); err == nil {
		t.Error("a block that is not there was replaced")
	}
}

// TestChartsAreXML, with a line for each proxy.
func TestChartsAreXML(t *testing.T) {
	r := some()
	for name, draw := range map[string]func(io.Writer) error{
		"bars": r.Bars, ChartConnections: func(w io.Writer) error { return r.Lines(w, ChartConnections) },
		ChartRoutes: func(w io.Writer) error { return r.Lines(w, ChartRoutes) }, ChartBody: func(w io.Writer) error { return r.Lines(w, ChartBody) },
	} {
		var b bytes.Buffer
		if err := draw(&b); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, proxy := range proxies[1:] {
			if !strings.Contains(b.String(), proxy.name) {
				t.Errorf("%s: nothing of %s", name, proxy.name)
			}
		}
		d := xml.NewDecoder(&b)
		var err error
		for err == nil {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.Cases = r.Cases[:1]
	if err := r.Lines(io.Discard, ChartConnections); err == nil {
		t.Error("a line of one point was drawn")
	}
}

// TestDocumentsAreThoseOfTheResults: whoever changes one by hand, or measures and forgets, is told.
func TestDocumentsAreThoseOfTheResults(t *testing.T) {
	path, err := Latest(root)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	files, err := r.Documents(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what %s makes (%v): make bench-report", name, filepath.Base(path), err)
		}
	}
	if len(files) != 7 {
		t.Errorf("%d files: a chart has no points", len(files))
	}
}

// TestResultsNameNoPlace: neither hosts nor paths.
func TestResultsNameNoPlace(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(root, Folder, "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	place := regexp.MustCompile(`"[^"]*(/[a-z]+/|\d+\.\d+\.\d+\.\d+|localhost)[^"]*"`)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := place.Find(text); found != nil {
			t.Errorf("%s names %s", filepath.Base(name), found)
		}
	}
}
