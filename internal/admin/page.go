package admin

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// Where the page for people is, and below what it has its files and data; the events among them go on for a while.
const (
	pagePath    = "/"
	pagePrefix  = "/view/"
	pageStreams = pagePrefix + "events"
)

// How many answers of the page and how many streams of events are under way at a time, in all and for one source, and how long a stream may
// go on: a browser comes back after that, and nobody keeps a place for good.
const (
	mostViews, viewShare     = 8, 4
	mostStreams, streamShare = 16, 4
	longestStream            = 45 * time.Second
)

// page answers for the page, nil for a path that is not of it.
func (s *Server) page(path string) http.HandlerFunc {
	switch {
	case s.cfg.Page == nil || path != pagePath && !strings.HasPrefix(path, pagePrefix):
		return nil
	case path == pageStreams:
		return s.bounded(s.streams, func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), longestStream)
			defer cancel()
			defer context.AfterFunc(s.leaving, cancel)()
			s.cfg.Page.ServeHTTP(w, r.WithContext(ctx))
		})
	}
	return s.bounded(s.views, s.cfg.Page.ServeHTTP)
}
