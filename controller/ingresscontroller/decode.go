package ingresscontroller

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newer are the fields that the API has got since the version of its types that the router is built with.
type newer struct {
	Spec struct {
		ClosedClientConnectionPolicy string          `json:"closedClientConnectionPolicy"`
		HAProxyVersion               string          `json:"haproxyVersion"`
		ConfigurationManagement      json.RawMessage `json:"configurationManagement"`
		TuningOptions                struct {
			HTTPKeepAliveTimeout    *metav1.Duration `json:"httpKeepAliveTimeout"`
			ConfigurationManagement json.RawMessage  `json:"configurationManagement"`
		} `json:"tuningOptions"`
		TLSSecurityProfile struct {
			Custom struct {
				Groups []string `json:"groups"`
			} `json:"custom"`
		} `json:"tlsSecurityProfile"`
	} `json:"spec"`
}

// decoded is an IngressController, without the fields that cannot be read.
type decoded struct {
	operatorv1.IngressController

	newer newer
}

// decode reads an object field by field: where one has a wrong type, only that one is left out, and is a finding.
func decode(object map[string]any) (*decoded, []Finding) {
	d := &decoded{}
	var findings []Finding
	for _, to := range []any{&d.IngressController, &d.newer} {
		fits := func(at []string, v any) bool { return into(to, nest(at, v)) == nil }
		sane, bad := sieve(nil, object, fits)
		if sane == nil || into(to, sane) != nil {
			continue
		}
		for _, field := range bad {
			f := Finding{Field: strings.Join(field, "."), Text: "its value is of a wrong type or form"}
			if !slices.Contains(findings, f) {
				findings = append(findings, f)
			}
		}
	}
	return d, findings
}

// into decodes a value into a fresh copy of what to points to, and then into that.
func into(to, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	switch to := to.(type) {
	case *operatorv1.IngressController:
		return replace(to, text)
	case *newer:
		return replace(to, text)
	}
	return nil
}

func replace[T any](to *T, text []byte) error {
	var next T
	if err := json.Unmarshal(text, &next); err != nil {
		return err
	}
	*to = next
	return nil
}

// nest is an object with one field.
func nest(at []string, v any) any {
	for _, name := range slices.Backward(at) {
		v = map[string]any{name: v}
	}
	return v
}

// sieve returns of v, which stands at a path, what fits, nil for nothing, and the paths of what does not.
func sieve(at []string, v any, fits func(at []string, v any) bool) (sane any, bad [][]string) {
	if fits(at, v) {
		return v, nil
	}
	of, ok := v.(map[string]any)
	if !ok {
		return nil, [][]string{slices.Clone(at)}
	}
	left := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		sub, more := sieve(append(slices.Clip(at), name), of[name], fits)
		if bad = append(bad, more...); sub != nil {
			left[name] = sub
		}
	}
	return left, bad
}
