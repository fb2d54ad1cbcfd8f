package origin

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	routeclient "github.com/openshift/client-go/route/clientset/versioned"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"turnout/test/cluster"
	"turnout/test/cluster/sandbox"
)

// shared is what all cases use.
var shared struct {
	admin   *rest.Config
	core    kubernetes.Interface
	routes  routeclient.Interface
	objects dynamic.Interface
	routers routers
	syslog  *receiver
	lists   *publisher
}

// The images, and who the routers are.
const (
	routerImage     = "turnout"
	echoImage       = "echo"
	echoProgram     = "/echo" // in that image
	hostNode        = "one"   // where routers on the host network are
	routerNamespace = "turnout"
	routerAccount   = "router"
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(sandbox.Tests(m, sandbox.Config{Dir: filepath.Join("..", "bin", "run-origin")}, func(dir string) error {
		// Cases wait more than they compute.
		return errors.Join(setUp(context.Background(), dir), flag.Set("test.parallel", "24"))
	}, nil))
}

// setUp starts everything. What it starts ends with the process.
func setUp(ctx context.Context, dir string) error {
	programs := filepath.Join("..", "bin")
	logs := filepath.Join(programs, "logs-origin")
	if err := errors.Join(os.RemoveAll(logs), os.MkdirAll(logs, 0o755)); err != nil {
		return err
	}
	deploy := filepath.Join("..", "..", "..", "deploy")
	base := filepath.Join(deploy, "manifests", "base")
	c, err := cluster.Start(ctx, cluster.Config{
		Dir: dir, Logs: logs, Programs: programs, Nodes: []cluster.Node{{Name: hostNode}, {Name: "two"}, {Name: "three"}},
		Manifests: []string{
			filepath.Join(deploy, "crd", "route.yaml"), filepath.Join(base, "namespace.yaml"),
			filepath.Join(base, "serviceaccount.yaml"), filepath.Join(base, "rbac.yaml"),
		},
	})
	if err != nil {
		return err
	}
	shared.admin = c.Admin
	for name, what := range map[string][2]string{
		routerImage: {filepath.Join("..", "..", ".."), "./cmd/turnout"}, echoImage: {".", "./internal/echo"},
	} {
		program, err := filepath.Abs(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("cannot find the folder of programs: %w", err)
		}
		if err := build(ctx, what[0], what[1], program); err != nil {
			return err
		}
		if err := c.Images.AddProgram(name, program, &ocispec.ImageConfig{Entrypoint: []string{"/" + name}}); err != nil {
			return fmt.Errorf("cannot add the image %s: %w", name, err)
		}
	}
	if err := clients(ctx); err != nil {
		return err
	}
	return installControllers(ctx, c)
}

// build makes a static program of a package, named as seen from a folder of its module.
func build(ctx context.Context, folder, pkg, program string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", "grpcnotrace", "-o", program, pkg)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build %s: %w: %s", pkg, err, out)
	}
	return nil
}

// clients makes what cases use of the cluster.
func clients(ctx context.Context) error {
	var errs [5]error
	shared.core, errs[0] = kubernetes.NewForConfig(shared.admin)
	shared.routes, errs[1] = routeclient.NewForConfig(shared.admin)
	shared.syslog, errs[2] = listen(sandbox.Address)
	shared.lists, errs[3] = publish(sandbox.Address)
	shared.objects, errs[4] = dynamic.NewForConfig(shared.admin)
	shared.routers.by = map[string]*router{}
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	return openNamespace(ctx)
}
