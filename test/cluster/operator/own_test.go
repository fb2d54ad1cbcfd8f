package operator

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"

	"turnout/test/cluster"
)

const (
	ownNamespace = "turnout"
	ownLabel     = "app.kubernetes.io/name=turnout,app.kubernetes.io/component=router"
)

// exact is a test with the times of the manifests, which takes minutes longer.
var exact = flag.Bool("exact", false, "roll out with minReadySeconds and ROUTER_GRACEFUL_SHUTDOWN_DELAY of the manifests")

// hastened are manifests whose rollouts take less time, unless the exact ones are asked for: a Service of this
// cluster notices within a second that a pod is not ready, where a load balancer takes half a minute.
func hastened(text string) string {
	if *exact {
		return text
	}
	return strings.NewReplacer("minReadySeconds: 30", "minReadySeconds: 3", "value: 45s", "value: 5s").Replace(text)
}

// TestBesideOperator applies deploy/manifests/openshift: the routers serve their shard, and
// nothing else, by a Service of their own; a rolling update under load fails no request.
func TestBesideOperator(t *testing.T) {
	start := time.Now()
	applied(t, hastened(kustomize(t, "openshift")))
	pods := ready(t, ownNamespace, ownLabel, 2)
	if pods[0].Spec.NodeName == pods[1].Spec.NodeName {
		t.Errorf("both routers are on node %s", pods[0].Spec.NodeName)
	}
	for i := range pods {
		runsAs(t, process(t, &pods[i], "router"), 1001, capNetBindService, true)
	}
	address := balancer(t, ownNamespace, "turnout")
	serves(t, address)
	admittedBy(t, "canary", "turnout")
	if code, _, _, err := page(address, "http://other.apps.example.com/"); code != 503 || err != nil {
		t.Errorf("a route of another shard: %d %v", code, err)
	}
	if ingress := ingressesOf(t, "other"); strings.Contains(ingress, "turnout=") {
		t.Errorf("status of a route of another shard: %s", ingress)
	}
	internal := must[*corev1.Service](t)(shared.core.CoreV1().Services(ownNamespace).Get(t.Context(), "turnout-internal", metav1.GetOptions{}))
	if err := canary(internal.Spec.ClusterIP); err != nil {
		t.Errorf("by the internal Service: %v", err)
	}

	l := newLoad(address, 8, 20*time.Millisecond)
	kubectl(t, "", "-n", ownNamespace, "rollout", "restart", "deployment/turnout")
	kubectl(t, "", "-n", ownNamespace, "rollout", "status", "deployment/turnout", "--timeout=170s")
	for i := range pods {
		gone(t, ownNamespace, pods[i].Name)
	}
	l.end(t, "rolling update")

	refusedNothing(t, "system:serviceaccount:"+ownNamespace+":router", start, "patch routes/status")
}

// TestOnHostNetwork applies deploy/manifests/openshift-hostnetwork: a router on the ports of each node.
func TestOnHostNetwork(t *testing.T) {
	applied(t, hastened(kustomize(t, "openshift-hostnetwork")))
	pods := ready(t, ownNamespace, ownLabel, 2)
	for i := range pods {
		node := must[cluster.Pod](t)(shared.Node(pods[i].Spec.NodeName))
		if address := node.IPs[0].String(); address != pods[i].Status.PodIP {
			t.Errorf("pod %s has the address %s, its node %s", pods[i].Name, pods[i].Status.PodIP, address)
		}
		serves(t, node.IPs[0].String())
	}
}

// TestBehindOperator puts Turnout behind the operator's Services, and takes it away again,
// while clients send requests to their address: the operator's pods are those of
// releases with the sidecar. No request fails on the way there and back.
func TestBehindOperator(t *testing.T) {
	start := time.Now()
	secrets(t)
	d := operators(t, "sidecar.yaml", "default", 2)
	if !*exact { // the operator does not set it: 45 s
		c := &d.Spec.Template.Spec.Containers[0]
		c.Env = append(c.Env, corev1.EnvVar{Name: "ROUTER_GRACEFUL_SHUTDOWN_DELAY", Value: "5s"})
	}
	applied(t, hastened(must2(yaml.Marshal(d))))
	const theirs = "!app.kubernetes.io/name," + operatorLabel + "=default"
	old := ready(t, operatorNamespace, theirs, 2)
	address := balancer(t, operatorNamespace, "router-default")
	serves(t, address)

	ingressController(t)
	l := newLoad(address, 8, 20*time.Millisecond)
	own := hastened(kustomize(t, "behind-operator"))
	applied(t, own)
	pods := ready(t, operatorNamespace, ownLabel, 2)
	kubectl(t, "", "-n", operatorNamespace, "scale", "deployment/router-default", "--replicas=0")
	for i := range old {
		gone(t, operatorNamespace, old[i].Name)
	}
	l.end(t, "from the operator's pods to Turnout's")
	serves(t, address)
	admittedBy(t, "canary", "default")
	for i := range pods {
		scraped(t, pods[i].Status.PodIP)
		follows(t, &pods[i])
	}

	l = newLoad(address, 8, 20*time.Millisecond)
	kubectl(t, "", "-n", operatorNamespace, "scale", "deployment/router-default", "--replicas=2")
	ready(t, operatorNamespace, theirs, 2)
	kubectl(t, "", "-n", operatorNamespace, "delete", "deployment/turnout")
	for i := range pods {
		gone(t, operatorNamespace, pods[i].Name)
	}
	l.end(t, "and back")
	serves(t, address)
	// The status of the routes says already what these routers say.
	refusedNothing(t, "system:serviceaccount:"+operatorNamespace+":turnout", start, "list ingresscontrollers", "watch ingresscontrollers", "patch ingresscontrollers/status")
}

// controllerNamespace has the IngressControllers.
const controllerNamespace = "openshift-ingress-operator"

// ingressController makes the IngressController "default", as the operator has it.
func ingressController(t testing.TB) {
	t.Helper()
	applied(t, `apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: `+controllerNamespace+`}
spec: {replicas: 0, tuningOptions: {threadCount: 4}}
`)
	kubectl(t, "", "-n", controllerNamespace, "patch", "ingresscontroller/default", "--subresource=status", "--type=merge", "-p",
		`{"status": {"availableReplicas": 0, "selector": "x", "domain": "apps.example.com"}}`)
}

// follows has the IngressController changed, and the pod do what it says without a restart; what it cannot do is said in the condition.
func follows(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	for _, value := range []string{"one", "two"} {
		kubectl(t, "", "-n", controllerNamespace, "patch", "ingresscontroller/default", "--type=merge", "-p",
			`{"spec": {"httpHeaders": {"actions": {"request": [], "response": [{"name": "X-Said", "action": {"type": "Set", "set": {"value": "`+value+`"}}}]}}}}`)
		eventually(t, "the header of the IngressController", func() error {
			code, header, _, err := page(pod.Status.PodIP, "http://"+plainHost+"/")
			if got := header.Get("X-Said"); err != nil || code != 200 || got != value {
				return fmt.Errorf("%d %q %w", code, got, err)
			}
			return nil
		})
	}
	eventually(t, "the condition", func() error {
		text := kubectl(t, "", "-n", controllerNamespace, "get", "ingresscontroller/default", "-o", `jsonpath={.status.conditions[?(@.type=="TurnoutFieldsHonored")].message}`)
		if !strings.Contains(text, "spec.tuningOptions.threadCount: ") {
			return errors.New(text)
		}
		return nil
	})
	if n := restarts(t, pod.Namespace, pod.Name); n > 0 {
		t.Errorf("%d containers were started again", n)
	}
}

// refusedNothing looks at what an account has asked since a time: something, and the API server
// refused none of it for want of a permission.
func refusedNothing(t testing.TB, account string, since time.Time, also ...string) {
	t.Helper()
	verbs := map[string]bool{}
	for _, e := range must[[]auditv1.Event](t)(shared.Audit(account)) {
		if e.ObjectRef == nil || e.RequestReceivedTimestamp.Time.Before(since) {
			continue
		}
		if e.ResponseStatus != nil && e.ResponseStatus.Code == 403 {
			t.Errorf("%s was refused: %s %s", account, e.Verb, e.RequestURI)
		}
		what := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			what += "/" + e.ObjectRef.Subresource
		}
		verbs[e.Verb+" "+what] = true
	}
	var all []string
	for v := range verbs {
		all = append(all, v)
	}
	slices.Sort(all)
	t.Logf("%s asked: %s", account, strings.Join(all, ", "))
	for _, want := range append([]string{"list routes", "watch routes", "list services", "watch services", "list endpointslices", "watch endpointslices"}, also...) {
		if !verbs[want] {
			t.Errorf("%s never asked %s", account, want)
		}
	}
	for _, v := range all {
		if strings.Contains(v, "secrets") || strings.Contains(v, "configmaps") {
			t.Errorf("%s asked %s", account, v)
		}
	}
}
