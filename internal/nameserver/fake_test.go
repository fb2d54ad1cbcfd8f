package nameserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
)

// fakeAPI is as much of an API server as turnout dns asks: Routers and RouteBindings to read and watch, DNSEndpoints to write.
type fakeAPI struct {
	url string

	mu      sync.Mutex
	version int
	objects map[string]map[string]any // by resource/namespace/name
	events  []event
	moved   chan struct{} // closed and replaced after each change
}

type event struct {
	plural string
	text   []byte
}

func startAPI(t *testing.T) *fakeAPI {
	t.Helper()
	a := &fakeAPI{objects: map[string]map[string]any{}, moved: make(chan struct{})}
	s := httptest.NewServer(a)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	a.url = s.URL
	return a
}

// put makes or changes an object, given as JSON without metadata but for what is in name: NAME or NAMESPACE/NAME.
func (a *fakeAPI) put(plural, kind, name, text string) {
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	namespace, base := path.Split(name)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	o["kind"], o["apiVersion"] = kind, "turnout.router/v1alpha1"
	o["metadata"] = map[string]any{"name": base, "namespace": strings.TrimSuffix(namespace, "/"), "resourceVersion": fmt.Sprint(a.version), "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
	what := "MODIFIED"
	if a.objects[plural+"/"+name] == nil {
		what = "ADDED"
	}
	a.objects[plural+"/"+name] = o
	a.note(plural, what, o)
}

// remove deletes an object.
func (a *fakeAPI) remove(plural, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.objects[plural+"/"+name]
	delete(a.objects, plural+"/"+name)
	a.note(plural, "DELETED", o)
}

func (a *fakeAPI) note(plural, what string, o map[string]any) {
	text, _ := json.Marshal(map[string]any{"type": what, "object": o})
	a.events = append(a.events, event{plural, text})
	close(a.moved)
	a.moved = make(chan struct{})
}

// endpoint waits until a DNSEndpoint has a text in it.
func (a *fakeAPI) endpoint(t *testing.T, name, want string) {
	t.Helper()
	until(t, "DNSEndpoint "+name+" has "+want, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		text, _ := json.Marshal(a.objects["dnsendpoints/"+name])
		return strings.Contains(string(text), want)
	})
}

// ServeHTTP implements http.Handler.
func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	parts := strings.Split(r.URL.Path, "/")
	plural := parts[len(parts)-1]
	switch {
	case strings.Contains(r.URL.Path, "externaldns.k8s.io"):
		a.endpoints(w, r)
	case r.FormValue("sendInitialEvents") != "": // as API servers that do not know it
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400}`)
	case r.FormValue("watch") != "":
		a.watch(w, r, plural)
	default:
		a.mu.Lock()
		defer a.mu.Unlock()
		items := []any{}
		for key, o := range a.objects {
			if strings.HasPrefix(key, plural+"/") {
				items = append(items, o)
			}
		}
		kind := map[string]string{"routers": "RouterList", "routebindings": "RouteBindingList"}[plural]
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": kind, "apiVersion": "turnout.router/v1alpha1", "metadata": map[string]any{"resourceVersion": fmt.Sprint(len(a.events))}, "items": items,
		})
	}
}

// watch sends events from the number on that the resource version of a list is.
func (a *fakeAPI) watch(w http.ResponseWriter, r *http.Request, plural string) {
	at := 0
	if _, err := fmt.Sscan(r.FormValue("resourceVersion"), &at); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for {
		a.mu.Lock()
		events, moved := a.events[min(at, len(a.events)):], a.moved
		a.mu.Unlock()
		for _, e := range events {
			if at++; e.plural == plural {
				_, _ = w.Write(append(e.text, '\n'))
			}
		}
		w.(http.Flusher).Flush()
		select {
		case <-moved:
		case <-r.Context().Done():
			return
		}
	}
}

func (a *fakeAPI) endpoints(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := "dnsendpoints/" + path.Base(r.URL.Path)
	switch r.Method {
	case http.MethodGet:
		fmt.Fprint(w, `{"kind":"DNSEndpointList","apiVersion":"externaldns.k8s.io/v1alpha1","metadata":{},"items":[]}`)
	case http.MethodPatch:
		body, _ := io.ReadAll(r.Body)
		var o map[string]any
		_ = json.Unmarshal(body, &o)
		a.objects[name] = o
		_, _ = w.Write(body)
	case http.MethodDelete:
		delete(a.objects, name)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	}
}
