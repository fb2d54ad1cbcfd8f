package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"turnout/controller/shard/show"
)

// stillAPI is an API server of which nothing changes: writes are answered as if they were done.
type stillAPI struct {
	objects map[string][]string // JSON, by plural
	lags    bool                // label selectors select what does not have the label any more
}

var stillKinds = map[string]string{
	"routes": "route.openshift.io/v1 Route", "services": "v1 Service", "endpointslices": "discovery.k8s.io/v1 EndpointSlice", "namespaces": "v1 Namespace",
	"routers": "turnout.router/v1alpha1 Router", "routebindings": "turnout.router/v1alpha1 RouteBinding", "routeschedulers": "turnout.router/v1alpha1 RouteScheduler",
}

// typed is an object as an API server writes it.
func typed(plural, object string) map[string]any {
	version, kind, _ := strings.Cut(stillKinds[plural], " ")
	o := map[string]any{}
	if err := json.Unmarshal([]byte(object), &o); err != nil {
		panic(fmt.Sprint(err, " in ", object))
	}
	o["apiVersion"], o["kind"] = version, kind
	if meta, ok := o["metadata"].(map[string]any); ok && meta["resourceVersion"] == nil {
		meta["resourceVersion"] = "5"
	}
	return o
}

func (a *stillAPI) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	plural, name := parts[len(parts)-1], ""
	if _, collection := stillKinds[plural]; !collection && len(parts) > 1 {
		plural, name = parts[len(parts)-2], plural
	}
	out := json.NewEncoder(w)
	switch {
	case req.Method != http.MethodGet:
		o := map[string]any{}
		_ = json.NewDecoder(req.Body).Decode(&o)
		meta, _ := o["metadata"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
			o["metadata"] = meta
		}
		meta["resourceVersion"] = "6"
		_ = out.Encode(o)
	case req.FormValue("watch") != "":
		for _, o := range a.selected(req, plural) {
			_ = out.Encode(map[string]any{"type": "ADDED", "object": o})
		}
		_ = out.Encode(map[string]any{"type": "BOOKMARK", "object": typed(plural, `{"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}`)})
		w.(http.Flusher).Flush()
		<-req.Context().Done()
	case name != "":
		for _, o := range a.objects[plural] {
			if o := typed(plural, o); o["metadata"].(map[string]any)["name"] == name {
				_ = out.Encode(o)
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	default:
		version, kind, _ := strings.Cut(stillKinds[plural], " ")
		_ = out.Encode(map[string]any{"apiVersion": version, "kind": kind + "List", "metadata": map[string]any{"resourceVersion": "5"}, "items": a.selected(req, plural)})
	}
}

// selected are the objects with the field, and with the label, that a request asks for.
func (a *stillAPI) selected(req *http.Request, plural string) []any {
	items := []any{}
	field, want, _ := strings.Cut(strings.TrimPrefix(req.FormValue("fieldSelector"), "spec."), "=")
	for _, o := range a.objects[plural] {
		o := typed(plural, o)
		spec, _ := o["spec"].(map[string]any)
		labels, _ := o["metadata"].(map[string]any)["labels"].(map[string]any)
		if _, labelled := labels[req.FormValue("labelSelector")]; (field == "" || fmt.Sprint(spec[field]) == want) && (labelled || a.lags || req.FormValue("labelSelector") == "") {
			items = append(items, o)
		}
	}
	return items
}

// twoShards is a cluster with two Routers. Route moving is on its way from south to north, custom is served by north at a host of its user's, and none has a
// Router: another route has its host.
func twoShards() *stillAPI {
	router := func(name, more, addresses string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q,"uid":%q,"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"dns":{"domain":"%s.test","ttlSeconds":30},"capacity":{"routes":5}%s},
			"status":{"phase":"Ready","readyReplicas":1,"routesBound":1,"addresses":%s,"replicas":[{"name":"pod","ready":true,"routes":1,"requestsPerSecond":7,"observedBindings":"5",
			"addresses":%s,"renewed":%q}]}}`, name, "uid-"+name, name, more, addresses, addresses, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
	}
	route := func(name, host, target, bound string) string {
		labels, phase := "", "new"
		for _, name := range strings.Fields(bound) {
			labels += fmt.Sprintf(`,"bound.turnout.router/%s":""`, name)
			phase = "scheduled"
		}
		return fmt.Sprintf(`{"metadata":{"namespace":"shop","name":%[1]q,"uid":"uid-%[1]s","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"a":"b"%s},
			"annotations":{"turnout.router/phase":%q,"turnout.router/target":%q,"turnout.router/routers":%q,"turnout.router/dns":%q}},
			"spec":{"host":%q,"to":{"kind":"Service","name":"s"},"wildcardPolicy":"None"}}`, name, labels, phase, target, strings.ReplaceAll(bound, " ", ","), host, host)
	}
	binding := func(name, router, dns, target string, leaving bool, phase string) string {
		return fmt.Sprintf(`{"metadata":{"namespace":"shop","name":"%[1]s.%[2]s","uid":"uid-%[1]s-%[2]s"},"spec":{"routeNamespace":"shop","routeName":%[1]q,"routeUID":"uid-%[1]s","router":%[2]q,
			"dns":%[3]q,"target":%[4]q,"leaving":%[5]t},"status":{"phase":%[6]q}}`, name, router, dns, target, leaving, phase)
	}
	return &stillAPI{objects: map[string][]string{
		"namespaces": {`{"metadata":{"name":"shop","uid":"n"}}`},
		"routers":    {router("north", "", `["192.0.2.1"]`), router("south", `,"taints":[{"key":"<b>upgrade","effect":"Drain"}]`, `["192.0.2.2"]`)},
		"routes": {
			route("moving", "", "shop-moving.south.test", "north south"), route("custom", "www.custom.test", "shop-custom.north.test", "north"),
			strings.ReplaceAll(route("none", "www.custom.test", "", ""), "2026-01-01", "2026-01-02"),
		},
		"routebindings": {
			binding("moving", "south", "shop-moving.south.test", "shop-moving.south.test", true, "Leaving"),
			binding("moving", "north", "shop-moving.south.test", "shop-moving.south.test", false, "Serving"),
			binding("custom", "north", "www.custom.test", "shop-custom.north.test", false, "Serving"),
		},
		"routeschedulers": {`{"metadata":{"name":"default","uid":"s"},"spec":{"strategy":"LeastRoutes","lostAfterSeconds":3600},"status":{"leader":"one","bound":2,"waiting":1,"moving":1}}`},
	}}
}

func (a *stillAPI) config(t *testing.T) string {
	server := httptest.NewTLSServer(a)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return kubeconfig(t, server.URL)
}

// TestExplainShards: who asks for a route that another Router has is told which, and the way from the name to the addresses; by a name that the system has made, too.
func TestExplainShards(t *testing.T) {
	t.Parallel()
	api := twoShards()
	api.objects["routes"] = append(api.objects["routes"], `{"metadata":{"namespace":"shop","name":"plain","uid":"uid-plain","labels":{"bound.turnout.router/north":""},"annotations":{"turnout.router/phase":"scheduled",
		"turnout.router/routers":"north","turnout.router/dns":"shop-plain.north.test","turnout.router/target":"shop-plain.north.test"}},"spec":{"to":{"kind":"Service","name":"s"}}}`)
	api.objects["routebindings"] = append(api.objects["routebindings"], `{"metadata":{"namespace":"shop","name":"plain.north","uid":"b"},"spec":{"routeNamespace":"shop","routeName":"plain","routeUID":"uid-plain",
		"router":"north","dns":"shop-plain.north.test","target":"shop-plain.north.test"},"status":{"phase":"Serving"}}`)
	config := api.config(t)
	p := startRouter(t, nil, "--kubeconfig", config, "--router", "south", "--replica", "pod", "--update-status=false", "--admin-open")
	for _, c := range []struct{ host, finding, text string }{
		{"www.custom.test", "shop/custom does not get it here: it is served by Router north", "DNS: www.custom.test has to be a CNAME of shop-custom.north.test; Router north: 192.0.2.1\n"},
		{"shop-plain.north.test", "shop/plain does not get it here: it is served by Router north; DNS name shop-plain.north.test", "DNS: shop-plain.north.test; Router north: 192.0.2.1\n"},
		{"shop-custom.north.test", "this name is what www.custom.test has to be a CNAME of", "DNS: www.custom.test has to be a CNAME of shop-custom.north.test; Router north: 192.0.2.1\n"},
	} {
		for _, from := range [][]string{{"--router", p.admin}, {"--kubeconfig", config, "--labels", "bound.turnout.router/south"}} {
			if a := explained(t, append(from, "http://"+c.host+"/")...); !finds(a, "other-shard", c.finding) || a.Outcome.Reason != "no-route" {
				t.Errorf("%q %s: %+v", from, c.host, a)
			}
			if text := explainCommand(t, append(from, "http://"+c.host+"/")...); !strings.Contains(text, c.text) {
				t.Errorf("%q %s:\n%s", from, c.host, text)
			}
		}
	}
	late := twoShards()
	late.lags = true
	q := startRouter(t, nil, "--kubeconfig", late.config(t), "--router", "south", "--replica", "pod", "--update-status=false", "--admin-open")
	if a := explained(t, "--router", q.admin, "http://www.custom.test/"); !finds(a, "other-shard", "it is served by Router north") {
		t.Errorf("a route that was bound to it a moment ago: %+v", a)
	}
	// Of a route that it serves as well, though it leaves: DNS names the other Router.
	if text := explainCommand(t, "--router", p.admin, "http://shop-moving.south.test/"); !strings.Contains(text, "+ shop/moving") || !strings.Contains(text, "DNS: shop-moving.south.test; Router north: 192.0.2.1\n") {
		t.Error(text)
	}
}

// TestShardsOnThePage: the page of the scheduler says which Routers there are, who has which route, who waits and why, and what moves; that of a replica which Routers
// there are, and what a domain of the user's own has to point to.
func TestShardsOnThePage(t *testing.T) {
	t.Parallel()
	config := twoShards().config(t)
	p := launch(t, turnout(t, "turnout", nil, "scheduler", "--kubeconfig", config, "--identity", "me", "--keep-pods=false", "--admin-addr", "127.0.0.1:0", "--admin-open"))
	p.admin = fmt.Sprint(p.line("listening")["admin"])
	p.line("objects have been read")
	b := openTab(t, p)
	b.open("")
	for id, texts := range map[string][]string{
		"shards-figures": {"2 Ready", "LeastRoutes", "me"},
		"shards-alarm":   {"1 HostAlreadyClaimed"},
		"shards-routers": {"north.test", "192.0.2.2", "<b>upgrade:Drain", "1 of 5"},
		"shards-waits":   {"shop/none", "HostAlreadyClaimed", "www.custom.test"},
		"shards-moves":   {"shop/moving", "north Serving, south Leaving"},
	} {
		for _, text := range texts {
			b.sees(id, text)
		}
	}
	b.picture("shards-light.png")
	b.do(chromedp.Evaluate[chromedp.Void]("[...document.querySelectorAll('#shards-routers a')].find(a => a.innerText === 'north').click()"))
	b.sees("found", "Routes 1 to 2 of 2")
	b.sees("list", "shop-custom.north.test")
	b.do(chromedp.Evaluate[chromedp.Void]("document.getElementById('q').focus()"), chromedp.KeyEvent("moves"))
	b.sees("found", "Routes 1 to 1 of 1")
	b.do(chromedp.EmulateViewport(360, 740))
	for _, page := range []string{"", "#/routes"} {
		b.open(page)
		b.wait("document.querySelectorAll('table').length > 0")
		if wide := b.eval("document.documentElement.scrollWidth"); wide != "360" {
			t.Errorf("%q: %s pixels of 360", page, wide)
		}
	}
	var board show.Board
	if _, text := get(t, "http://"+p.admin+"/view/shards", ""); json.Unmarshal([]byte(text), &board) != nil || len(board.Routers) != 2 || board.Bound != 2 || board.Waiting != 1 {
		t.Error(text)
	}

	r := startRouter(t, nil, "--kubeconfig", config, "--router", "north", "--replica", "pod", "--update-status=false", "--admin-open")
	b = openTab(t, r)
	b.open("#/shards")
	b.sees("shards-routers", "north (this one)")
	b.sees("shards-routers", "south")
	b.sees("shards-figures", "LeastRoutes")
	b.sees("shards-waits", "see the page on the admin port of one")
	b.wait("!document.getElementById('shards-link').hidden")
	b.open("#/routes/shop/custom")
	b.sees("route-body", "Point a domain of your own to (CNAME)\tshop-custom.north.test")
	b.sees("route-body", "www.custom.test")
}
