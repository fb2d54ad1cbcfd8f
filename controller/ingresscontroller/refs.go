package ingresscontroller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"turnout/controller/source"
)

// Where the objects are that fields name.
const (
	configNamespace = "openshift-config"  // ConfigMaps
	routerNamespace = "openshift-ingress" // Secrets
)

// The configuration of the cluster that counts where an IngressController says nothing.
var (
	apiServer = Ref{source.APIServer, source.Key{Name: "cluster"}}
	ingress   = Ref{source.IngressConfig, source.Key{Name: "cluster"}}
)

// Refs are the objects that matter besides an IngressController, nil = none is there.
func Refs(object *unstructured.Unstructured) []Ref {
	if object == nil {
		return nil
	}
	refs := []Ref{apiServer, ingress}
	add := func(kind source.Kind, namespace, name string) {
		if name != "" {
			refs = append(refs, Ref{kind, source.Key{Namespace: namespace, Name: name}})
		}
	}
	o, _ := decode(object.Object)
	add(source.ConfigMap, configNamespace, o.Spec.ClientTLS.ClientCA.Name)
	add(source.ConfigMap, configNamespace, o.Spec.HttpErrorCodePages.Name)
	if c := o.Spec.DefaultCertificate; c != nil {
		add(source.Secret, routerNamespace, c.Name)
	}
	return refs
}

// other reads an object that need not be there. It reports whether it is.
func (t *translation) other(ref Ref, to any) bool {
	of := t.others[ref]
	return of.Object != nil && runtime.DefaultUnstructuredConverter.FromUnstructured(of.Object.Object, to) == nil
}

// referred reads an object that a field names; if that was never possible, the field cannot be used.
func (t *translation) referred(ref Ref, field string, to any) bool {
	of := t.others[ref]
	if of.Err != "" {
		t.invalid(field, ref.Key, "the "+ref.Kind.String()+" cannot be read: "+of.Err)
	}
	switch {
	case of.Object == nil && of.Err != "":
	case of.Object == nil:
		t.invalid(field, ref.Key, "there is no such "+ref.Kind.String())
	case !t.other(ref, to):
		t.invalid(field, ref.Key, "the "+ref.Kind.String()+" cannot be decoded")
	default:
		return true
	}
	return false
}

// annotation is that of the IngressController, else of the Ingress configuration of the cluster, and where it stands.
func (t *translation) annotation(name string) (value, field string) {
	if value, ok := t.o.Annotations[name]; ok {
		return value, "annotation " + name
	}
	var of struct {
		metav1.ObjectMeta `json:"metadata"`
	}
	if t.other(ingress, &of) {
		if value, ok := of.Annotations[name]; ok {
			return value, "annotation " + name + " of the Ingress configuration"
		}
	}
	return "", "annotation " + name + ", which is not given"
}
