// Package inspect shows people at a terminal, and scripts, what a running router says of itself: its routes, what is wrong, and its traffic as
// it goes.
package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"turnout/internal/adminclient"
	"turnout/internal/nearest"
	"turnout/internal/option"
	"turnout/internal/problem"
	"turnout/internal/view"
)

// pageSize is how many routes are asked for at a time.
const pageSize = 200

// Routes writes the routes that a search finds, at most limit, 0 = all. asJSON: as an array.
func Routes(ctx context.Context, c *adminclient.Client, search view.Search, limit int, asJSON bool, w io.Writer) error {
	lines := []view.Line{}
	var total int
	for {
		search.Offset, search.Limit = len(lines), pageSize
		if limit > 0 {
			search.Limit = min(pageSize, limit-len(lines))
		}
		p, err := page(ctx, c, search)
		if err != nil {
			return err
		}
		lines, total = append(lines, p.Lines...), p.Total
		if len(p.Lines) == 0 || len(lines) >= total || limit > 0 && len(lines) >= limit {
			break
		}
	}
	if asJSON {
		return encode(w, lines)
	}
	rows := [][]string{{"ROUTE", "HOST", "TERMINATION", "STATE", "ENDPOINTS", "REQUESTS", "ERRORS"}}
	for i := range lines {
		l := &lines[i]
		state := "served"
		switch {
		case !l.Admitted:
			state = l.Reason
		case l.Notes > 0:
			state = "served, " + strconv.Itoa(l.Notes) + " notes"
		}
		rows = append(rows, []string{name(l), host(l), l.Termination, state, servers(&l.Servers), strconv.FormatUint(l.Requests, 10), strconv.FormatUint(l.Errors, 10)})
	}
	var b strings.Builder
	table(&b, rows, 0)
	if len(lines) < total {
		fmt.Fprintf(&b, "%d of %d routes\n", len(lines), total)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// name is what people call a route or Gateway.
func name(l *view.Line) string {
	if l.Kind == "" || l.Kind == "Route" {
		return l.Namespace + "/" + l.Name
	}
	return l.Kind + " " + l.Namespace + "/" + l.Name
}

// host is the host and path of a route, and how many hosts more there are.
func host(l *view.Line) string {
	if l.Hosts > 1 {
		return l.Host + l.Path + " and " + strconv.Itoa(l.Hosts-1) + " more"
	}
	return l.Host + l.Path
}

// page asks for a part of the routes.
func page(ctx context.Context, c *adminclient.Client, s view.Search) (p view.Page, err error) {
	err = c.JSON(ctx, "/view/routes", url.Values{
		"q": {s.Text}, "order": {s.Order}, "offset": {strconv.Itoa(s.Offset)}, "limit": {strconv.Itoa(s.Limit)},
	}, &p)
	return p, err
}

// Filter is which problems are wanted. The zero value is all.
type Filter struct {
	Kinds      []problem.Kind
	Namespaces []string // of their routes
}

// ParseKinds reads kinds of problems, separated by commas.
func ParseKinds(s string) (kinds []problem.Kind, err error) {
	for _, word := range option.ParseList(s) {
		var k problem.Kind
		if k.UnmarshalText([]byte(word)) != nil {
			known := make([]string, problem.Kinds)
			for i := range known {
				known[i] = problem.Kind(i).String()
			}
			return nil, fmt.Errorf("allowed: %s%s", strings.Join(known, ", "), nearest.DidYouMean("", word, known))
		}
		kinds = append(kinds, k)
	}
	return kinds, nil
}

// takes reports whether a problem is wanted.
func (f *Filter) takes(p *problem.Problem) bool {
	if len(f.Kinds) > 0 && !slices.Contains(f.Kinds, p.Kind) {
		return false
	}
	return len(f.Namespaces) == 0 || slices.ContainsFunc(f.Namespaces, func(namespace string) bool {
		return p.Namespace == namespace || slices.ContainsFunc(strings.Split(p.Route, ","), func(route string) bool {
			return strings.HasPrefix(strings.TrimSpace(route), namespace+"/")
		})
	})
}

// Problems writes what is wrong now, of what the filter takes. asJSON: as the router's array.
func Problems(ctx context.Context, c *adminclient.Client, filter Filter, asJSON bool, w io.Writer) error {
	all := []problem.Problem{}
	if err := c.JSON(ctx, "/problems", nil, &all); err != nil {
		return err
	}
	here := len(all)
	all = slices.DeleteFunc(all, func(p problem.Problem) bool { return !filter.takes(&p) })
	if asJSON {
		return encode(w, all)
	}
	var b strings.Builder
	for i := range all {
		p := &all[i]
		var about []string
		for _, part := range []string{p.Route, p.Service, p.Server, p.File, p.Object} {
			if part != "" {
				about = append(about, clean(part))
			}
		}
		reason := ""
		if p.Reason != "" {
			reason = p.Reason + ": "
		}
		fmt.Fprintf(&b, "%s: %s: %s%s (since %s)\n", p.Kind, strings.Join(about, ", "), reason, clean(p.Text), p.Since.Local().Format(time.DateTime))
	}
	switch {
	case here == 0:
		b.WriteString("nothing is wrong\n")
	case len(all) == 0:
		fmt.Fprintf(&b, "none of %d problems is of that kind and namespace\n", here)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func encode(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(value)
}

// servers says how many endpoints can be chosen, and why others cannot.
func servers(s *view.Servers) string {
	text := strconv.Itoa(s.Usable) + "/" + strconv.Itoa(s.All)
	for _, n := range []struct {
		count int
		word  string
	}{{s.Down, "down"}, {s.Ejected, "ejected"}, {s.Idle, "idle"}} {
		if n.count > 0 {
			text += " " + strconv.Itoa(n.count) + " " + n.word
		}
	}
	return text
}

// clean makes text harmless for terminals: what others wrote could move the cursor.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// table writes rows in columns. width is that of the terminal, in characters, 0 = any: the first two columns give way, and lines are cut.
func table(b *strings.Builder, rows [][]string, width int) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i := range row {
			row[i] = clean(row[i])
			widths[i] = max(widths[i], len([]rune(row[i])))
		}
	}
	if width > 0 {
		total := 2 * (len(widths) - 1)
		for _, n := range widths {
			total += n
		}
		for _, i := range []int{1, 0} {
			less := min(max(total-width, 0), max(widths[i]-12, 0))
			widths[i], total = widths[i]-less, total-less
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			cell = cut(cell, widths[i])
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", widths[i]-len([]rune(cell))))
		}
		b.WriteString(cut(strings.TrimRight(line.String(), " "), width) + "\n")
	}
}

// cut shortens text to so many characters, 0 = any number.
func cut(text string, most int) string {
	if r := []rune(text); most > 0 && len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}
