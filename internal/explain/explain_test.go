package explain

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/adminclient"
	"turnout/internal/server"
	"turnout/internal/testkit/testaddr"
	"turnout/proxy"
	"turnout/routing"
)

// tableOf is a published table of one route, app.test, with one pod.
func tableOf(t *testing.T, change func(*routing.RouteSpec)) *routing.Table {
	t.Helper()
	spec := routing.RouteSpec{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: "app", UID: "1"}, Host: "app.test",
		Policy: routing.Policy{ServerTimeout: time.Second}, CookieName: "c",
		Targets: []balancer.Target{{ID: "pod", Pod: "pod-1", Addr: testaddr.Parse("10.0.0.1:8080"), Weight: 1}},
	}
	if change != nil {
		change(&spec)
	}
	table, rejected := routing.Compile(routing.Options{}, nil, []routing.RouteSpec{spec})
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	store := routing.NewStore()
	store.Publish(table)
	return table
}

func newExplainer(t *testing.T, change func(*Config)) *Explainer {
	t.Helper()
	cfg := Config{Deciding: server.Config{Proxy: proxy.Config{Timeouts: proxy.DefaultTimeouts()}}.Deciding}
	if change != nil {
		change(&cfg)
	}
	x, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestReasons: each reason of requests and of candidates has a meaning, and none is there twice.
func TestReasons(t *testing.T) {
	all := Reasons()
	sorted := slices.Sorted(slices.Values(all))
	if len(slices.Compact(sorted)) != len(all) {
		t.Errorf("a reason is there twice: %v", all)
	}
	var wanted []string
	for _, r := range proxy.Reasons() {
		wanted = append(wanted, r.String())
	}
	for l := routing.LostPath; l <= routing.LostOrder; l++ {
		wanted = append(wanted, l.String())
	}
	for _, w := range wanted {
		if meaning(w) == "" {
			t.Errorf("%q means nothing", w)
		}
	}
}

// TestFindingsHaveHelp: what a finding leads to is there.
func TestFindingsHaveHelp(t *testing.T) {
	text, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Reasons() {
		if !strings.Contains(string(text), "\n### "+r+"\n") {
			t.Errorf("docs/troubleshooting.md has no section %s", r)
		}
		if !strings.HasSuffix(help(r), "docs/troubleshooting.md#"+r) {
			t.Errorf("%s leads to %s", r, help(r))
		}
	}
}

func TestSecretsAreHidden(t *testing.T) {
	table := tableOf(t, nil)
	a, err := newExplainer(t, nil).Explain(table, Query{
		URL: "http://user:hidden1@app.test/p?key=hidden2&plain", Header: []string{"Authorization: hidden3", "X-Api-Key: hidden4", "X-Other: shown"}, Cookies: []string{"c=hidden5", "d=hidden6"},
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var people bytes.Buffer
	if err := a.Text(&people); err != nil {
		t.Fatal(err)
	}
	if all := string(text) + people.String(); strings.Contains(all, "hidden") || !strings.Contains(all, "x-other: shown") {
		t.Errorf("%s", all)
	}
}

// TestAnswerKeepsItsShape: members of the JSON are never renamed or removed. New ones are added here.
func TestAnswerKeepsItsShape(t *testing.T) {
	const shape = "request generation outcome findings listener tls candidates matchWork more route access forwarded answered endpoints moreOf algorithm cookie recent assumed took explained change difference"
	var names []string
	for f := range reflect.TypeFor[Answer]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	if got := strings.Join(names, " "); got != shape {
		t.Errorf("%s\nwant\n%s", got, shape)
	}
}

func TestQueriesAreChecked(t *testing.T) {
	x, table := newExplainer(t, nil), tableOf(t, nil)
	for _, c := range []struct {
		q    Query
		want string
	}{
		{Query{}, "no URL is given"},
		{Query{URL: "ftp://a"}, `scheme "ftp"; allowed`},
		{Query{URL: "http:///x"}, "names no host"},
		{Query{URL: "http://a:0/"}, "allowed: 1 to 65535"},
		{Query{URL: "http://a:99999/"}, "allowed: 1 to 65535"},
		{Query{URL: "http://a", Header: []string{"none"}}, "has no colon"},
		{Query{URL: "http://a/" + strings.Repeat("x", mostQuery)}, "allowed: 262144"},
		{Query{Head: make([]byte, mostQuery+1)}, "allowed: 262144"},
	} {
		if _, err := x.Explain(table, c.q); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40v: %v, want %q", c.q, err, c.want)
		}
	}
	if _, err := New(Config{}); err == nil {
		t.Error("an explainer that knows nothing")
	}
}

// TestManyCandidatesAndEndpoints: an answer has no more of them than it may, and says how many are left out.
func TestManyCandidatesAndEndpoints(t *testing.T) {
	table := tableOf(t, func(s *routing.RouteSpec) {
		for i := range 2 * mostEndpoints {
			s.Targets = append(s.Targets, balancer.Target{ID: string(rune('a' + i)), Addr: testaddr.Of(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i), 1}), 80)), Weight: 1})
		}
	})
	x := newExplainer(t, func(c *Config) {
		c.Claimants = func(string) []Claimant {
			list := make([]Claimant, 3*mostCandidates)
			for i := range list {
				list[i].Name, list[i].Reason = string(rune(1000+i)), ReasonRejected
			}
			return list
		}
	})
	a, err := x.Explain(table, Query{URL: "http://app.test/"})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Candidates) != mostCandidates || a.More != 2*mostCandidates+1 || len(a.Endpoints) > mostEndpoints+1 || len(a.Endpoints)+a.MoreOf != 2*mostEndpoints+1 {
		t.Errorf("%d candidates and %d more, %d endpoints and %d more", len(a.Candidates), a.More, len(a.Endpoints), a.MoreOf)
	}
}

// TestHandler asks over HTTP, as the command does.
func TestHandler(t *testing.T) {
	table := tableOf(t, nil)
	ring := NewRing(table.Generation, nil)
	ring.logged(failure("ns", "app", 1))
	h := NewHandler(HandlerConfig{Explainer: newExplainer(t, nil), Table: func() *routing.Table { return table }, Stories: ring})
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	for _, c := range []struct {
		query, want string
		status      int
	}{
		{"?url=http://app.test/&o=text", "Answer         that of the pod (ok)", 200},
		{"?url=http://app.test/&client=192.0.2.9&http2=true", `"protocol": "HTTP/2"`, 200},
		{"?url=http://app.test/&client=x", "client is no address", 400},
		{"", "no URL is given", 400},
		{"?head=" + url.QueryEscape("GET /x HTTP/1.1\r\nHost: app.test\r\n\r\n"), `"by": "endpoint"`, 200},
		{"?head=" + url.QueryEscape("GET  /x HTTP/1.1\r\n\r\n"), `"reason": "bad-request"`, 200},
		{"?http2=true&head=" + url.QueryEscape(":method: GET\n:scheme: http\n:authority: app.test\n:path: /x\na: b\n"), `"protocol": "HTTP/2"`, 200},
		{"?http2=true&head=none", "has no colon", 400},
		{"?request=app-1", `"reason": "connect-failed"`, 200},
		{"?request=&o=text", "id 1\n", 200},
		{"?request=none", "no such request is remembered", 404},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/explain"+c.query, nil))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %s", c.query, w.Code, w.Body)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/explain?url=http://app.test/", strings.NewReader("x")))
	if w.Code != http.StatusNotImplemented {
		t.Errorf("a change where none is known: %d %s", w.Code, w.Body)
	}
	q := Query{URL: "http://app.test/x?y", Method: "POST", Header: []string{"A: b", "A: c"}, Cookies: []string{"d=e"}, Client: netip.MustParseAddr("192.0.2.1"), HTTP2: true, ServerName: "s", Secure: true}
	if got, err := ParseValues(q.Values()); err != nil || !reflect.DeepEqual(got, q) {
		t.Errorf("%+v became %+v, %v", q, got, err)
	}
	var b bytes.Buffer
	if err := (&adminclient.Client{Base: server.URL, Token: "t"}).Ask(t.Context(), "/explain", q.Values(), nil, &b); err != nil || !strings.Contains(b.String(), `"by": "endpoint"`) {
		t.Errorf("%s %v", b.String(), err)
	}
}

// TestBackendsAreExplained: all servers are named with their shares, and what becomes of a share without servers.
func TestBackendsAreExplained(t *testing.T) {
	base := tableOf(t, nil)
	key := routing.RouteKey{Namespace: "ns", Name: "app", UID: "1"}
	with := func(backends ...routing.BackendSpec) *Answer {
		t.Helper()
		spec := routing.RuleSpec{RouteKey: key, Host: "app.test", Policy: routing.Policy{ServerTimeout: time.Second}, Backends: backends}
		table, rejected := routing.CompileRules(routing.Options{}, base, []routing.RuleSpec{spec})
		if len(rejected) > 0 {
			t.Fatal(rejected)
		}
		routing.NewStore().Publish(table)
		a, err := newExplainer(t, nil).Explain(table, Query{URL: "http://app.test/"})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	pod := func(addr string) []balancer.Target {
		return []balancer.Target{{ID: addr, Addr: testaddr.Parse(addr), Weight: 1}}
	}
	a := with(routing.BackendSpec{Key: "a", Weight: 3, Targets: pod("10.0.0.1:80")}, routing.BackendSpec{Key: "b", Weight: 1, Targets: pod("10.0.0.2:80")})
	if len(a.Endpoints) != 2 || a.Endpoints[0].Share != "75%" || a.Endpoints[1].Share != "25%" || !a.Endpoints[0].Picked {
		t.Errorf("endpoints %+v", a.Endpoints)
	}
	if a = with(routing.BackendSpec{Key: "a", Weight: 3, Status: 500}); a.Outcome.Status != 500 || a.Outcome.Reason != proxy.ReasonBackend.String() || len(a.Endpoints) != 0 {
		t.Errorf("outcome %+v", a.Outcome)
	}
}
