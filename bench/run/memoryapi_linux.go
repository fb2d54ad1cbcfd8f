package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"turnout/bench/site"
)

// manyRoutes are n routes with a service of three endpoints each, as an API server has them, by plural; every second route has TLS. At
// the endpoints nobody listens: they are of a network for measurements (RFC 2544).
func manyRoutes(n int) map[string][]string {
	all := map[string][]string{}
	add := func(plural, apiVersion, kind, name, meta, rest string, i int) {
		version := len(all["routes"]) + len(all["services"]) + len(all["endpointslices"]) + 1
		all[plural] = append(all[plural], fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":"many","resourceVersion":"%d",`+
			`"uid":"%08x-0000-4000-8000-%012x","generation":1,"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":%q%s},`+
			`"managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":%q,"time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]}%s}`,
			apiVersion, kind, name, version, len(plural), i, name, meta, apiVersion, rest))
	}
	for i := range n {
		name, tls := fmt.Sprintf("r%d", i), ""
		if i%2 == 1 {
			tls = `,"tls":{"termination":"edge","insecureEdgeTerminationPolicy":"Redirect"}`
		}
		add("routes", "route.openshift.io/v1", "Route", name, "", fmt.Sprintf(
			`,"spec":{"host":"%s.size.test","to":{"kind":"Service","name":%[1]q,"weight":100},"wildcardPolicy":"None"%s},"status":{}`, name, tls), i)
		add("services", "v1", "Service", name, "", `,"spec":{"clusterIP":"None","type":"ClusterIP","ports":[{"name":"http","port":8080,"protocol":"TCP"}]}`, i)
		var pods []string
		for k := range 3 {
			at := 3*i + k
			pods = append(pods, fmt.Sprintf(`{"addresses":["198.%d.%d.%d"],"nodeName":"node-%d","conditions":{"ready":true,"serving":true,"terminating":false},`+
				`"targetRef":{"kind":"Pod","namespace":"many","name":"%s-5d8c9f7b6d-%05d","uid":"0a1b2c3d-0000-4000-8000-%012x"}}`, 18+at>>16, at>>8&255, at&255, i%3, name, k, at))
		}
		add("endpointslices", "discovery.k8s.io/v1", "EndpointSlice", name+"-abcde", fmt.Sprintf(`,"kubernetes.io/service-name":%q`, name), fmt.Sprintf(
			`,"addressType":"IPv4","ports":[{"name":"http","port":8080,"protocol":"TCP"}],"endpoints":[%s]`, strings.Join(pods, ",")), i)
	}
	return all
}

// routesAPI is as much of an API server as a router needs that reads routes and writes their status: lists, watches that begin after a list, and
// merge patches, which come back on the watch as everywhere.
type routesAPI struct {
	mu      sync.Mutex
	objects map[string][]string // by plural, each one as JSON
	at      map[string]int      // the place of a route by its name
	version int
	written int      // patches
	news    []string // events about routes
	more    chan struct{}
}

// newRoutesAPI returns an API server with its own copy of objects.
func newRoutesAPI(objects map[string][]string) *routesAPI {
	objects = maps.Clone(objects)
	objects["routes"] = slices.Clone(objects["routes"])
	a := &routesAPI{objects: objects, at: map[string]int{}, version: 1 << 20, more: make(chan struct{})}
	for i := range objects["routes"] {
		a.at[fmt.Sprintf("r%d", i)] = i
	}
	return a
}

// ServeHTTP answers a request.
func (a *routesAPI) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	parts := strings.Split(req.URL.Path, "/")
	plural := parts[len(parts)-1]
	_, known := a.objects[plural]
	switch {
	case req.Method == http.MethodPatch && len(parts) > 2 && plural == "status":
		a.patch(w, req, parts[len(parts)-2])
	case req.FormValue("sendInitialEvents") != "":
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`, http.StatusUnprocessableEntity)
	case !known:
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`, http.StatusNotFound)
	case req.FormValue("watch") != "":
		a.watch(w, req, plural == "routes")
	default:
		a.list(w, plural)
	}
}

func (a *routesAPI) list(w http.ResponseWriter, plural string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	kind := map[string]string{"routes": "RouteList", "services": "ServiceList", "endpointslices": "EndpointSliceList"}[plural]
	version := map[string]string{"routes": "route.openshift.io/v1", "services": "v1", "endpointslices": "discovery.k8s.io/v1"}[plural]
	fmt.Fprintf(w, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"},"items":[%s]}`, kind, version, a.version, strings.Join(a.objects[plural], ","))
}

// watch tells of what is written from now on, if that concerns what is watched, until the client leaves.
func (a *routesAPI) watch(w http.ResponseWriter, req *http.Request, concerned bool) {
	a.mu.Lock()
	at := len(a.news)
	a.mu.Unlock()
	w.(http.Flusher).Flush()
	for {
		a.mu.Lock()
		news, more := a.news[at:], a.more
		at = len(a.news)
		a.mu.Unlock()
		for _, event := range news {
			if concerned {
				_, _ = w.Write([]byte(event)) // a client that has left is noticed below
			}
		}
		w.(http.Flusher).Flush()
		select {
		case <-more:
		case <-req.Context().Done():
			return
		}
	}
}

// patch changes the status of a route. Somebody else's patches are not expected, so versions are not compared.
func (a *routesAPI) patch(w http.ResponseWriter, req *http.Request, name string) {
	var change struct {
		Status json.RawMessage `json:"status"`
	}
	site.Check(json.NewDecoder(req.Body).Decode(&change))
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.at[name]
	var object, meta map[string]json.RawMessage
	site.Check(json.Unmarshal([]byte(a.objects["routes"][at]), &object))
	site.Check(json.Unmarshal(object["metadata"], &meta))
	a.version++
	meta["resourceVersion"] = json.RawMessage(strconv.Quote(strconv.Itoa(a.version)))
	object["metadata"], object["status"] = site.Must(json.Marshal(meta)), change.Status
	text := string(site.Must(json.Marshal(object)))
	a.objects["routes"][at] = text
	a.news = append(a.news, `{"type":"MODIFIED","object":`+text+"}\n")
	a.written++
	close(a.more)
	a.more = make(chan struct{})
	_, _ = w.Write([]byte(text)) // a client that has left asks again
}

// statuses returns how many statuses were written.
func (a *routesAPI) statuses() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.written
}
