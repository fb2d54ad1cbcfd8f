package ingress

import (
	"cmp"
	"errors"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Controller is what spec.controller of an IngressClass says whose Ingresses the router serves, unless an option says another.
const Controller = "turnout.router/ingress"

// CheckController returns why a text cannot be spec.controller of an IngressClass, nil if it can.
func CheckController(text string) error {
	if len(text) > 250 || len(validation.IsDomainPrefixedPath(nil, text)) > 0 {
		return errors.New("allowed: a DNS name, a slash and a path, such as example.com/ingress")
	}
	return nil
}

// Class returns the name of the class that an Ingress asks for: by the annotation, which counts even if it is empty, before the field. The bool is
// false when it asks for none.
func Class(o *networkingv1.Ingress) (name string, ok bool) {
	if name, ok = o.Annotations[AnnotationClass]; ok {
		return name, true
	}
	if o.Spec.IngressClassName != nil {
		return *o.Spec.IngressClassName, true
	}
	return "", false
}

// Classes are the IngressClasses that there are. It is made by NewClasses and used by one goroutine.
type Classes struct {
	controller string
	all        map[string]*networkingv1.IngressClass
}

// NewClasses returns an empty set. controller is what classes of this router say in spec.controller; "" = Controller.
func NewClasses(controller string) *Classes {
	return &Classes{controller: cmp.Or(controller, Controller), all: make(map[string]*networkingv1.IngressClass)}
}

// SetClass says what a class is now; nil = there is none of the name.
func (c *Classes) SetClass(name string, class *networkingv1.IngressClass) {
	if class == nil {
		delete(c.all, name)
		return
	}
	c.all[name] = class
}

// All calls yield for each class, in no order, until it returns false.
func (c *Classes) All(yield func(*networkingv1.IngressClass) bool) {
	for _, class := range c.all {
		if !yield(class) {
			return
		}
	}
}

// Serves reports whether an Ingress is one that this router serves: it asks for a class of the router, or for none while the default class is
// one. Otherwise why says, for people, what would make it one.
func (c *Classes) Serves(o *networkingv1.Ingress) (ok bool, why string) {
	name, asked := Class(o)
	if !asked {
		switch class := c.byDefault(); {
		case class == nil:
			return false, "it names no class, and no IngressClass is the default one: set spec.ingressClassName"
		case class.Spec.Controller != c.controller:
			return false, fmt.Sprintf("it names no class, and the default IngressClass %s is that of the controller %s: set spec.ingressClassName", class.Name, class.Spec.Controller)
		}
		return true, ""
	}
	switch class := c.all[name]; {
	case class == nil:
		return false, fmt.Sprintf("there is no IngressClass %s", name)
	case class.Spec.Controller != c.controller:
		return false, fmt.Sprintf("its IngressClass %s is that of the controller %s, and not of %s", name, class.Spec.Controller, c.controller)
	}
	return true, ""
}

// byDefault returns the default class, nil without one. Of several the API server takes the newest, and of equally old ones the first by name.
func (c *Classes) byDefault() (found *networkingv1.IngressClass) {
	for _, class := range c.all {
		if class.Annotations[networkingv1.AnnotationIsDefaultIngressClass] != "true" {
			continue
		}
		if found == nil || cmp.Or(found.CreationTimestamp.Compare(class.CreationTimestamp.Time), cmp.Compare(class.Name, found.Name)) < 0 {
			found = class
		}
	}
	return found
}
