package inspect

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"turnout/internal/adminclient"
	"turnout/internal/view"
)

// Top is what is shown live. Client, Out and Size are required.
type Top struct {
	Client   *adminclient.Client
	Search   view.Search                // Limit and Offset do not count: what fits is shown
	Interval time.Duration              // between two looks
	Out      io.Writer                  // a terminal
	Size     func() (columns, rows int) // of the terminal; 0 = not known
	Resized  <-chan os.Signal           // nil = the size stays
}

// Snapshot is one look at a router.
type Snapshot struct {
	Overview view.Overview `json:"overview"`
	Routes   view.Page     `json:"routes"`
}

// Look asks a router.
func Look(ctx context.Context, c *adminclient.Client, search view.Search) (s Snapshot, err error) {
	if err = c.JSON(ctx, "/view/overview", nil, &s.Overview); err == nil {
		s.Routes, err = page(ctx, c, search)
	}
	return s, err
}

// Once writes one look, as JSON or as the screen would have it, without bounds.
func Once(ctx context.Context, c *adminclient.Client, search view.Search, asJSON bool, w io.Writer) error {
	search.Limit = pageSize
	s, err := Look(ctx, c, search)
	if err != nil {
		return err
	}
	if asJSON {
		return encode(w, s)
	}
	var b strings.Builder
	draw(&b, &s, nil, "", 0, 0)
	_, err = io.WriteString(w, b.String())
	return err
}

// What the terminal is sent: another screen without a cursor, and back; the first place; the rest of the line and of the screen are empty.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	goHome      = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// Run shows until ctx is done. A router that does not answer is asked again; the error is that of the first look, or of Out.
func (t *Top) Run(ctx context.Context) error {
	t.Search.Limit, t.Search.Offset = pageSize, 0
	now, err := Look(ctx, t.Client, t.Search)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(t.Out, enterScreen); err != nil {
		return err
	}
	defer io.WriteString(t.Out, leaveScreen)
	var before *Snapshot
	trouble := ""
	ticks := time.NewTicker(t.Interval)
	defer ticks.Stop()
	for {
		if err := t.show(&now, before, trouble); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.Resized:
		case <-ticks.C:
			next, err := Look(ctx, t.Client, t.Search)
			if err != nil {
				trouble = err.Error()
				continue
			}
			last := now
			before, now, trouble = &last, next, ""
		}
	}
}

// show draws what fits.
func (t *Top) show(now, before *Snapshot, trouble string) error {
	columns, rows := t.Size()
	var b strings.Builder
	draw(&b, now, before, trouble, columns, rows)
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	_, err := io.WriteString(t.Out, goHome+strings.Join(lines, clearLine+"\r\n")+clearLine+clearBelow)
	return err
}

// draw writes a look at a router. before is an earlier one, nil = none; columns and rows: 0 = any number.
func draw(b *strings.Builder, s, before *Snapshot, trouble string, columns, rows int) {
	o := &s.Overview
	problems := 0
	for _, n := range o.Counts {
		problems += n
	}
	head := []string{
		fmt.Sprintf("turnout %s  %s  table %d  %d routes, %d rejected, %d problems", o.Version, o.At.Local().Format(time.TimeOnly), o.Generation, o.Routes, o.Rejected, problems),
		fmt.Sprintf("requests %.1f/s  failed %.1f/s  running %d  connections %d  p50 %s  p99 %s  endpoints %s",
			o.Traffic.Requests, o.Traffic.Failed, o.Traffic.Running, o.Traffic.Connections, latency(o.Latency.P50), latency(o.Latency.P99), servers(&o.Servers)),
		trouble,
	}
	for _, line := range head {
		b.WriteString(cut(clean(line), columns) + "\n")
	}
	most := 0
	if rows > 0 {
		most = max(rows-len(head)-1, 1)
	}
	table(b, lines(s, before, most), columns)
}

// lines are the rows of routes with their head, below it at most so many routes, 0 = any number.
func lines(s, before *Snapshot, most int) [][]string {
	earlier := map[string]uint64{}
	seconds := 0.0
	if before != nil {
		seconds = s.Overview.At.Sub(before.Overview.At).Seconds()
		for i := range before.Routes.Lines {
			l := &before.Routes.Lines[i]
			earlier[name(l)] = l.Errors
		}
	}
	all := s.Routes.Lines
	if most > 0 && len(all) > most {
		all = all[:most]
	}
	rows := [][]string{{"ROUTE", "HOST", "RATE/s", "REQUESTS", "ERRORS", "ERR/s", "P99", "MEAN", "SESSIONS", "QUEUE", "ENDPOINTS"}}
	for i := range all {
		l := &all[i]
		failing := "-"
		if errors, known := earlier[name(l)]; known && seconds > 0 && l.Errors >= errors {
			failing = strconv.FormatFloat(float64(l.Errors-errors)/seconds, 'f', 1, 64)
		}
		rows = append(rows, []string{
			name(l), host(l), strconv.FormatUint(l.Rate, 10), strconv.FormatUint(l.Requests, 10), strconv.FormatUint(l.Errors, 10), failing,
			latency(l.P99), latency(l.Mean), strconv.FormatInt(l.Sessions, 10), strconv.Itoa(l.Queued), servers(&l.Servers),
		})
	}
	return rows
}

// latency writes seconds, - for what was not measured.
func latency(seconds float64) string {
	switch {
	case seconds <= 0:
		return "-"
	case seconds < 1:
		return strconv.FormatFloat(seconds*1000, 'g', 3, 64) + "ms"
	}
	return strconv.FormatFloat(seconds, 'g', 3, 64) + "s"
}
