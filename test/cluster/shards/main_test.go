package shards

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"turnout/test/cluster"
	"turnout/test/cluster/await"
	"turnout/test/cluster/kubectl"
	"turnout/test/cluster/sandbox"
)

// patience is how long something may take that others do.
const patience = 4 * time.Minute

// shared is what all tests use.
var shared struct {
	*cluster.Cluster
	core    kubernetes.Interface
	objects dynamic.Interface
	kubectl kubectl.Config // of somebody who may do everything
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(sandbox.Tests(m, sandbox.Config{Dir: filepath.Join("..", "bin", "run-shards")}, setUp, func() error { return shared.Stop() }))
}

func setUp(dir string) error {
	ctx := context.Background()
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
	path, err := shared.Kubeconfig("admin", shared.Admin.BearerToken)
	shared.kubectl = kubectl.Config(path)
	return err
}

// eventually tries until try returns nil.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	await.Eventually(t, patience, what, try)
}
