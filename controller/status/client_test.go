package status

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// apiServer answers as an API server does that has one route, ns/a.
type apiServer struct {
	noPatch bool

	mu    sync.Mutex
	route *routev1.Route
	seen  []string // method, path and body of each request
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	s.seen = append(s.seen, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
	w.Header().Set("Content-Type", "application/json")
	status := func(code int, reason metav1.StatusReason) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: "Failure", Reason: reason, Code: int32(code)})
	}
	var sent routev1.Route
	switch {
	case r.Method == http.MethodGet:
		if r.URL.Query().Get("continue") == "old" {
			w.WriteHeader(http.StatusGone)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, ListMeta: metav1.ListMeta{Continue: "from there"}, Status: "Failure", Reason: metav1.StatusReasonExpired, Code: http.StatusGone})
			return
		}
		list := routev1.RouteList{Items: []routev1.Route{*s.route}}
		if r.URL.Query().Get("fieldSelector") == "metadata.name=gone" {
			list.Items = nil
		}
		list.Continue = map[string]string{"": "next"}[r.URL.Query().Get("continue")]
		_ = json.NewEncoder(w).Encode(list)
		return
	case r.Method == http.MethodPatch && s.noPatch:
		status(http.StatusForbidden, metav1.StatusReasonForbidden)
		return
	case r.Method == http.MethodPatch && r.Header.Get("Content-Type") != "application/merge-patch+json":
		status(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType)
		return
	case json.Unmarshal(body, &sent) != nil || !strings.HasSuffix(r.URL.Path, "/status"):
		status(http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	case sent.ResourceVersion != s.route.ResourceVersion:
		status(http.StatusConflict, metav1.StatusReasonConflict)
		return
	case r.Method == http.MethodPut && sent.Spec.Host != s.route.Spec.Host:
		status(http.StatusInternalServerError, "something was lost")
		return
	}
	s.route.Status, s.route.ResourceVersion = sent.Status, s.route.ResourceVersion+"1"
	_ = json.NewEncoder(w).Encode(s.route)
}

func (s *apiServer) client(t *testing.T) API {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	if err := routev1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: server.URL, QPS: -1, APIPath: "/apis"}
	config.GroupVersion, config.NegotiatedSerializer = &routev1.GroupVersion, serializer.NewCodecFactory(scheme).WithoutConversion()
	routes, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return NewClient(routes, "")
}

func (s *apiServer) taken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := strings.Join(s.seen, "\n")
	s.seen = nil
	return out
}

const (
	listA    = `GET /apis/route.openshift.io/v1/namespaces/ns/routes?fieldSelector=metadata.name%3Da`
	statusOf = `/apis/route.openshift.io/v1/namespaces/ns/routes/a/status`
)

// TestClient: what is asked of an API server, with a role that allows patches and with
// one that only allows updates.
func TestClient(t *testing.T) {
	stored := func() *routev1.Route {
		r := aRoute("a", named("other", entry("h")))
		r.ResourceVersion, r.Spec.Host, r.Annotations = "7", "h", map[string]string{"keep": "me"}
		return r
	}
	write := func(version string, entries ...*routev1.RouteIngress) *routev1.Route {
		r := aRoute("a", entries...)
		r.ResourceVersion = version
		return r
	}
	s := &apiServer{route: stored()}
	api := s.client(t)

	got, err := api.WriteStatus(t.Context(), write("7", entry("h")))
	if err != nil || got.ResourceVersion != "71" || said(got, "test1") != "h" {
		t.Fatalf("%+v, %v", got, err)
	}
	wanted := `PATCH ` + statusOf + ` {"metadata":{"uid":"uid-a","resourceVersion":"7"},"status":{"ingress":[` +
		`{"host":"h","routerName":"test1","wildcardPolicy":"None","routerCanonicalHostname":"c.test"}]}}`
	if seen := s.taken(); seen != wanted {
		t.Errorf("asked\n%s\nwant\n%s", seen, wanted)
	}
	if got, err = api.WriteStatus(t.Context(), write("71")); err != nil || len(got.Status.Ingress) != 0 {
		t.Errorf("the last entry is not removed: %+v, %v", got, err)
	}
	if _, err := api.WriteStatus(t.Context(), write("7", entry("h"))); !apierrors.IsConflict(err) {
		t.Errorf("an old version: %v", err)
	}
	s.taken()

	s = &apiServer{route: stored(), noPatch: true}
	api = s.client(t)
	for i, version := range []string{"7", "71"} {
		if got, err = api.WriteStatus(t.Context(), write(version, entry(fmt.Sprint("h", i)))); err != nil || said(got, "test1") != fmt.Sprint("h", i) {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	methods := ""
	for _, line := range strings.Split(s.taken(), "\n") {
		method, rest, _ := strings.Cut(line, " ")
		methods += method + " "
		if method == "PUT" && (!strings.Contains(rest, `"annotations":{"keep":"me"}`) || !strings.Contains(rest, `"kind":"Route","apiVersion":"route.openshift.io/v1"`)) {
			t.Errorf("an update drops what is not status: %s", line)
		}
	}
	if methods != "PATCH GET PUT GET PUT " {
		t.Errorf("asked %s", methods)
	}
	if _, err := api.WriteStatus(t.Context(), write("7", entry("h"))); !apierrors.IsConflict(err) {
		t.Errorf("an old version: %v", err)
	}
	s.taken()

	if got, err := api.GetRoute(t.Context(), "ns", "a"); err != nil || got.UID != "uid-a" || s.taken() != listA {
		t.Errorf("get: %+v, %v", got, err)
	}
	if _, err := api.GetRoute(t.Context(), "ns", "gone"); !apierrors.IsNotFound(err) {
		t.Errorf("get of a route that is gone: %v", err)
	}
	s.taken()
	list, next, err := api.List(t.Context(), "")
	if err != nil || len(list) != 1 || next != "next" || s.taken() != "GET /apis/route.openshift.io/v1/routes?limit=500" {
		t.Errorf("list: %+v, %q, %v", list, next, err)
	}
	if _, next, err := api.List(t.Context(), next); err != nil || next != "" || s.taken() != "GET /apis/route.openshift.io/v1/routes?continue=next&limit=500" {
		t.Errorf("second page: %q, %v", next, err)
	}
	if list, next, err := api.List(t.Context(), "old"); err != nil || len(list) != 0 || next != "from there" {
		t.Errorf("a token that has expired: %+v, %q, %v", list, next, err)
	}
}
