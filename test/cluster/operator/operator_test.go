package operator

import (
	"bufio"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"turnout/test/cluster/pki"
)

// user is one that OpenShift makes up for a namespace.
const user = 1000680000

// admitted is a Deployment as the SecurityContextConstraints "restricted" change its pods:
// a user of the namespace's range, group 0, four capabilities less.
func admitted(d *appsv1.Deployment) *appsv1.Deployment {
	pod := &d.Spec.Template.Spec
	pod.SecurityContext = &corev1.PodSecurityContext{FSGroup: new(int64(user))}
	for _, list := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			if list[i].SecurityContext == nil {
				list[i].SecurityContext = new(corev1.SecurityContext)
			}
			list[i].SecurityContext.RunAsUser = new(int64(user))
			list[i].SecurityContext.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"KILL", "MKNOD", "SETGID", "SETUID"}}
		}
	}
	return d
}

// operators is the Deployment that the operator makes for an IngressController.
func operators(t testing.TB, file, name string, replicas int32) *appsv1.Deployment {
	t.Helper()
	d := admitted(deployment(t, file))
	d.Name, d.Spec.Replicas = "router-"+name, &replicas
	d.Spec.Selector.MatchLabels[operatorLabel] = name
	d.Spec.Template.Labels[operatorLabel] = name
	for i := range d.Spec.Template.Spec.Containers {
		for j, e := range d.Spec.Template.Spec.Containers[i].Env {
			if e.Name == "ROUTER_SERVICE_NAME" {
				d.Spec.Template.Spec.Containers[i].Env[j].Value = name
			}
		}
	}
	return d
}

// secrets makes the certificates that the operator, or OpenShift for it, makes.
func secrets(t testing.TB) {
	t.Helper()
	ca := must[*pki.CA](t)(pki.NewCA("ingress-operator"))
	for name, host := range map[string]string{
		"router-certs-default": "*.apps.example.com", "router-metrics-certs-default": "router-internal-default.openshift-ingress.svc",
	} {
		pair := must[pki.Pair](t)(ca.Issue(host))
		s := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: operatorNamespace}, Type: corev1.SecretTypeTLS,
			StringData: map[string]string{"tls.crt": pair.Cert, "tls.key": pair.Key},
		}
		s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
		kubectl(t, must2(yaml.Marshal(s)), "apply", "-f", "-")
	}
	bundle := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "service-ca-bundle", Namespace: operatorNamespace},
		Data: map[string]string{"service-ca.crt": ca.Cert},
	}
	kubectl(t, must2(yaml.Marshal(bundle)), "apply", "-f", "-")
}

// rolledOut makes a Deployment until the test is over, and returns its pods when they are ready.
func rolledOut(t testing.TB, d *appsv1.Deployment) []corev1.Pod {
	t.Helper()
	applied(t, must2(yaml.Marshal(d)))
	return ready(t, d.Namespace, operatorLabel+"="+d.Spec.Selector.MatchLabels[operatorLabel], int(*d.Spec.Replicas))
}

// TestOperatorsDeployment runs the operator's pod in each layout with the image for it: it
// becomes ready, serves, logs, and when it is deleted a long download ends first.
func TestOperatorsDeployment(t *testing.T) { //nolint:tparallel // the others measure, and have the nodes for themselves
	secrets(t)
	for _, c := range []struct{ name, file, sidecar string }{
		{"embedded", "embedded.yaml", ""},     // 4.12 to 4.22
		{"sidecar", "sidecar.yaml", "router"}, // from 4.23 on, without images of HAProxy
		{"foreign", "sidecar.yaml", "haproxy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := operators(t, c.file, c.name, 1)
			for i := range d.Spec.Template.Spec.InitContainers {
				if s := &d.Spec.Template.Spec.InitContainers[i]; s.Name == "haproxy" {
					s.Image = c.sidecar
				}
			}
			pod := rolledOut(t, d)[0]
			serves(t, pod.Status.PodIP)
			admittedBy(t, "canary", c.name)
			scraped(t, pod.Status.PodIP)
			router := process(t, &pod, "router")
			runsAs(t, router, user, capNetBindService, c.sidecar != "")
			if c.sidecar != "" {
				sidecar(t, &pod)
				logged(t, &pod)
			}
			drains(t, &pod)
		})
	}
}

// scraped asks for the metrics as the operator's ServiceMonitor may, by TLS, with the user of the stats Secret.
func scraped(t testing.TB, address string) {
	t.Helper()
	for _, scheme := range []string{"http", "https"} {
		request := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+"://router:1936/metrics", nil))
		request.SetBasicAuth("stats-user", "stats-password")
		answer := must[*http.Response](t)(client(address).Do(request))
		_ = answer.Body.Close()
		if answer.StatusCode != 200 {
			t.Errorf("metrics by %s: %s", scheme, answer.Status)
		}
	}
	if code, _, _, err := page(address, "http://router:1936/metrics"); err != nil || code == 200 {
		t.Errorf("metrics without a user: %d %v", code, err)
	}
}

// sidecar looks at the sidecar: small, with the user of the namespace and no capability.
func sidecar(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	dir := process(t, pod, "haproxy")
	runsAs(t, dir, user, 0, true)
	now, peak := resident(t, dir)
	t.Logf("sidecar: %.1f MiB resident, %.1f at most", now, peak)
	if peak > 5 {
		t.Errorf("the sidecar has %.1f MiB resident, at most 5 are wanted", peak)
	}
	if text := logsOf(t, pod.Namespace, pod.Name, "haproxy"); !strings.HasPrefix(text, "turnout stand-in, not HAProxy") {
		t.Errorf("the sidecar prints %q", text)
	}
}

// logLine is a line of the log container: the time, the pod twice, and HAProxy's line of the request.
const logLine = `(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00 POD POD haproxy\[\d+\]: [0-9a-f.:]+ \[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d\.\d{3}\] ` +
	`public be_http:openshift-ingress-canary:plain/pod:ingress-canary-[a-z0-9]+:ingress-canary:8888-tcp:[0-9.]+:8888 [0-9/]+ 200 \d+ - - --NI [0-9/]+ [0-9/]+ "GET /log-me HTTP/1\.1"$`

// logged waits for the line of a request in the output of the container logs.
func logged(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	pattern := regexp.MustCompile(strings.ReplaceAll(logLine, "POD", regexp.QuoteMeta(pod.Name)))
	if code, _, _, err := page(pod.Status.PodIP, "http://"+plainHost+"/log-me"); code != 200 || err != nil {
		t.Fatalf("%d %v", code, err)
	}
	eventually(t, "the request is logged", func() error {
		if text := logsOf(t, pod.Namespace, pod.Name, "logs"); !pattern.MatchString(text) {
			return fmt.Errorf("the log is\n%.2000s", text)
		}
		return nil
	})
}

// drains deletes the pod while a client reads a download that is longer than the 45 s in
// which the router goes on serving without being ready. The download ends whole, and the
// pod soon after, long before its hour of grace.
func drains(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	const seconds = 50
	address := pod.Status.PodIP
	request := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://%s/slow?seconds=%d", plainHost, seconds), nil))
	answer := must[*http.Response](t)(client(address).Do(request))
	defer answer.Body.Close()
	lines := bufio.NewReader(answer.Body)
	must[string](t)(lines.ReadString('\n'))
	if err := shared.core.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is not ready", func() error {
		if code, _, body, err := page(address, "http://router:1936/healthz/ready"); err != nil || code == 200 {
			return fmt.Errorf("%d %q %w", code, body, err)
		}
		return nil
	})
	if err := canary(address); err != nil {
		t.Errorf("while load balancers notice: %v", err)
	}
	last, n := "", 1
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		last = line
		n++
	}
	over := time.Now()
	if last != "the end\n" || n != 10*seconds+1 {
		t.Errorf("the download ended after %d lines with %q", n, last)
	}
	gone(t, pod.Namespace, pod.Name)
	t.Logf("gone %.1f s after the download", time.Since(over).Seconds())
	if took := time.Since(over); took > 40*time.Second {
		t.Errorf("gone %v after the download", took)
	}
}

// TestMemory: with a memory limit as low as the operator's request, and 1,000 routes, the
// router serves under load and its probes pass.
func TestMemory(t *testing.T) {
	const routes, limit, loadTime = 1000, "64Mi", 35 * time.Second // three periods of the liveness probes
	secrets(t)
	d := operators(t, "sidecar.yaml", "small", 1)
	for i := range d.Spec.Template.Spec.Containers {
		if c := &d.Spec.Template.Spec.Containers[i]; c.Name == "router" {
			c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}
		}
	}
	manyRoutes(t, routes)
	pod := rolledOut(t, d)[0]
	serves(t, pod.Status.PodIP)
	admittedBy(t, fmt.Sprintf("many-%d", routes-1), "small")
	router := process(t, &pod, "router")
	rest, _ := resident(t, router)
	l := newLoad(pod.Status.PodIP, 64, 0)
	<-time.After(loadTime)
	l.end(t, "full load")
	now, peak := resident(t, router)
	t.Logf("router with %d routes and a limit of %s: %.1f MiB resident at rest, %.1f after the load, %.1f at most", routes, limit, rest, now, peak)
	p := must[*corev1.Pod](t)(shared.core.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{}))
	if err := isReady(p); err != nil {
		t.Error(err)
	}
	if n := restarts(t, pod.Namespace, pod.Name); n > 0 {
		t.Errorf("%d containers were started again", n)
	}
	dir := process(t, &pod, "haproxy")
	if _, peak := resident(t, dir); peak > 5 {
		t.Errorf("the sidecar has %.1f MiB resident, at most 5 are wanted", peak)
	}
}
