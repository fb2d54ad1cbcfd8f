// Package page is the router's page for people: files for browsers, embedded, and the JSON and the events that they show. It reads only.
package page

import (
	"embed"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"turnout/internal/view"
)

// root is what all paths but / begin with; the admin port sends them here.
const root = "/view/"

// Paths of what is shown.
const (
	eventsPath   = root + "events"
	overviewPath = root + "overview"
	routesPath   = root + "routes"
	settingsPath = root + "settings"
)

//go:embed index.html page.css page.js
var files embed.FS

// policy lets browsers load the page's own files and data, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler answers / and what is below root.
type Handler struct {
	viewer *view.Viewer
	shared shared
}

// New returns the page of a router. The error is that of the viewer.
func New(cfg view.Config) (*Handler, error) {
	viewer, err := view.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Handler{viewer: viewer, shared: shared{take: viewer.Overview, clock: cfg.Clock}}, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; path {
	case "/":
		w.Header().Set("Content-Security-Policy", policy)
		serveFile(w, "index.html", "text/html; charset=utf-8")
	case root + "page.css":
		serveFile(w, "page.css", "text/css; charset=utf-8")
	case root + "page.js":
		serveFile(w, "page.js", "text/javascript; charset=utf-8")
	case overviewPath:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(h.shared.snapshot()) // the client has gone, or sees it
	case eventsPath:
		h.stream(w, r)
	case settingsPath:
		answer(w, h.viewer.Settings())
	case routesPath:
		search, err := view.ParseSearch(r.URL.Query().Get)
		if err != nil {
			fail(w, http.StatusBadRequest, err)
			return
		}
		answer(w, h.viewer.Routes(search))
	default:
		h.route(w, strings.TrimPrefix(path, routesPath+"/"))
	}
}

var errNotFound = errors.New("not found")

// route answers with one route, NAMESPACE/NAME.
func (h *Handler) route(w http.ResponseWriter, of string) {
	namespace, name, _ := strings.Cut(of, "/")
	route, ok := h.viewer.Route(namespace, name)
	if !ok {
		fail(w, http.StatusNotFound, errNotFound)
		return
	}
	answer(w, route)
}

func serveFile(w http.ResponseWriter, name, kind string) {
	content, err := files.ReadFile(name)
	if err != nil {
		fail(w, http.StatusNotFound, errNotFound)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(content) // as above
}

func answer(w http.ResponseWriter, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		fail(w, http.StatusInternalServerError, errors.New("cannot encode the answer"))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n')) // as above
}

func fail(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, err.Error()+"\n") // as above
}
