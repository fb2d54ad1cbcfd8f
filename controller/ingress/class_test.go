package ingress

import (
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func class(name, controller string, made int64, isDefault string) *networkingv1.IngressClass {
	c := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(made, 0))}, Spec: networkingv1.IngressClassSpec{Controller: controller}}
	if isDefault != "" {
		c.Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: isDefault}
	}
	return c
}

// TestClass: the annotation counts before the field, and only classes of the router's own controller are served.
func TestClass(t *testing.T) {
	classes := NewClasses("")
	for _, c := range []*networkingv1.IngressClass{class("mine", Controller, 0, ""), class("foreign", "other.test/ingress", 0, "")} {
		classes.SetClass(c.Name, c)
	}
	for _, c := range []struct {
		field, annotation string // "-" = none
		want              string // why not; "" = served
	}{
		{"mine", "-", ""}, {"-", "mine", ""}, {"foreign", "mine", ""},
		{"foreign", "-", "its IngressClass foreign is that of the controller other.test/ingress, and not of turnout.router/ingress"},
		{"mine", "foreign", "its IngressClass foreign"}, {"mine", "", "there is no IngressClass "}, {"unknown", "-", "there is no IngressClass unknown"},
		{"-", "-", "it names no class, and no IngressClass is the default one"},
	} {
		o := &networkingv1.Ingress{}
		if c.field != "-" {
			o.Spec.IngressClassName = &c.field
		}
		if c.annotation != "-" {
			o.Annotations = map[string]string{AnnotationClass: c.annotation}
		}
		ok, why := classes.Serves(o)
		if ok != (c.want == "") || !strings.Contains(why, c.want) {
			t.Errorf("field %s, annotation %s: %v %q, want %q", c.field, c.annotation, ok, why, c.want)
		}
	}
}

// TestDefaultClass: an Ingress without a class is served while the default class is the router's: of several the newest, of those the first by name.
func TestDefaultClass(t *testing.T) {
	classes := NewClasses("example.com/x")
	o := &networkingv1.Ingress{}
	for _, step := range []struct {
		class *networkingv1.IngressClass
		want  bool
	}{
		{class("b", "example.com/x", 10, "false"), false}, {class("b", "example.com/x", 10, "true"), true}, {class("c", "foreign.test/x", 9, "true"), true},
		{class("d", "foreign.test/x", 11, "true"), false}, {class("a", "example.com/x", 11, "true"), true}, {class("a", Controller, 11, "true"), false},
	} {
		classes.SetClass(step.class.Name, step.class)
		if ok, why := classes.Serves(o); ok != step.want {
			t.Errorf("with %s: %v %s", step.class.Name, ok, why)
		}
	}
	classes.SetClass("a", nil)
	classes.SetClass("d", nil)
	if ok, why := classes.Serves(o); !ok {
		t.Errorf("after two went: %s", why)
	}
	n := 0
	for range classes.All {
		n++
	}
	if n != 2 {
		t.Errorf("%d classes", n)
	}
}
