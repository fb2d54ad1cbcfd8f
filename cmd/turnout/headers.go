package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"turnout/internal/wire/http1"
	"turnout/proxy"
	"turnout/routing/header"
)

// headerOptions are the options about header fields of messages that are not in the configuration of the request path as they are.
type headerOptions struct {
	captures                   proxy.Captures
	uniqueFormat, uniqueHeader string
}

func headerSettings(o *options) []setting {
	h, p := &o.headers, &o.server.Proxy
	return []setting{
		{flag: "set-delete-http-request-header", env: "ROUTER_HTTP_REQUEST_HEADERS", value: "LIST", envStops: true,
			set: into(&p.RequestActions, parseActions(header.Request)), help: "header actions on every request: NAME:VALUE:Set or NAME:Delete, percent-encoded"},
		{flag: "set-delete-http-response-header", env: "ROUTER_HTTP_RESPONSE_HEADERS", value: "LIST", envStops: true,
			set: into(&p.ResponseActions, parseActions(header.Response)), help: "the same on every response of a pod"},
		{flag: "max-rewrite-size", env: "ROUTER_MAX_REWRITE_SIZE", def: "8192", value: "BYTES", set: into(&p.MaxRewrite, parseBytes),
			help: "how much header actions and rewrite-target may add to a message"},
		{flag: "loop-id", env: "TURNOUT_LOOP_ID", value: "ID", set: into(&p.LoopID, parseHeaderName),
			help: "what is added to CDN-Loop of requests, so that loops end; the default is turnout- and --name"},
		{flag: "http-header-name-case-adjustments", env: "ROUTER_H1_CASE_ADJUST", value: "LIST", envStops: true,
			set: into(&o.server.Adjust, parseAdjust), help: "header names to be spelled so: in responses, and in requests of routes with h1-adjust-case"},
		{flag: "mutual-tls-header-filter", env: "ROUTER_MUTUAL_TLS_HEADER_FILTER", def: "true", isBool: true,
			set: into(&p.KeepClientIdentity, not(parseBool)), help: "remove X-SSL-* headers that clients send"},
		{flag: "unique-id-format", env: "ROUTER_UNIQUE_ID_FORMAT", value: "FORMAT", set: into(&h.uniqueFormat, parseUniqueFormat),
			help: "format of an id that each request gets; needs --unique-id-header-name"},
		{flag: "unique-id-header-name", env: "ROUTER_UNIQUE_ID_HEADER_NAME", value: "NAME", set: into(&h.uniqueHeader, parseHeaderName),
			help: "request header that carries the id; needs --unique-id-format"},
		{flag: "capture-http-request-headers", env: "ROUTER_CAPTURE_HTTP_REQUEST_HEADERS", value: "LIST", envStops: true,
			set: into(&h.captures.Request, parseCaptures), help: "request headers the access log keeps, each NAME:LENGTH"},
		{flag: "capture-http-response-headers", env: "ROUTER_CAPTURE_HTTP_RESPONSE_HEADERS", value: "LIST", envStops: true,
			set: into(&h.captures.Response, parseCaptures), help: "response headers the access log keeps, each NAME:LENGTH"},
		{flag: "capture-http-cookie", env: "ROUTER_CAPTURE_HTTP_COOKIE", value: "NAME:LENGTH", envStops: true,
			set: into(&h.captures.Cookie, parseCookieCapture), help: "cookie the access log keeps: names that begin with NAME, or exactly NAME=:LENGTH"},
	}
}

// complete gives the request path what follows from several options. A router without a loop id has that of all replicas, which
// have the same name.
func (h *headerOptions) complete(o *options) {
	o.server.Proxy.Captures = h.captured()
	if o.server.Proxy.LoopID != "" {
		return
	}
	id := []byte("turnout-" + o.name)
	for i, c := range id {
		if !header.IsName(string(c)) {
			id[i] = '-'
		}
	}
	o.server.Proxy.LoopID = string(id)
}

// captured is what is captured, nil for nothing.
func (h *headerOptions) captured() *proxy.Captures {
	if n := &h.captures; len(n.Request)+len(n.Response) > 0 || n.Cookie.Name != "" {
		return n
	}
	return nil
}

// uniqueID makes the id, nil when it is not configured in full.
func (h *headerOptions) uniqueID(log *zap.Logger) (*proxy.UniqueID, error) {
	if h.uniqueFormat == "" || h.uniqueHeader == "" {
		if h.uniqueFormat+h.uniqueHeader != "" {
			log.Warn("unique id: format and header name are needed both; requests get none")
		}
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	id, warnings, err := proxy.NewUniqueID(proxy.UniqueIDConfig{Format: h.uniqueFormat, Header: h.uniqueHeader, PID: os.Getpid(), Host: host})
	for _, w := range warnings {
		log.Warn(w)
	}
	return id, err
}

// parseActions reads a list of header actions for one side.
func parseActions(side header.Side) func(string) (*header.Actions, error) {
	return func(s string) (*header.Actions, error) {
		if s == "" {
			return nil, nil
		}
		list, err := header.ParseList(s)
		if err != nil {
			return nil, err
		}
		actions, errs := header.Compile(side, list)
		return actions, errors.Join(errs...)
	}
}

func parseAdjust(s string) (http1.AdjustName, error) {
	if s == "" {
		return nil, nil
	}
	names := strings.Split(s, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return http1.NewAdjust(names)
}

// parseUniqueFormat reads a format, which an operator delivers in double quotes.
func parseUniqueFormat(s string) (string, error) {
	s, err := unquote(s)
	if err == nil {
		_, _, err = proxy.NewUniqueID(proxy.UniqueIDConfig{Format: s, Header: "x"})
	}
	return s, err
}

// unquote takes the double quotes off that an operator puts around a format.
func unquote(s string) (string, error) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s, nil
	}
	plain, err := strconv.Unquote(s)
	if err != nil {
		return "", fmt.Errorf("cannot read the quoted text: %w", err)
	}
	return plain, nil
}

func parseHeaderName(s string) (string, error) {
	if s != "" && !header.IsName(s) {
		return "", fmt.Errorf("invalid HTTP header name: %s", s)
	}
	return s, nil
}

// parseBytes reads a number of bytes that is kept in memory per message.
func parseBytes(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || n == 0 || n > 1<<20 {
		return 0, errors.New("allowed: a number of bytes from 1 to 1048576")
	}
	return int(n), nil
}

// parseCaptures reads NAME:LENGTH items.
func parseCaptures(s string) ([]proxy.Capture, error) {
	var list []proxy.Capture
	for _, item := range parseList(s) {
		name, length, ok := strings.Cut(item, ":")
		if !ok || strings.Contains(length, ":") {
			return nil, fmt.Errorf("invalid HTTP header capture specification: %s", item)
		}
		if !header.IsName(name) {
			return nil, fmt.Errorf("invalid HTTP header name: %s", name)
		}
		most, err := parseCaptureLength(length)
		if err != nil {
			return nil, err
		}
		list = append(list, proxy.NewCapture(name, most))
	}
	return list, nil
}

// parseCookieCapture reads NAME:LENGTH, a prefix of cookie names, or NAME=:LENGTH.
func parseCookieCapture(s string) (proxy.Capture, error) {
	if s == "" {
		return proxy.Capture{}, nil
	}
	name, length, ok := strings.Cut(s, ":")
	if !ok || strings.Contains(length, ":") {
		return proxy.Capture{}, fmt.Errorf("invalid HTTP cookie capture specification: %s", s)
	}
	if bare := strings.TrimSuffix(name, "="); !header.IsName(bare) {
		return proxy.Capture{}, fmt.Errorf("invalid HTTP cookie name: %s", bare)
	}
	most, err := parseCaptureLength(length)
	return proxy.Capture{Name: name, Max: most}, err
}

func parseCaptureLength(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 4096 {
		return 0, fmt.Errorf("invalid capture length %q; allowed: 1 to 4096", s)
	}
	return n, nil
}
