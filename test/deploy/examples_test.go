package deploy

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	"sigs.k8s.io/yaml"

	"turnout/controller"
	"turnout/controller/shard/api"
	source "turnout/controller/source/folder"
)

// TestIngressExample: the example is served as it says, without a word about it but that it has no pods.
func TestIngressExample(t *testing.T) {
	content, err := source.Load(filepath.Join("..", "..", "deploy", "examples", "ingress"))
	if err != nil {
		t.Fatal(err)
	}
	report, err := controller.Validate(controller.Options{Ingress: true}, content)
	if err != nil || len(report.Problems) > 0 || len(report.Ingresses) > 0 || report.Failed() {
		t.Fatalf("%+v, %v", report, err)
	}
	hosts := map[string]string{}
	for _, r := range report.Routes {
		hosts[r.Host+r.Path] = r.Termination
		for _, note := range r.Notes {
			if !strings.Contains(note, "endpoint") {
				t.Errorf("%s: %s", r.Host+r.Path, note)
			}
		}
	}
	if len(hosts) != 3 || hosts["shop.example.com/basket"] != "edge" {
		t.Errorf("%v", hosts)
	}
}

// TestShardingExample: the example has no field that there is not.
func TestShardingExample(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "examples", "sharding", "sharding.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var head struct {
			Kind string `json:"kind"`
		}
		if err := yaml.Unmarshal(document, &head); err != nil {
			t.Fatal(err)
		}
		object := map[string]any{"Router": new(api.Router), "RouteScheduler": new(api.RouteScheduler), "Route": new(routev1.Route)}[head.Kind]
		if object == nil {
			t.Fatalf("a %s", head.Kind)
		}
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			t.Error(err)
		}
		seen[head.Kind]++
	}
	if seen["Router"] != 2 || seen["RouteScheduler"] != 1 || seen["Route"] != 1 {
		t.Errorf("%v", seen)
	}
}
