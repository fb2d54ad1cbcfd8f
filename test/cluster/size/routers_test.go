package size

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"turnout/test/cluster"
	"turnout/test/cluster/internal/proc"
)

// Where routers are, as deploy/manifests/base has it.
const (
	routerNamespace = "turnout"
	routerAccount   = "router"
	replicas        = 3
	httpPort        = 8080 // the program has no capability to listen on 80, as that of the image has
)

// checkInterval is between two health checks of an endpoint. Three routers that check 30,000 endpoints as often as they do without being told
// otherwise, every 5 s, make 18,000 connections in a second, which is another test.
const checkInterval = "1h"

// replica is one router.
type replica struct {
	name, ip string
	dir      string      // below /proc
	client   cluster.Pod // from where it is asked
}

// startRouters makes the Deployment and waits until all replicas are ready.
func startRouters(t *testing.T, client cluster.Pod) []*replica {
	count, labels := int32(replicas), map[string]string{"app": "router"}
	yes, no, user := true, false, int64(1001)
	ready := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz/ready", Port: intstr.FromInt32(1936)}}
	deployment := &appsv1.Deployment{ObjectMeta: inNamespace(routerNamespace, "router"), Spec: appsv1.DeploymentSpec{
		Replicas: &count, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			ServiceAccountName: routerAccount,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "router", Image: "turnout", Args: []string{"run", "--admin-open", "--reason-header", "--access-log=stdout", "--access-log-status=5xx"},
				Env:             []corev1.EnvVar{{Name: "ROUTER_SERVICE_NAME", Value: "size"}, {Name: "ROUTER_SERVICE_NAMESPACE", Value: routerNamespace}, {Name: "ROUTER_BACKEND_CHECK_INTERVAL", Value: checkInterval}, {Name: "ROUTER_SERVICE_HTTP_PORT", Value: strconv.Itoa(httpPort)}, {Name: "ROUTER_SERVICE_HTTPS_PORT", Value: "8443"}},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				StartupProbe:    &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 300, ProbeHandler: ready},
			}},
		}},
	}}
	if !*stream {
		c := &deployment.Spec.Template.Spec.Containers[0]
		c.Env = append(c.Env, corev1.EnvVar{Name: "KUBE_FEATURE_WatchListClient", Value: "false"})
	}
	_, err := shared.core.AppsV1().Deployments(routerNamespace).Create(t.Context(), deployment, metav1.CreateOptions{})
	check(t, err)
	var all []*replica
	eventually(t, "routers", func() error {
		list, err := shared.core.CoreV1().Pods(routerNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=router"})
		if err != nil {
			return err
		}
		all = nil
		for i := range list.Items {
			if p := &list.Items[i]; isReady(p) {
				dir, err := proc.Of(p, "router")
				if err != nil {
					return err
				}
				all = append(all, &replica{p.Name, p.Status.PodIP, dir, client})
			}
		}
		if len(all) < replicas {
			return fmt.Errorf("%d of %d are ready; %s", len(all), replicas, firstLog(t, list.Items))
		}
		return nil
	})
	return all
}

// firstLog is the end of what the first of the pods has written, for people.
func firstLog(t *testing.T, pods []corev1.Pod) string {
	if len(pods) == 0 {
		return "there is no pod"
	}
	lines := int64(3)
	text, err := shared.core.CoreV1().Pods(routerNamespace).GetLogs(pods[0].Name, &corev1.PodLogOptions{TailLines: &lines}).DoRaw(t.Context())
	return fmt.Sprintf("%s is %s: %s %v", pods[0].Name, pods[0].Status.Phase, text, err)
}

// failures are the lines that a router has logged of requests that failed.
func (r *replica) failures(ctx context.Context) string {
	text, err := shared.core.CoreV1().Pods(routerNamespace).GetLogs(r.name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		return err.Error()
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, `"reason":`) {
			lines = append(lines, line)
		}
	}
	return r.name + ":\n" + strings.Join(lines, "")
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// http is a client whose connections all lead to a port of the router.
func (r *replica) http(port int) *http.Client {
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return r.client.Dial(ctx, network, net.JoinHostPort(r.ip, strconv.Itoa(port)))
	}}}
}

// metrics are the sums of metrics over their labels.
func (r *replica) metrics(t *testing.T, names ...string) map[string]float64 {
	resp, err := r.http(1936).Get("http://router/metrics")
	check(t, err)
	defer resp.Body.Close()
	sums := make(map[string]float64, len(names))
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		series, value, ok := strings.Cut(lines.Text(), " ")
		name, _, _ := strings.Cut(series, "{")
		if n, err := strconv.ParseFloat(value, 64); ok && err == nil {
			sums[name] += n
		}
	}
	check(t, lines.Err())
	for _, name := range names {
		if _, ok := sums[name]; !ok {
			t.Fatalf("router %s has no metric %s", r.name, name)
		}
	}
	return sums
}
