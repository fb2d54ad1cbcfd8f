package admin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// ask sends one request and returns the answer with its body.
func (s testServer) ask(method, path, body string, change func(*http.Request)) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequest(method, "http://"+s.Addr().String()+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer, string(text)
}

// TestHostIsChecked: a site that points its name at this port reads nothing of what is open to those who come without a login.
func TestHostIsChecked(t *testing.T) {
	open := startWith(t, func(cfg *Config) { cfg.Hosts, cfg.Namespace = []string{"router.example.com"}, "openshift-ingress" })
	asked := startWith(t, func(cfg *Config) {
		cfg.Login, cfg.Namespace = user("admin", "secret"), "openshift-ingress"
		cfg.Login.Review = func(_ context.Context, _, _, _, _ string) (int, string) { return 200, "" }
	})
	for host, status := range map[string]int{
		"evil.example.com": 421, "evil.example.com:1936": 421, "router.example.com": 200, "Router.Example.Com.:1936": 200, "localhost:1": 200, "a.localhost": 200,
		"127.0.0.1": 200, "[::1]:1936": 200, "[fe80::1]": 200, "10.0.0.1:1936": 200, "router": 200, "router-internal.openshift-ingress.svc": 200,
		"router.openshift-ingress.svc.cluster.local:1936": 200, "10-0-0-1.a.pod.cluster.local": 200, "svc.example.com": 421, "127.0.0.1.example.com": 421, "notlocalhost.com": 421,
		"a.tenant.svc": 421, "a.tenant.svc.cluster.local:1936": 421, "router.openshift-ingress.svc.tenant.svc": 421, "x.openshift-ingress.tenant.svc": 421, "openshift-ingress.svc": 421,
		"a.router.openshift-ingress.svc": 421, "evil.a.pod.cluster.local": 421, "a.10-0-0-1.a.pod.cluster.local": 421, "pod.cluster.local": 421, "a.cluster.local": 421,
		"router.example.com.evil.org": 421, "evil-router.example.com": 421, "a.router.example.com": 421, "localhost.evil.org": 421, "router.example.com..": 421, "[evil.org]": 421,
	} {
		named := func(r *http.Request) { r.Host = host }
		if answer, text := open.ask("GET", "/metrics", "", named); answer.StatusCode != status {
			t.Errorf("%s: %d %s, want %d", host, answer.StatusCode, text, status)
		}
		if answer, _ := open.ask("GET", "/healthz", "", named); answer.StatusCode != 200 {
			t.Errorf("%s: a probe gets %d", host, answer.StatusCode)
		}
		// Nobody who is let in as everybody is may come by another name, and who shows a login may.
		if answer, _ := asked.ask("GET", "/metrics", "", named); answer.StatusCode != status && host != "router.example.com" && host != "Router.Example.Com.:1936" {
			t.Errorf("%s: without a login %d, want %d", host, answer.StatusCode, status)
		}
		for _, authorization := range []string{"Basic YWRtaW46c2VjcmV0", "Bearer x"} {
			if answer, _ := asked.ask("GET", "/metrics", "", func(r *http.Request) { named(r); r.Header.Set("Authorization", authorization) }); answer.StatusCode != 200 {
				t.Errorf("%s: with %s %d", host, authorization, answer.StatusCode)
			}
		}
	}
}

// TestOriginIsChecked: pages of other sites make browsers read and write nothing here; a person may follow a link.
func TestOriginIsChecked(t *testing.T) {
	s := startWith(t, func(cfg *Config) { cfg.LogLevel = &level{word: "info"} })
	own := "http://" + s.Addr().String()
	for _, c := range []struct {
		name, method, origin, site, mode string
		status                           int
	}{
		{"a program", "GET", "", "", "", 200},
		{"a person", "GET", "", "none", "navigate", 200},
		{"a page of this server", "GET", own, "same-origin", "cors", 200},
		{"a page of this server, without a body", "PUT", own, "same-origin", "cors", 400},
		{"a link of another site", "GET", "", "cross-site", "navigate", 200},
		{"a script of another site", "GET", "http://evil.example.com", "cross-site", "cors", 403},
		{"an image of another site", "GET", "", "cross-site", "no-cors", 403},
		{"a page of another port", "GET", "", "same-site", "no-cors", 403},
		{"a file, or a page in a sandbox", "GET", "null", "", "", 403},
		{"an old browser", "PUT", "http://evil.example.com", "", "", 403},
		{"a form of another site", "POST", "http://evil.example.com", "cross-site", "navigate", 403},
		{"a form without Origin", "POST", "", "cross-site", "navigate", 403},
	} {
		answer, text := s.ask(c.method, logLevelPath, "", func(r *http.Request) {
			for name, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site, "Sec-Fetch-Mode": c.mode} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
		})
		if answer.StatusCode != c.status {
			t.Errorf("%s: %d %s, want %d", c.name, answer.StatusCode, text, c.status)
		}
		for _, f := range answerHeaders {
			if answer.Header.Get(f[0]) != f[1] {
				t.Errorf("%s: %s is %q", c.name, f[0], answer.Header.Get(f[0]))
			}
		}
		for name := range answer.Header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: %s", c.name, name)
			}
		}
	}
}

// level is a LogLevel.
type level struct {
	mu   sync.Mutex
	word string
}

func (l *level) Word() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.word
}

func (l *level) SetWord(word string) error {
	if word != "debug" && word != "info" {
		return errors.New("allowed: debug, info")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.word = word
	return nil
}

// TestLogLevel: the level is read and set, and nothing else is written.
func TestLogLevel(t *testing.T) {
	s := startWith(t, func(cfg *Config) { cfg.LogLevel = &level{word: "info"}; cfg.Login = user("admin", "secret") })
	login := func(r *http.Request) { r.SetBasicAuth("admin", "secret") }
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", logLevelPath, "", 200, "info\n"},
		{"PUT", logLevelPath, "debug\n", 200, "debug\n"},
		{"GET", logLevelPath, "", 200, "debug\n"},
		{"PUT", logLevelPath, "loud", 400, "cannot set the log level: allowed: debug, info\n"},
		{"PUT", logLevelPath, strings.Repeat("debug", 100), 400, "cannot set the log level: http: request body too large\n"},
		{"POST", logLevelPath, "info", 405, "only GET and HEAD\n"},
		{"PUT", "/metrics", "info", 405, "only GET and HEAD\n"},
		{"GET", logLevelPath, "", 200, "debug\n"},
	} {
		if answer, text := s.ask(c.method, c.path, c.body, login); answer.StatusCode != c.status || text != c.want {
			t.Errorf("%s %s: %d %q, want %d %q", c.method, c.path, answer.StatusCode, text, c.status, c.want)
		}
	}
	if answer, _ := s.ask("PUT", logLevelPath, "info", nil); answer.StatusCode != 401 || s.cfg.LogLevel.Word() != "debug" {
		t.Errorf("without a login: %d, the level is %s", answer.StatusCode, s.cfg.LogLevel.Word())
	}
	start(t).get(logLevelPath, 404, "not found\n")
}

// TestProfiles: profiles are behind the login, few at a time, and none is the command line, which may have a password in it.
func TestProfiles(t *testing.T) {
	s := startWith(t, func(cfg *Config) { cfg.Login = user("admin", "secret") })
	login := func(r *http.Request) { r.SetBasicAuth("admin", "secret") }
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/debug/pprof/":                   {200, "goroutine"},
		"/debug/pprof/goroutine?debug=2":  {200, "internal/admin.(*Server).serve"},
		"/debug/pprof/heap":               {200, ""},
		"/debug/pprof/allocs":             {200, ""},
		"/debug/pprof/symbol":             {200, "num_symbols"},
		"/debug/pprof/trace?seconds=0.01": {200, ""},
		"/debug/pprof/profile?seconds=31": {400, "seconds is not a number from 0 to 30"},
		"/debug/pprof/profile?seconds=x":  {400, "seconds is not"},
		"/debug/pprof/heap?seconds=NaN":   {400, "seconds is not"},
		"/debug/pprof/cmdline":            {404, "not found"},
		"/debug/pprof/other":              {404, "not found"},
		"/debug/pprof":                    {404, "not found"},
	} {
		if answer, text := s.ask("GET", path, "", login); answer.StatusCode != want.status || !strings.Contains(text, want.text) {
			t.Errorf("%s: %d %.200q", path, answer.StatusCode, text)
		}
		if answer, _ := s.ask("GET", path, "", nil); answer.StatusCode != 401 {
			t.Errorf("%s without a login: %d", path, answer.StatusCode)
		}
	}
	if !s.profiles.begin(sourceOf(s.listener.Addr())) {
		t.Fatal("no place")
	}
	if answer, _ := s.ask("GET", "/debug/pprof/heap", "", login); answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" {
		t.Errorf("a second one from this address: %d", answer.StatusCode)
	}
}
