package size

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	routeclient "github.com/openshift/client-go/route/clientset/versioned"
	"k8s.io/client-go/kubernetes"

	"turnout/test/cluster"
	"turnout/test/cluster/sandbox"
)

var (
	routes  = flag.Int("routes", 100, "routes besides those that clients ask for")
	stream  = flag.Bool("watchlist", true, "routers ask for what is there as the beginning of a watch")
	samples = flag.Int("samples", 10, "changes that are timed")
)

// shared is the cluster, and what the test asks it with.
var shared struct {
	*cluster.Cluster
	core   kubernetes.Interface
	routes routeclient.Interface
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(sandbox.Tests(m, sandbox.Config{Dir: filepath.Join("..", "bin", "run-size")}, setUp, func() error { return shared.Stop() }))
}

// nodes are where pods run; the last one is lost in the test.
var nodes = []string{"one", "two", "three"}

func setUp(dir string) error {
	logs := filepath.Join("..", "bin", "logs-size")
	if err := errors.Join(os.RemoveAll(logs), os.MkdirAll(logs, 0o755)); err != nil {
		return err
	}
	deploy := filepath.Join("..", "..", "..", "deploy")
	base := filepath.Join(deploy, "manifests", "base")
	cfg := cluster.Config{
		Dir: dir, Logs: logs, Programs: filepath.Join("..", "bin"),
		Manifests: []string{
			filepath.Join(deploy, "crd", "route.yaml"), filepath.Join(base, "namespace.yaml"),
			filepath.Join(base, "serviceaccount.yaml"), filepath.Join(base, "rbac.yaml"),
		},
		// As a cluster has it: in the outages of the API server that the test makes, which are longer than the grace of other tests, no node
		// is silent, and the endpoints of all of them stay.
		ControllerArgs: []string{"--node-monitor-period=5s", "--node-monitor-grace-period=50s"},
	}
	for _, name := range nodes {
		cfg.Nodes = append(cfg.Nodes, cluster.Node{Name: name})
	}
	var err error
	if shared.Cluster, err = cluster.Start(context.Background(), cfg); err != nil {
		return err
	}
	for name, program := range map[string]string{"turnout": "turnout", "echo": "echo"} {
		if err := shared.Images.AddProgram(name, filepath.Join("..", "bin", program), nil); err != nil {
			return err
		}
	}
	if shared.core, err = kubernetes.NewForConfig(shared.Admin); err != nil {
		return err
	}
	shared.routes, err = routeclient.NewForConfig(shared.Admin)
	return err
}
