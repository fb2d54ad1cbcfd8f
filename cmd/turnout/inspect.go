package main

import (
	"context"
	"io"
	"strings"

	"turnout/internal/access"
	"turnout/internal/adminclient"
	"turnout/internal/inspect"
	"turnout/internal/option"
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
	if err := c.ReadToken(c.token); err != nil {
		return nil, err
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
	inspect.Command

	client clientOptions
}

// inspectSettings lists the flags of routes, problems or top.
func inspectSettings(command string, i *inspectOptions) []option.Option {
	return append(clientSettings(&i.client), i.Table(command)...)
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
	client, err := i.client.client(&login.adminPort)
	if err != nil {
		return err
	}
	i.Name, i.Client = command, client
	return i.Run(ctx, words, stdout)
}

// loginSettings are the options by which a router's admin port has its user and password.
func loginSettings(o *options) []option.Option {
	var table []option.Option
	for _, s := range o.adminPort.Table() {
		if strings.HasPrefix(s.Flag, "stats-") {
			s.Group = "Login"
			table = append(table, s)
		}
	}
	return table
}
