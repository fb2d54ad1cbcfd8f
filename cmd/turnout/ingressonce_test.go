package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"

	"turnout/internal/offline"
)

const named = "openshift-ingress-operator/web"

// controllerFolder is a folder of ingressSite with an IngressController that says more than defaults do.
func controllerFolder(t *testing.T, spec string) string {
	t.Helper()
	r := &ingressRig{T: t, dir: t.TempDir(), authority: issue(t, nil, "CN=clients")}
	write(t, r.dir, "site.yaml", fmt.Appendf(nil, ingressSite, netip.MustParseAddrPort("127.0.0.1:9").Port()))
	write(t, r.dir, "others.yaml", []byte(configMap("ca", "ca-bundle.pem", r.authority.PEM())))
	r.spec(spec)
	return r.dir
}

// TestValidateWithIngressController: manifests are judged by what their IngressController says, below flags and environment.
func TestValidateWithIngressController(t *testing.T) {
	dir := controllerFolder(t, "routeAdmission: {wildcardPolicy: WildcardsAllowed}\ntuningOptions: {serverTimeout: -3s, threadCount: 8}")
	for _, c := range []struct {
		name  string
		args  []string
		env   []string
		fails error
		has   string
		lacks string
	}{
		{"not asked for", nil, nil, offline.ErrInvalid, "wildcard routes are not allowed", "warning: "},
		{"asked for", []string{"--ingress-controller", named}, nil, nil, "warning: IngressController " + named + ": spec.tuningOptions.serverTimeout: ", "wildcard routes are not allowed"},
		{"by a variable", nil, []string{"TURNOUT_INGRESS_CONTROLLER", named}, nil, "spec.tuningOptions.threadCount: ", "wildcard routes are not allowed"},
		{"strict", []string{"--strict", "--ingress-controller", named}, nil, offline.ErrNotes, "spec.tuningOptions.serverTimeout: ", ""},
		{"a flag wins", []string{"--ingress-controller", named, "--allow-wildcard-routes=false"}, nil, offline.ErrInvalid, "wildcard routes are not allowed", ""},
		{"the environment wins", []string{"--ingress-controller", named}, []string{"ROUTER_ALLOW_WILDCARD_ROUTES", "false"}, offline.ErrInvalid, "wildcard routes are not allowed", ""},
		{"not there", []string{"--ingress-controller", "a/b"}, nil, offline.ErrInvalid, "there is no IngressController a/b", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := runOnce(t.Context(), "validate", append(c.args, dir), envOf(c.env...), nil, &out, io.Discard); !errors.Is(err, c.fails) {
				t.Errorf("%v, want %v", err, c.fails)
			}
			if text := out.String(); !strings.Contains(text, c.has) || c.lacks != "" && strings.Contains(text, c.lacks) {
				t.Errorf("want %q, not %q:\n%s", c.has, c.lacks, text)
			}
		})
	}
}

// TestValidateStandardInput: the IngressController may come by the standard input, which is read once.
func TestValidateStandardInput(t *testing.T) {
	dir := controllerFolder(t, "tuningOptions: {threadCount: 8}")
	object := "apiVersion: operator.openshift.io/v1\nkind: IngressController\nmetadata: {namespace: x, name: z}\nspec: {routeAdmission: {wildcardPolicy: WildcardsAllowed}}\n"
	var out bytes.Buffer
	if err := runOnce(t.Context(), "validate", []string{"--ingress-controller", "x/z", dir, "-"}, envOf(), strings.NewReader(object), &out, io.Discard); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
}

// TestExplainWithIngressController: a request is explained as a router would treat it that reads the IngressController, and settings say
// that they come from there.
func TestExplainWithIngressController(t *testing.T) {
	dir := controllerFolder(t, "routeSelector: {matchLabels: {type: public}}\ntuningOptions: {serverTimeout: 7s, threadCount: 8}\nhttpHeaders: {forwardedHeaderPolicy: Never}")
	without := explained(t, "--manifests", dir, "http://internal.test/")
	if without.Outcome.Reason == "no-route" || finds(without, "no-effect", "IngressController") {
		t.Errorf("without it: %+v", without)
	}
	if a := explained(t, "--manifests", dir, "--ingress-controller", named, "http://internal.test/"); a.Outcome.Reason != "no-route" || !finds(a, "other-shard", "d/internal") {
		t.Errorf("a route that it does not select: %+v", a)
	}
	a := explained(t, "--manifests", dir, "--ingress-controller", named, "http://r.test/")
	if a.Route == nil || !finds(a, "no-effect", "IngressController "+named+": spec.tuningOptions.threadCount: ") {
		t.Errorf("%+v", a)
	}
	text := explainCommand(t, "--manifests", dir, "--ingress-controller", named, "http://r.test/")
	if !strings.Contains(text, "server timeout 7s: IngressController "+named+", spec.tuningOptions.serverTimeout\n") || strings.Contains(strings.ToLower(text), "x-forwarded-for: ") {
		t.Error(text)
	}
	dir = controllerFolder(t, "clientTLS: {clientCertificatePolicy: Required, clientCA: {name: ca}}")
	if a := explained(t, "--manifests", dir, "--ingress-controller", named, "https://e.test/"); !strings.Contains(fmt.Sprintf("%+v", a), "certificate required") && a.Outcome.Status != 0 {
		t.Errorf("a client without a certificate: %+v", a.Outcome)
	}
}
