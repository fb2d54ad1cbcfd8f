// Package ingresscontroller reads an IngressController of OpenShift and what it refers to, and says what its fields mean as options of the
// router: the options that the ingress operator would write into the environment of the HAProxy router's pods.
//
//	IngressController, ConfigMaps, Secret ─► Follower ─► Translate ─► Outcome: options by flag, and what is not honoured
//
// Translate is a pure function. What decides between flags, environment and these options is package option; who applies them is up to who
// asked. A field that cannot be used is a Finding and has no effect on any other.
package ingresscontroller

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"turnout/controller/source"
)

// Setting is what a field says about an option of the router.
type Setting struct {
	Flag  string // the option, without dashes
	Value string // as the flag or its variable would say it; for Content what people are shown
	// Content is what is in the file that the option names, or the text that nobody is shown; nil = Value is all.
	Content []byte
	Field   string // such as spec.tuningOptions.clientTimeout
	// Unless are other options by which the same could be said: when one of them is given, the field has no effect.
	Unless []string
}

// Finding is a field that has no effect.
type Finding struct {
	Field string
	Text  string // what is wrong or what to do instead, for people
	// Foreign says that the value is fine and that the router has nothing that it could mean.
	Foreign bool
}

// Outcome is what an IngressController means for the router.
type Outcome struct {
	Settings []Setting // in the order of the fields; of two for one flag, the later one counts if it can be used
	Findings []Finding // in the order of the fields
}

// Input is an IngressController and what it refers to. It is not changed.
type Input struct {
	Object *unstructured.Unstructured // nil = there is none: nothing is set
	Others map[Ref]Referred           // those of Refs; one that is not there has not been read yet
}

// Ref is an object that matters besides.
type Ref struct {
	Kind source.Kind
	Key  source.Key
}

// Referred is an object that a Ref is about.
type Referred struct {
	Object *unstructured.Unstructured // nil = there is none
	Err    string                     // why it cannot be read; "" = it can
}
