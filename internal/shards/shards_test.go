package shards

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// answers are what an API server says to the two commands.
var answers = map[string]string{
	"/apis/turnout.router/v1alpha1/routers": `{"apiVersion":"turnout.router/v1alpha1","kind":"RouterList","items":[
		{"metadata":{"name":"b"},"spec":{"dns":{"domain":"b.test"},"capacity":{"routes":5}},"status":{"phase":"Ready","readyReplicas":2,"routesBound":3,"moving":1,
		 "addresses":["192.0.2.1","192.0.2.2"],"replicas":[{"name":"p","requestsPerSecond":3},{"name":"q","requestsPerSecond":4}]}},
		{"metadata":{"name":"a"},"status":{"conditions":[{"type":"Valid","status":"False","message":"the domain is another's"},{"type":"Available","status":"True","message":"x"}]}}]}`,
	"/apis/turnout.router/v1alpha1/routebindings": `{"apiVersion":"turnout.router/v1alpha1","kind":"RouteBindingList","metadata":{"continue":"more"},"items":[
		{"metadata":{"namespace":"ns","name":"r.b"},"spec":{"routeNamespace":"ns","routeName":"r","router":"b","dns":"www.example.com","target":"ns-r.b.test"},"status":{"phase":"Serving"}}]}`,
	"/apis/turnout.router/v1alpha1/routebindings more": `{"apiVersion":"turnout.router/v1alpha1","kind":"RouteBindingList","items":[
		{"metadata":{"namespace":"ns","name":"q.b"},"spec":{"routeNamespace":"ns","routeName":"q","router":"b","dns":"ns-q.b.test","target":"ns-q.b.test"}}]}`,
	"/apis/route.openshift.io/v1/routes": `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","items":[
		{"metadata":{"namespace":"ns","name":"r","annotations":{"turnout.router/phase":"scheduled"}}},
		{"metadata":{"namespace":"ns","name":"q","labels":{"bound.turnout.router/b":""}}},
		{"metadata":{"namespace":"ns","name":"w","annotations":{"turnout.router/phase":"new","turnout.router/message":"no router selects the route"}}}]}`,
}

func TestCommands(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		key := strings.TrimSpace(q.URL.Path + " " + q.URL.Query().Get("continue"))
		if answers[key] == "" {
			http.NotFound(w, q)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answers[key])
	}))
	t.Cleanup(server.Close)
	routers := "NAME  DOMAIN  PHASE    READY  ROUTES  CAPACITY  MOVING  REQ/S  ADDRESSES            PROBLEMS\n" +
		"a     -       Pending  0      0       -         0       0      -                    the domain is another's\n" +
		"b     b.test  Ready    2      3       5         1       7      192.0.2.1,192.0.2.2  \n"
	head := "NAMESPACE  ROUTE  ROUTER  PHASE    DNS              POINT A DOMAIN OF YOUR OWN TO  WHY IT WAITS\n"
	q := "ns         q      b       Pending  ns-q.b.test      -                              \n"
	r := "ns         r      b       Serving  www.example.com  ns-r.b.test                    \n"
	w := "ns         w      -       Waiting  -                -                              no router selects the route\n"
	for args, want := range map[string]string{
		"routers":             routers,
		"bindings":            head + q + r + w,
		"bindings --router b": head + q + r,
		"routers -o json":     `"problems": [`,
		"bindings -o json --waiting": `[
  {
    "namespace": "ns",
    "route": "w",
    "phase": "Waiting",
    "message": "no router selects the route"
  }
]
`,
	} {
		words := append(strings.Fields(args), "--server", server.URL)
		var out bytes.Buffer
		err := Run(context.Background(), words[0], words[1:], func(string) (string, bool) { return "", false }, "test", &out)
		if err != nil || !strings.Contains(out.String(), want) || !strings.Contains(args, "routers -o") && out.String() != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", args, err, out.String(), want)
		}
	}
	if err := Run(context.Background(), "bindings", []string{"-n", "none", "--server", server.URL}, func(string) (string, bool) { return "", false }, "test", io.Discard); err == nil {
		t.Error("an API server that does not know RouteBindings is no error")
	}
}
