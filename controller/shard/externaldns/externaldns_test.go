package externaldns

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"turnout/controller/shard/zones"
	"turnout/internal/dns/zone"
	"turnout/internal/problem"
)

// fakeAPI is as much of an API server as a Writer asks.
type fakeAPI struct {
	mu      sync.Mutex
	objects map[string]map[string]any // by name
	asked   []string
	fail    int // status of each answer; 0 = none
	moved   chan struct{}
}

func startAPI(t *testing.T) (*fakeAPI, *rest.Config) {
	t.Helper()
	a := &fakeAPI{objects: map[string]map[string]any{}, moved: make(chan struct{})}
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	return a, &rest.Config{Host: s.URL}
}

// ServeHTTP implements http.Handler.
func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() {
		close(a.moved)
		a.moved = make(chan struct{})
	}()
	const all = "/apis/externaldns.k8s.io/v1alpha1/namespaces/dns/dnsendpoints"
	name := path.Base(r.URL.Path)
	a.asked = append(a.asked, r.Method+" "+strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, all), "/"))
	w.Header().Set("Content-Type", "application/json")
	answer := func(status int, v any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	switch {
	case a.fail != 0:
		answer(a.fail, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": a.fail, "reason": strings.ReplaceAll(http.StatusText(a.fail), " ", ""), "message": "no"})
	case !strings.HasPrefix(r.URL.Path, all) || r.Method == http.MethodGet && r.FormValue("labelSelector") != zones.EndpointLabel:
		answer(http.StatusNotFound, nil)
	case r.Method == http.MethodGet: // in pages of one
		names := slices.Sorted(maps.Keys(a.objects))
		from := 0
		if c := r.FormValue("continue"); c != "" {
			from = slices.Index(names, c)
		}
		list := map[string]any{"kind": "DNSEndpointList", "apiVersion": "externaldns.k8s.io/v1alpha1", "metadata": map[string]any{}, "items": []any{}}
		if from < len(names) {
			list["items"] = []any{a.objects[names[from]]}
		}
		if from+1 < len(names) {
			list["metadata"] = map[string]any{"continue": names[from+1]}
		}
		answer(http.StatusOK, list)
	case r.Method == http.MethodPatch:
		body, _ := io.ReadAll(r.Body)
		var o map[string]any
		if err := json.Unmarshal(body, &o); err != nil || r.Header.Get("Content-Type") != "application/apply-patch+yaml" || r.FormValue("fieldManager") != manager || r.FormValue("force") != "true" {
			answer(http.StatusBadRequest, nil)
			return
		}
		a.objects[name] = o
		answer(http.StatusOK, o)
	case r.Method == http.MethodDelete:
		delete(a.objects, name)
		answer(http.StatusOK, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	}
}

// until waits until cond holds, which is called with a.mu held.
func (a *fakeAPI) until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		a.mu.Lock()
		ok, moved := cond(), a.moved
		a.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-moved:
		case <-deadline:
			t.Fatalf("never: %s; asked %q", what, a.asked)
		}
	}
}

// summary is what there is.
func (a *fakeAPI) summary() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(a.objects)) {
		spec, _ := a.objects[name]["spec"].(map[string]any)
		endpoints, _ := spec["endpoints"].([]any)
		var names []string
		for _, e := range endpoints {
			m, _ := e.(map[string]any)
			names = append(names, fmt.Sprint(m["dnsName"], m["targets"]))
		}
		all = append(all, name+": "+strings.Join(names, " "))
	}
	return strings.Join(all, "; ")
}

func shard(router, address string) zones.Shard {
	return zones.Shard{Router: router, Spec: zone.Spec{Origin: router + ".test", TTL: 30, Addresses: []netip.Addr{netip.MustParseAddr(address)}}}
}

func run(t *testing.T, cfg Config) *Writer {
	t.Helper()
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

func TestWrites(t *testing.T) {
	a, reach := startAPI(t)
	for _, name := range []string{"gone--0", "one--7"} {
		a.objects[name] = map[string]any{"kind": "DNSEndpoint", "apiVersion": "externaldns.k8s.io/v1alpha1", "metadata": map[string]any{"name": name, "labels": map[string]any{zones.EndpointLabel: "gone"}}, "spec": map[string]any{"endpoints": []any{}}}
	}
	w := run(t, Config{Reach: reach, Namespace: "dns"})
	w.Publish([]zones.Shard{shard("one", "10.0.0.1"), shard("two", "10.0.0.2")})
	const two = "; two--0: two.test[10.0.0.2] *.two.test[10.0.0.2]"
	a.until(t, "both", func() bool { return a.summary() == "one--0: one.test[10.0.0.1] *.one.test[10.0.0.1]"+two })
	a.mu.Lock()
	a.asked = nil
	a.mu.Unlock()
	w.Publish([]zones.Shard{shard("one", "10.0.0.3"), shard("two", "10.0.0.2")})
	a.until(t, "a change", func() bool { return a.summary() == "one--0: one.test[10.0.0.3] *.one.test[10.0.0.3]"+two })
	a.mu.Lock()
	if got := strings.Join(a.asked, ", "); got != "PATCH one--0" {
		t.Errorf("asked %s", got)
	}
	a.mu.Unlock()
	w.Publish(nil)
	a.until(t, "none", func() bool { return a.summary() == "" })
	if w.Errors() != 0 {
		t.Errorf("%d errors", w.Errors())
	}
}

// TestWhatIsThere: another process that begins writes nothing that is there already.
func TestWhatIsThere(t *testing.T) {
	a, reach := startAPI(t)
	shards := []zones.Shard{shard("one", "10.0.0.1"), shard("two", "10.0.0.2")}
	run(t, Config{Reach: reach, Namespace: "dns"}).Publish(shards)
	a.until(t, "both", func() bool { return len(a.objects) == 2 })
	a.mu.Lock()
	a.asked = nil
	a.mu.Unlock()
	other := run(t, Config{Reach: reach, Namespace: "dns"})
	other.Publish(shards)
	a.until(t, "read", func() bool { return len(a.asked) == 2 })
	other.Publish([]zones.Shard{shards[0], shard("two", "10.0.0.9")})
	a.until(t, "a change", func() bool { return strings.Contains(a.summary(), "10.0.0.9") })
	a.mu.Lock()
	defer a.mu.Unlock()
	if got := strings.Join(a.asked, ", "); got != "GET , GET , PATCH two--0" {
		t.Errorf("asked %s", got)
	}
}

// TestRepairs: what others change is written again after a while.
func TestRepairs(t *testing.T) {
	a, reach := startAPI(t)
	run(t, Config{Reach: reach, Namespace: "dns", Again: 5 * time.Millisecond}).Publish([]zones.Shard{shard("one", "10.0.0.1")})
	a.until(t, "there", func() bool { return len(a.objects) == 1 })
	a.mu.Lock()
	delete(a.objects, "one--0")
	a.mu.Unlock()
	a.until(t, "there again", func() bool { return len(a.objects) == 1 })
}

// TestFailures: they are told once, and what could not be written is written later.
func TestFailures(t *testing.T) {
	for status, want := range map[int]string{http.StatusForbidden: "cannot list DNSEndpoints", http.StatusNotFound: "does not know DNSEndpoints", http.StatusInternalServerError: "cannot list"} {
		a, reach := startAPI(t)
		a.fail = status
		problems := problem.NewList()
		w := run(t, Config{Reach: reach, Namespace: "dns", Problems: problems, First: time.Millisecond, Last: 4 * time.Millisecond})
		w.Publish([]zones.Shard{shard("one", "10.0.0.1")})
		a.until(t, "tried again", func() bool { return len(a.asked) > 4 })
		if all, _ := problems.All("", 100); w.Errors() < 2 || len(slices.Collect(all)) != 1 {
			t.Errorf("%d: %d errors", status, w.Errors())
		} else {
			for p := range all {
				if !strings.Contains(p.Text, want) {
					t.Errorf("%d: %s", status, p.Text)
				}
			}
		}
		a.mu.Lock()
		a.fail = 0
		a.mu.Unlock()
		a.until(t, "written", func() bool { return len(a.objects) == 1 })
		w.Publish(nil)
		a.until(t, "deleted", func() bool { return len(a.objects) == 0 })
	}
}

func TestWrongConfig(t *testing.T) {
	for _, cfg := range []Config{{}, {Reach: &rest.Config{}}, {Reach: &rest.Config{Host: "::not a url"}, Namespace: "dns"}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
}
