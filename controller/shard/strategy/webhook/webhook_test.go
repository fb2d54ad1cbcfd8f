package webhook

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"turnout/controller/shard"
)

func two() []*shard.Router {
	return []*shard.Router{
		{Name: "a", Domain: "a.apps.example.com", Labels: shard.MakeLabels(map[string]string{"zone": "east"}), Bound: 7, Capacity: 10},
		{Name: "b", RequestsPerSecond: 40, RequestsCapacity: 100},
	}
}

func aRoute() *shard.Route {
	return &shard.Route{
		Namespace: "shop", Name: "web", UID: "u", Host: "www.example.com", Path: "/x",
		Labels: shard.MakeLabels(map[string]string{"tier": "gold"}), NamespaceLabels: shard.MakeLabels(map[string]string{"team": "a"}),
	}
}

// hookTo has a server answer, and returns the strategy that asks it.
func hookTo(t *testing.T, timeout time.Duration, answer http.HandlerFunc) *Hook {
	t.Helper()
	server := httptest.NewServer(answer)
	h, err := New(Config{URL: server.URL + "/choose?key=secret", Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close(); server.Close() })
	return h
}

// TestDocuments: what is sent is what docs/sharding.md shows, and the router that is named is chosen.
func TestDocuments(t *testing.T) {
	const want = `{"version":1,"route":{"namespace":"shop","name":"web","uid":"u","host":"www.example.com","path":"/x",` +
		`"labels":{"tier":"gold"},"namespaceLabels":{"team":"a"}},"routers":[` +
		`{"name":"a","labels":{"zone":"east"},"domain":"a.apps.example.com","routes":7,"requestsPerSecond":0,"capacity":10},` +
		`{"name":"b","routes":0,"requestsPerSecond":40,"requestsCapacity":100}]}`
	h := hookTo(t, 0, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if string(body) != want || err != nil || r.Method != http.MethodPost || r.URL.Path != "/choose" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s %s, %v; want %s", r.Method, r.URL, body, err, want)
		}
		_, _ = io.WriteString(w, `{"router": "b", "more": [1]}`)
	})
	routers := two()
	if chosen, err := h.Schedule(aRoute(), routers); err != nil || chosen != routers[1] {
		t.Errorf("%+v, %v", chosen, err)
	}
}

func TestAnswersThatChooseNothing(t *testing.T) {
	long := strings.Repeat("x", maxAnswer)
	for _, c := range []struct {
		status int
		answer string
		want   string
	}{
		{200, `{"router":"c"}`, `the webhook chose router "c", which is none of the 2 that may have the route`},
		{200, `{}`, `the webhook chose router "", which is none`},
		{200, `null`, `the webhook chose router "", which is none`},
		{200, `{"error":"no zone has room"}`, `the webhook says: "no zone has room"`},
		{200, `{"router":`, "cannot read the answer of the webhook: unexpected end of JSON input"},
		{200, `[]`, "cannot read the answer of the webhook: json: cannot unmarshal array"},
		{200, ``, "cannot read the answer of the webhook: unexpected end"},
		{200, `{"router":"` + long + `"}`, "it is longer than 65536 bytes"},
		{200, "\x00\x1b[31m", `"\x00\x1b[31m"`},
		{302, `moved`, `the webhook answered with status 302: "moved"`},
		{500, long[:5000], `the webhook answered with status 500: "` + long[:maxQuoted] + `"`},
		{204, ``, `the webhook answered with status 204: ""`},
	} {
		h := hookTo(t, 0, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.answer)
		})
		chosen, err := h.Schedule(aRoute(), two())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d %.40q: %+v, %v; want %s", c.status, c.answer, chosen, err, c.want)
		}
	}
}

// TestTimeout: a server that does not answer, or not all of it, is not waited for.
func TestTimeout(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	for _, head := range []string{"", `{"router":`} {
		h := hookTo(t, 50*time.Millisecond, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, head)
			if head != "" {
				_ = http.NewResponseController(w).Flush()
			}
			select {
			case <-end:
			case <-r.Context().Done():
			}
		})
		_, err := h.Schedule(aRoute(), two())
		if err == nil || !strings.HasSuffix(err.Error(), "webhook: no answer within 50ms") {
			t.Errorf("after %q: %v", head, err)
		}
	}
}

// TestNobodyThere: the error says what is wrong, and not the URL, which may hold a secret and is shown to the users of routes.
func TestNobodyThere(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	h, err := New(Config{URL: server.URL + "/?key=secret"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Schedule(aRoute(), two())
	if err == nil || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// TestConnectionsAreBounded: more goroutines than permitted share the connections, which are kept.
func TestConnectionsAreBounded(t *testing.T) {
	var mutex sync.Mutex
	connections := map[string]bool{}
	h := hookTo(t, 0, func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		connections[r.RemoteAddr] = true
		mutex.Unlock()
		_ = json.NewEncoder(w).Encode(Answer{Router: "a"})
	})
	var all sync.WaitGroup
	for range 4 * Concurrency {
		all.Go(func() {
			for range 10 {
				if _, err := h.Schedule(aRoute(), two()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := len(connections); n > Concurrency || n == 0 {
		t.Errorf("%d connections, at most %d", n, Concurrency)
	}
	if h.Concurrency() != Concurrency {
		t.Errorf("%d at once", h.Concurrency())
	}
}

func TestAuthorities(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(Answer{Router: "a"})
	}))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for _, c := range []struct {
		ca   []byte
		want string // of the error; "": it is asked
	}{{ca, ""}, {nil, "certificate"}} {
		h, err := New(Config{URL: server.URL, CA: c.ca})
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.Schedule(aRoute(), two())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
		h.Close()
	}
}

func TestConfigsThatCannotBeUsed(t *testing.T) {
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{}, "such as https://"},
		{Config{URL: "chooser.example.com"}, "such as https://"},
		{Config{URL: "ftp://chooser.example.com"}, "such as https://"},
		{Config{URL: "https://"}, "such as https://"},
		{Config{URL: "http://a b"}, "such as https://"},
		{Config{URL: "https://a", CA: []byte("x")}, "caBundle of the webhook: there is no certificate in PEM"},
		{Config{URL: "https://a", CA: key}, `a block of type "PRIVATE KEY" is no certificate`},
		{Config{URL: "https://a", CA: []byte("-----BEGIN CERTIFICATE-----\n")}, "caBundle of the webhook"},
	} {
		if _, err := New(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.config, err, c.want)
		}
	}
}

// FuzzAnswer: whatever a server answers, one of the routers is chosen, or the error is short.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{`{"router":"a"}`, `{"Router":"b"}`, `{"error":"\u0000"}`, `{"router":1}`, `[[[[`, "\xff"} {
		f.Add(text)
	}
	var text string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
	defer server.Close()
	h, err := New(Config{URL: server.URL})
	if err != nil {
		f.Fatal(err)
	}
	defer h.Close()
	f.Fuzz(func(t *testing.T, answer string) {
		text = answer
		chosen, err := h.Schedule(aRoute(), two())
		if (err == nil) != (chosen != nil) || err != nil && len(err.Error()) > 10*maxQuoted {
			t.Errorf("%q: %+v, %v", answer, chosen, err)
		}
	})
}

// TestMetadataIsNoWebhook checks that the shard webhook cannot be a metadata service, which serves
// the credentials of the machine.
func TestMetadataIsNoWebhook(t *testing.T) {
	for _, url := range []string{"http://169.254.169.254/", "http://[fd00:ec2::254]/", "http://[::ffff:100.100.100.200]/"} {
		h, err := New(Config{URL: url, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Schedule(aRoute(), two()); err == nil || !strings.Contains(err.Error(), "cannot connect to") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
