package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestForeignFlags: command lines of the OpenShift router are taken as they are.
func TestForeignFlags(t *testing.T) {
	f := func(want []string, args ...string) {
		t.Helper()
		o, warnings, err := parseOptions(args, envOf())
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		if !slices.Equal(warnings, want) {
			t.Errorf("%v:\n got %q\nwant %q", args, warnings, want)
		}
		if o.name != "public" {
			t.Errorf("%v: changed an option", args)
		}
	}
	f([]string{"flags of the OpenShift router that have no effect here: --v"}, "--v=2")
	f([]string{"flags of the OpenShift router that have no effect here: --v, --logtostderr"}, "-v", "4", "--logtostderr", "--name=public")
	f([]string{"flags of the OpenShift router that have no effect here: --template, --reload, --haproxy-config-manager"},
		"--template=/var/lib/haproxy/conf/haproxy-config.template", "--reload", "/var/lib/haproxy/reload-haproxy", "--metrics-type=haproxy",
		"--haproxy-config-manager")
	f([]string{"flags that configure what this version does not have: --include-udp-endpoints"}, "--include-udp-endpoints=true")
	f([]string{"flags of the OpenShift router that have no effect here: --v",
		"flags that configure what this version does not have: --include-udp-endpoints"}, "--include-udp-endpoints", "--v=2", "--v=3")
	if _, _, err := parseOptions([]string{"--v"}, envOf()); err == nil || err.Error() != "no value given for --v; see turnout help" {
		t.Error(err)
	}
}

// TestForeignFlagsAreNoSettings: what is a setting has an effect, and what has none
// is documented.
func TestForeignFlagsAreNoSettings(t *testing.T) {
	text, err := os.ReadFile("../../docs/options.md")
	if err != nil {
		t.Fatal(err)
	}
	all, rest := foreignFlags(nil), foreignFlags(settings(&options{}))
	for _, f := range all {
		if !slices.Contains(rest, f) {
			t.Errorf("--%s is a setting: take it out of foreignFlags", f.name)
		}
		if !strings.Contains(string(text), "`--"+strings.ReplaceAll(f.name, "_", "-")+"`") {
			t.Errorf("--%s is not in docs/options.md", f.name)
		}
	}
}
