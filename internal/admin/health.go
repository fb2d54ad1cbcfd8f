package admin

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// check is one condition of /healthz or /healthz/ready, by the name probes of the
// HAProxy router know.
type check struct {
	name string
	test func() error
}

// checks are those of one path; nil for other paths.
func (s *Server) checks(group string) []check {
	switch group {
	case "/healthz":
		return optional([]check{{"controller", func() error { return nil }}}, check{"event-loops", s.cfg.Alive})
	case "/healthz/ready":
		name := "backend-http"
		if s.cfg.Proxied {
			name = "backend-proxy-http"
		}
		return optional([]check{{"has-synced", s.hasSynced}, {"process-running", s.running}}, check{name, s.serving()})
	}
	return nil
}

// serving is the check of those who answer clients: the event loops, and a URL if one is given. nil = nobody knows.
func (s *Server) serving() func() error {
	if s.readyURL == nil {
		return s.cfg.Serving
	}
	return func() error {
		if s.cfg.Serving != nil {
			if err := s.cfg.Serving(); err != nil {
				return err
			}
		}
		return s.readyURL.check()
	}
}

// optional adds a check if there is somebody who makes it.
func optional(checks []check, more check) []check {
	if more.test == nil {
		return checks
	}
	return append(checks, more)
}

// hasSynced: the first table that knows every object is published.
func (s *Server) hasSynced() error {
	select {
	case <-s.cfg.Ready:
		return nil
	default:
		return errors.New("router not synced")
	}
}

// running: nobody has asked the process to end.
func (s *Server) running() error {
	if s.stopping.Load() {
		return errors.New("process is terminating")
	}
	return nil
}

// report runs the checks: 200 "ok", or 500 with a line for each. verbose in the
// query asks for the lines in any case.
func report(w http.ResponseWriter, r *http.Request, name string, checks []check) {
	var lines strings.Builder
	failed := false
	for _, c := range checks {
		if err := c.test(); err != nil {
			failed = true
			fmt.Fprintf(&lines, "[-]%s failed: %v\n", c.name, err)
		} else {
			fmt.Fprintf(&lines, "[+]%s ok\n", c.name)
		}
	}
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case failed:
		say(w, http.StatusInternalServerError, lines.String()+name+" check failed\n")
	case r.URL.Query().Has("verbose"):
		say(w, http.StatusOK, lines.String()+name+" check passed\n")
	default:
		say(w, http.StatusOK, "ok\n")
	}
}
