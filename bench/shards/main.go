// Shards simulates routes on routers in virtual time, once for each strategy: all are placed, some routers are lost, others are added. The scheduler
// is the real one (controller/shard), the cluster is controller/shard/sim. make sim runs it, which writes docs/lab/shards.md.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "shards:", err)
		os.Exit(1)
	}
}

// run reads the command line. Each strategy runs in a process of its own, so that memory is its own too.
func run(args []string) error {
	flags := flag.NewFlagSet("shards", flag.ContinueOnError)
	folder := flags.String("out", filepath.Join("docs", "lab"), "folder of shards.json, shards.md and the pictures")
	only := flags.String("only", "", "name of the only strategy to simulate; the results of others stay")
	draw := flags.Bool("draw", false, "simulate nothing, but write page and pictures of shards.json")
	routes := flags.Int("routes", 0, "simulate so many routes on 100 routers, and not what each strategy is to have; 20,000 take half a minute")
	result := flags.String("result", "", "simulate the strategy of -only, and write what came of it to this file")
	if err := flags.Parse(args); err != nil {
		return err //nolint:wrapcheck // flag says what is wrong
	}
	if *result != "" {
		return simulateTo(*result, *only, *routes)
	}
	file := filepath.Join(*folder, "shards.json")
	var results []Result
	if *only != "" || *draw {
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &results)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot read earlier results: %w", err)
		}
	}
	for _, c := range cases() {
		if *draw || *only != "" && *only != c.name {
			continue
		}
		r, err := inProcess(c.name, *routes)
		if err != nil {
			return fmt.Errorf("cannot simulate %s: %w", c.name, err)
		}
		results = append(slices.DeleteFunc(results, func(e Result) bool { return e.Strategy == r.Strategy }), r)
	}
	place := func(r Result) int {
		return slices.IndexFunc(cases(), func(c strategyCase) bool { return c.name == r.Strategy })
	}
	slices.SortFunc(results, func(a, b Result) int { return place(a) - place(b) })
	text, err := encode(results)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return fmt.Errorf("cannot write results: %w", err)
	}
	return publish(*folder, results)
}

// simulateTo is what the process of a strategy does.
func simulateTo(file, name string, routes int) error {
	i := slices.IndexFunc(cases(), func(c strategyCase) bool { return c.name == name })
	if i < 0 {
		return fmt.Errorf("there is no strategy %q", name)
	}
	c := cases()[i]
	if routes > 0 {
		c.size = tenth
		c.size.Routes = routes
	}
	r, err := simulate(c)
	if err != nil {
		return err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return os.WriteFile(file, text, 0o600) //nolint:wrapcheck // it names the file
}

// inProcess simulates a strategy in a process of its own.
func inProcess(name string, routes int) (Result, error) {
	var r Result
	folder, err := os.MkdirTemp("", "shards")
	if err != nil {
		return r, fmt.Errorf("cannot make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	self, err := os.Executable()
	if err != nil {
		return r, fmt.Errorf("cannot find the program: %w", err)
	}
	file := filepath.Join(folder, "result")
	c := exec.Command(self, "-only", name, "-result", file, "-routes", strconv.Itoa(routes))
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return r, fmt.Errorf("its process failed: %w", err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return r, fmt.Errorf("cannot read its result: %w", err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("cannot read its result: %w", err)
	}
	r.RSS = mib(peakOf(c.ProcessState))
	return r, nil
}

// publish writes the page and the pictures.
func publish(folder string, results []Result) error {
	if err := os.WriteFile(filepath.Join(folder, "shards.md"), page(results), 0o644); err != nil {
		return fmt.Errorf("cannot write the page: %w", err)
	}
	for i := range results {
		var b bytes.Buffer
		if err := picture(&b, &results[i]); err != nil {
			return fmt.Errorf("cannot draw %s: %w", results[i].Strategy, err)
		}
		if err := os.WriteFile(filepath.Join(folder, pictureName(results[i].Strategy)), b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("cannot write a picture: %w", err)
		}
	}
	return nil
}

// encode is the results as JSON, a line for each sample.
func encode(results []Result) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("[")
	for i, r := range results {
		samples := r.Samples
		r.Samples = nil
		head, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("cannot write results: %w", err)
		}
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n" + string(bytes.TrimSuffix(head, []byte("}"))) + `,"samples":[`)
		for j, s := range samples {
			if j > 0 {
				b.WriteString(",")
			}
			b.WriteString("\n[")
			for k, v := range s {
				if k > 0 {
					b.WriteString(",")
				}
				b.WriteString(strconv.FormatFloat(v, 'g', 5, 64))
			}
			b.WriteString("]")
		}
		b.WriteString("\n]}")
	}
	b.WriteString("\n]\n")
	return b.Bytes(), nil
}
