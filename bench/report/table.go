package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// peers are the columns of tables, in their order.
var peers = []string{Least, Template, Nginx}

// against are the sides of a case that Turnout is compared with, each with Turnout's own.
func (c *Case) against(each func(turnout, peer *Side)) {
	var turnout *Side
	for i := range c.Sides {
		if s := &c.Sides[i]; s.Ratio == nil {
			turnout = s
		} else {
			each(turnout, s)
		}
	}
}

// Print prints what people compare, then what tells whether the comparison was sound.
func (r *Results) Print(out io.Writer) error {
	fmt.Fprintf(out, "CPU µs of the proxy per request, handshake, message or MiB: medians of %d rounds of %g s; ratio is that of turnout/peer within a round.\n%s\n\n",
		r.Rounds, r.Seconds, r.calm())
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(cells []string) { fmt.Fprintln(w, strings.Join(cells, "\t")+"\t") }
	row(caseHead)
	r.caseRows(row)
	fmt.Fprintln(w)
	row(soundHead)
	r.soundRows(row)
	if err := w.Flush(); err != nil {
		return fmt.Errorf("cannot print the table: %w", err)
	}
	return nil
}

// calm says how quiet the machine was.
func (r *Results) calm() string {
	text := fmt.Sprintf("Other programs had %.0f %% of both cores.", 100*r.Others)
	if r.Others > 0.05 {
		text = fmt.Sprintf("The machine was busy: other programs had %.0f %% of both cores. Ratios within rounds mean something, microseconds and times little.", 100*r.Others)
	}
	return text
}

var caseHead = []string{
	"case", "peer", "per", "Turnout µs", "peer µs", "ratio", "lowest to highest", "wanted", "p50 ms", "p99 ms", "resident MiB", "peak MiB", "failures",
}

// caseRows makes a row for each case and peer. Two figures in a cell are Turnout's and the peer's.
func (r *Results) caseRows(row func([]string)) {
	for i := range r.Cases {
		c := &r.Cases[i]
		wanted := ""
		if c.Wanted > 0 {
			wanted = fmt.Sprintf("%.2f, %s", c.Wanted, c.Verdict())
		}
		c.against(func(t, p *Side) {
			cells := []string{
				c.Name, p.Name, c.Unit, micros(t.Micros), micros(p.Micros), ratio(p.Ratio.Median), ratio(p.Ratio.Lowest) + "–" + ratio(p.Ratio.Most), "",
				times(p, t.P50, p.P50), times(p, t.P99, p.P99), fmt.Sprintf("%.0f / %.0f", t.Resident, p.Resident), fmt.Sprintf("%.0f / %.0f", t.Peak, p.Peak),
				fmt.Sprint(t.Failures + p.Failures),
			}
			if p.Name != Template {
				cells[7] = wanted
			}
			row(cells)
		})
	}
}

func micros(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

func ratio(v float64) string {
	if v < 0.1 {
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func times(p *Side, turnout, peer float64) string {
	if p.Rate == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f / %.2f", turnout, peer)
}

var soundHead = []string{"case", "proxy", "per second", "core busy", "client's core idle", "others", "steal", "user time", "connects per 1,000"}

// soundRows makes a row for each case and proxy.
func (r *Results) soundRows(row func([]string)) {
	percent := func(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }
	for i := range r.Cases {
		for _, s := range r.Cases[i].Sides {
			row([]string{
				r.Cases[i].Name, s.Name, fmt.Sprintf("%.0f", s.PerSec), percent(s.Busy), percent(s.LoadIdle), percent(s.Others), percent(s.Steal), percent(s.User),
				fmt.Sprintf("%.1f", s.Connects),
			})
		}
	}
}

// markdown is a table of rows.
func markdown(head []string, text int, rows func(row func([]string))) string {
	var b bytes.Buffer
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(head)
	rule := make([]string, len(head))
	for i := range rule {
		if rule[i] = "---:"; i < text {
			rule[i] = "---"
		}
	}
	line(rule)
	rows(line)
	return b.String()
}

// ratios is the table for operators: a row per case.
func (r *Results) ratios() string {
	head := []string{"work", "of HAProxy, least", "of HAProxy, template", "of nginx", "resident MiB: Turnout / least / template / nginx"}
	return markdown(head, 1, func(row func([]string)) {
		for i := range r.Cases {
			c := &r.Cases[i]
			cells := []string{c.About + per(c.Unit)}
			var resident []string
			for _, name := range peers {
				cell := ""
				if v := c.ratio(name); v > 0 {
					cell = ratio(v)
				}
				cells = append(cells, cell)
			}
			for _, name := range append([]string{Turnout}, peers...) {
				s := c.Side(name)
				if s == nil && name == Turnout {
					s = c.Side(Full)
				}
				if s == nil {
					resident = append(resident, "–")
				} else {
					resident = append(resident, fmt.Sprintf("%.0f", s.Resident))
				}
			}
			row(append(cells, strings.Join(resident, " / ")))
		}
	})
}

func per(unit string) string {
	if unit == "MiB" {
		return ", per MiB"
	}
	return ""
}

// about says where and how was measured.
func (r *Results) about() string {
	return fmt.Sprintf("Measured %s with HAProxy %s and nginx %s on %s with %d cores, Linux %s: medians of %d rounds of %g s. %s\n",
		r.Date, r.Versions["haproxy"], r.Versions["nginx"], r.Machine.Processor, r.Machine.Cores, r.Machine.Kernel, r.Rounds, r.Seconds, r.calm())
}
