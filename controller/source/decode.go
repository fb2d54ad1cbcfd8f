package source

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"turnout/internal/nearest"
)

// Object is one decoded object, defaulted and validated as an API server does it.
type Object struct {
	Kind   Kind
	Key    Key
	Object runtime.Object // of the type named at Kind
}

// Finding is what Decode has to say about an object or a document.
type Finding struct {
	Object   string // "Route namespace/name", "" when not known
	Severity Severity
	Reason   string
}

// object is what the typed objects have in common.
type object interface {
	runtime.Object
	metav1.Object
}

// kindOf is a kind as manifests name it.
type kindOf struct {
	kind Kind
	make func() object
}

// kinds returns the kind the controller knows by an apiVersion and a kind. Routes of "v1" are as
// written for the first OpenShift 3 releases.
func kinds(apiVersion, kind string) (kindOf, bool) {
	switch {
	case kind == "Route" && (apiVersion == "route.openshift.io/v1" || apiVersion == "v1"):
		return kindOf{Route, func() object { return new(routev1.Route) }}, true
	case kind == "Service" && apiVersion == "v1":
		return kindOf{Service, func() object { return new(corev1.Service) }}, true
	case kind == "EndpointSlice" && apiVersion == "discovery.k8s.io/v1":
		return kindOf{EndpointSlice, func() object { return new(discoveryv1.EndpointSlice) }}, true
	case kind == "Secret" && apiVersion == "v1":
		return kindOf{Secret, func() object { return new(corev1.Secret) }}, true
	case kind == "Namespace" && apiVersion == "v1":
		return kindOf{Namespace, func() object { return new(corev1.Namespace) }}, true
	case kind == "ConfigMap" && apiVersion == "v1":
		return kindOf{ConfigMap, func() object { return new(corev1.ConfigMap) }}, true
	case kind == "IngressController" && apiVersion == "operator.openshift.io/v1":
		return kindOf{IngressController, anything}, true
	case kind == "APIServer" && apiVersion == "config.openshift.io/v1":
		return kindOf{APIServer, anything}, true
	case kind == "Ingress" && apiVersion == "config.openshift.io/v1":
		return kindOf{IngressConfig, anything}, true
	case kind == "Ingress" && apiVersion == "networking.k8s.io/v1":
		return kindOf{Ingress, func() object { return new(networkingv1.Ingress) }}, true
	case kind == "IngressClass" && apiVersion == "networking.k8s.io/v1":
		return kindOf{IngressClass, func() object { return new(networkingv1.IngressClass) }}, true
	}
	if known := gatewayKinds[kind]; known.kind != 0 && apiVersion == gatewayv1.GroupVersion.String() {
		return known, true
	}
	return kindOf{}, false
}

// gatewayKinds are those of the Gateway API.
var gatewayKinds = map[string]kindOf{
	"GatewayClass":     {GatewayClass, func() object { return new(gatewayv1.GatewayClass) }},
	"Gateway":          {Gateway, func() object { return new(gatewayv1.Gateway) }},
	"ListenerSet":      {ListenerSet, func() object { return new(gatewayv1.ListenerSet) }},
	"HTTPRoute":        {HTTPRoute, func() object { return new(gatewayv1.HTTPRoute) }},
	"GRPCRoute":        {GRPCRoute, func() object { return new(gatewayv1.GRPCRoute) }},
	"TLSRoute":         {TLSRoute, func() object { return new(gatewayv1.TLSRoute) }},
	"TCPRoute":         {TCPRoute, func() object { return new(gatewayv1.TCPRoute) }},
	"UDPRoute":         {UDPRoute, func() object { return new(gatewayv1.UDPRoute) }},
	"ReferenceGrant":   {ReferenceGrant, func() object { return new(gatewayv1.ReferenceGrant) }},
	"BackendTLSPolicy": {BackendTLSPolicy, func() object { return new(gatewayv1.BackendTLSPolicy) }},
}

// anything is an object of which each field is read by itself.
func anything() object { return new(unstructured.Unstructured) }

// Decode returns the objects of a document: one, or those of a List. Findings of
// severity Error are about objects that are not returned.
func Decode(doc Document) ([]Object, []Finding) {
	if doc.Err != nil {
		return nil, []Finding{{Reason: doc.Err.Error()}}
	}
	var findings []Finding
	data := doc.Data
	if !doc.JSON {
		var err error
		data, err = yaml.YAMLToJSONStrict(doc.Data)
		if err != nil {
			// Duplicate keys are an error of the strict reading only.
			strict := err
			if data, err = yaml.YAMLToJSON(doc.Data); err != nil {
				return nil, []Finding{{Reason: "cannot parse YAML: " + lines(err, doc.Line)}}
			}
			findings = append(findings, Finding{Severity: Warning, Reason: lines(strict, doc.Line)})
		}
	}
	objects, more := decodeJSON(data, "")
	return objects, append(findings, more...)
}

// lines returns the text of a YAML error with its line numbers counted from the start
// of the file. first is the line the document starts on.
func lines(err error, first int) string {
	text := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	text = strings.ReplaceAll(strings.TrimPrefix(text, "yaml: "), "\n", " ")
	return linePattern.ReplaceAllStringFunc(text, func(m string) string {
		n, err := strconv.Atoi(strings.TrimPrefix(m, "line "))
		if err != nil {
			return m
		}
		return "line " + strconv.Itoa(n+first-1)
	})
}

var linePattern = regexp.MustCompile(`\bline [0-9]+`)

// header is what tells the kind of a document.
type header struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   objectName        `json:"metadata"`
	Items      []json.RawMessage `json:"items"`
}

type objectName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// decodeJSON decodes one object or list. place tells the place in a list.
func decodeJSON(data []byte, place string) ([]Object, []Finding) {
	var h header
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, []Finding{{Object: place, Reason: "cannot read as an object: " + jsonError(err)}}
	}
	if h.Kind == "" || h.APIVersion == "" {
		return nil, []Finding{{Object: place, Reason: "apiVersion and kind must be set"}}
	}
	name := named(h, place)
	if strings.HasSuffix(h.Kind, "List") && h.Metadata.Name == "" {
		return decodeList(h, place)
	}
	known, ok := kinds(h.APIVersion, h.Kind)
	if !ok {
		return nil, []Finding{{Object: name, Reason: unknownKind(h)}}
	}
	obj := known.make()
	warnings, err := kjson.UnmarshalStrict(data, obj)
	if err != nil {
		return nil, []Finding{{Object: name, Reason: "cannot decode: " + jsonError(err)}}
	}
	var findings []Finding
	setDefaults(known.kind, obj)
	key := Key{obj.GetNamespace(), obj.GetName()}
	name = known.kind.String() + " " + key.String()
	if errs := validate(known.kind, obj); len(errs) > 0 {
		for _, reason := range errs {
			findings = append(findings, Finding{Object: name, Reason: reason})
		}
		return nil, findings
	}
	for _, w := range warnings {
		findings = append(findings, Finding{Object: name, Severity: Warning, Reason: w.Error()})
	}
	return []Object{{Kind: known.kind, Key: key, Object: obj}}, findings
}

func decodeList(h header, place string) ([]Object, []Finding) {
	var objects []Object
	var findings []Finding
	element := strings.TrimSuffix(h.Kind, "List")
	for i, item := range h.Items {
		if element != "" {
			item = withKind(item, h.APIVersion, element)
		}
		o, f := decodeJSON(item, strings.TrimSpace(fmt.Sprintf("%s item %d", place, i+1)))
		objects = append(objects, o...)
		findings = append(findings, f...)
	}
	return objects, findings
}

// withKind returns an item of a typed list, whose items need not repeat their kind.
func withKind(item json.RawMessage, apiVersion, kind string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(item, &fields) != nil || fields == nil {
		return item
	}
	if _, ok := fields["kind"]; !ok {
		fields["kind"], _ = json.Marshal(kind)
	}
	if _, ok := fields["apiVersion"]; !ok {
		fields["apiVersion"], _ = json.Marshal(apiVersion)
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return item
	}
	return out
}

// named returns how a document that is not decoded yet is called.
func named(h header, place string) string {
	if h.Metadata.Name == "" {
		return strings.TrimSpace(h.Kind + " " + place)
	}
	ns := h.Metadata.Namespace
	if ns == "" && h.Kind != "Namespace" && h.Kind != "IngressClass" && h.Kind != "GatewayClass" {
		ns = metav1.NamespaceDefault
	}
	return h.Kind + " " + Key{ns, h.Metadata.Name}.String()
}

func unknownKind(h header) string {
	text := fmt.Sprintf("kind %s of %s is not known", h.Kind, h.APIVersion)
	switch h.Kind {
	case "Route":
		text += "; use apiVersion route.openshift.io/v1"
	case "Service", "Secret", "Namespace", "ConfigMap":
		text += "; use apiVersion v1"
	case "Endpoints":
		text += "; write an EndpointSlice of discovery.k8s.io/v1"
	case "Ingress", "IngressClass":
		text += "; use apiVersion networking.k8s.io/v1"
	case "EndpointSlice":
		text += "; use apiVersion discovery.k8s.io/v1"
	default:
		if gatewayKinds[h.Kind].kind != 0 {
			return text + "; use apiVersion " + gatewayv1.GroupVersion.String()
		}
		text += nearest.DidYouMean("", h.Kind, []string{"Route", "Service", "EndpointSlice", "Secret", "Namespace", "ConfigMap", "Ingress", "IngressClass", "IngressController", "APIServer", "GatewayClass", "Gateway", "HTTPRoute", "GRPCRoute", "TLSRoute"})
	}
	return text
}

// jsonError returns what is wrong without the name of the Go type.
func jsonError(err error) string {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) {
		text := fmt.Sprintf("%s must not be of type %s", t.Field, t.Value)
		if t.Value == "bool" {
			text += " (in YAML y, n, yes, no, on and off are of type bool unless quoted)"
		}
		return text
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// manifestUID returns the UID of an object that has none. It is the same for the same
// object in every process.
func manifestUID(kind Kind, key Key) types.UID {
	sum := sha256.Sum256([]byte(kind.String() + "/" + key.Namespace + "/" + key.Name))
	return types.UID("manifest-" + hex.EncodeToString(sum[:12]))
}
