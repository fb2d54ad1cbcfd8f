package owned

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// serve returns a client of a server that gives one answer, and what that was asked last.
func serve(t *testing.T, code int, answer any) (*Client, *string) {
	t.Helper()
	asked := new(string)
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*asked = fmt.Sprintf("%s %s %s", r.Method, r.URL, body)
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(code)
		_ = json.NewEncoder(out).Encode(answer)
	}))
	t.Cleanup(server.Close)
	client, err := rest.RESTClientFor(&rest.Config{
		Host: server.URL, QPS: -1, APIPath: "/api", ContentConfig: rest.ContentConfig{GroupVersion: &schema.GroupVersion{Version: "v1"}, NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &Client{API: client, Manager: "me"}, asked
}

// status is what an API server says of what it does not do.
func status(code int, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: reason, Code: int32(code), Message: message}
}

// TestRequests: objects of any group, with and without a namespace, are asked for by one client.
func TestRequests(t *testing.T) {
	c, asked := serve(t, http.StatusOK, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "d", UID: "u"}})
	deployment, binding := Object{Deployments, "ns", "d"}, Object{Resource: ClusterBindings, Name: "b"}
	is := func(err error, want string) {
		t.Helper()
		if err != nil || *asked != want {
			t.Errorf("%v, asked %q, want %q", err, *asked, want)
		}
	}
	meta, err := c.Metadata(t.Context(), deployment)
	if is(err, "GET /apis/apps/v1/namespaces/ns/deployments/d "); meta == nil || meta.UID != "u" {
		t.Errorf("%+v", meta)
	}
	is(c.Apply(t.Context(), binding, []byte(`{"x":1}`), nil), `PATCH /apis/rbac.authorization.k8s.io/v1/clusterrolebindings/b?fieldManager=me&force=true {"x":1}`)
	is(c.Delete(t.Context(), deployment, "u"), `DELETE /apis/apps/v1/namespaces/ns/deployments/d {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u"},"propagationPolicy":"Background"}`)
	_, err = c.List(t.Context(), Services, "a=b")
	is(err, "GET /api/v1/services?labelSelector=a%3Db ")
	if deployment.String() != "Deployment ns/d" || binding.String() != "ClusterRoleBinding b" {
		t.Errorf("%s, %s", deployment, binding)
	}
}

// TestFailures: what is not there is nothing to delete, and what the server says reaches people.
func TestFailures(t *testing.T) {
	c, _ := serve(t, http.StatusNotFound, status(http.StatusNotFound, metav1.StatusReasonNotFound, "none"))
	o := Object{Deployments, "ns", "d"}
	if meta, err := c.Metadata(t.Context(), o); meta != nil || err != nil {
		t.Errorf("%+v, %v", meta, err)
	}
	if err := c.Delete(t.Context(), o, ""); err != nil {
		t.Error(err)
	}
	if err := c.Read(t.Context(), o, nil); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	c, _ = serve(t, http.StatusForbidden, status(http.StatusForbidden, metav1.StatusReasonForbidden, "exceeded quota"))
	if err := c.Apply(t.Context(), o, nil, nil); !apierrors.IsForbidden(err) || err.Error() != "exceeded quota" {
		t.Error(err)
	}
	c, _ = serve(t, http.StatusOK, "no object")
	if _, err := c.Metadata(t.Context(), o); err == nil {
		t.Error("an answer that cannot be read passes")
	}
}
