package kube

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
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// The account that routers run as.
const (
	routerNamespace = "turnout"
	routerAccount   = "router"
	routerUser      = "system:serviceaccount:" + routerNamespace + ":" + routerAccount
	routerRole      = "turnout-router"
)

// installAccounts makes the account and its permissions as they are shipped.
func installAccounts(ctx context.Context) error {
	for _, name := range []string{"namespace.yaml", "serviceaccount.yaml", "rbac.yaml"} {
		if err := install(ctx, filepath.Join("..", "..", "deploy", "manifests", "base", name)); err != nil {
			return err
		}
	}
	return nil
}

// install creates the objects of a manifest.
func install(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot read a manifest: %w", err)
	}
	defer f.Close()
	clients, err := dynamic.NewForConfig(shared.Admin)
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
