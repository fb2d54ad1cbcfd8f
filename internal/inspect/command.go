package inspect

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"turnout/internal/adminclient"
	"turnout/internal/option"
	"turnout/internal/terminal"
	"turnout/internal/view"
)

// Command is one of the commands routes, problems and top. Name and Client are required.
type Command struct {
	Name     string
	Client   *adminclient.Client
	Output   string        // text or json
	Search   view.Search   // but for its text
	Filter   Filter        // of problems
	Limit    int           // of routes; 0 = all
	Once     bool          // of top: look once
	Interval time.Duration // of top: between two looks
}

// ParseLimit reads Limit.
func ParseLimit(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 24)
	if err != nil {
		err = errors.New("allowed: a whole number from 0")
	}
	return int(n), err
}

// Run writes the answer to out. words are what routes are searched for. top shows routes until a signal.
func (c *Command) Run(ctx context.Context, words []string, out io.Writer) error {
	if c.Name == "problems" && len(words) > 0 {
		return option.Usagef("problems takes no words, and %q is given", words[0])
	}
	search := c.Search
	search.Text = strings.Join(words, " ")
	asJSON := c.Output == "json"
	switch {
	case c.Name == "routes":
		return Routes(ctx, c.Client, search, c.Limit, asJSON, out)
	case c.Name == "problems":
		return Problems(ctx, c.Client, c.Filter, asJSON, out)
	case c.Once:
		return Once(ctx, c.Client, search, asJSON, out)
	case asJSON || !terminal.Is(out):
		return option.Usagef("top shows text on a terminal; give --once for anything else")
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, syscall.SIGWINCH)
	defer signal.Stop(changes)
	t := &Top{
		Client: c.Client, Search: search, Interval: c.Interval, Out: out, Resized: changes,
		Size: func() (columns, rows int) { columns, rows, _ = terminal.Size(out); return columns, rows },
	}
	return t.Run(ctx)
}
