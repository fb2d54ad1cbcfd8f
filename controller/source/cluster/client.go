package cluster

import (
	"fmt"

	routev1 "github.com/openshift/api/route/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	shards "turnout/controller/shard/api"
)

// clients are what the API is asked with, one for each group. The generated clients
// would do the same and bring every API there is into the process, at 8 MiB.
type clients struct {
	core, discovery, networking, authentication, authorization, route, shards, gateway rest.Interface
	parameters                                                                         runtime.ParameterCodec
}

// complete sets what all clients have in common.
func complete(config *rest.Config, userAgent string) *rest.Config {
	config = rest.CopyConfig(config)
	config.UserAgent = userAgent
	// Answers that are large come once; a compressor for each watch stays.
	config.DisableCompression = true
	config.WarningHandlerWithContext = rest.NoWarnings{}
	// Who asks bounds how much is asked at a time, and the server has its own order. A
	// common limit would let status wait for secrets, and certificates for status.
	config.QPS = -1
	return config
}

// newClients returns the clients of a cluster.
func newClients(config *rest.Config) (*clients, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme, routev1.Install,
		shards.AddToScheme, gatewayv1.Install,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("BUG: cannot register API types: %w", err)
		}
	}
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make API client: %w", err)
	}
	c := &clients{parameters: runtime.NewParameterCodec(scheme)}
	for _, group := range []struct {
		client   *rest.Interface
		version  schema.GroupVersion
		path     string
		protobuf bool
	}{
		{&c.core, corev1.SchemeGroupVersion, "/api", true},
		{&c.discovery, discoveryv1.SchemeGroupVersion, "/apis", true},
		{&c.networking, networkingv1.SchemeGroupVersion, "/apis", true},
		{&c.authentication, authenticationv1.SchemeGroupVersion, "/apis", false},
		{&c.authorization, authorizationv1.SchemeGroupVersion, "/apis", false},
		{&c.route, routev1.GroupVersion, "/apis", false}, // a custom resource, which knows JSON only
		{&c.shards, shards.GroupVersion, "/apis", false},
		{&c.gateway, schema.GroupVersion(gatewayv1.GroupVersion), "/apis", false},
	} {
		config := rest.CopyConfig(config)
		config.GroupVersion, config.APIPath = &group.version, group.path
		config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
		if group.protobuf {
			config.ContentType = runtime.ContentTypeProtobuf
			config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		}
		client, err := rest.RESTClientForConfigAndClient(config, httpClient)
		if err != nil {
			return nil, fmt.Errorf("cannot make API client: %w", err)
		}
		*group.client = client
	}
	return c, nil
}
