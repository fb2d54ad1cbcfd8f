package gateway

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"turnout/test/cluster/await"
	"turnout/test/cluster/pki"
)

// own is the namespace of the Gateway with pods of its own.
const own = "own"

// aDeployed is a class whose Gateways have pods of their own, one such Gateway, what it leads to, and a Secret that is none of its business. CERT and KEY are of the
// Secret that it refers to.
const aDeployed = `
apiVersion: v1
kind: Namespace
metadata: {name: own}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: own, namespace: turnout}
data:
  mode: deployment
  cpuRequest: 10m
  memoryRequest: 32Mi
  settings: |
    ROUTER_GRACEFUL_SHUTDOWN_DELAY=3s
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: own}
spec:
  controllerName: turnout.router/gateway
  parametersRef: {group: "", kind: ConfigMap, name: own, namespace: turnout}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: run, namespace: own}
data: {}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shop, namespace: own}
spec:
  gatewayClassName: own
  infrastructure:
    labels: {team: shop}
    annotations: {example.com/note: mine}
    parametersRef: {group: "", kind: ConfigMap, name: run}
  listeners:
  - {name: http, port: 80, protocol: HTTP}
  - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: pair}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: own}
spec:
  parentRefs: [{name: shop}]
  rules: [{backendRefs: [{name: echo, port: 8080}]}]
---
apiVersion: v1
kind: Service
metadata: {name: echo, namespace: own}
spec: {selector: {app: echo}, ports: [{port: 8080, targetPort: 3000}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: echo, namespace: own}
spec:
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo}}
    spec:
      containers:
      - name: echo
        image: echo-basic
        env:
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
---
apiVersion: v1
kind: Secret
metadata: {name: other, namespace: own}
stringData: {word: secret}
`

// is waits until a field of an object has a value.
func is(t *testing.T, object, path, want string) {
	t.Helper()
	await.Eventually(t, patience, object+" "+path, func() error {
		got, err := shared.kubectl.Run(t.Context(), "", "-n", own, "get", object, "-o", "jsonpath="+path)
		if err == nil && got != want {
			return fmt.Errorf("it is %q, not %q", got, want)
		}
		return err
	})
}

// rolled waits until all pods of the Gateway's Deployment are those of its last change.
func rolled(t *testing.T) {
	t.Helper()
	await.Eventually(t, patience, "the Deployment is rolled", func() error {
		_, err := shared.kubectl.Run(t.Context(), "", "-n", own, "rollout", "status", "deployment/shop-own", "--timeout=10s")
		return err
	})
}

// run changes how the Gateway is run.
func run(t *testing.T, data map[string]string) {
	t.Helper()
	text, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/data", "value": data}})
	if err != nil {
		t.Fatal(err)
	}
	shared.kubectl.Must(t, "", "-n", own, "patch", "configmap/run", "--type=json", "-p", string(text))
}

// visitors send requests all the time, each of them over a connection that it keeps or over new ones.
type visitors struct {
	stop    context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	answered int
	failed   []string
}

func visit(t *testing.T, address string) *visitors {
	ctx, stop := context.WithCancel(t.Context())
	v := &visitors{stop: stop}
	for i := range 4 {
		transport := &http.Transport{DisableKeepAlives: i%2 == 0, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the certificate is a test's own
		url := "http://" + address + "/"
		if i > 1 {
			url = "https://" + address + "/"
		}
		v.running.Go(func() {
			defer transport.CloseIdleConnections()
			for ctx.Err() == nil {
				err := ask(ctx, transport, url)
				v.mu.Lock()
				if v.answered++; err != nil && ctx.Err() == nil {
					v.failed = append(v.failed, time.Now().Format("15:04:05.000 ")+err.Error())
				}
				v.mu.Unlock()
			}
		})
	}
	return v
}

// ask sends one request.
func ask(ctx context.Context, by http.RoundTripper, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: by}).Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// good says how many requests were answered since the last call, and fails the test if some were not.
func (v *visitors) good(t *testing.T, what string) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	t.Logf("%s: %d requests, %d failed", what, v.answered, len(v.failed))
	if len(v.failed) > 0 || v.answered == 0 {
		t.Errorf("%s: %d of %d requests failed:\n%s", what, len(v.failed), v.answered, strings.Join(v.failed[:min(len(v.failed), 10)], "\n"))
	}
	v.answered, v.failed = 0, nil
}

// TestDeployment: a Gateway whose class says so has pods of its own. They are rolled, scaled and given another image, and the Gateway goes over to the pods of the router and
// back, while each request is answered; they may read the Gateway's Secrets and no others; what is another's is left alone; and with the Gateway all of it goes.
func TestDeployment(t *testing.T) {
	shared.kubectl.Must(t, aRouter, "apply", "-f", "-")
	t.Cleanup(func() { keepLog(t) })
	shared.kubectl.Must(t, aDeployed, "apply", "-f", "-")
	shared.kubectl.Must(t, aPair(t), "apply", "-f", "-")
	programmed := `{.status.conditions[?(@.type=="Programmed")].reason}`
	is(t, "gateway/shop", programmed, "Programmed")
	address := shared.kubectl.Must(t, "", "-n", own, "get", "gateway/shop", "-o", "jsonpath={.status.addresses[0].value}")
	for _, object := range []string{"service/shop-own", "serviceaccount/shop-own", "deployment/shop-own"} {
		is(t, object, `{.metadata.labels.team} {.metadata.annotations.example\.com/note} {.metadata.labels.gateway\.networking\.k8s\.io/gateway-name} {.metadata.ownerReferences[0].kind}`, "shop mine shop Gateway")
	}
	const pods = "-lgateway.networking.k8s.io/gateway-name=shop"
	if got := shared.kubectl.Must(t, "", "-n", own, "get", "pods", pods, "-o", `jsonpath={.items[0].metadata.labels.team} {.items[0].metadata.annotations.example\.com/note} {.items[0].spec.containers[0].image}`); got != "shop mine turnout" {
		t.Errorf("the pod has %q", got)
	}
	is(t, "endpointslices", `{.items[?(@.metadata.labels.endpointslice\.kubernetes\.io/managed-by=="turnout")].metadata.name}`, "")
	for secret, want := range map[string]string{"secret/pair": "yes", "secret/other": "no"} {
		if got, _ := shared.kubectl.Run(t.Context(), "", "-n", own, "auth", "can-i", "get", secret, "--as=system:serviceaccount:own:shop-own"); strings.TrimSpace(got) != want {
			t.Errorf("its pods may read %s: %s", secret, got)
		}
	}
	await.Eventually(t, patience, "the route is served", func() error { return ask(t.Context(), http.DefaultTransport, "http://"+address+"/") })
	v := visit(t, address)
	for _, change := range []struct {
		what string
		data map[string]string
		want string // how many pods
	}{
		{"rolled, and scaled to two", map[string]string{"replicas": "2", "memoryRequest": "33Mi"}, "2"},
		{"rolled", map[string]string{"replicas": "2", "memoryRequest": "34Mi"}, "2"},
		{"scaled to one", map[string]string{"replicas": "1", "memoryRequest": "34Mi"}, "1"},
	} {
		run(t, change.data)
		is(t, "deployment/shop-own", "{.spec.replicas} {.spec.template.spec.containers[0].resources.requests.memory}", change.want+" "+change.data["memoryRequest"])
		rolled(t)
		v.good(t, change.what)
	}
	shared.kubectl.Must(t, "", "-n", "turnout", "patch", "configmap/own", "--type=merge", "-p", `{"data": {"image": "next"}}`)
	is(t, "deployment/shop-own", "{.spec.template.spec.containers[0].image}", "next")
	rolled(t)
	v.good(t, "another image")
	run(t, map[string]string{"mode": "shared"})
	gone(t, "deployment/shop-own")
	gone(t, "pods", pods)
	v.good(t, "served by the router's pods")
	run(t, map[string]string{"mode": "deployment"})
	is(t, "deployment/shop-own", "{.status.readyReplicas}", "1")
	is(t, "endpointslices", `{.items[?(@.metadata.labels.endpointslice\.kubernetes\.io/managed-by=="turnout")].metadata.name}`, "")
	v.good(t, "served by its own pods again")
	run(t, map[string]string{"mode": "both"})
	is(t, "gateway/shop", `{.status.conditions[?(@.type=="Accepted")].reason}: {.status.conditions[?(@.type=="Accepted")].message}`,
		`InvalidParameters: ConfigMap own/run: key mode: "both" is no mode; allowed: shared, deployment`)
	v.good(t, "parameters that cannot be used")
	run(t, map[string]string{})
	is(t, "gateway/shop", programmed, "Programmed")
	if again := shared.kubectl.Must(t, "", "-n", own, "get", "gateway/shop", "-o", "jsonpath={.status.addresses[0].value}"); again != address {
		t.Errorf("the address was %s and is %s", address, again)
	}
	v.good(t, "at the end")
	v.stop()
	v.running.Wait()
	inTheWay(t)
	shared.kubectl.Must(t, "", "-n", own, "delete", "gateway/shop")
	for _, kind := range []string{"deployments", "services", "serviceaccounts", "pods", "endpointslices", "roles", "rolebindings"} {
		gone(t, kind, pods)
	}
	shared.kubectl.Must(t, "", "delete", "namespace/own", "gatewayclass/own")
}

// inTheWay: a Deployment that is not the Gateway's stays as it is, and the Gateway says so until it is gone.
func inTheWay(t *testing.T) {
	t.Helper()
	shared.kubectl.Must(t, "", "-n", own, "create", "deployment", "late-own", "--image=echo-basic", "--replicas=0")
	shared.kubectl.Must(t, `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: late, namespace: own}
spec:
  gatewayClassName: own
  listeners: [{name: http, port: 80, protocol: HTTP}]
`, "apply", "-f", "-")
	said := `{.status.conditions[?(@.type=="Programmed")].reason}: {.status.conditions[?(@.type=="Programmed")].message}`
	is(t, "gateway/late", said, "NoResources: Deployment own/late-own is not the Gateway's: rename or delete it, or rename the Gateway")
	is(t, "deployment/late-own", "{.spec.replicas} {.spec.template.spec.containers[0].image}", "0 echo-basic")
	shared.kubectl.Must(t, "", "-n", own, "delete", "deployment/late-own")
	is(t, "gateway/late", `{.status.conditions[?(@.type=="Programmed")].reason}`, "Programmed")
	shared.kubectl.Must(t, "", "-n", own, "delete", "gateway/late")
}

// gone waits until there are no such objects.
func gone(t *testing.T, objects ...string) {
	t.Helper()
	await.Eventually(t, patience, strings.Join(objects, " ")+" gone", func() error {
		out, err := shared.kubectl.Run(t.Context(), "", append([]string{"-n", own, "get", "--ignore-not-found", "-o", "name"}, objects...)...)
		if err == nil && out != "" {
			return errors.New("there is " + out)
		}
		return err
	})
}

// aPair is the Secret that the Gateway refers to.
func aPair(t *testing.T) string {
	t.Helper()
	ca, err := pki.NewCA("shop")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue("shop.test")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": map[string]string{"name": "pair", "namespace": own},
		"stringData": map[string]string{"tls.crt": pair.Cert, "tls.key": pair.Key},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
