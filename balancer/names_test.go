package balancer

import (
	"strings"
	"testing"
	"unsafe"
)

func TestNames(t *testing.T) {
	id := ServerID("web-1", "web", "http", "10.0.0.1", 8080)
	for _, c := range []Target{
		{ID: id, Pod: "web-1", Service: "web"},
		{ID: ServerID("", "web", "", "10.0.0.1", 80), Service: "web"},
		{ID: "x", Pod: "another", Service: "third"},
		{},
	} {
		n := namesOf(&c)
		if n.id() != c.ID || n.pod() != c.Pod || n.service() != c.Service {
			t.Errorf("%+v: %q, %q, %q", c, n.id(), n.pod(), n.service())
		}
	}
	n := namesOf(&Target{ID: id, Pod: "web-1", Service: "web"})
	if unsafe.StringData(n.text) != unsafe.StringData(id) {
		t.Error("the names are copied")
	}
	long := strings.Repeat("a", 2*mostText)
	if n := namesOf(&Target{ID: long, Pod: "p" + long, Service: "s" + long}); !strings.HasPrefix(long, n.id()) || !strings.HasPrefix("p"+long, n.pod()) || n.id() == "" {
		t.Errorf("%d bytes of an identity, %d of a pod", len(n.id()), len(n.pod()))
	}
}
