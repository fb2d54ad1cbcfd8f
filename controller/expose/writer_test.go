package expose

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/owned"
	"turnout/controller/source"
)

// fakeAPI is an API server that keeps objects by their path, as JSON.
type fakeAPI struct {
	mu      sync.Mutex
	objects map[string]json.RawMessage
	asked   []string // writes, as "PATCH path"
	refuse  string   // the end of a path that may not be written
}

// ServeHTTP implements http.Handler.
func (a *fakeAPI) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	say := func(code int, reason metav1.StatusReason) {
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(code)
		_ = json.NewEncoder(out).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: reason, Code: int32(code), Message: string(reason)})
	}
	if r.Method != http.MethodGet {
		a.asked = append(a.asked, r.Method+" "+r.URL.Path)
	}
	object, there := a.objects[r.URL.Path]
	switch {
	case r.Method != http.MethodGet && a.refuse != "" && strings.HasSuffix(r.URL.Path, a.refuse):
		say(http.StatusForbidden, metav1.StatusReasonForbidden)
	case r.Method == http.MethodPatch:
		object, _ = io.ReadAll(r.Body)
		a.objects[r.URL.Path] = object
		_, _ = out.Write(object)
	case r.URL.Query().Get("labelSelector") != "":
		a.list(out, r)
	case !there:
		say(http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.Method == http.MethodDelete:
		delete(a.objects, r.URL.Path)
		_, _ = out.Write([]byte("{}"))
	default:
		_, _ = out.Write(object)
	}
}

// list answers with the objects of a resource that a label selects.
func (a *fakeAPI) list(out http.ResponseWriter, r *http.Request) {
	key, value, _ := strings.Cut(r.URL.Query().Get("labelSelector"), "=")
	at := strings.LastIndex(r.URL.Path, "/")
	var list metav1.PartialObjectMetadataList
	for path, text := range a.objects {
		var o metav1.PartialObjectMetadata
		if err := json.Unmarshal(text, &o); err == nil && strings.HasPrefix(path, r.URL.Path[:at]) && strings.Contains(path, r.URL.Path[at:]+"/") && o.Labels[key] == value {
			list.Items = append(list.Items, o)
		}
	}
	_ = json.NewEncoder(out).Encode(list)
}

// writer is a Writer that leads, and its API server.
type writer struct {
	*lead
	api     *fakeAPI
	refused map[source.Key]string
}

func newWriter(t *testing.T, cfg WriterConfig, before map[string]json.RawMessage) *writer {
	t.Helper()
	w := &writer{api: &fakeAPI{objects: before}}
	server := httptest.NewServer(w.api)
	t.Cleanup(server.Close)
	client, err := rest.RESTClientFor(&rest.Config{
		Host: server.URL, QPS: -1, APIPath: "/api", ContentConfig: rest.ContentConfig{GroupVersion: &schema.GroupVersion{Version: "v1"}, NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg.API, cfg.Controller, cfg.Refused = owned.Client{API: client}, controllerName, func(r map[source.Key]string) { w.refused = maps.Clone(r) }
	w.lead = NewWriter(cfg).lead()
	return w
}

// has are the objects that there are, by the ends of their paths, in order.
func (w *writer) has() (list []string) {
	for path := range w.api.objects {
		_, name, namespaced := strings.Cut(path, "/namespaces/")
		if !namespaced {
			name = path[strings.LastIndex(path, "/")+1:]
		}
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

const pods = "/api/v1/namespaces/turnout/pods/router-1"

// aRouterPod is the pod that the Writer runs in.
var aRouterPod = json.RawMessage(`{"metadata": {"name": "router-1"}, "spec": {"containers": [{"name": "log", "image": "log"}, {"name": "router", "image": "turnout:7"}]}}`)

// settled has the writer write what a Gateway needs.
func (w *writer) settled(g ...Gateway) {
	services := make(map[source.Key]*corev1.Service)
	for path, text := range w.api.objects {
		var s corev1.Service
		if err := json.Unmarshal(text, &s); err == nil && strings.Contains(path, "/services/") && Ours(&s, controllerName) {
			services[source.Key{Namespace: s.Namespace, Name: s.Name}] = &s
		}
	}
	w.settle(context.Background(), Now{Gateways: g, Services: services, Pods: []string{"10.0.0.1"}})
}

// TestWriter: objects are written in the order in which they need each other, once, with the image of the router itself; and all go that are not wanted, be they written
// by an earlier leader.
func TestWriter(t *testing.T) {
	cfg := WriterConfig{Deployments: true, Pod: source.Key{Namespace: "turnout", Name: "router-1"}}
	w := newWriter(t, cfg, map[string]json.RawMessage{pods: aRouterPod})
	g := apart("a")
	g.Secrets = map[source.Key]struct{}{{Namespace: "far", Name: "c"}: {}}
	w.settled(g)
	all := []string{
		"far/rolebindings/turnout-gateway:ns:a", "far/roles/turnout-gateway:ns:a", "ns/deployments/a-turnout",
		"ns/rolebindings/turnout-gateway:ns:a", "ns/roles/turnout-gateway:ns:a", "ns/serviceaccounts/a-turnout", "ns/services/a-turnout",
		"turnout-gateway-pods", "turnout/pods/router-1",
	}
	if got := w.has(); !slices.Equal(got, all) || len(w.refused) != 0 {
		t.Fatalf("%q, refused %v", got, w.refused)
	}
	if text := string(w.api.objects["/apis/apps/v1/namespaces/ns/deployments/a-turnout"]); !strings.Contains(text, `"image":"turnout:7"`) {
		t.Errorf("%s", text)
	}
	if n := len(w.api.asked); !strings.HasSuffix(w.api.asked[n-1], "deployments/a-turnout") || !strings.HasSuffix(w.api.asked[n-2], "services/a-turnout") {
		t.Errorf("%q", w.api.asked)
	}
	if before := len(w.api.asked); before > 0 {
		if w.settled(g); len(w.api.asked) != before {
			t.Errorf("written again: %q", w.api.asked[before:])
		}
	}
	// The next leader knows nothing but what there is.
	next := newWriter(t, cfg, w.api.objects)
	next.settled()
	if got, want := next.has(), []string{"turnout-gateway-pods", "turnout/pods/router-1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if text := string(next.api.objects["/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/turnout-gateway-pods"]); strings.Contains(text, "a-turnout") {
		t.Errorf("an account that is gone may read on: %s", text)
	}
}

// TestInTheWay: what is not the Gateway's is left alone and said, and so is what may not be written; nothing that comes after is written, other Gateways get theirs, and
// once nothing is in the way the Gateway does too.
func TestInTheWay(t *testing.T) {
	const deployment, account = "/apis/apps/v1/namespaces/ns/deployments/a-turnout", "/api/v1/namespaces/ns/serviceaccounts/a-turnout"
	theirs := json.RawMessage(`{"metadata": {"name": "a-turnout", "namespace": "ns", "labels": {"app": "shop"}}}`)
	another := json.RawMessage(fmt.Sprintf(`{"metadata": {"name": "a-turnout", "namespace": "ns", "labels": {%q: "a.b", %q: %q}}}`, gatewayv1.GatewayNameLabelKey, labelOfController, labelOf(controllerName)))
	for name, c := range map[string]struct {
		path   string
		object json.RawMessage
		refuse string
		said   string
		has    []string // of the Gateway
	}{
		"Deployment":         {deployment, theirs, "", "Deployment ns/a-turnout is not the Gateway's: rename or delete it, or rename the Gateway", []string{"ns/deployments/a-turnout", "ns/serviceaccounts/a-turnout", "ns/services/a-turnout"}},
		"of another Gateway": {deployment, another, "", "Deployment ns/a-turnout is not the Gateway's: rename or delete it, or rename the Gateway", []string{"ns/deployments/a-turnout", "ns/serviceaccounts/a-turnout", "ns/services/a-turnout"}},
		"ServiceAccount":     {account, theirs, "", "ServiceAccount ns/a-turnout is not the Gateway's: rename or delete it, or rename the Gateway", []string{"ns/serviceaccounts/a-turnout"}},
		"permissions":        {"", nil, "deployments/a-turnout", "cannot write Deployment ns/a-turnout: Forbidden", []string{"ns/serviceaccounts/a-turnout", "ns/services/a-turnout"}},
	} {
		objects := map[string]json.RawMessage{pods: aRouterPod}
		if c.path != "" {
			objects[c.path] = c.object
		}
		w := newWriter(t, WriterConfig{Deployments: true, Pod: source.Key{Namespace: "turnout", Name: "router-1"}}, objects)
		w.api.refuse = c.refuse
		w.settled(apart("a"), aGateway("b", []int32{80}))
		if got := w.refused[source.Key{Namespace: "ns", Name: "a"}]; got != c.said || len(w.refused) != 1 {
			t.Errorf("%s: %v", name, w.refused)
		}
		got := slices.DeleteFunc(w.has(), func(o string) bool {
			return !strings.HasPrefix(o, "ns/") || strings.Contains(o, "b-turnout") || strings.Contains(o, "role")
		})
		if !slices.Equal(got, c.has) || w.api.objects["/api/v1/namespaces/ns/services/b-turnout"] == nil {
			t.Errorf("%s: %q", name, w.has())
		}
		if c.path != "" && string(w.api.objects[c.path]) != string(c.object) {
			t.Errorf("%s: what is another's was written", name)
		}
		delete(w.api.objects, c.path)
		w.api.refuse = ""
		if w.settled(apart("a"), aGateway("b", []int32{80})); len(w.refused) != 0 || w.api.objects[deployment] == nil {
			t.Errorf("%s: then %v", name, w.refused)
		}
	}
}

// TestNoImage: pods are not made before it is known of which image, and not without a word.
func TestNoImage(t *testing.T) {
	w := newWriter(t, WriterConfig{Deployments: true, Pod: source.Key{Namespace: "turnout", Name: "router-1"}}, map[string]json.RawMessage{})
	w.settled(apart("a"))
	if got := w.refused[source.Key{Namespace: "ns", Name: "a"}]; !strings.Contains(got, "cannot read Pod turnout/router-1") || w.api.objects["/apis/apps/v1/namespaces/ns/deployments/a-turnout"] != nil {
		t.Errorf("%q", got)
	}
	w.api.objects[pods] = aRouterPod
	if w.settled(apart("a")); len(w.refused) != 0 || w.api.objects["/apis/apps/v1/namespaces/ns/deployments/a-turnout"] == nil {
		t.Errorf("%v", w.refused)
	}
}
