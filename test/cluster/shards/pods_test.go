package shards

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"turnout/test/cluster/await"
)

const (
	programs = "turnout" // the namespace of routers and of the scheduler
	live     = "live"    // that of routes and pods
	httpPort = 8080      // the program has no capability to listen on 80, as that of the image has
)

// startScheduler makes the scheduler as deploy/ has it, for as long as the test runs.
func startScheduler(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if _, err := shared.kubectl.Run(context.Background(), "", "delete", "deployment/scheduler", "-n", programs, "--cascade=foreground"); err != nil {
			t.Error(err)
		}
	})
	manifest, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "manifests", "sharding", "scheduler.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// The image has the capability; the program alone does not need it. Metrics are read without a login.
	text := strings.Replace(string(manifest), "args: [scheduler]", "args: [scheduler, --admin-open]", 1)
	text = strings.Replace(text, "runAsNonRoot: true", "runAsNonRoot: true\n        runAsUser: 1001", 1)
	shared.kubectl.Must(t, strings.Replace(text, "add: [NET_BIND_SERVICE]", "add: []", 1), "apply", "-f", "-")
	ready(t, programs, "scheduler")
}

// ready waits until all replicas of a Deployment are.
func ready(t *testing.T, namespace, name string) {
	t.Helper()
	readyWithin(t, patience, namespace, name)
}

func readyWithin(t *testing.T, patience time.Duration, namespace, name string) {
	t.Helper()
	await.Eventually(t, patience, name, func() error {
		d, err := shared.core.AppsV1().Deployments(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if d.Status.ReadyReplicas != *d.Spec.Replicas || d.Status.ObservedGeneration != d.Generation {
			return fmt.Errorf("%d of %d replicas are ready", d.Status.ReadyReplicas, *d.Spec.Replicas)
		}
		return nil
	})
}

// field is a variable of the environment with a field of the pod.
func field(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

// startReplicas makes the pods of a Router.
func startReplicas(t *testing.T, router string, count int32) {
	t.Helper()
	yes, no, user, grace := true, false, int64(1001), int64(60)
	labels := map[string]string{"app": "router", "router": router}
	probe := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz/ready", Port: intstr.FromInt32(1936)}}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: programs, Name: "router-" + router}, Spec: appsv1.DeploymentSpec{
		Replicas: &count, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			ServiceAccountName: "router", TerminationGracePeriodSeconds: &grace,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "router", Image: "turnout", Args: []string{"run", "--admin-open", "--reason-header", "--access-log=stdout", "--access-log-status=5xx"},
				Env: []corev1.EnvVar{
					{Name: "TURNOUT_ROUTER", Value: router}, field("POD_NAME", "metadata.name"), field("POD_IP", "status.podIP"),
					{Name: "ROUTER_SERVICE_HTTP_PORT", Value: strconv.Itoa(httpPort)}, {Name: "ROUTER_SERVICE_HTTPS_PORT", Value: "8443"},
					{Name: "ROUTER_GRACEFUL_SHUTDOWN_DELAY", Value: "5s"}, {Name: "ROUTER_SLOWLORIS_HTTP_KEEPALIVE", Value: "5s"},
				},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				StartupProbe:    &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 600, ProbeHandler: probe},
			}},
		}},
	}}
	if _, err := shared.core.AppsV1().Deployments(programs).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ready(t, programs, d.Name)
}

// startPods makes a namespace, and in it the service that all routes lead to.
func startPods(t *testing.T, namespace string, replicas int32) {
	t.Helper()
	labels := map[string]string{"app": "echo"}
	if _, err := shared.core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "echo"}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "echo", Image: "echo", Args: []string{"serve"}, Env: []corev1.EnvVar{field("POD_NAME", "metadata.name")},
			ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}},
		}}}},
	}}
	if _, err := shared.core.AppsV1().Deployments(namespace).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "echo"}, Spec: corev1.ServiceSpec{
		Selector: labels, Ports: []corev1.ServicePort{{Name: "http", Port: 8080}},
	}}
	if _, err := shared.core.CoreV1().Services(namespace).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ready(t, namespace, "echo")
}
