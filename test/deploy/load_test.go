package deploy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

var manifests = filepath.Join("..", "..", "deploy", "manifests")

// kustomization is a kustomization.yaml, as far as ours go.
type kustomization struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Namespace  string   `json:"namespace,omitempty"`
	Resources  []string `json:"resources,omitempty"`
	Components []string `json:"components,omitempty"`
	Patches    []struct {
		Path   string `json:"path,omitempty"`
		Patch  string `json:"patch,omitempty"`
		Target struct {
			LabelSelector string `json:"labelSelector,omitempty"`
		} `json:"target,omitzero"`
	} `json:"patches,omitempty"`
	Images []struct {
		Name    string `json:"name"`
		NewName string `json:"newName"`
		NewTag  string `json:"newTag"`
	} `json:"images,omitempty"`
}

// serviceMonitor is the object of the Prometheus operator, as far as ours goes.
type serviceMonitor struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		Endpoints []struct {
			Port     string `json:"port"`
			Path     string `json:"path"`
			Interval string `json:"interval"`
			Token    string `json:"bearerTokenFile"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// tree is deploy/manifests, and the monitor of deploy/monitoring, decoded. Keys are names of files below it.
type tree struct {
	kustomizations map[string]kustomization
	objects        map[string][]runtime.Object
	monitor        serviceMonitor
}

// load decodes every file; a field that does not exist in its type fails the test.
func load(t *testing.T) tree {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, policyv1.AddToScheme, networkingv1.AddToScheme, admissionv1.AddToScheme, gatewayv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	strict := serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme, scheme, serializer.SerializerOptions{Yaml: true, Strict: true})
	loaded := tree{kustomizations: map[string]kustomization{}, objects: map[string][]runtime.Object{}}
	err := filepath.WalkDir(manifests, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(manifests, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch {
		case filepath.Base(name) == "kustomization.yaml":
			var k kustomization
			if err := yaml.UnmarshalStrict(text, &k); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			loaded.kustomizations[name] = k
		default:
			for _, document := range documents(t, name, text) {
				object, _, err := strict.Decode(document, nil, nil)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				loaded.objects[name] = append(loaded.objects[name], object)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	loaded.monitor = decode[serviceMonitor](t, "servicemonitor.yaml")
	return loaded
}

// documents splits a file at its separators.
func documents(t *testing.T, name string, text []byte) [][]byte {
	t.Helper()
	var all [][]byte
	for r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := r.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(bytes.TrimSpace(document)) > 0 {
			all = append(all, document)
		}
	}
}

// the returns the one object of type T in file.
func the[T runtime.Object](t *testing.T, loaded tree, file string) T {
	t.Helper()
	var found []T
	for _, object := range loaded.objects[filepath.FromSlash(file)] {
		if typed, ok := object.(T); ok {
			found = append(found, typed)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s: %d objects of type %T, want 1", file, len(found), *new(T))
	}
	return found[0]
}

// TestFiles: what a kustomization names is there, and what is there is named.
func TestFiles(t *testing.T) {
	loaded := load(t)
	named := map[string]bool{}
	for file, k := range loaded.kustomizations {
		dir := filepath.Dir(file)
		if k.Kind != "Kustomization" && k.Kind != "Component" {
			t.Errorf("%s: kind %s", file, k.Kind)
		}
		paths := slices.Concat(k.Resources, k.Components)
		for _, p := range k.Patches {
			if (p.Path == "") == (p.Patch == "") {
				t.Errorf("%s: a patch has either a path or a text", file)
			}
			if p.Path != "" {
				paths = append(paths, p.Path)
			}
		}
		for _, path := range paths {
			if path == "../../monitoring" {
				continue // monitoring_test.go is about it
			}
			path = filepath.Join(dir, path)
			if info, err := os.Stat(filepath.Join(manifests, path)); err == nil && info.IsDir() {
				path = filepath.Join(path, "kustomization.yaml")
			}
			named[path] = true
			_, isObject := loaded.objects[path]
			_, isKustomization := loaded.kustomizations[path]
			if !isObject && !isKustomization {
				t.Errorf("%s names %s, which is not there", file, path)
			}
		}
	}
	for file := range loaded.objects {
		if !named[file] && !strings.HasPrefix(file, "optional"+string(filepath.Separator)) {
			t.Errorf("no kustomization names %s", file)
		}
	}
}
