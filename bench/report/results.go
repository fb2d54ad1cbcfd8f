// Package report is what a run of the comparison with other proxies leaves: a file of results below docs/lab/results, and the charts and
// tables that documents have of it. Both are made from the file alone, so that a new run changes them mechanically.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// Results are one run of bench/peer. They say of the machine what matters for the figures, and nothing that tells where it stands.
type Results struct {
	Date     string            `json:"date"`     // yyyy-mm-dd
	Mode     string            `json:"mode"`     // quick or all
	Machine  Machine           `json:"machine"`  //
	Versions map[string]string `json:"versions"` // of programs, by name
	Rounds   int               `json:"rounds"`   // in which all proxies were measured in turn
	Seconds  float64           `json:"seconds"`  // measured of each proxy in each round
	Others   float64           `json:"others"`   // median share of both cores that other processes had, 0..1
	Cases    []Case            `json:"cases"`
}

// Machine is what was measured on.
type Machine struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	MemoryMiB int    `json:"memory_mib"`
	Kernel    string `json:"kernel"`
}

// Case is one kind of work, done by several proxies.
type Case struct {
	Name   string  `json:"name"`
	About  string  `json:"about"`
	Unit   string  `json:"unit"`             // of what is counted
	Wanted float64 `json:"wanted,omitempty"` // the ratio to the cheaper of least and nginx, at most; 0 = none is said
	Chart  string  `json:"chart,omitempty"`  // the chart that it is a point of: connections, routes, body
	At     float64 `json:"at,omitempty"`     // where on its axis
	Sides  []Side  `json:"sides"`
}

// Names of sides.
const (
	Turnout  = "turnout"        // without the sticky cookie, against least and nginx
	Full     = "turnout-cookie" // with it, against template
	Least    = "least"          // the shortest HAProxy configuration that does the work
	Template = "template"       // HAProxy as the OpenShift router's template configures it
	Nginx    = "nginx"
)

// Side is one proxy's part of a case. Figures are medians over the rounds.
type Side struct {
	Name     string    `json:"name"`
	Micros   float64   `json:"micros"`          // processor time per unit
	Ratio    *Range    `json:"ratio,omitempty"` // of a peer: Turnout's cost over its, within rounds
	Samples  []float64 `json:"samples"`         // micros of each round
	Rate     float64   `json:"rate,omitempty"`  // per second, at which times were measured: 60 % of what the slowest of those compared did
	P50      float64   `json:"p50_ms,omitempty"`
	P99      float64   `json:"p99_ms,omitempty"`
	Resident float64   `json:"resident_mib"` // at the end of a round
	Peak     float64   `json:"peak_mib"`     // since its start
	PerSec   float64   `json:"per_second"`   // units, as fast as it could
	Busy     float64   `json:"busy"`         // share of its core that the proxy used, 0..1
	LoadIdle float64   `json:"load_idle"`    // share of the other core that was idle: 0 = client and backend may have been the limit
	Others   float64   `json:"others"`       // share of both cores that other processes had
	Steal    float64   `json:"steal"`        // share of both cores that the hypervisor gave to others
	User     float64   `json:"user"`         // share of user time in Micros
	Connects float64   `json:"connects"`     // to pods, per 1,000 units
	Failures uint64    `json:"failures"`
}

// Range is a median with the lowest and the highest of what it is of.
type Range struct {
	Median float64 `json:"median"`
	Lowest float64 `json:"lowest"`
	Most   float64 `json:"highest"`
}

// RangeOf sums up values, of which there must be some.
func RangeOf(values []float64) Range {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return Range{Median: (v[(n-1)/2] + v[n/2]) / 2, Lowest: v[0], Most: v[n-1]}
}

// Side returns the part of a proxy, nil if it has none.
func (c *Case) Side(name string) *Side {
	for i := range c.Sides {
		if c.Sides[i].Name == name {
			return &c.Sides[i]
		}
	}
	return nil
}

// ratio is that to a peer, 0 without it.
func (c *Case) ratio(peer string) float64 {
	if s := c.Side(peer); s != nil && s.Ratio != nil {
		return s.Ratio.Median
	}
	return 0
}

// Verdict tells whether the ratio to the cheaper of least and nginx is what is wanted; of a case without either it is about all peers.
func (c *Case) Verdict() string {
	if c.Wanted == 0 {
		return ""
	}
	worst := max(c.ratio(Least), c.ratio(Nginx))
	switch {
	case worst == 0:
		return ""
	case worst <= c.Wanted:
		return "met"
	}
	return "missed"
}

// Read reads a file of results.
func Read(path string) (*Results, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read results: %w", err)
	}
	r := new(Results)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("cannot read results %s: %w", path, err)
	}
	return r, nil
}

// Write writes the file.
func (r *Results) Write(path string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644) //nolint:gosec // a document
	}
	if err != nil {
		return fmt.Errorf("cannot write results: %w", err)
	}
	return nil
}
