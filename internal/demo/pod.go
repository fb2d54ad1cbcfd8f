package demo

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// pod is one backend: an HTTP server that answers with what it saw, and echoes
// WebSocket messages.
type pod struct {
	name, service string
	tls           bool
	listener      net.Listener
	server        *fasthttp.Server
	ended         chan struct{} // closed when the server has ended
}

// answer is what a pod says to every request.
type answer struct {
	Pod     string            `json:"pod"`
	Service string            `json:"service"`
	Method  string            `json:"method"`
	Path    string            `json:"path"` // with the query, as received
	TLS     bool              `json:"tls"`  // between router and pod
	Body    int               `json:"body"` // bytes received
	Headers map[string]string `json:"headers"`
}

// startPod listens on a loopback port of the system's choice. A certificate makes
// it speak TLS.
func startPod(name, service string, certificate *tls.Certificate) (*pod, error) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot start pod %s: %w", name, err)
	}
	p := &pod{name: name, service: service, tls: certificate != nil, listener: ln, ended: make(chan struct{})}
	p.server = &fasthttp.Server{
		Handler:                       p.serve,
		Name:                          "turnout-demo-pod",
		DisableHeaderNamesNormalizing: true,
		CloseOnShutdown:               true,
		Logger:                        silent{},
	}
	serveOn := ln
	if certificate != nil {
		serveOn = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12})
	}
	go p.run(serveOn)
	return p, nil
}

// run serves until close. A broken listener ends it too: the router then answers 503.
func (p *pod) run(ln net.Listener) {
	defer close(p.ended)
	_ = p.server.Serve(ln)
}

func (p *pod) addr() netip.AddrPort { return p.listener.Addr().(*net.TCPAddr).AddrPort() }

// close stops listening, closes idle connections and waits a moment for busy ones.
func (p *pod) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := p.server.ShutdownWithContext(ctx)
	_ = p.listener.Close() // closed already, unless the server had not begun to serve
	<-p.ended
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("cannot stop pod %s: %w", p.name, err)
	}
	return nil
}

func (p *pod) serve(ctx *fasthttp.RequestCtx) {
	if strings.EqualFold(field(ctx, "upgrade"), "websocket") {
		p.upgrade(ctx)
		return
	}
	headers := map[string]string{}
	for k, v := range ctx.Request.Header.All() {
		name := strings.ToLower(string(k))
		if old, ok := headers[name]; ok {
			headers[name] = old + ", " + string(v)
		} else {
			headers[name] = string(v)
		}
	}
	text, err := json.Marshal(answer{
		Pod: p.name, Service: p.service, Method: string(ctx.Method()), Path: string(ctx.RequestURI()),
		TLS: p.tls, Body: len(ctx.PostBody()), Headers: headers,
	})
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
		return
	}
	ctx.SetContentType("application/json")
	ctx.SetBody(append(text, '\n'))
}

// field is the first value of a header field, whatever the case of its name: the
// server keeps names as they came.
func field(ctx *fasthttp.RequestCtx, name string) string {
	for k, v := range ctx.Request.Header.All() {
		if strings.EqualFold(string(k), name) {
			return string(v)
		}
	}
	return ""
}

// silent drops the server's complaints about connections that break.
type silent struct{}

func (silent) Printf(string, ...any) {}
