package kube

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	routeclient "github.com/openshift/client-go/route/clientset/versioned"
	"k8s.io/client-go/kubernetes"

	"turnout/test/cluster"
	"turnout/test/cluster/pki"
	"turnout/test/cluster/sandbox"
	"turnout/test/kube/internal/pods"
)

// shared is what all tests use: one cluster, pods, and clients that may do everything.
// A test has namespaces and routers of its own.
var shared struct {
	*cluster.Cluster
	core    kubernetes.Interface
	routes  routeclient.Interface
	podCA   *pki.CA // signs the certificates of pods and routes
	binary  string  // turnout
	routers int     // how many were started
}

// binary is the turnout program that is tested; made with the race detector unless a test
// measures.
var binary = flag.String("binary", filepath.Join("bin", "turnout-race"), "turnout program to test")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(sandbox.Tests(m, sandbox.Config{Dir: filepath.Join("bin", "run"), Local: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, setUp, nil))
}

// setUp starts everything. What it starts ends with the process.
func setUp(dir string) error {
	ctx := context.Background()
	shared.binary = *binary
	apiserver := filepath.Join("..", "cluster", "bin", "kube-apiserver")
	for _, path := range []string{shared.binary, apiserver} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%s is missing; make e2e builds it", path)
		}
	}
	var err error
	if shared.podCA, err = pki.NewCA("test pods"); err != nil {
		return err
	}
	cert, err := shared.podCA.Issue("pod.test", "*.svc")
	if err != nil {
		return err
	}
	if err := pods.Serve(cert); err != nil {
		return err
	}
	logs := filepath.Join("bin", "logs")
	if err := errors.Join(os.RemoveAll(logs), os.MkdirAll(logs, 0o755)); err != nil {
		return err
	}
	deploy := filepath.Join("..", "..", "deploy")
	base := filepath.Join(deploy, "manifests", "base")
	shared.Cluster, err = cluster.Start(ctx, cluster.Config{
		Dir: dir, Logs: logs, Programs: filepath.Dir(apiserver), Manifests: []string{
			filepath.Join(deploy, "crd", "route.yaml"), filepath.Join(base, "namespace.yaml"),
			filepath.Join(base, "serviceaccount.yaml"), filepath.Join(base, "rbac.yaml"), // the account of routers as it is shipped
			filepath.Join(deploy, "manifests", "ingress", "rbac.yaml"), filepath.Join(deploy, "manifests", "ingress", "ingressclass.yaml"),
			filepath.Join(deploy, "manifests", "ingress-to-route", "rbac.yaml"),
		},
	})
	if err != nil {
		return err
	}
	if shared.core, err = kubernetes.NewForConfig(shared.Admin); err != nil {
		return err
	}
	shared.routes, err = routeclient.NewForConfig(shared.Admin)
	return err
}
