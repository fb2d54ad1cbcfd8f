package gatewayscale

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"

	"turnout/test/cluster"
	"turnout/test/cluster/sandbox"
)

var (
	full    = flag.Bool("full", false, "measure with up to 5,000 routes")
	samples = flag.Int("samples", 200, "routes that are timed then, for each number of others")
)

// shared is the cluster, and what the test asks it with.
var shared struct {
	*cluster.Cluster
	objects dynamic.Interface
	logs    string
}

// bin is where programs are, built by make gateway-scale.
var bin = filepath.Join("..", "bin")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(sandbox.Tests(m, sandbox.Config{Dir: filepath.Join(bin, "run-gatewayscale")}, setUp, func() error { return shared.Stop() }))
}

func setUp(dir string) error {
	ctx := context.Background()
	shared.logs = filepath.Join(bin, "logs-gatewayscale")
	if err := errors.Join(os.RemoveAll(shared.logs), os.MkdirAll(shared.logs, 0o755)); err != nil {
		return err
	}
	root := filepath.Join("..", "..", "..")
	module, err := exec.CommandContext(ctx, "go", "-C", root, "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		return fmt.Errorf("cannot find the resources of the Gateway API: %w", err)
	}
	deploy := filepath.Join(root, "deploy", "manifests")
	cfg := cluster.Config{
		Dir: dir, Logs: shared.logs, Programs: bin, Nodes: []cluster.Node{{Name: "one"}},
		Manifests: []string{
			filepath.Join(deploy, "base", "namespace.yaml"), filepath.Join(deploy, "base", "serviceaccount.yaml"), filepath.Join(deploy, "base", "rbac.yaml"),
			filepath.Join(deploy, "gateway-api", "rbac.yaml"), filepath.Join(deploy, "gateway-api", "gatewayclass.yaml"), filepath.Join(deploy, "gateway-api", "service.yaml"),
		},
	}
	definitions, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(module)), "config", "crd", "standard", "*_*.yaml"))
	if err != nil || len(definitions) == 0 {
		return fmt.Errorf("cannot find the resources of the Gateway API in %s: %w", module, err)
	}
	cfg.Manifests = append(definitions, cfg.Manifests...)
	if shared.Cluster, err = cluster.Start(ctx, cfg); err != nil {
		return err
	}
	for name, program := range map[string]string{"turnout": "turnout", "echo": "echo"} {
		if err := shared.Images.AddProgram(name, filepath.Join(bin, program), nil); err != nil {
			return err
		}
	}
	shared.objects, err = dynamic.NewForConfig(shared.Admin)
	return err
}
