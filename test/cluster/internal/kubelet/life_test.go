package kubelet

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// shared folder of the containers of a pod, where they write what happened.
func withTrace(spec v1.PodSpec) v1.PodSpec {
	spec.Volumes = append(spec.Volumes, volume("trace", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}))
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			list[i].VolumeMounts = append(list[i].VolumeMounts, v1.VolumeMount{Name: "trace", MountPath: "/trace"})
		}
	}
	return spec
}

// named gives a container a name.
func named(name string, c v1.Container) v1.Container {
	c.Name = name
	return c
}

// sidecar makes a container a restartable init container.
func sidecar(c v1.Container) v1.Container {
	c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
	return c
}

func execProbe(script string) *v1.Probe {
	return &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"/bin/sh", "-c", script}}}, PeriodSeconds: 1}
}

func TestInitContainersAndSidecars(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	forever := func(name string) string {
		return "trap 'echo end " + name + " >>/trace/log; exit' TERM; echo begin " + name + " >>/trace/log; while :; do sleep 0.05; done"
	}
	side := sidecar(named("side", sh("sleep 0.3; touch /trace/up; "+forever("side"))))
	side.StartupProbe = execProbe("test -e /trace/up")
	main := named("main", sh("echo main >>/trace/log; sleep 0.2"))
	reader := sidecar(named("reader", sh("trap 'sleep 0.1; cat /trace/log; exit' TERM; while :; do sleep 0.05; done")))
	create(t, ns, "pod", withTrace(v1.PodSpec{
		RestartPolicy: v1.RestartPolicyNever,
		InitContainers: []v1.Container{
			named("first", sh("echo first >>/trace/log")), reader, side,
			sidecar(named("other", sh(forever("other")))), named("last", sh("test -e /trace/up && echo last >>/trace/log")),
		},
		Containers: []v1.Container{main},
	}))
	p := eventually(t, ns, "pod", "succeeded", phase(v1.PodSucceeded))
	text := logs(t, ns, "pod", v1.PodLogOptions{Container: "reader"})
	lines := strings.Fields(strings.ReplaceAll(text, " ", "-"))
	// Nobody waits for the program of "other", which has no startup probe.
	if i := slices.Index(lines, "begin-other"); i >= 0 {
		lines = slices.Delete(lines, i, i+1)
	}
	if want := []string{"first", "begin-side", "last", "main", "end-other", "end-side"}; !slices.Equal(lines, want) {
		t.Errorf("happened: %v, want %v", lines, want)
	}
	for _, s := range p.Status.InitContainerStatuses {
		if s.State.Terminated == nil || s.RestartCount != 0 {
			t.Errorf("state of %s: %+v", s.Name, s)
		}
	}
}

func TestFailedInitContainer(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	create(t, ns, "never", v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, InitContainers: []v1.Container{named("init", sh("exit 3"))}, Containers: []v1.Container{sh("true")}})
	p := eventually(t, ns, "never", "failed", phase(v1.PodFailed))
	if end := p.Status.InitContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 3 || end.Reason != "Error" {
		t.Errorf("the init container's state is %+v", p.Status.InitContainerStatuses[0])
	}
	if w := p.Status.ContainerStatuses[0].State.Waiting; w == nil || w.Reason != "PodInitializing" {
		t.Errorf("the container's state is %+v", p.Status.ContainerStatuses[0])
	}
	create(t, ns, "again", withTrace(v1.PodSpec{
		InitContainers: []v1.Container{named("init", sh("echo >>/trace/tries; test $(grep -c . -v /trace/tries) = 3"))}, Containers: []v1.Container{sh("sleep 60")},
	}))
	p = eventually(t, ns, "again", "ready", ready)
	if n := p.Status.InitContainerStatuses[0].RestartCount; n != 2 {
		t.Errorf("the init container was started again %d times, want 2", n)
	}
}

func TestCrashLoop(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	create(t, ns, "pod", v1.PodSpec{Containers: []v1.Container{sh("echo run; sleep 0.05; exit 7")}})
	p := eventually(t, ns, "pod", "in a crash loop", func(p *v1.Pod) bool {
		s := p.Status.ContainerStatuses
		return len(s) > 0 && s[0].State.Waiting != nil && s[0].State.Waiting.Reason == "CrashLoopBackOff" && s[0].RestartCount >= 2
	})
	if s := p.Status.ContainerStatuses[0]; s.LastTerminationState.Terminated == nil || s.LastTerminationState.Terminated.ExitCode != 7 || p.Status.Phase != v1.PodRunning || ready(p) {
		t.Errorf("the status is %+v", p.Status)
	}
	if text := logs(t, ns, "pod", v1.PodLogOptions{Previous: true}); text != "run\n" {
		t.Errorf("the log of the container before is %q", text)
	}
	wantEvent(t, ns, "BackOff", "main")
}

func TestRestartOnFailureEndsWithSuccess(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	create(t, ns, "pod", withTrace(v1.PodSpec{RestartPolicy: v1.RestartPolicyOnFailure, Containers: []v1.Container{sh("test -e /trace/x || { touch /trace/x; exit 1; }")}}))
	p := eventually(t, ns, "pod", "succeeded", phase(v1.PodSucceeded))
	if s := p.Status.ContainerStatuses[0]; s.RestartCount != 1 || s.LastTerminationState.Terminated == nil || s.LastTerminationState.Terminated.ExitCode != 1 {
		t.Errorf("the container's state is %+v", s)
	}
}

func TestWaitingReasons(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	reason := func(name string, c v1.Container, want string) {
		t.Helper()
		create(t, ns, name, v1.PodSpec{Containers: []v1.Container{c}})
		eventually(t, ns, name, want, func(p *v1.Pod) bool {
			s := p.Status.ContainerStatuses
			return len(s) > 0 && s[0].State.Waiting != nil && s[0].State.Waiting.Reason == want && p.Status.Phase == v1.PodPending
		})
	}
	reason("image", v1.Container{Image: "nobody.example.com/knows:1"}, "ImagePullBackOff")
	reason("never", v1.Container{Image: "nobody.example.com/knows:1", ImagePullPolicy: v1.PullNever}, "ErrImageNeverPull")
	reason("config", v1.Container{Env: []v1.EnvVar{{Name: "X", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "missing"}, Key: "x"}}}}}, "CreateContainerConfigError")
	reason("root", v1.Container{SecurityContext: &v1.SecurityContext{RunAsNonRoot: new(true)}}, "CreateContainerConfigError")
	create(t, ns, "start", v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Command: []string{"/no/such/program"}}}})
	p := eventually(t, ns, "start", "failed", phase(v1.PodFailed))
	if end := p.Status.ContainerStatuses[0].State.Terminated; end.Reason != "StartError" || end.ExitCode != 128 || !strings.Contains(end.Message, "no such file") {
		t.Errorf("the container's state is %+v", end)
	}
}

func TestDeletion(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh("trap 'cat /trace/log; echo term; exit 4' TERM; while :; do sleep 0.05; done")
	c.Lifecycle = &v1.Lifecycle{
		PostStart: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"/bin/sh", "-c", "echo postStart >>/trace/log"}}},
		PreStop:   &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"/bin/sh", "-c", "sleep 0.2; echo preStop >>/trace/log"}}},
	}
	create(t, ns, "pod", withTrace(v1.PodSpec{TerminationGracePeriodSeconds: new(int64(600)), Containers: []v1.Container{c}}))
	p := eventually(t, ns, "pod", "ready", ready)
	w, err := shared.client.CoreV1().Pods(ns).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=pod", ResourceVersion: p.ResourceVersion, TimeoutSeconds: new(int64(40))})
	must(t, err)
	follow, err := shared.client.CoreV1().Pods(ns).GetLogs("pod", &v1.PodLogOptions{Follow: true}).Stream(t.Context())
	must(t, err)
	must(t, shared.client.CoreV1().Pods(ns).Delete(t.Context(), "pod", metav1.DeleteOptions{}))
	text := new(strings.Builder)
	_, err = io.Copy(text, follow)
	must(t, err)
	same(t, text.String(), "postStart", "preStop", "term")
	var last *v1.Pod
	sawTerminating := false
	for e := range w.ResultChan() {
		last = e.Object.(*v1.Pod)
		sawTerminating = sawTerminating || last.DeletionTimestamp != nil && ready(last)
		if e.Type == watch.Deleted {
			break
		}
	}
	w.Stop()
	if !sawTerminating {
		t.Error("the pod was never terminating and ready")
	}
	if end := last.Status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 4 || last.Status.Phase != v1.PodFailed || ready(last) {
		t.Errorf("the last status is %+v", last.Status)
	}
}

func TestGraceEnds(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh("trap '' TERM; while :; do sleep 0.05; done")
	create(t, ns, "pod", v1.PodSpec{TerminationGracePeriodSeconds: new(int64(3600)), Containers: []v1.Container{c}})
	eventually(t, ns, "pod", "ready", ready)
	must(t, shared.client.CoreV1().Pods(ns).Delete(t.Context(), "pod", metav1.DeleteOptions{}))
	p := eventually(t, ns, "pod", "terminating", func(p *v1.Pod) bool { return p.DeletionTimestamp != nil })
	if p.Status.ContainerStatuses[0].State.Running == nil {
		t.Errorf("the container does not run in its grace period: %+v", p.Status)
	}
	// A shorter grace period cuts the one before short.
	must(t, shared.client.CoreV1().Pods(ns).Delete(t.Context(), "pod", metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}))
	gone(t, ns, "pod")
}

// gone waits until the pod is not there.
func gone(t *testing.T, ns, name string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		_, err := shared.client.CoreV1().Pods(ns).Get(t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return
		}
		pause(t.Context(), 50*time.Millisecond)
	}
	t.Fatalf("pod %s is still there", name)
}
