package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"turnout/test/cluster/internal/dns"
)

// patience is how long something may take that the control plane does by itself.
const patience = time.Minute

// Apply makes the objects of a manifest, or of all manifests in a folder and those below,
// as kubectl apply --server-side does. What is defined by a CustomResourceDefinition
// among them can be made when Apply returns.
func (c *Cluster) Apply(ctx context.Context, path string) error {
	objects, err := read(path)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(c.Admin)
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	a := applier{client: client, find: c.mapper}
	for _, o := range objects {
		if err := a.apply(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// mapper asks what the API server serves.
func (c *Cluster) mapper() (meta.RESTMapper, error) {
	groups, err := restmapper.GetAPIGroupResources(c.client.Discovery())
	if err != nil {
		return nil, fmt.Errorf("cannot ask what the API server serves: %w", err)
	}
	return restmapper.NewDiscoveryRESTMapper(groups), nil
}

// applier makes objects.
type applier struct {
	client dynamic.Interface
	find   func() (meta.RESTMapper, error)
	mapper meta.RESTMapper // nil when something may have been added
}

func (a *applier) apply(ctx context.Context, o *unstructured.Unstructured) error {
	var resource dynamic.ResourceInterface
	kind := o.GroupVersionKind()
	// A resource is served some time after its definition is made.
	err := poll(ctx, patience, func(context.Context) error {
		var err error
		if a.mapper == nil {
			if a.mapper, err = a.find(); err != nil {
				return err
			}
		}
		mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			a.mapper = nil
			return fmt.Errorf("cannot make a %s: %w", kind.Kind, err)
		}
		resource = a.client.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			namespace := o.GetNamespace()
			if namespace == "" {
				namespace = corev1.NamespaceDefault
			}
			resource = a.client.Resource(mapping.Resource).Namespace(namespace)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := resource.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "test-cluster", Force: true}); err != nil {
		return fmt.Errorf("cannot make %s %s: %w", kind.Kind, o.GetName(), err)
	}
	if kind.Kind == "CustomResourceDefinition" {
		return a.waitServed(ctx, o)
	}
	return nil
}

// waitServed waits until objects of a definition can be made: it is said to be established
// some time before the storage is there.
func (a *applier) waitServed(ctx context.Context, definition *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	return poll(ctx, patience, func(ctx context.Context) error {
		for _, v := range versions {
			version, _ := v.(map[string]any)
			if version["served"] != true {
				continue
			}
			name, _ := version["name"].(string)
			resource := schema.GroupVersionResource{Group: group, Version: name, Resource: plural}
			if _, err := a.client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
				return fmt.Errorf("%s is not served: %w", definition.GetName(), err)
			}
		}
		return nil
	})
}

// read returns the objects of a manifest, or of all manifests in a folder.
func read(path string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() || file != path && !strings.HasSuffix(file, ".yaml") && !strings.HasSuffix(file, ".json") {
			return nil
		}
		found, err := readFile(file)
		objects = append(objects, found...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read manifests: %w", err)
	}
	return objects, nil
}

func readFile(path string) ([]*unstructured.Unstructured, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open a manifest: %w", err)
	}
	defer f.Close()
	var objects []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(f, 4096); ; {
		o := new(unstructured.Unstructured)
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("cannot parse %s: %w", path, err)
		}
		switch {
		case len(o.Object) == 0:
		case o.IsList():
			list, err := o.ToList()
			if err != nil {
				return nil, fmt.Errorf("cannot parse %s: %w", path, err)
			}
			for i := range list.Items {
				objects = append(objects, &list.Items[i])
			}
		default:
			objects = append(objects, o)
		}
	}
}

// Token returns a token of a service account, valid for an hour.
func (c *Cluster) Token(ctx context.Context, namespace, account string) (string, error) {
	request, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("cannot get a token of %s/%s: %w", namespace, account, err)
	}
	return request.Status.Token, nil
}

// installDNS makes the Service of the DNS server, whose endpoints are this process.
func (c *Cluster) installDNS(ctx context.Context) error {
	const namespace, name = "kube-system", "kube-dns"
	policy := corev1.IPFamilyPolicyRequireDualStack
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		ClusterIP: dnsService[0].String(), ClusterIPs: []string{dnsService[0].String(), dnsService[1].String()}, IPFamilyPolicy: &policy,
		Ports: []corev1.ServicePort{
			{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(53)},
			{Name: "dns-tcp", Port: 53, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(53)},
		},
	}}
	if _, err := c.client.CoreV1().Services(namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("cannot make the Service of DNS for %s: %w", dns.Domain, err)
	}
	for i, kind := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: name + "-" + strings.ToLower(string(kind)), Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: kind, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{dnsListener[i].String()}}},
		}
		for _, p := range service.Spec.Ports {
			slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &p.Name, Port: &p.Port, Protocol: &p.Protocol})
		}
		if _, err := c.client.DiscoveryV1().EndpointSlices(namespace).Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("cannot make the endpoints of DNS for %s: %w", dns.Domain, err)
		}
	}
	return nil
}

// waitForControllers waits until pods can be made: every namespace has an account then.
func (c *Cluster) waitForControllers(ctx context.Context) error {
	return poll(ctx, patience, func(ctx context.Context) error {
		if _, err := c.client.CoreV1().ServiceAccounts(corev1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return fmt.Errorf("the controllers do not work: %w", err)
		}
		return nil
	})
}

// poll calls f until it succeeds, at most for a time.
func poll(ctx context.Context, most time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("gave up after %v: %w", most, err)
		}
	}
}
