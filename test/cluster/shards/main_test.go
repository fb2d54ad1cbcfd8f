package shards

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
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"turnout/test/cluster"
	"turnout/test/cluster/await"
	"turnout/test/cluster/sandbox"
)

// patience is how long something may take that others do.
const patience = 4 * time.Minute

// shared is what all tests use.
var shared struct {
	*cluster.Cluster
	core       kubernetes.Interface
	objects    dynamic.Interface
	kubeconfig string // of somebody who may do everything
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(sandbox.Run(sandbox.Config{Dir: filepath.Join("..", "bin", "run-shards")}, func(dir string) int {
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
	logs := filepath.Join("..", "bin", "logs-shards")
	if err := errors.Join(os.RemoveAll(logs), os.MkdirAll(logs, 0o755)); err != nil {
		return err
	}
	deploy := filepath.Join("..", "..", "..", "deploy")
	manifests := filepath.Join(deploy, "manifests")
	var err error
	if shared.Cluster, err = cluster.Start(ctx, cluster.Config{
		Dir: dir, Logs: logs, Programs: filepath.Join("..", "bin"), Nodes: []cluster.Node{{Name: "one"}},
		// As a cluster has it: in an outage of the API server that is longer than the grace of other tests, the controller would take all endpoints away.
		ControllerArgs: []string{"--node-monitor-period=5s", "--node-monitor-grace-period=50s"},
		Manifests: []string{
			filepath.Join(deploy, "crd"), filepath.Join(manifests, "base", "namespace.yaml"),
			filepath.Join(manifests, "base", "serviceaccount.yaml"), filepath.Join(manifests, "base", "rbac.yaml"),
			filepath.Join(manifests, "sharding", "rbac.yaml"), filepath.Join(manifests, "sharding", "admission.yaml"),
		},
	}); err != nil {
		return err
	}
	if shared.core, err = kubernetes.NewForConfig(shared.Admin); err != nil {
		return err
	}
	if shared.objects, err = dynamic.NewForConfig(shared.Admin); err != nil {
		return err
	}
	for name, program := range map[string]string{"turnout": "turnout", "echo": "echo"} {
		if err := shared.Images.AddProgram(name, filepath.Join("..", "bin", program), nil); err != nil {
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

// eventually tries until try returns nil.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	await.Eventually(t, patience, what, try)
}
