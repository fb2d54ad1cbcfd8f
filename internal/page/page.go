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
	shardsPath   = root + "shards"
	bindingsPath = root + "bindings"
)

//go:embed index.html scheduler.html page.css page.js parts.js shards.js scheduler.js
var files embed.FS

// kinds are the files below root, with their types.
var kinds = map[string]string{
	"page.css": "text/css; charset=utf-8", "page.js": script, "parts.js": script, "shards.js": script, "scheduler.js": script,
}

const script = "text/javascript; charset=utf-8"

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
	h := &Handler{viewer: viewer, shared: shared{take: func() any { return viewer.Overview() }, clock: cfg.Clock}}
	return h, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; path {
	case "/":
		servePage(w, "index.html")
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
	case shardsPath:
		if h.viewer.Sharded() {
			b, err := h.viewer.Shards(r.Context())
			tell(w, b, err)
			return
		}
		fail(w, http.StatusNotFound, errNotFound)
	default:
		if !serveFile(w, path) {
			h.route(w, strings.TrimPrefix(path, routesPath+"/"), r.URL.Query().Get("kind"))
		}
	}
}

var errNotFound = errors.New("not found")

// route answers with one route, NAMESPACE/NAME, of a kind, "" for Route.
func (h *Handler) route(w http.ResponseWriter, of, kind string) {
	namespace, name, _ := strings.Cut(of, "/")
	route, ok := h.viewer.Route(kind, namespace, name)
	if !ok {
		fail(w, http.StatusNotFound, errNotFound)
		return
	}
	answer(w, route)
}

// servePage answers with a document.
func servePage(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Security-Policy", policy)
	write(w, name, "text/html; charset=utf-8")
}

// serveFile answers with a file below root, if there is one of that path.
func serveFile(w http.ResponseWriter, path string) bool {
	name := strings.TrimPrefix(path, root)
	kind, ok := kinds[name]
	if ok {
		write(w, name, kind)
	}
	return ok
}

func write(w http.ResponseWriter, name, kind string) {
	content, err := files.ReadFile(name)
	if err != nil {
		fail(w, http.StatusInternalServerError, errors.New("BUG: the file is not in the program"))
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

// tell answers with a value, or says why there is none now.
func tell[T any](w http.ResponseWriter, value T, err error) {
	if err != nil {
		fail(w, http.StatusServiceUnavailable, err)
		return
	}
	answer(w, value)
}
