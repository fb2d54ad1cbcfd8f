package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"turnout/internal/access"
	"turnout/internal/adminclient"
	"turnout/internal/inspect"
	"turnout/internal/option"
	"turnout/internal/terminal"
	"turnout/internal/view"
)

// clientOptions are how a running router is asked.
type clientOptions struct {
	adminclient.Client

	token string // file
}

func clientSettings(c *clientOptions) []option.Option {
	return []option.Option{
		{Flag: "router", Def: "127.0.0.1:1936", Value: "HOST:PORT", Set: option.Into(&c.Base, option.ParseText),
			Help: "admin port of the router to ask, also as a URL; not with --manifests or --kubeconfig"},
		{Flag: "router-token-file", Value: "FILE", Set: option.Into(&c.token, option.ParseText), Help: "file with a bearer token for that port"},
	}
}

// client reads the credentials: a token, or else the user and password that the router has.
func (c *clientOptions) client(a *access.Options) (*adminclient.Client, error) {
	if c.token != "" {
		text, err := os.ReadFile(c.token)
		if err != nil {
			return nil, fmt.Errorf("cannot read the token: %w", err)
		}
		c.Token = strings.TrimSpace(string(text))
	}
	login, err := a.Login()
	if err != nil {
		return nil, err
	}
	c.User, c.Password = login.User, login.Password
	return &c.Client, nil
}

// inspectOptions are those of the subcommands that show a running router.
type inspectOptions struct {
	client   clientOptions
	output   string // text or json
	search   view.Search
	limit    int
	once     bool
	interval time.Duration
}

// inspectSettings lists the flags of routes, problems or top.
func inspectSettings(command string, i *inspectOptions) []option.Option {
	all := append(clientSettings(&i.client), option.Option{Flag: "output", Short: "o", Def: "text", Value: "FORMAT", Set: option.Words(&i.output, "text", "json"), Help: "text or json"})
	order := func(def string) option.Option {
		return option.Option{Flag: "order", Def: def, Value: "ORDER", Set: option.Words(&i.search.Order, "name", "rate", "requests", "errors", "sessions"),
			Help: "name, rate, requests, errors or sessions"}
	}
	switch command {
	case "routes":
		return append(all, order("name"), option.Option{Flag: "limit", Def: "0", Value: "N", Set: option.Into(&i.limit, parseRows), Help: "routes at most; 0 means all"})
	case "top":
		return append(all, order("rate"),
			option.Option{Flag: "once", IsBool: true, Set: option.Into(&i.once, option.ParseBool), Help: "look once, for scripts: with -o json too"},
			option.Option{Flag: "interval", Def: "2s", Value: "TIME", Set: option.Into(&i.interval, option.ParseTimespec), Help: "between two looks"})
	}
	return all
}

func parseRows(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 24)
	if err != nil {
		err = errors.New("allowed: a whole number from 0")
	}
	return int(n), err
}

// runInspect is the subcommands routes, problems and top.
func runInspect(ctx context.Context, command string, args []string, env option.Environment, stdout io.Writer) error {
	i := &inspectOptions{}
	login := &options{}
	table := append(inspectSettings(command, i), loginSettings(login)...)
	flags, words := option.SplitPaths(table, args)
	if _, _, err := option.Parse(table, nil, flags, env); err != nil {
		return err
	}
	if command == "problems" && len(words) > 0 {
		return option.Usagef("problems takes no words, and %q is given", words[0])
	}
	i.search.Text = strings.Join(words, " ")
	client, err := i.client.client(&login.adminPort)
	if err != nil {
		return err
	}
	asJSON := i.output == "json"
	switch {
	case command == "routes":
		return inspect.Routes(ctx, client, i.search, i.limit, asJSON, stdout)
	case command == "problems":
		return inspect.Problems(ctx, client, asJSON, stdout)
	case i.once:
		return inspect.Once(ctx, client, i.search, asJSON, stdout)
	case asJSON || !terminal.Is(stdout):
		return option.Usagef("top shows text on a terminal; give --once for anything else")
	}
	return i.top(ctx, client, stdout)
}

// top runs until a signal.
func (i *inspectOptions) top(ctx context.Context, client *adminclient.Client, stdout io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, syscall.SIGWINCH)
	defer signal.Stop(changes)
	t := &inspect.Top{
		Client: client, Search: i.search, Interval: i.interval, Out: stdout, Resized: changes,
		Size: func() (columns, rows int) { columns, rows, _ = terminal.Size(stdout); return columns, rows },
	}
	return t.Run(ctx)
}

// loginSettings are the options by which a router's admin port has its user and password.
func loginSettings(o *options) []option.Option {
	var table []option.Option
	for _, s := range adminSettings(o) {
		if strings.HasPrefix(s.Flag, "stats-") {
			s.Group = "Login"
			table = append(table, s)
		}
	}
	return table
}
