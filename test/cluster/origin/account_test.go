package origin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// installAccount makes the routers' namespace and account with their permissions, as they are
// shipped.
func installAccount(ctx context.Context) error {
	for _, name := range []string{"namespace.yaml", "serviceaccount.yaml", "rbac.yaml"} {
		if err := install(ctx, filepath.Join("..", "..", "..", "deploy", "manifests", "base", name)); err != nil {
			return err
		}
	}
	// Some routers are on the host network, which the namespace does not allow as it is shipped.
	patch := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`)
	_, err := shared.core.CoreV1().Namespaces().Patch(ctx, routerNamespace, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// install creates the objects of a manifest.
func install(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot read a manifest: %w", err)
	}
	defer f.Close()
	clients, err := dynamic.NewForConfig(shared.admin)
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResources(shared.core.Discovery())
	if err != nil {
		return fmt.Errorf("cannot ask what the API server serves: %w", err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for decoder := utilyaml.NewYAMLOrJSONDecoder(f, 4096); ; {
		object := new(unstructured.Unstructured)
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("cannot parse %s: %w", path, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return fmt.Errorf("cannot create a %s: %w", kind.Kind, err)
		}
		var resource dynamic.ResourceInterface = clients.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			resource = clients.Resource(mapping.Resource).Namespace(object.GetNamespace())
		}
		if _, err := resource.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("cannot create %s %s: %w", kind.Kind, object.GetName(), err)
		}
	}
}
