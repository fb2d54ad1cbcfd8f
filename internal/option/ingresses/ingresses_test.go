package ingresses

import (
	"slices"
	"strings"
	"testing"

	"turnout/controller"
	"turnout/internal/option"
)

func none(string) (string, bool) { return "", false }

// TestOptions: what is given goes where it belongs, and a mistake ends the start.
func TestOptions(t *testing.T) {
	var o Options
	var c controller.Options
	args := []string{"--ingress", "--ingress-class-controller", "example.com/x", "--ingress-status-address", "10.0.0.1, ::1,router.test"}
	if _, _, err := option.Parse(o.Table(&c), nil, args, none); err != nil {
		t.Fatal(err)
	}
	if !c.Ingress || c.IngressController != "example.com/x" || !slices.Equal(o.Addresses("canonical.test"), []string{"10.0.0.1", "::1", "router.test"}) {
		t.Errorf("%+v %v", c, o)
	}
	var published Options
	if _, _, err := option.Parse(published.Table(&c), nil, append(args, "--ingress-status-service", "ns/lb"), none); err != nil || published.Service.String() != "ns/lb" || published.Addresses("canonical.test") != nil {
		t.Errorf("%+v, %v", published, err)
	}
	if _, _, err := option.Parse(new(Options).Table(&c), nil, []string{"--ingress-status-service", "lb"}, none); err == nil {
		t.Error("a Service without a namespace")
	}
	if got := new(Options).Addresses("canonical.test"); !slices.Equal(got, []string{"canonical.test"}) {
		t.Errorf("addresses %q", got)
	}
	if got := new(Options).Addresses(""); got != nil {
		t.Errorf("addresses %q", got)
	}
	for _, args := range []string{"--ingress-class-controller=example.com", "--ingress-status-address=a_b", "--ingress-status-address=fe80::1%eth0"} {
		if _, _, err := option.Parse(o.Table(&c), nil, []string{args}, none); err == nil || !strings.Contains(err.Error(), "allowed: ") {
			t.Errorf("%s: %v", args, err)
		}
	}
}
