package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Folder is where results are kept, below the folder of the module.
const Folder = "docs/lab/results"

// Latest is the file of results that documents are made of, below root: of those of all cases the last by its name, which begins with a
// date.
func Latest(root string) (string, error) {
	names, err := filepath.Glob(filepath.Join(root, Folder, "*-all.json"))
	if err != nil || len(names) == 0 {
		return "", errors.Join(fmt.Errorf("cannot find results of all cases in %s", Folder), err)
	}
	return slices.Max(names), nil
}

// Documents are the files that results make, by their names below the folder of the module: charts as a whole, and the documents in
// which blocks are replaced. A chart whose cases were not measured is left as it is.
func (r *Results) Documents(root string) (map[string][]byte, error) {
	files := make(map[string][]byte)
	charts := map[string]func(io.Writer) error{"docs/cpu.svg": r.Bars}
	for chart := range axes {
		charts["docs/cost-"+chart+".svg"] = func(w io.Writer) error { return r.Lines(w, chart) }
	}
	for name, draw := range charts {
		var b bytes.Buffer
		if draw(&b) == nil {
			files[name] = b.Bytes()
		}
	}
	for name, blocks := range map[string]map[string]string{
		"README.md":               {"summary": r.summary()},
		"docs/performance.md":     {"ratios": r.ratios() + "\n" + r.about()},
		"docs/lab/performance.md": {"cases": r.about() + "\n" + markdown(caseHead, 3, r.caseRows), "sound": markdown(soundHead, 2, r.soundRows)},
	} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, fmt.Errorf("cannot read a document: %w", err)
		}
		for block, content := range blocks {
			if text, err = replace(text, block, content); err != nil {
				return nil, fmt.Errorf("cannot change %s: %w", name, err)
			}
		}
		files[name] = text
	}
	return files, nil
}

// replace puts content between the lines <!-- results: BLOCK --> and <!-- end of results -->.
func replace(text []byte, block, content string) ([]byte, error) {
	const last = "<!-- end of results -->"
	first := "<!-- results: " + block + " -->\n"
	before, rest, ok := strings.Cut(string(text), first)
	_, after, ended := strings.Cut(rest, last)
	if !ok || !ended {
		return nil, fmt.Errorf("there is no block %q", block)
	}
	return []byte(before + first + content + last + after), nil
}

// summary is what the README says.
func (r *Results) summary() string {
	var template, cheap []float64
	for i := range r.Cases {
		c := &r.Cases[i]
		if !slices.Contains(mainCases, c.Name) {
			continue
		}
		if v := c.ratio(Template); v > 0.1 { // what is less is about the number of routes
			template = append(template, v)
		}
		if v := max(c.ratio(Least), c.ratio(Nginx)); v > 0 {
			cheap = append(cheap, v)
		}
	}
	if len(template) == 0 || len(cheap) == 0 {
		return ""
	}
	t, l := RangeOf(template), RangeOf(cheap)
	return fmt.Sprintf("![Processor time of Turnout next to HAProxy and nginx](docs/cpu.svg)\n\n"+
		"In the cases of the picture it takes %s to %s of the processor time that HAProxy takes with the OpenShift router's configuration, and %s to %s of\n"+
		"what the cheaper of the shortest HAProxy configuration and nginx takes, measured side by side. All cases, also those in which it takes more:\n"+
		"[docs/performance.md](docs/performance.md).\n",
		ratio(t.Lowest), ratio(t.Most), ratio(l.Lowest), ratio(l.Most))
}

// Update writes the documents.
func (r *Results) Update(root string) error {
	files, err := r.Documents(root)
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(root, name), content, 0o644); err != nil { //nolint:gosec // a document
			return fmt.Errorf("cannot write a document: %w", err)
		}
	}
	return nil
}
