package ingress

import (
	"encoding/json"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"turnout/controller/expansion"
)

// FuzzExpand: whatever an Ingress says, each rule has a name, a host and a claim of its own, and their number is bounded.
func FuzzExpand(f *testing.F) {
	for _, spec := range []string{
		"{" + backend + ", rules: [{host: a.test, " + paths("Prefix /p s:80", "Exact /p/ missing:http", "ImplementationSpecific u:8080") + "}, {host: '*.a.test'}], tls: [{hosts: [x.a.test, ''], secretName: t}, {}]}",
		"{rules: [{" + paths("Prefix / e:80", "Prefix // s:dns") + "}], tls: [{hosts: ['*.w.test', '*', '.']}]}",
	} {
		data, err := json.Marshal(read(f, spec, AnnotationTermination, "passthrough"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o := new(networkingv1.Ingress)
		if json.Unmarshal(data, o) != nil {
			return
		}
		r := expand(o)
		if len(r.Rules) > expansion.MaxRules {
			t.Fatalf("%d rules", len(r.Rules))
		}
		type claim struct{ host, claim string }
		names, claims := map[string]bool{}, map[claim]bool{}
		for i := range r.Rules {
			rule := &r.Rules[i]
			c := claim{rule.Host, rule.Claim()}
			if names[rule.Route.Name] || claims[c] || rule.Host == "" {
				t.Fatalf("rule %s of %+v is there twice", rule.Route.Name, c)
			}
			names[rule.Route.Name], claims[c] = true, true
		}
	})
}
