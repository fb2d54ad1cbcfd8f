package kubelet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
)

// execURL is where a command in a container is asked for.
func execURL(ns, name string, o *v1.PodExecOptions) *url.URL {
	return shared.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(ns).Name(name).SubResource("exec").
		VersionedParams(o, scheme.ParameterCodec).URL()
}

// runIn runs a script in the pod's container and returns its output.
func runIn(t *testing.T, ns, name, script string) string {
	t.Helper()
	u := execURL(ns, name, &v1.PodExecOptions{Command: []string{"/bin/sh", "-c", script}, Stdout: true, Stderr: true})
	e, err := remotecommand.NewWebSocketExecutor(shared.admin, http.MethodGet, u.String())
	must(t, err)
	var stdout, stderr bytes.Buffer
	if err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr}); err != nil {
		t.Fatalf("%s: %v: %s", script, err, stderr.Bytes())
	}
	return stdout.String()
}

func TestExec(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh("sleep 1000")
	c.SecurityContext = &v1.SecurityContext{RunAsUser: new(int64(1234))}
	c.Env = []v1.EnvVar{{Name: "OWN", Value: "value"}}
	create(t, ns, "pod", v1.PodSpec{Containers: []v1.Container{c}})
	eventually(t, ns, "pod", "ready", ready)
	o := &v1.PodExecOptions{Command: []string{"/bin/sh", "-c", "cat; echo $OWN $(id -u); echo oops >&2; exit 5"}, Stdin: true, Stdout: true, Stderr: true}
	u := execURL(ns, "pod", o)
	for name, makeExecutor := range map[string]func() (remotecommand.Executor, error){
		"WebSocket": func() (remotecommand.Executor, error) {
			return remotecommand.NewWebSocketExecutor(shared.admin, http.MethodGet, u.String())
		},
		"SPDY": func() (remotecommand.Executor, error) {
			return remotecommand.NewSPDYExecutor(shared.admin, http.MethodPost, u)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := makeExecutor()
			must(t, err)
			var stdout, stderr bytes.Buffer
			err = e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("input\n"), Stdout: &stdout, Stderr: &stderr})
			var code utilexec.CodeExitError
			if !errors.As(err, &code) || code.Code != 5 {
				t.Errorf("the error is %v, want exit code 5", err)
			}
			if stdout.String() != "input\nvalue 1234\n" || stderr.String() != "oops\n" {
				t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
			}
		})
	}
}

func TestExecWithTerminal(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	create(t, ns, "pod", v1.PodSpec{Containers: []v1.Container{sh("sleep 1000")}})
	eventually(t, ns, "pod", "ready", ready)
	u := execURL(ns, "pod", &v1.PodExecOptions{Command: []string{"/bin/sh", "-c", "tty; stty size; read x; echo got $x"}, Stdin: true, Stdout: true, TTY: true})
	e, err := remotecommand.NewWebSocketExecutor(shared.admin, http.MethodGet, u.String())
	must(t, err)
	var out bytes.Buffer
	err = e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("word\n"), Stdout: &out, Tty: true})
	if err != nil || !strings.Contains(out.String(), "/dev/pts/") || !strings.Contains(out.String(), "got word") {
		t.Errorf("error %v, output %q", err, out.String())
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	create(t, ns, "pod", v1.PodSpec{Containers: []v1.Container{sh("echo one; echo two >&2; sleep 1.2; echo three; until test -e /tmp/end; do sleep 0.05; done; printf four; sleep 1000")}})
	stream, err := func() (io.ReadCloser, error) {
		eventually(t, ns, "pod", "ready", ready)
		return shared.client.CoreV1().Pods(ns).GetLogs("pod", &v1.PodLogOptions{Follow: true}).Stream(t.Context())
	}()
	must(t, err)
	defer stream.Close()
	all := make([]byte, len("one\ntwo\nthree\n"))
	if _, err := io.ReadFull(stream, all); err != nil || string(all) != "one\ntwo\nthree\n" {
		t.Errorf("followed: %q, %v", all, err)
	}
	if text := logs(t, ns, "pod", v1.PodLogOptions{TailLines: new(int64(2))}); text != "two\nthree\n" {
		t.Errorf("the last two lines are %q", text)
	}
	if text := logs(t, ns, "pod", v1.PodLogOptions{LimitBytes: new(int64(5))}); text != "one\nt" {
		t.Errorf("five octets are %q", text)
	}
	text := logs(t, ns, "pod", v1.PodLogOptions{Timestamps: true, TailLines: new(int64(1))})
	stamp, rest, _ := strings.Cut(text, " ")
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil || rest != "three\n" {
		t.Errorf("with its time the line is %q: %v", text, err)
	}
	if text := logs(t, ns, "pod", v1.PodLogOptions{SinceTime: new(metav1.NewTime(at.Truncate(time.Second)))}); text != "three\n" && text != "two\nthree\n" {
		t.Errorf("since %v there is %q", at, text)
	}
	if _, err := shared.client.CoreV1().Pods(ns).GetLogs("pod", &v1.PodLogOptions{Previous: true}).DoRaw(t.Context()); !apierrors.IsBadRequest(err) {
		t.Errorf("the log before the first container: %v", err)
	}
}

func TestPortForward(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	create(t, ns, "pod", v1.PodSpec{Containers: []v1.Container{sh("touch /tmp/x; cd /tmp; exec python3 -m http.server --bind 127.0.0.1 8080")}})
	eventually(t, ns, "pod", "ready", ready)
	for runIn(t, ns, "pod", "curl -sf 127.0.0.1:8080/x && echo up; true") == "" {
		pause(t.Context(), 50*time.Millisecond)
	}
	u := shared.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(ns).Name("pod").SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(shared.admin)
	must(t, err)
	stop, up := make(chan struct{}), make(chan struct{})
	f, err := portforward.New(spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, u), []string{"0:8080"}, stop, up, io.Discard, io.Discard)
	must(t, err)
	ended := make(chan error)
	go func() { ended <- f.ForwardPorts() }()
	<-up
	ports, err := f.GetPorts()
	must(t, err)
	for range 2 {
		resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/x", ports[0].Local))
		must(t, err)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("answered %s", resp.Status)
		}
	}
	close(stop)
	must(t, <-ended)
}
