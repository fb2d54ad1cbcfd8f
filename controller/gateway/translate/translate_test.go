package translate

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/internal/expression"
	"turnout/internal/wire/field"
	"turnout/internal/work"
	"turnout/routing"
	"turnout/routing/header"
)

// shown is a match as a text; each of its expressions has to be compiled.
func shown(t *testing.T, m routing.Match) string {
	t.Helper()
	list := func(values []routing.ValueMatch) string {
		texts := make([]string, len(values))
		for i, v := range values {
			if texts[i] = fmt.Sprintf("{%s %s %t}", v.Name, v.Value, v.Expression); v.Expression != (v.Compiled != nil && v.Compiled.String() == v.Value) {
				t.Errorf("%s: compiled as %v", texts[i], v.Compiled)
			}
		}
		return "[" + strings.Join(texts, " ") + "]"
	}
	if e := m.Path.Expression; (m.Path.Kind == routing.PathExpression) != (e != nil && e.String() == m.Path.Value) {
		t.Errorf("path %v: compiled as %v", m.Path, e)
	}
	return fmt.Sprintf("{{%d %s} %s %s %s}", m.Path.Kind, m.Path.Value, m.Method, list(m.Headers), list(m.Query))
}

func TestMatch(t *testing.T) {
	expressed, exact, prefix := gatewayv1.PathMatchRegularExpression, gatewayv1.PathMatchExact, gatewayv1.PathMatchPathPrefix
	for what, c := range map[string]struct {
		m    gatewayv1.HTTPRouteMatch
		want string
	}{
		"nothing":       {gatewayv1.HTTPRouteMatch{}, "{{1 /}  [] []}"},
		"exact":         {gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: &exact, Value: new("/p")}}, "{{2 /p}  [] []}"},
		"prefix":        {gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: &prefix, Value: new("/p/")}}, "{{1 /p/}  [] []}"},
		"no type":       {gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Value: new("/p")}}, "{{1 /p}  [] []}"},
		"expression":    {gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: &expressed, Value: new("/a|b")}}, "{{3 /a|b}  [] []}"},
		"no slash":      {gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: &exact, Value: new("p")}}, "dropped"},
		"bad":           {gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: &expressed, Value: new("(")}}, "dropped"},
		"too long":      {gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: &expressed, Value: new(strings.Repeat("a", expression.Tenant().Text+1))}}, "dropped"},
		"unknown type":  {gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: new(gatewayv1.PathMatchType("X")), Value: new("/")}}, "dropped"},
		"method":        {gatewayv1.HTTPRouteMatch{Method: new(gatewayv1.HTTPMethodPut)}, "{{1 /} PUT [] []}"},
		"header":        {gatewayv1.HTTPRouteMatch{Headers: []gatewayv1.HTTPHeaderMatch{{Name: "A", Value: "1"}, {Type: new(gatewayv1.HeaderMatchRegularExpression), Name: "B", Value: ".*"}}}, "{{1 /}  [{A 1 false} {B .* true}] []}"},
		"bad header":    {gatewayv1.HTTPRouteMatch{Headers: []gatewayv1.HTTPHeaderMatch{{Type: new(gatewayv1.HeaderMatchRegularExpression), Name: "B", Value: "["}}}, "dropped"},
		"header's type": {gatewayv1.HTTPRouteMatch{Headers: []gatewayv1.HTTPHeaderMatch{{Type: new(gatewayv1.HeaderMatchType("X")), Name: "B"}}}, "dropped"},
		"query":         {gatewayv1.HTTPRouteMatch{QueryParams: []gatewayv1.HTTPQueryParamMatch{{Name: "q", Value: "1"}}}, "{{1 /}  [] [{q 1 false}]}"},
		"bad query":     {gatewayv1.HTTPRouteMatch{QueryParams: []gatewayv1.HTTPQueryParamMatch{{Type: new(gatewayv1.QueryParamMatchRegularExpression), Name: "q", Value: "["}}}, "dropped"},
	} {
		got, err := new(Compiler).Match(&c.m)
		var text string
		if err == nil {
			text = shown(t, got)
		} else {
			text = map[bool]string{true: "dropped"}[err.Drop]
		}
		if text != c.want {
			t.Errorf("%s: %s, want %s", what, text, c.want)
		}
	}
}

func TestGRPCMatch(t *testing.T) {
	expressed := gatewayv1.GRPCMethodMatchRegularExpression
	for what, c := range map[string]struct {
		m    *gatewayv1.GRPCMethodMatch
		want string
	}{
		"nothing":               {nil, "{1 /}"},
		"neither":               {&gatewayv1.GRPCMethodMatch{}, "{1 /}"},
		"both":                  {&gatewayv1.GRPCMethodMatch{Service: new("s.S"), Method: new("M")}, "{2 /s.S/M}"},
		"service":               {&gatewayv1.GRPCMethodMatch{Service: new("s.S")}, "{1 /s.S}"},
		"method":                {&gatewayv1.GRPCMethodMatch{Method: new("M.")}, `{3 /[^/]+/(?:M\.)}`},
		"expressions":           {&gatewayv1.GRPCMethodMatch{Type: &expressed, Service: new("a|b"), Method: new("M.*")}, "{3 /(?:a|b)/(?:M.*)}"},
		"expression of service": {&gatewayv1.GRPCMethodMatch{Type: &expressed, Service: new("a|b")}, "{3 /(?:a|b)/[^/]+}"},
		"bad":                   {&gatewayv1.GRPCMethodMatch{Type: &expressed, Service: new("(")}, "dropped"},
		"slash":                 {&gatewayv1.GRPCMethodMatch{Service: new("a/b"), Method: new("M")}, "dropped"},
		"unknown type":          {&gatewayv1.GRPCMethodMatch{Type: new(gatewayv1.GRPCMethodMatchType("X"))}, "dropped"},
	} {
		got, err := new(Compiler).GRPCMatch(&gatewayv1.GRPCRouteMatch{Method: c.m})
		text := fmt.Sprintf("{%d %s}", got.Path.Kind, got.Path.Value)
		if err != nil {
			text = map[bool]string{true: "dropped"}[err.Drop]
		}
		if text != c.want {
			t.Errorf("%s: %s, want %s", what, text, c.want)
		}
	}
	headers := []gatewayv1.GRPCHeaderMatch{{Name: "a", Value: "1"}, {Type: new(gatewayv1.GRPCHeaderMatchRegularExpression), Name: "b", Value: "("}}
	if _, err := new(Compiler).GRPCMatch(&gatewayv1.GRPCRouteMatch{Headers: headers}); err == nil {
		t.Error("a bad expression is taken")
	}
	if got, err := new(Compiler).GRPCMatch(&gatewayv1.GRPCRouteMatch{Headers: headers[:1]}); err != nil || len(got.Headers) != 1 {
		t.Errorf("header: %v, %v", got, err)
	}
}

// TestRedirectPort: the port that is said, else the usual one of the scheme that is said, else that of the listener; usual ports are not written.
func TestRedirectPort(t *testing.T) {
	for _, c := range []struct {
		scheme   string
		port     int32
		listener int
		secure   bool
		want     string
	}{
		{"", 0, 80, false, "http://h.test/"}, {"", 80, 80, false, "http://h.test/"}, {"", 8080, 80, false, "http://h.test:8080/"},
		{"https", 0, 80, false, "https://h.test/"}, {"https", 443, 80, false, "https://h.test/"}, {"https", 8443, 80, false, "https://h.test:8443/"},
		{"", 0, 8080, false, "http://h.test:8080/"}, {"", 80, 8080, false, "http://h.test/"}, {"https", 0, 8080, false, "https://h.test/"},
		{"", 0, 443, true, "https://h.test/"}, {"", 443, 443, true, "https://h.test/"}, {"", 8443, 443, true, "https://h.test:8443/"},
		{"http", 0, 443, true, "http://h.test/"}, {"http", 80, 443, true, "http://h.test/"}, {"http", 8080, 443, true, "http://h.test:8080/"}, {"", 0, 8443, true, "https://h.test:8443/"},
	} {
		f := &gatewayv1.HTTPRequestRedirectFilter{}
		if c.scheme != "" {
			f.Scheme = &c.scheme
		}
		if c.port != 0 {
			f.Port = &c.port
		}
		r, wrong := new(Compiler).Redirect(f, View{Port: c.listener, Secure: c.secure})
		if wrong != nil {
			t.Fatal(wrong)
		}
		if got, _ := r.Location(c.secure, []byte("h.test"), []byte("/"), nil, &field.Arena{}, 100, new(work.Of(work.Request))); string(got) != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestPathModifiers(t *testing.T) {
	for what, c := range map[string]struct {
		f    gatewayv1.HTTPPathModifier
		kind routing.PathKind
		want string
	}{
		"all":              {gatewayv1.HTTPPathModifier{Type: gatewayv1.FullPathHTTPPathModifier, ReplaceFullPath: new("/x")}, routing.PathPrefix, "/x"},
		"all, by nothing":  {gatewayv1.HTTPPathModifier{Type: gatewayv1.FullPathHTTPPathModifier, ReplaceFullPath: new("")}, routing.PathPrefix, "/"},
		"prefix":           {gatewayv1.HTTPPathModifier{Type: gatewayv1.PrefixMatchHTTPPathModifier, ReplacePrefixMatch: new("/x")}, routing.PathPrefix, "/x/rest"},
		"prefix, stripped": {gatewayv1.HTTPPathModifier{Type: gatewayv1.PrefixMatchHTTPPathModifier, ReplacePrefixMatch: new("/")}, routing.PathPrefix, "/rest"},
		"exact match":      {gatewayv1.HTTPPathModifier{Type: gatewayv1.PrefixMatchHTTPPathModifier, ReplacePrefixMatch: new("/x")}, routing.PathExact, "wrong"},
		"a query":          {gatewayv1.HTTPPathModifier{Type: gatewayv1.FullPathHTTPPathModifier, ReplaceFullPath: new("/x?y")}, routing.PathPrefix, "wrong"},
		"unknown type":     {gatewayv1.HTTPPathModifier{Type: "X"}, routing.PathPrefix, "wrong"},
	} {
		view := View{Path: routing.PathMatch{Kind: c.kind, Value: "/p"}, Port: 80}
		compiler := new(Compiler)
		got := "wrong"
		if r, wrong := compiler.Rewrite(&gatewayv1.HTTPURLRewriteFilter{Path: &c.f}, view); wrong == nil {
			path, _ := r.Apply([]byte("/p/rest"), &field.Arena{}, 100, new(work.Of(work.Request)))
			got = string(path)
		}
		if got != c.want {
			t.Errorf("%s: rewritten to %s, want %s", what, got, c.want)
		}
		if r, wrong := compiler.Redirect(&gatewayv1.HTTPRequestRedirectFilter{Path: &c.f, Hostname: new(gatewayv1.PreciseHostname("o.test")), StatusCode: new(308)}, view); wrong == nil {
			location, _ := r.Location(false, []byte("h.test"), []byte("/p/rest"), []byte("?q"), &field.Arena{}, 100, new(work.Of(work.Request)))
			got = strings.TrimPrefix(string(location), "http://o.test")
			if r.Status() != 308 {
				t.Errorf("%s: status %d", what, r.Status())
			}
			got = strings.TrimSuffix(got, "?q")
		}
		if got != c.want {
			t.Errorf("%s: redirected to %s, want %s", what, got, c.want)
		}
	}
	for what, f := range map[string]gatewayv1.HTTPRequestRedirectFilter{"status": {StatusCode: new(200)}, "scheme": {Scheme: new("ftp")}, "host": {Hostname: new(gatewayv1.PreciseHostname("a b"))}} {
		if _, wrong := new(Compiler).Redirect(&f, View{Port: 80}); wrong == nil || wrong.Drop || wrong.Error() == "" {
			t.Errorf("%s: %v", what, wrong)
		}
	}
}

// TestHeaders: a value stands for itself, whatever the language of actions would make of it.
func TestHeaders(t *testing.T) {
	c := new(Compiler)
	f := &gatewayv1.HTTPHeaderFilter{Set: []gatewayv1.HTTPHeader{{Name: "X-A", Value: "100%[req.hdr(host)]"}}, Add: []gatewayv1.HTTPHeader{{Name: "X-B", Value: "b"}}, Remove: []string{"X-C"}}
	a, wrong := c.Headers(header.Request, f)
	b, _ := c.Headers(header.Request, f)
	if wrong != nil || a == nil || a != b {
		t.Fatalf("%v; two of one content: %t", wrong, a == b)
	}
	if other, _ := c.Headers(header.Response, f); other == a {
		t.Error("requests and responses share actions")
	}
	if none, wrong := c.Headers(header.Request, &gatewayv1.HTTPHeaderFilter{}); none != nil || wrong != nil {
		t.Errorf("nothing to do: %v, %v", none, wrong)
	}
	for _, name := range []gatewayv1.HTTPHeaderName{"transfer-encoding", "a b", ""} {
		if _, wrong := c.Headers(header.Request, &gatewayv1.HTTPHeaderFilter{Set: []gatewayv1.HTTPHeader{{Name: name, Value: "x"}}}); wrong == nil || wrong.Drop {
			t.Errorf("%q: %v", name, wrong)
		}
	}
}

func TestTimeouts(t *testing.T) {
	d := func(s string) *gatewayv1.Duration { return new(gatewayv1.Duration(s)) }
	const usual = 30 * time.Second
	for what, c := range map[string]struct {
		in                       *gatewayv1.HTTPRouteTimeouts
		request, attempt, server time.Duration
		wrong                    bool
	}{
		"none":                      {nil, 0, 0, usual, false},
		"request":                   {&gatewayv1.HTTPRouteTimeouts{Request: d("500ms")}, 500 * time.Millisecond, 0, usual, false},
		"a long one":                {&gatewayv1.HTTPRouteTimeouts{Request: d("1h30m")}, 90 * time.Minute, 0, 90 * time.Minute, false},
		"attempt":                   {&gatewayv1.HTTPRouteTimeouts{Request: d("2s"), BackendRequest: d("1s")}, 2 * time.Second, time.Second, usual, false},
		"no limit":                  {&gatewayv1.HTTPRouteTimeouts{Request: d("0s")}, 0, 0, Longest, false},
		"no limit but for attempts": {&gatewayv1.HTTPRouteTimeouts{Request: d("0s"), BackendRequest: d("1s")}, 0, time.Second, Longest, false},
		"no limit for attempts":     {&gatewayv1.HTTPRouteTimeouts{Request: d("2s"), BackendRequest: d("0s")}, 2 * time.Second, 0, usual, false},
		"attempt beyond request":    {&gatewayv1.HTTPRouteTimeouts{Request: d("1s"), BackendRequest: d("2s")}, 0, 0, usual, true},
		"no time":                   {&gatewayv1.HTTPRouteTimeouts{Request: d("1.5s")}, 0, 0, usual, true},
		"no attempt's time":         {&gatewayv1.HTTPRouteTimeouts{BackendRequest: d("-1s")}, 0, 0, usual, true},
		"more than there is":        {&gatewayv1.HTTPRouteTimeouts{Request: d("99999h")}, Longest, 0, Longest, false},
	} {
		p := routing.Policy{ServerTimeout: usual}
		wrong := Timeouts(&p, c.in)
		if p.RequestTimeout != c.request || p.AttemptTimeout != c.attempt || p.ServerTimeout != c.server || (wrong != nil) != c.wrong {
			t.Errorf("%s: %v %v %v, %v", what, p.RequestTimeout, p.AttemptTimeout, p.ServerTimeout, wrong)
		}
	}
}

func TestRetry(t *testing.T) {
	c := new(Compiler)
	stanza := &gatewayv1.HTTPRouteRetry{Codes: []gatewayv1.HTTPRouteRetryStatusCode{500, 503}, Attempts: new(3), Backoff: new(gatewayv1.Duration("10ms"))}
	a, wrong := c.Retry(stanza)
	b, _ := c.Retry(stanza)
	if wrong != nil || a != b || fmt.Sprint(*a) != "{[500 503] 3 10ms}" {
		t.Errorf("%v %v, the same: %t", a, wrong, a == b)
	}
	if d, _ := c.Retry(&gatewayv1.HTTPRouteRetry{}); d == nil || d.Attempts != 1 {
		t.Errorf("without a number: %v", d)
	}
	if none, wrong := c.Retry(nil); none != nil || wrong != nil {
		t.Errorf("none: %v %v", none, wrong)
	}
	if _, wrong := c.Retry(&gatewayv1.HTTPRouteRetry{Backoff: new(gatewayv1.Duration("x"))}); wrong == nil {
		t.Error("a backoff that is no time is taken")
	}
}

func TestSession(t *testing.T) {
	permanent := &gatewayv1.CookieConfig{LifetimeType: new(gatewayv1.PermanentCookieLifetimeType)}
	hour := new(gatewayv1.Duration("1h"))
	for what, c := range map[string]struct {
		s      *gatewayv1.SessionPersistence
		secure bool
		want   string
	}{
		"none":                     {nil, true, "||false 0s"},
		"cookie":                   {&gatewayv1.SessionPersistence{SessionName: new("S")}, false, "S|; path=/; HttpOnly|false 0s"},
		"cookie over TLS":          {&gatewayv1.SessionPersistence{SessionName: new("S")}, true, "S|; path=/; HttpOnly; Secure|false 0s"},
		"with an end":              {&gatewayv1.SessionPersistence{SessionName: new("S"), AbsoluteTimeout: hour}, false, "S|; path=/; HttpOnly|false 1h0m0s"},
		"kept by clients":          {&gatewayv1.SessionPersistence{SessionName: new("S"), AbsoluteTimeout: hour, CookieConfig: permanent}, false, "S|; path=/; HttpOnly; Max-Age=3600|false 1h0m0s"},
		"kept for ever":            {&gatewayv1.SessionPersistence{SessionName: new("S"), CookieConfig: permanent}, false, "wrong"},
		"header":                   {&gatewayv1.SessionPersistence{SessionName: new("X-S"), Type: new(gatewayv1.HeaderBasedSessionPersistence)}, true, "x-s||true 0s"},
		"header Transfer-Encoding": {&gatewayv1.SessionPersistence{SessionName: new("Transfer-Encoding"), Type: new(gatewayv1.HeaderBasedSessionPersistence)}, true, "wrong"},
		"header content-length":    {&gatewayv1.SessionPersistence{SessionName: new("content-length"), Type: new(gatewayv1.HeaderBasedSessionPersistence)}, true, "wrong"},
		"header Connection":        {&gatewayv1.SessionPersistence{SessionName: new("Connection"), Type: new(gatewayv1.HeaderBasedSessionPersistence)}, true, "wrong"},
		"header Host":              {&gatewayv1.SessionPersistence{SessionName: new("Host"), Type: new(gatewayv1.HeaderBasedSessionPersistence)}, true, "wrong"},
		"header CDN-Loop":          {&gatewayv1.SessionPersistence{SessionName: new("CDN-Loop"), Type: new(gatewayv1.HeaderBasedSessionPersistence)}, true, "wrong"},
		"header X-Forwarded-For":   {&gatewayv1.SessionPersistence{SessionName: new("X-Forwarded-For"), Type: new(gatewayv1.HeaderBasedSessionPersistence)}, true, "wrong"},
		"header Set-Cookie":        {&gatewayv1.SessionPersistence{SessionName: new("Set-Cookie"), Type: new(gatewayv1.HeaderBasedSessionPersistence)}, true, "wrong"},
		"no token":                 {&gatewayv1.SessionPersistence{SessionName: new("a b")}, false, "wrong"},
		"no time":                  {&gatewayv1.SessionPersistence{AbsoluteTimeout: new(gatewayv1.Duration("x"))}, false, "wrong"},
		"another type":             {&gatewayv1.SessionPersistence{Type: new(gatewayv1.SessionPersistenceType("X"))}, false, "wrong"},
		"a name of its own making": {&gatewayv1.SessionPersistence{}, false, "session-19b25856e1c150ca|; path=/; HttpOnly|false 0s"},
	} {
		var p routing.Policy
		got := "wrong"
		if name, wrong := Session(&p, c.s, "seed", c.secure); wrong == nil {
			got = fmt.Sprintf("%s|%s|%t %s", name, p.CookieAttributes, p.SessionHeader.IsSet(), p.SessionTimeout)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

func TestCORS(t *testing.T) {
	c := new(Compiler)
	f := &gatewayv1.HTTPCORSFilter{AllowOrigins: []gatewayv1.CORSOrigin{"https://*.a.test"}, AllowMethods: []gatewayv1.HTTPMethodWithWildcard{"PUT"}, AllowHeaders: []gatewayv1.HTTPHeaderName{"X-A"},
		ExposeHeaders: []gatewayv1.HTTPHeaderName{"X-B"}, AllowCredentials: new(true), MaxAge: 7}
	a, wrong := c.CORS(f)
	if b, _ := c.CORS(f); wrong != nil || a != b {
		t.Fatalf("%v, the same: %t", wrong, a == b)
	}
	request := []field.Field{{Name: []byte("origin"), Value: []byte("https://x.a.test")}, {Name: []byte("access-control-request-method"), Value: []byte("PUT")}}
	said := ""
	for _, f := range a.Permit(nil, request) {
		said += string(f.Name) + "=" + string(f.Value) + " "
	}
	for _, want := range []string{"origin=https://x.a.test", "credentials=true", "expose-headers=X-B", "methods=PUT", "headers=X-A", "max-age=7"} {
		if !strings.Contains(said, want) {
			t.Errorf("%s is not in %s", want, said)
		}
	}
	if _, wrong := c.CORS(&gatewayv1.HTTPCORSFilter{AllowOrigins: []gatewayv1.CORSOrigin{"nothing"}}); wrong == nil {
		t.Error("an origin that is none is taken")
	}
}

// TestInternedForgets what nobody uses.
func TestInternedForgets(t *testing.T) {
	var c Interned[[64]int]
	made := 0
	of := func(n int) *[64]int {
		v, err := c.Of(fmt.Sprint(n), func() (*[64]int, error) { made++; return new([64]int{n}), nil })
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	kept := of(-1)
	for i := range 20 * minSwept {
		of(i)
		if i%minSwept == 0 {
			runtime.GC()
		}
	}
	if len(c.made) > 8*minSwept {
		t.Errorf("%d are kept", len(c.made))
	}
	if before := made; of(-1) != kept || made != before {
		t.Error("what is used was forgotten")
	}
	runtime.KeepAlive(kept)
}
