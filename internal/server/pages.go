package server

import (
	"fmt"
	"os"

	"turnout/internal/problem"
	"turnout/proxy"
	"turnout/proxy/h1"
)

// Pages are the files of HTTP responses that the router answers with in the place of its own.
type Pages struct {
	Unavailable string // 503; "" = none
	NotFound    string // 404 for requests without a route; "" = they get the answer 503, or what OwnNotFound says
	OwnNotFound bool   // without NotFound they get the router's own 404 where the table says that nothing is there

	// What is in the place of the files, which then only name it; nil = the files count.
	UnavailableContent, NotFoundContent []byte
}

// Load reads the files. One that cannot be used is logged, and the router's own
// page stands in: a router without a fancy page serves better than none.
func (p *Pages) Load(c *proxy.Config, log Logger, problems *problem.List) {
	failed := func(status int, file string, err error) {
		const text = "error page"
		log(Error, text, Field{"status", status}, Field{"file", file}, Field{"error", err})
		problems.Set("file/"+file, problem.Problem{Kind: problem.File, File: file, Text: text + ": " + err.Error()})
	}
	for _, file := range []string{p.Unavailable, p.NotFound} {
		problems.Set("file/" + file)
	}
	var err error
	if c.Unavailable, err = loadPage(p.Unavailable, p.UnavailableContent); err != nil {
		failed(503, p.Unavailable, err)
	}
	if p.OwnNotFound {
		c.NotFoundOfHosts = proxy.DefaultNotFound()
	}
	if p.NotFound != "" {
		if c.NotFound, err = loadPage(p.NotFound, p.NotFoundContent); err != nil {
			failed(404, p.NotFound, err)
			c.NotFound = proxy.DefaultNotFound()
		}
	}
}

// loadPage reads an error file, or content in its place; nil without a name.
func loadPage(name string, content []byte) (*proxy.ErrorPage, error) {
	switch {
	case name == "":
		return nil, nil
	case content != nil:
		return h1.ParseErrorFile(content)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read error file: %w", err)
	}
	return h1.ParseErrorFile(raw)
}
