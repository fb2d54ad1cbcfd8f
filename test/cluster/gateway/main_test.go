package gateway

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"turnout/test/cluster"
	"turnout/test/cluster/sandbox"
)

var channel = flag.String("channel", "experimental", "resources of the Gateway API that are installed: standard or experimental")

// shared is what all tests use.
var shared struct {
	*cluster.Cluster
	kubeconfig string // of somebody who may do everything
	logs       string
}

// bin is where programs are, built by make gateway-conformance.
var bin = filepath.Join("..", "bin")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(sandbox.Run(sandbox.Config{Dir: filepath.Join(bin, "run-gateway")}, func(dir string) int {
		if err := setUp(context.Background(), dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := m.Run()
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}))
}

func setUp(ctx context.Context, dir string) error {
	logs := filepath.Join(bin, "logs-gateway")
	if err := errors.Join(os.RemoveAll(logs), os.MkdirAll(logs, 0o755)); err != nil {
		return err
	}
	shared.logs = logs
	module, err := exec.CommandContext(ctx, "go", "-C", filepath.Join("..", "..", "gateway"), "list", "-mod=mod", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		return fmt.Errorf("cannot find the resources of the Gateway API: %w", err)
	}
	definitions, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(module)), "config", "crd", *channel, "*_*.yaml"))
	if err != nil || len(definitions) == 0 {
		return fmt.Errorf("cannot find the resources of the %s channel: %w", *channel, err)
	}
	deploy := filepath.Join("..", "..", "..", "deploy", "manifests")
	if shared.Cluster, err = cluster.Start(ctx, cluster.Config{
		Dir: dir, Logs: logs, Programs: bin, Nodes: []cluster.Node{{Name: "one"}},
		Manifests: append(definitions, filepath.Join(deploy, "base", "namespace.yaml"),
			filepath.Join(deploy, "base", "serviceaccount.yaml"), filepath.Join(deploy, "base", "rbac.yaml"),
			filepath.Join(deploy, "gateway-api", "rbac.yaml"), filepath.Join(deploy, "gateway-api", "gatewayclass.yaml"), filepath.Join(deploy, "gateway-api", "service.yaml")),
	}); err != nil {
		return err
	}
	for name, program := range map[string]string{"turnout": "turnout", "*echo-basic": "echo-basic", "*coredns": "coredns"} {
		if err := shared.Images.AddProgram(name, filepath.Join(bin, program), nil); err != nil {
			return err
		}
	}
	shared.kubeconfig, err = shared.Kubeconfig("admin", shared.Admin.BearerToken)
	return err
}

// kubectl runs kubectl with an input and returns what it prints, on standard output and standard error.
func kubectl(ctx context.Context, input string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "kubectl", append([]string{"--kubeconfig", shared.kubeconfig}, args...)...)
	c.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out.String())
	}
	return out.String(), nil
}

// must is kubectl for what has to succeed.
func must(t *testing.T, input string, args ...string) string {
	t.Helper()
	out, err := kubectl(t.Context(), input, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
