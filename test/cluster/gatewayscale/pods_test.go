package gatewayscale

import (
	"bufio"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// aRouter is the Deployment of the router, as deploy/manifests/gateway-api has it but for one replica.
const aRouter = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: turnout, namespace: turnout}
spec:
  replicas: 1
  selector: {matchLabels: {app.kubernetes.io/name: turnout, app.kubernetes.io/component: router}}
  template:
    metadata: {labels: {app.kubernetes.io/name: turnout, app.kubernetes.io/component: router, app: router}}
    spec:
      serviceAccountName: router
      securityContext: {runAsNonRoot: true, runAsUser: 1001, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: router
        image: turnout
        args: [run, --admin-open, --reason-header]
        env:
        - {name: TURNOUT_GATEWAY_API, value: "true"}
        - {name: TURNOUT_GATEWAY_PODS, value: turnout/turnout-gateways}
        - {name: ROUTER_SERVICE_HTTP_PORT, value: "8080"}
        - {name: ROUTER_SERVICE_HTTPS_PORT, value: "8443"}
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
        readinessProbe: {periodSeconds: 1, failureThreshold: 60, httpGet: {path: /healthz/ready, port: 1936}}`

// backend is a Service of the namespace live with two pods, which are out of use two seconds before they end.
func backend(name string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: live, name: %[1]s}
spec:
  replicas: 2
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers:
      - name: echo
        image: echo
        args: [serve]
        env: [{name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        readinessProbe: {periodSeconds: 1, httpGet: {path: /healthz, port: 8080}}
        lifecycle: {preStop: {httpGet: {path: "/?delay=2s", port: 8080}}}
---
apiVersion: v1
kind: Service
metadata: {namespace: live, name: %[1]s}
spec: {selector: {app: %[1]s}, ports: [{name: http, port: 8080}]}`, name)
}

// ready waits until a Deployment has all its pods ready, and none of another kind.
func ready(t testing.TB, namespace, name string) {
	t.Helper()
	eventually(t, "pods of "+name, func() error {
		d, err := get(t.Context(), "Deployment", namespace, name)
		if err != nil {
			return err
		}
		want, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
		seen, _, _ := unstructured.NestedInt64(d.Object, "status", "observedGeneration")
		for _, field := range []string{"replicas", "updatedReplicas", "readyReplicas"} {
			if n, _, _ := unstructured.NestedInt64(d.Object, "status", field); n != want || seen != d.GetGeneration() {
				return fmt.Errorf("%v", d.Object["status"])
			}
		}
		return nil
	})
}

// admin is the address of the admin port of the router.
func admin(t testing.TB) string {
	t.Helper()
	list, err := shared.objects.Resource(resources["Pod"]).Namespace("turnout").List(t.Context(), metav1.ListOptions{LabelSelector: "app=router"})
	check(t, err)
	if len(list.Items) != 1 {
		t.Fatalf("%d routers", len(list.Items))
	}
	ip, _, _ := unstructured.NestedString(list.Items[0].Object, "status", "podIP")
	return "http://" + ip + ":1936"
}

// scrape gives each series of the router to use, as it is written, with its value.
func scrape(t testing.TB, use func(series string, value float64)) {
	t.Helper()
	c := http.Client{Timeout: time.Minute}
	resp, err := c.Get(admin(t) + "/metrics")
	check(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		at := strings.LastIndexByte(lines.Text(), ' ')
		if strings.HasPrefix(lines.Text(), "#") || at < 0 {
			continue
		}
		n, err := strconv.ParseFloat(lines.Text()[at+1:], 64)
		check(t, err)
		use(lines.Text()[:at], n)
	}
	check(t, lines.Err())
}

// metrics are the number of series of the router, and the sum of each name over its labels.
func metrics(t testing.TB) (series int, sums map[string]float64) {
	t.Helper()
	sums = make(map[string]float64)
	scrape(t, func(text string, value float64) {
		series++
		name, _, _ := strings.Cut(text, "{")
		sums[name] += value
	})
	return series, sums
}

// inside is how long batches of changes took within the router, by the upper bounds of turnout_change_propagation_seconds in ms.
type inside map[float64]float64

func insideNow(t testing.TB) inside {
	t.Helper()
	now := inside{}
	scrape(t, func(text string, value float64) {
		if bucket, ok := strings.CutPrefix(text, `turnout_change_propagation_seconds_bucket{le="`); ok {
			le, err := strconv.ParseFloat(strings.TrimSuffix(bucket, `"}`), 64)
			check(t, err)
			now[le*1000] = value
		}
	})
	return now
}

// since says below what half of the batches since before were, and 99 of 100.
func (now inside) since(before inside) string {
	bounds := slices.Sorted(maps.Keys(now))
	last := bounds[len(bounds)-1]
	below := func(share float64) float64 {
		for _, le := range bounds {
			if now[le]-before[le] >= share*(now[last]-before[last]) {
				return le
			}
		}
		return last
	}
	return fmt.Sprintf("below %g / %g ms", below(0.5), below(0.99))
}

// resident is the memory of the router, in MiB.
func resident(t testing.TB) float64 {
	_, sums := metrics(t)
	return sums["process_resident_memory_bytes"] / (1 << 20)
}
