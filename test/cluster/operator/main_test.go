package operator

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	"turnout/test/cluster/sandbox"
)

// root is the folder of the repository.
var root = filepath.Join("..", "..", "..")

// world is the cluster that all tests share.
type world struct {
	*cluster.Cluster
	core       kubernetes.Interface
	objects    dynamic.Interface
	kubeconfig string
}

var shared world

// backend is set in the environment of pods whose program is this test.
const backend = "TURNOUT_TEST_BACKEND"

func TestMain(m *testing.M) {
	if mode := os.Getenv(backend); mode != "" {
		fmt.Fprintln(os.Stderr, serveBackend())
		os.Exit(1)
	}
	bin := filepath.Join("..", "bin")
	os.Exit(sandbox.Tests(m, sandbox.Config{Dir: filepath.Join(bin, "run-operator"), Programs: map[string]string{
		"runc": "runc", "socat": "socat", "kubectl": "kubernetes-client",
	}}, func(dir string) error {
		// Pods wait more than they compute.
		return errors.Join(shared.start(dir, bin), flag.Set("test.parallel", "4"))
	}, func() error { return shared.Stop() }))
}

// start makes the images and a cluster of two nodes that has what the operator makes
// besides its Deployment.
func (w *world) start(dir, bin string) error {
	logs := filepath.Join(bin, "logs-operator")
	if err := errors.Join(os.RemoveAll(logs), os.MkdirAll(logs, 0o755)); err != nil {
		return err
	}
	worker := map[string]string{"node-role.kubernetes.io/worker": ""}
	cfg := cluster.Config{
		Dir: dir, Logs: logs, Programs: bin,
		Nodes:     []cluster.Node{{Name: "one", Labels: worker}, {Name: "two", Labels: worker}},
		Manifests: []string{filepath.Join(root, "deploy", "crd"), "testdata/crds.yaml", "testdata/operator.yaml"},
	}
	api, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		return fmt.Errorf("cannot find OpenShift's API: %w", err)
	}
	for _, path := range []string{
		"operator/v1/zz_generated.crd-manifests/0000_50_ingress_00_ingresscontrollers.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_ingresses.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_apiservers-Default.crd.yaml",
	} {
		cfg.Manifests = append(cfg.Manifests, filepath.Join(strings.TrimSpace(string(api)), path))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := archives(ctx); err != nil {
		return err
	}
	if w.Cluster, err = cluster.Start(ctx, cfg); err != nil {
		return err
	}
	if err := w.images(dir); err != nil {
		return err
	}
	if w.core, err = kubernetes.NewForConfig(w.Admin); err != nil {
		return err
	}
	if w.objects, err = dynamic.NewForConfig(w.Admin); err != nil {
		return err
	}
	if w.kubeconfig, err = w.Kubeconfig("admin", ""); err != nil {
		return err
	}
	return w.Apply(ctx, "testdata/pods.yaml")
}

// images gives the cluster the images of its pods: ours by their Dockerfiles, one with
// socat and a shell in place of that of HAProxy, and this test as the backend.
func (w *world) images(dir string) error {
	for name, from := range map[string][2]string{
		"turnout": {"Dockerfile", "rootfs.tar"}, "router": {"Dockerfile.openshift", "rootfs-openshift.tar"},
	} {
		entry, err := entryPoint(filepath.Join(root, "deploy", from[0]))
		if err != nil {
			return err
		}
		layout := filepath.Join(dir, "layout-"+name)
		if err := makeLayout(layout, filepath.Join(root, "bin", "image", from[1]), map[string]any{"Entrypoint": entry, "User": "1001"}); err != nil {
			return err
		}
		if err := w.Images.AddLayout(name, layout); err != nil {
			return err
		}
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	return errors.Join(w.Images.AddMachine("haproxy"), w.Images.AddProgram("backend", program, nil))
}

// makeLayout writes an OCI layout of one layer, as make image makes the image of
// deploy/Dockerfile.openshift or deploy/Dockerfile, without buildah.
func makeLayout(layout, rootfs string, config map[string]any) error {
	blobs := filepath.Join(layout, "blobs", "sha256")
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		return err
	}
	blob := func(kind string, content []byte) (map[string]any, error) {
		sum := sha256.Sum256(content)
		digest := hex.EncodeToString(sum[:])
		return map[string]any{"mediaType": "application/vnd.oci.image." + kind, "digest": "sha256:" + digest, "size": len(content)},
			os.WriteFile(filepath.Join(blobs, digest), content, 0o644)
	}
	encoded := func(kind string, v any) (map[string]any, error) {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		return blob(kind, text)
	}
	text, err := os.ReadFile(rootfs)
	if err != nil {
		return err
	}
	if _, err := tar.NewReader(bytes.NewReader(text)).Next(); err != nil {
		return fmt.Errorf("%s is no archive: %w", rootfs, err)
	}
	layer, err := blob("layer.v1.tar", text)
	if err != nil {
		return err
	}
	image, err := encoded("config.v1+json", map[string]any{"architecture": "amd64", "os": "linux", "config": config})
	if err != nil {
		return err
	}
	manifest, err := encoded("manifest.v1+json", map[string]any{"schemaVersion": 2, "config": image, "layers": []any{layer}})
	if err != nil {
		return err
	}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []any{manifest}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(layout, "index.json"), index, 0o644)
}

// entryPoint is that of a Dockerfile.
func entryPoint(dockerfile string) ([]string, error) {
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if list, ok := strings.CutPrefix(line, "ENTRYPOINT "); ok {
			var words []string
			return words, json.Unmarshal([]byte(list), &words)
		}
	}
	return nil, fmt.Errorf("%s has no ENTRYPOINT", dockerfile)
}

// archives makes the root file systems of both images, as make image does.
func archives(ctx context.Context) error {
	c := exec.CommandContext(ctx, "make", "-s", "bin/image/rootfs.tar", "VERSION=v0.0.0-under-test")
	c.Dir = root
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("make bin/image/rootfs.tar: %w\n%s", err, text)
	}
	return nil
}
