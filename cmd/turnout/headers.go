package main

import (
	"turnout/internal/option"
	"turnout/internal/wire/http1"
	"turnout/proxy"
	"turnout/routing/header"
)

// headerOptions are the options about header fields of messages that are not in the configuration of the request path as they are.
type headerOptions struct {
	captures                   proxy.Captures
	uniqueFormat, uniqueHeader string
}

func headerSettings(o *options) []option.Option {
	h, p := &o.headers, &o.server.Proxy
	return []option.Option{
		{Flag: "set-delete-http-request-header", Env: "ROUTER_HTTP_REQUEST_HEADERS", Value: "LIST", EnvStops: true, Secret: true,
			Set: option.Into(&p.RequestActions, header.ParseActions(header.Request)), Help: "header actions on every request: NAME:VALUE:Set or NAME:Delete, percent-encoded"},
		{Flag: "set-delete-http-response-header", Env: "ROUTER_HTTP_RESPONSE_HEADERS", Value: "LIST", EnvStops: true,
			Set: option.Into(&p.ResponseActions, header.ParseActions(header.Response)), Help: "the same on every response of a pod"},
		{Flag: "max-rewrite-size", Env: "ROUTER_MAX_REWRITE_SIZE", Def: "8192", Value: "BYTES", Set: option.Into(&p.MaxRewrite, option.ParseBytes),
			Help: "how much header actions and rewrite-target may add to a message"},
		{Flag: "loop-id", Env: "TURNOUT_LOOP_ID", Value: "ID", Set: option.Into(&p.LoopID, header.ParseName),
			Help: "what is added to CDN-Loop of requests, so that loops end; the default is turnout- and --name"},
		{Flag: "http-header-name-case-adjustments", Env: "ROUTER_H1_CASE_ADJUST", Value: "LIST", EnvStops: true,
			Set: option.Into(&o.server.Adjust, http1.ParseAdjust), Help: "header names to be spelled so: in responses, and in requests of routes with h1-adjust-case"},
		{Flag: "mutual-tls-header-filter", Env: "ROUTER_MUTUAL_TLS_HEADER_FILTER", Def: "true", IsBool: true,
			Set: option.Into(&p.KeepClientIdentity, option.Not(option.ParseBool)), Help: "remove X-SSL-* headers that clients send"},
		{Flag: "unique-id-format", Env: "ROUTER_UNIQUE_ID_FORMAT", Value: "FORMAT", Set: option.Into(&h.uniqueFormat, option.Quoted(proxy.CheckUniqueFormat)),
			Help: "format of an id that each request gets; needs --unique-id-header-name"},
		{Flag: "unique-id-header-name", Env: "ROUTER_UNIQUE_ID_HEADER_NAME", Value: "NAME", Set: option.Into(&h.uniqueHeader, header.ParseName),
			Help: "request header that carries the id; needs --unique-id-format"},
		{Flag: "capture-http-request-headers", Env: "ROUTER_CAPTURE_HTTP_REQUEST_HEADERS", Value: "LIST", EnvStops: true,
			Set: option.Into(&h.captures.Request, proxy.ParseCaptures), Help: "request headers the access log keeps, each NAME:LENGTH"},
		{Flag: "capture-http-response-headers", Env: "ROUTER_CAPTURE_HTTP_RESPONSE_HEADERS", Value: "LIST", EnvStops: true,
			Set: option.Into(&h.captures.Response, proxy.ParseCaptures), Help: "response headers the access log keeps, each NAME:LENGTH"},
		{Flag: "capture-http-cookie", Env: "ROUTER_CAPTURE_HTTP_COOKIE", Value: "NAME:LENGTH", EnvStops: true,
			Set: option.Into(&h.captures.Cookie, proxy.ParseCookieCapture), Help: "cookie the access log keeps: names that begin with NAME, or exactly NAME=:LENGTH"},
	}
}

// complete gives the request path what follows from several options. A router without a loop id has that of all replicas, which
// have the same name.
func (h *headerOptions) complete(o *options) {
	o.server.Proxy.Captures = h.captured()
	if o.server.Proxy.LoopID == "" {
		o.server.Proxy.LoopID = header.NameOf("turnout-" + o.control.RouterName)
	}
}

// captured is what is captured, nil for nothing.
func (h *headerOptions) captured() *proxy.Captures {
	if n := &h.captures; len(n.Request)+len(n.Response) > 0 || n.Cookie.Name != "" {
		return n
	}
	return nil
}
