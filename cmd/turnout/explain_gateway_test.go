package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"turnout/internal/explain"
)

// gatewayAPI is a tinyAPI with a Gateway, an HTTPRoute, and a BackendTLSPolicy whose authority stands in a ConfigMap.
type gatewayAPI struct {
	tinyAPI

	ca string
}

func (a *gatewayAPI) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	plural := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]
	const group = "gateway.networking.k8s.io/v1"
	ca, _ := json.Marshal(a.ca)
	kinds := map[string][3]string{ // version, kind, and the members of the one object behind its resourceVersion
		"gatewayclasses": {group, "GatewayClass", `"name":"turnout","uid":"1"},"spec":{"controllerName":"turnout.router/gateway"}`},
		"gateways":       {group, "Gateway", `"namespace":"ns","name":"gw","uid":"2"},"spec":{"gatewayClassName":"turnout","listeners":[{"name":"web","port":8000,"protocol":"HTTP"}]}`},
		"httproutes": {group, "HTTPRoute", `"namespace":"ns","name":"front","uid":"3"},"spec":{"parentRefs":[{"group":"gateway.networking.k8s.io","kind":"Gateway","name":"gw"}],"hostnames":["g.test"],` +
			`"rules":[{"matches":[{"path":{"type":"PathPrefix","value":"/"}}],"backendRefs":[{"group":"","kind":"Service","name":"s","port":443,"weight":1}]}]}`},
		"listenersets": {group, "ListenerSet"}, "grpcroutes": {group, "GRPCRoute"}, "tlsroutes": {group, "TLSRoute"}, "tcproutes": {group, "TCPRoute"}, "udproutes": {group, "UDPRoute"},
		"referencegrants": {group, "ReferenceGrant"},
		"backendtlspolicies": {group, "BackendTLSPolicy", `"namespace":"ns","name":"policy","uid":"4"},"spec":{"targetRefs":[{"group":"","kind":"Service","name":"s"}],` +
			`"validation":{"hostname":"pod.test","caCertificateRefs":[{"group":"","kind":"ConfigMap","name":"ca"}]}}`},
		"services":                  {"v1", "Service", `"namespace":"ns","name":"s","uid":"5"},"spec":{"ports":[{"name":"p","port":443,"protocol":"TCP","targetPort":8443}]}`},
		"endpointslices":            {"discovery.k8s.io/v1", "EndpointSlice", `"namespace":"ns","name":"s-1","uid":"6","labels":{"kubernetes.io/service-name":"s"}},"addressType":"IPv4","ports":[{"name":"p","port":8443,"protocol":"TCP"}],"endpoints":[{"addresses":["10.0.0.7"],"conditions":{"ready":true}}]`},
		"configmaps":                {"v1", "ConfigMap", `"namespace":"ns","name":"ca","uid":"7"},"data":{"ca.crt":` + string(ca) + `}`},
		"customresourcedefinitions": {"apiextensions.k8s.io/v1", "CustomResourceDefinition", `"name":"gatewayclasses.gateway.networking.k8s.io","uid":"8","annotations":{"gateway.networking.k8s.io/bundle-version":"v1.6.3","gateway.networking.k8s.io/channel":"experimental"}}`},
	}
	of, known := kinds[plural]
	if req.FormValue("watch") == "" || !known {
		a.tinyAPI.ServeHTTP(w, req)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if of[2] != "" {
		fmt.Fprintf(w, `{"type":"ADDED","object":{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"5",%s}}`+"\n", of[0], of[1], of[2])
	}
	fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", of[0], of[1])
	w.(http.Flusher).Flush()
	<-req.Context().Done()
}

// TestExplainGatewayByKubeconfig: objects of the Gateway API are read from a cluster, with the ConfigMaps that they refer to.
func TestExplainGatewayByKubeconfig(t *testing.T) {
	server := httptest.NewTLSServer(&gatewayAPI{ca: newAuthority(t, "pods").pem})
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	a := explained(t, "--kubeconfig", kubeconfig(t, server.URL), "--gateway-api", "http://g.test:8000/")
	if a.Outcome.By != explain.ByEndpoint || a.Route == nil || a.Route.Kind != "HTTPRoute" || a.Listener.Gateway != "ns/gw" || len(a.Endpoints) != 1 || !strings.Contains(a.Endpoints[0].TLS, "pod.test") {
		t.Errorf("%+v\n%+v", a, a.Endpoints)
	}
}
