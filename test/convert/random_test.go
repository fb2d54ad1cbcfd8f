package convert

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"testing"
	"testing/fstest"

	"turnout/controller/gateway/convert"
	"turnout/deploy/examples"
	"turnout/internal/testkit/testcert"
)

// TestGenerated: sets of Routes and Ingresses by chance, with hosts that cover each other, paths that do, and every kind of TLS, come to the same before and after, but
// for what the report names.
func TestGenerated(t *testing.T) {
	sets := uint64(12)
	if testing.Short() {
		sets = 3
	}
	compared := 0
	for seed := range sets {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := &generator{T: t, random: rand.New(rand.NewPCG(seed, 1)), files: fstest.MapFS{}}
			r := start(t, g.manifests(), convert.Options{})
			compared += r.compare(r.requests())
		})
	}
	if compared < 100*int(sets) {
		t.Errorf("%d requests were compared", compared)
	}
}

// generator makes manifests by chance.
type generator struct {
	*testing.T
	random *rand.Rand
	files  fstest.MapFS
}

type fields = map[string]any

func (g *generator) pick(list ...string) string { return list[g.random.IntN(len(list))] }

func (g *generator) chance(percent int) bool { return g.random.IntN(100) < percent }

// put writes a manifest.
func (g *generator) put(apiVersion, kind, name string, object fields) {
	g.Helper()
	meta := fields{"name": name, "namespace": "examples"}
	if a, ok := object["annotations"]; ok {
		meta["annotations"] = a
		delete(object, "annotations")
	}
	object["apiVersion"], object["kind"], object["metadata"] = apiVersion, kind, meta
	text, err := json.Marshal(object)
	if err != nil {
		g.Fatal(err)
	}
	g.files[name+".yaml"] = &fstest.MapFile{Data: text}
}

// manifests are a set: plain Services s0 to s3, t0 and t1 whose pods speak TLS, Routes and Ingresses.
func (g *generator) manifests() fs.FS {
	g.Helper()
	for _, name := range []string{"pod-certificate.yaml", "namespace.yaml"} {
		text, err := examples.Files().ReadFile(name)
		if err != nil {
			g.Fatal(err)
		}
		g.files[name] = &fstest.MapFile{Data: text}
	}
	for _, name := range []string{"s0", "s1", "s2", "s3"} {
		g.put("v1", "Service", name, fields{"spec": fields{"ports": []any{fields{"name": "http", "port": 8080, "targetPort": "web"}}}})
	}
	for _, name := range []string{"t0", "t1"} {
		g.put("v1", "Service", name, fields{"spec": fields{"ports": []any{fields{"name": "https", "port": 8443}}}})
	}
	for i := range 14 {
		g.route(fmt.Sprintf("route-%d", i))
	}
	for i := range 3 {
		g.ingress(fmt.Sprintf("ingress-%d", i))
	}
	return g.files
}

func (g *generator) host() string {
	return g.pick("a.gen.test", "b.gen.test", "c.gen.test", "x.wild.gen.test", "y.wild.gen.test", "deep.x.wild.gen.test")
}

func (g *generator) route(name string) {
	spec := fields{"host": g.host(), "to": fields{"kind": "Service", "name": g.pick("s0", "s1", "s2", "s3"), "weight": 100}}
	if g.chance(15) {
		spec["host"], spec["wildcardPolicy"] = "any.wild.gen.test", "Subdomain"
	}
	if path := g.pick("", "", "/", "/a", "/a/b", "/A", "/a.b", "/a/"); path != "" {
		spec["path"] = path
	}
	switch {
	case g.chance(15):
		spec["tls"] = g.ends(fields{"termination": "reencrypt", "destinationCACertificate": g.authority()})
		spec["to"] = fields{"kind": "Service", "name": g.pick("t0", "t1"), "weight": 1}
	case g.chance(10):
		delete(spec, "path")
		delete(spec, "wildcardPolicy")
		spec["host"], spec["tls"] = "pass."+g.pick("gen.test", "wild.gen.test"), fields{"termination": "passthrough", "insecureEdgeTerminationPolicy": g.pick("None", "Redirect")}
		spec["to"] = fields{"kind": "Service", "name": g.pick("t0", "t1"), "weight": 1}
	case g.chance(60):
		spec["tls"] = g.ends(fields{"termination": "edge"})
	}
	if tls, _ := spec["tls"].(fields); tls["termination"] != "passthrough" && g.chance(30) {
		spec["httpHeaders"] = fields{"actions": fields{
			"request":  []any{fields{"name": "X-Set", "action": fields{"type": "Set", "set": fields{"value": "100%% \"so\""}}}, fields{"name": "Origin", "action": fields{"type": "Delete"}}},
			"response": []any{fields{"name": "X-Answer", "action": fields{"type": "Set", "set": fields{"value": "yes"}}}},
		}}
	}
	annotations := g.annotations()
	if tls, _ := spec["tls"].(fields); tls["termination"] == "reencrypt" { // the other Services have no TLS
		delete(annotations, "turnout.router/mirror")
		delete(annotations, "turnout.router/canary")
	}
	g.put("route.openshift.io/v1", "Route", name, fields{"spec": spec, "annotations": annotations})
}

// ends completes what is said of TLS that ends at the router.
func (g *generator) ends(tls fields) fields {
	if policy := g.pick("", "None", "Allow", "Redirect"); policy != "" {
		tls["insecureEdgeTerminationPolicy"] = policy
	}
	if g.chance(40) {
		own := testcert.Sign(g, &x509.Certificate{DNSNames: []string{"gen.test"}}, nil)
		tls["certificate"], tls["key"] = own.PEM(), own.KeyPEM(g)
	}
	return tls
}

// authority is the one of the pods.
func (g *generator) authority() string {
	var secret struct{ StringData map[string]string }
	g.Helper()
	decode(g, g.files["pod-certificate.yaml"].Data, &secret)
	return secret.StringData["ca.crt"]
}

// annotations are those that have an equal.
func (g *generator) annotations() fields {
	a := fields{}
	for _, one := range []struct{ key, value string }{
		{"haproxy.router.openshift.io/hsts_header", "max-age=31536000;includeSubDomains"},
		{"haproxy.router.openshift.io/rewrite-target", g.pick("/", "/v2", "/v2/x")},
		{"haproxy.router.openshift.io/timeout", "1m30s"},
		{"turnout.router/cors-allow-origin", g.pick("https://a.example", "*", "https://*.example")},
		{"turnout.router/upstream-host", "inner.test"},
		{"turnout.router/mirror", "s3"},
		{"turnout.router/canary", "s0"},
		{"turnout.router/redirect-to", g.pick("https://else.test", "http://else.test:8080/there")},
	} {
		if g.chance(12) {
			a[one.key] = one.value
			if one.key == "turnout.router/canary" {
				a["turnout.router/canary-by-header"], a["turnout.router/canary-by-cookie"] = "X-Canary", "canary"
			}
		}
	}
	return a
}

func (g *generator) ingress(name string) {
	backend := func() fields {
		return fields{"service": fields{"name": g.pick("s0", "s1", "s2", "s3"), "port": []fields{{"name": "http"}, {"number": 8080}}[g.random.IntN(2)]}}
	}
	hosts := []string{name + ".ing.test", name + ".wild.ing.test"}
	var rules []any
	for _, host := range hosts {
		var paths []any
		for range 1 + g.random.IntN(3) {
			paths = append(paths, fields{"pathType": g.pick("Prefix", "Exact", "ImplementationSpecific"), "path": g.pick("/", "/a", "/a/b", "/a/", "/c"), "backend": backend()})
		}
		rules = append(rules, fields{"host": host, "http": fields{"paths": paths}})
	}
	if g.chance(40) {
		rules = append(rules, fields{"host": "*.wild.ing.test", "http": fields{"paths": []any{fields{"pathType": "Prefix", "path": "/w", "backend": backend()}}}})
	}
	spec := fields{"ingressClassName": "turnout", "rules": rules, "tls": []any{fields{"hosts": hosts[:1]}}}
	if g.chance(50) {
		spec["defaultBackend"] = backend()
	}
	annotations := g.annotations()
	if g.chance(50) {
		annotations["turnout.router/insecure-edge-termination-policy"] = "Redirect"
	}
	g.put("networking.k8s.io/v1", "Ingress", name, fields{"spec": spec, "annotations": annotations})
}
