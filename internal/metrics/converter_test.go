package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// TestConverter: a scrape has each count, and a series for each object that is named.
func TestConverter(t *testing.T) {
	if _, err := NewConverter(nil); err == nil {
		t.Error("metrics of nothing")
	}
	h, err := NewConverter(func() Converter {
		return Converter{
			Leading: true, Ingresses: 1, Routes: 2, Failing: 3, Created: 4, Updated: 5, Deleted: 6, Failed: 7,
			Classless: []ConvertedObject{{Namespace: "ns", Name: "a"}}, Unmanaged: []ConvertedObject{{"ns", "b", "b.test"}},
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{
		"turnout_ingress_to_route_leading 1", "turnout_ingress_to_route_ingresses 1", "turnout_ingress_to_route_routes 2", "turnout_ingress_to_route_failing 3",
		`turnout_ingress_to_route_writes_total{write="create"} 4`, `turnout_ingress_to_route_writes_total{write="update"} 5`, `turnout_ingress_to_route_writes_total{write="delete"} 6`,
		"turnout_ingress_to_route_failures_total 7",
		`openshift_ingress_to_route_controller_ingress_without_class_name{name="a",namespace="ns"} 1`,
		`openshift_ingress_to_route_controller_route_with_unmanaged_owner{host="b.test",name="b",namespace="ns"} 1`,
	} {
		if !strings.Contains(w.Body.String(), line+"\n") {
			t.Errorf("there is no %s", line)
		}
	}
}
