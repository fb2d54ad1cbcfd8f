package kubelet

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// serve is a program that answers HTTP requests on port 8080 with 200 when /tmp/ok is there,
// else with 500, and writes what it is asked.
const serve = `
exec python3 -c '
import http.server, os, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.path, self.headers.get("Host"), self.headers.get("X-Own"), self.headers.get("User-Agent"), flush=True)
        self.send_response(200 if os.path.exists("/tmp/ok") else 500)
        self.end_headers()
        self.wfile.write(b"body")
    def log_message(self, *a): pass
http.server.HTTPServer(("", 8080), H).serve_forever()
'`

func httpProbe(path string) *v1.Probe {
	return &v1.Probe{PeriodSeconds: 1, ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: path, Port: intstr.FromString("web")}}}
}

func TestReadinessProbe(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh(serve)
	c.Ports = []v1.ContainerPort{{Name: "web", ContainerPort: 8080}}
	c.ReadinessProbe = httpProbe("/ready?x=1")
	c.ReadinessProbe.HTTPGet.HTTPHeaders = []v1.HTTPHeader{{Name: "Host", Value: "probed.test"}, {Name: "X-Own", Value: "yes"}}
	c.ReadinessProbe.FailureThreshold = 1
	create(t, ns, "pod", v1.PodSpec{Containers: []v1.Container{c}})
	wantEvent(t, ns, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500")
	p, err := shared.client.CoreV1().Pods(ns).Get(t.Context(), "pod", metav1.GetOptions{})
	must(t, err)
	if s := p.Status.ContainerStatuses[0]; s.Ready || s.Started == nil || !*s.Started || ready(p) {
		t.Errorf("a container that is not ready has status %+v", s)
	}
	runIn(t, ns, "pod", "touch /tmp/ok")
	eventually(t, ns, "pod", "ready", ready)
	runIn(t, ns, "pod", "rm /tmp/ok")
	p = eventually(t, ns, "pod", "not ready", func(p *v1.Pod) bool { return !ready(p) })
	if n := p.Status.ContainerStatuses[0].RestartCount; n != 0 {
		t.Errorf("the readiness probe has restarted the container %d times", n)
	}
	if text := logs(t, ns, "pod", v1.PodLogOptions{}); !strings.HasPrefix(text, "/ready?x=1 probed.test yes kube-probe/") {
		t.Errorf("the probe asked: %s", text)
	}
}

func TestLivenessProbe(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh("trap '' TERM; echo begin; while :; do sleep 0.05; done")
	c.LivenessProbe = execProbe("exit 1")
	c.LivenessProbe.FailureThreshold, c.LivenessProbe.TerminationGracePeriodSeconds = 1, new(int64(1))
	create(t, ns, "pod", v1.PodSpec{TerminationGracePeriodSeconds: new(int64(600)), Containers: []v1.Container{c}})
	p := eventually(t, ns, "pod", "restarted", func(p *v1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].RestartCount > 0
	})
	if end := p.Status.ContainerStatuses[0].LastTerminationState.Terminated; end == nil || end.ExitCode != 137 || end.Reason != "Error" {
		t.Errorf("the state before is %+v", p.Status.ContainerStatuses[0].LastTerminationState)
	}
	wantEvent(t, ns, "Killing", "failed liveness probe, will be restarted")
	if text := logs(t, ns, "pod", v1.PodLogOptions{Previous: true}); text != "begin\n" {
		t.Errorf("the log before is %q", text)
	}
}

func TestStartupProbe(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh("while :; do sleep 0.05; done")
	c.StartupProbe = execProbe("test -e /tmp/started")
	c.StartupProbe.FailureThreshold = 60
	c.LivenessProbe = execProbe("test -e /tmp/started") // does not run before
	c.LivenessProbe.FailureThreshold = 1
	create(t, ns, "pod", v1.PodSpec{Containers: []v1.Container{c}})
	wantEvent(t, ns, "Unhealthy", "Startup probe failed")
	p := eventually(t, ns, "pod", "running", phase(v1.PodRunning))
	if s := p.Status.ContainerStatuses[0]; *s.Started || s.Ready {
		t.Errorf("a container that has not started has status %+v", s)
	}
	runIn(t, ns, "pod", "touch /tmp/started")
	p = eventually(t, ns, "pod", "ready", ready)
	if s := p.Status.ContainerStatuses[0]; !*s.Started || s.RestartCount != 0 {
		t.Errorf("the status is %+v", s)
	}
	slow := sh("while :; do sleep 0.05; done")
	slow.StartupProbe = execProbe("exit 1")
	slow.StartupProbe.FailureThreshold = 1
	create(t, ns, "slow", v1.PodSpec{TerminationGracePeriodSeconds: new(int64(0)), Containers: []v1.Container{slow}})
	eventually(t, ns, "slow", "restarted", func(p *v1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].RestartCount > 0
	})
}

func TestProbeOfASocket(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh("sleep 0.5; exec python3 -m http.server 8080")
	c.ReadinessProbe = &v1.Probe{PeriodSeconds: 1, ProbeHandler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(8080)}}}
	create(t, ns, "pod", v1.PodSpec{Containers: []v1.Container{c}})
	wantEvent(t, ns, "Unhealthy", "connection refused")
	eventually(t, ns, "pod", "ready", ready)
}

func TestProbeTimeout(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh("while :; do sleep 0.05; done")
	c.ReadinessProbe = execProbe("sleep 1000")
	c.ReadinessProbe.TimeoutSeconds = 1
	create(t, ns, "pod", v1.PodSpec{Containers: []v1.Container{c}})
	wantEvent(t, ns, "Unhealthy", "deadline exceeded")
	// Neither this program nor those of probes before are left.
	deadline := time.Now().Add(patience)
	for {
		text := runIn(t, ns, "pod", "ps ax | grep -c '[s]leep 1000'; true")
		if n := strings.TrimSpace(text); n == "0" {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("%s programs of probes are left", n)
		}
	}
}

func TestReadinessGates(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	create(t, ns, "pod", v1.PodSpec{ReadinessGates: []v1.PodReadinessGate{{ConditionType: "test/gate"}}, Containers: []v1.Container{sh("sleep 1000")}})
	p := eventually(t, ns, "pod", "running", func(p *v1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].Ready
	})
	if ready(p) {
		t.Error("the pod is ready before its gate")
	}
	_, err := shared.client.CoreV1().Pods(ns).Patch(t.Context(), "pod", "application/strategic-merge-patch+json", []byte(`{"status":{"conditions":[{"type":"test/gate","status":"True"}]}}`), metav1.PatchOptions{}, "status")
	must(t, err)
	eventually(t, ns, "pod", "ready", ready)
}
