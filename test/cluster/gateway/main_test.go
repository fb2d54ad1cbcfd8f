package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"turnout/test/cluster"
	"turnout/test/cluster/kubectl"
	"turnout/test/cluster/sandbox"
)

var (
	channel = flag.String("channel", "experimental", "resources of the Gateway API that are installed: standard or experimental")
	release = flag.String("crds", "", "release of the Gateway API whose resources are installed, such as v1.5.1; that of the suite without it")
)

// shared is what all tests use.
var shared struct {
	*cluster.Cluster
	kubectl  kubectl.Config // of somebody who may do everything
	logs     string
	profiles []string // of the suite, for which there are resources
}

// bin is where programs are, built by make gateway-conformance.
var bin = filepath.Join("..", "bin")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(sandbox.Tests(m, sandbox.Config{Dir: filepath.Join(bin, "run-gateway")}, setUp, func() error { return shared.Stop() }))
}

func setUp(dir string) error {
	ctx := context.Background()
	logs := filepath.Join(bin, "logs-gateway")
	if err := errors.Join(os.RemoveAll(logs), os.MkdirAll(logs, 0o755)); err != nil {
		return err
	}
	shared.logs = logs
	definitions, err := resources(ctx)
	if err != nil {
		return err
	}
	shared.profiles = profilesOf(definitions)
	deploy := filepath.Join("..", "..", "..", "deploy", "manifests")
	if shared.Cluster, err = cluster.Start(ctx, cluster.Config{
		Dir: dir, Logs: logs, Programs: bin, Nodes: []cluster.Node{{Name: "one"}},
		Manifests: append(definitions, filepath.Join(deploy, "base", "namespace.yaml"),
			filepath.Join(deploy, "base", "serviceaccount.yaml"), filepath.Join(deploy, "base", "rbac.yaml"),
			filepath.Join(deploy, "gateway-api", "rbac.yaml"), filepath.Join(deploy, "gateway-api", "gatewayclass.yaml"), filepath.Join(deploy, "gateway-api", "service.yaml"),
			filepath.Join(deploy, "gateway-deployments", "rbac.yaml")),
	}); err != nil {
		return err
	}
	for name, program := range map[string]string{"turnout": "turnout", "next": "turnout", "*echo-basic": "echo-basic", "*coredns": "coredns"} {
		config := &ocispec.ImageConfig{}
		if program == "turnout" {
			config.User = "1001" // as that of deploy/Dockerfile is somebody
		}
		if err := shared.Images.AddProgram(name, filepath.Join(bin, program), config); err != nil {
			return err
		}
	}
	path, err := shared.Kubeconfig("admin", shared.Admin.BearerToken)
	shared.kubectl = kubectl.Config(path)
	return err
}

// resources returns the files of the resources that are to be installed.
func resources(ctx context.Context) ([]string, error) {
	args := []string{"list", "-mod=mod", "-m", "-json", "sigs.k8s.io/gateway-api"}
	if *release != "" {
		args = []string{"mod", "download", "-json", "sigs.k8s.io/gateway-api@" + *release}
	}
	text, err := exec.CommandContext(ctx, "go", append([]string{"-C", filepath.Join("..", "..", "gateway")}, args...)...).Output()
	var module struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(text, &module)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find the resources of the Gateway API %s: %w", *release, err)
	}
	files, err := filepath.Glob(filepath.Join(module.Dir, "config", "crd", *channel, "*_*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("cannot find the resources of the %s channel in %s: %w", *channel, module.Dir, err)
	}
	return files, nil
}

// profilesOf returns the profiles of the suite whose routes are among resources, of v1 as all that is used.
func profilesOf(files []string) (names []string) {
	for _, kind := range []string{"HTTP", "GRPC", "TLS", "TCP", "UDP"} {
		i := slices.IndexFunc(files, func(file string) bool { return strings.HasSuffix(file, "_"+strings.ToLower(kind)+"routes.yaml") })
		if i < 0 {
			continue
		}
		if text, err := os.ReadFile(files[i]); err == nil && bytes.Contains(text, []byte("\n    name: v1\n")) {
			names = append(names, "GATEWAY-"+kind)
		}
	}
	return names
}
