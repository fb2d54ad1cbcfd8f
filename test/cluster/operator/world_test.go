package operator

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"turnout/test/cluster/await"
)

const (
	operatorNamespace = "openshift-ingress"
	canaryNamespace   = "openshift-ingress-canary"
	operatorLabel     = "ingresscontroller.operator.openshift.io/deployment-ingresscontroller"
	canaryHost        = "canary-openshift-ingress-canary.apps.example.com"
	plainHost         = "plain.apps.example.com"
)

// patience is how long a state may take on a machine with more to do.
const patience = 90 * time.Second

// eventually tries until try returns nil, which it must within the patience.
func eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	await.Eventually(t, patience, what, try)
}

// must fails the test for an error.
func must[T any](t testing.TB) func(T, error) T { return await.Must[T](t) }

// kubectl runs kubectl as the administrator with a text as its standard input.
func kubectl(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience) // pods that are deleted may drain for 75 s
	defer cancel()
	c := exec.CommandContext(ctx, "kubectl", append([]string{"--kubeconfig", shared.kubeconfig}, args...)...)
	c.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}

// kustomize is what a folder of deploy/manifests makes, as it is applied, but that images
// have the names of this cluster.
func kustomize(t testing.TB, folder string) string {
	t.Helper()
	text := kubectl(t, "", "kustomize", filepath.Join(root, "deploy", "manifests", folder))
	return strings.ReplaceAll(text, "registry.example.com/turnout:latest", "turnout")
}

// applied applies manifests until the test is over.
func applied(t testing.TB, text string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(kubectl(t, "", "get", "pods", "-A", "-o", "wide"))
			for _, namespace := range []string{operatorNamespace, ownNamespace} {
				for _, p := range podsOf(t, namespace, "") {
					t.Logf("%s: %.3000s", p.Name, kubectl(t, "", "-n", namespace, "logs", p.Name, "-c", "router", "--tail=15"))
				}
			}
		}
		kubectl(t, text, "delete", "-f", "-", "--ignore-not-found", "--wait=true", "--grace-period=1")
	})
	kubectl(t, text, "apply", "-f", "-")
}

// deployment reads one of testdata.
func deployment(t testing.TB, file string) *appsv1.Deployment {
	t.Helper()
	d := new(appsv1.Deployment)
	if err := yaml.UnmarshalStrict(must[[]byte](t)(os.ReadFile(filepath.Join("testdata", file))), d); err != nil {
		t.Fatal(err)
	}
	return d
}

// podsOf lists the pods with a label that are not being deleted.
func podsOf(t testing.TB, namespace, selector string) []corev1.Pod {
	t.Helper()
	list := must[*corev1.PodList](t)(shared.core.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{LabelSelector: selector}))
	var alive []corev1.Pod
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			alive = append(alive, p)
		}
	}
	return alive
}

// ready waits until there are n pods with a label, all of them ready.
func ready(t testing.TB, namespace, selector string, n int) []corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	eventually(t, fmt.Sprintf("%d pods %s are ready", n, selector), func() error {
		pods = podsOf(t, namespace, selector)
		if len(pods) != n {
			return fmt.Errorf("%d pods", len(pods))
		}
		for i := range pods {
			if err := isReady(&pods[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return pods
}

func isReady(p *corev1.Pod) error {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	text := must2(yaml.Marshal(p.Status))
	return fmt.Errorf("pod %s is not ready: %s", p.Name, text)
}

func must2(text []byte, err error) string {
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// restarts says how often containers of a pod were started again.
func restarts(t testing.TB, namespace, name string) int {
	t.Helper()
	p := must[*corev1.Pod](t)(shared.core.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{}))
	n := 0
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range list {
			n += int(c.RestartCount)
		}
	}
	return n
}

// gone waits until a pod is.
func gone(t testing.TB, namespace, name string) {
	t.Helper()
	eventually(t, "pod "+name+" is gone", func() error {
		_, err := shared.core.CoreV1().Pods(namespace).Get(context.Background(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
}

// logsOf is what a container printed so far.
func logsOf(t testing.TB, namespace, pod, container string) string {
	t.Helper()
	text, err := shared.core.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container}).DoRaw(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// client makes requests to one address, whatever host they name, and follows nothing.
func client(address string) *http.Client {
	return &http.Client{
		Timeout: patience,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
				_, port, err := net.SplitHostPort(to)
				if err != nil {
					return nil, err
				}
				return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(address, port))
			},
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
			DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// page asks address for a page and returns status, fields and body.
func page(address, url string) (int, http.Header, string, error) {
	r, err := client(address).Get(url)
	if err != nil {
		return 0, nil, "", err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	return r.StatusCode, r.Header, string(body), err
}

// serves waits until address answers as the operator's canary check wants it, and then looks
// at the other ways to the pods.
func serves(t testing.TB, address string) {
	t.Helper()
	eventually(t, "the canary check passes at "+address, func() error { return canary(address) })
	for url, want := range map[string]string{
		"http://" + plainHost + "/":              "8888",
		"https://passthrough.apps.example.com/":  "8443",
		"http://" + canaryHost + "/a?b=c":        "https://" + canaryHost + "/a?b=c",
		"http://unknown.apps.example.com/":       "503",
		"https://" + canaryHost + "/other?x=y&z": "8080",
	} {
		status, header, _, err := page(address, url)
		got := header.Get("X-Request-Port")
		switch {
		case status == 302:
			got = header.Get("Location")
		case status != 200:
			got = fmt.Sprint(status)
		}
		if err != nil || got != want {
			t.Errorf("%s at %s: %q (%d, %v), want %q", url, address, got, status, err, want)
		}
	}
}

// canary is the operator's check of the canary route: the body, and the port that the pod
// was asked at.
func canary(address string) error {
	status, header, body, err := page(address, "https://"+canaryHost+"/")
	if err != nil {
		return err
	}
	if status != 200 || !strings.Contains(body, canaryBody) || header.Get("X-Request-Port") != "8080" {
		return fmt.Errorf("%d %v %q", status, header, body)
	}
	return nil
}

// admittedBy waits until a route of the canary's namespace is admitted by a router.
func admittedBy(t testing.TB, route, router string) {
	t.Helper()
	eventually(t, "route "+route+" is admitted by "+router, func() error {
		ingress := ingressesOf(t, route)
		if !strings.Contains(ingress, router+"=True") {
			return fmt.Errorf("status: %s", ingress)
		}
		return nil
	})
}

// routesResource are the Routes of the API.
var routesResource = schema.GroupVersionResource{Group: "route.openshift.io", Version: "v1", Resource: "routes"}

// manyRoutes makes n routes until the test is over.
func manyRoutes(t testing.TB, n int) {
	t.Helper()
	routes := shared.objects.Resource(routesResource).Namespace(canaryNamespace)
	t.Cleanup(func() {
		err := routes.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "many=routes"})
		if err != nil {
			t.Error(err)
		}
	})
	for i := range n {
		name := fmt.Sprintf("many-%d", i)
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "route.openshift.io/v1", "kind": "Route",
			"metadata": map[string]any{"name": name, "labels": map[string]any{"many": "routes"}},
			"spec": map[string]any{
				"host": name + ".apps.example.com", "wildcardPolicy": "None", "port": map[string]any{"targetPort": "8888-tcp"},
				"to": map[string]any{"kind": "Service", "name": "ingress-canary", "weight": int64(100)},
			},
		}}
		must[*unstructured.Unstructured](t)(routes.Create(t.Context(), o, metav1.CreateOptions{}))
	}
}

// ingressesOf are the routers in the status of a route, each with its Admitted.
func ingressesOf(t testing.TB, route string) string {
	t.Helper()
	o := must[*unstructured.Unstructured](t)(shared.objects.Resource(routesResource).Namespace(canaryNamespace).Get(t.Context(), route, metav1.GetOptions{}))
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "ingress")
	var all []string
	for _, i := range list {
		entry := i.(map[string]any)
		conditions, _, _ := unstructured.NestedSlice(entry, "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == "Admitted" {
				all = append(all, fmt.Sprintf("%v=%v", entry["routerName"], c["status"]))
			}
		}
	}
	return strings.Join(all, " ")
}

// balancer waits for the address of a Service of type LoadBalancer.
func balancer(t testing.TB, namespace, name string) string {
	t.Helper()
	address := ""
	eventually(t, "Service "+name+" has an address", func() error {
		s, err := shared.core.CoreV1().Services(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || len(s.Status.LoadBalancer.Ingress) == 0 {
			return errors.Join(errors.New("none yet"), err)
		}
		address = s.Status.LoadBalancer.Ingress[0].IP
		return nil
	})
	return address
}
