package deploy

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"turnout/internal/nameserver"
)

// TestDNSRoles: the name server may do what it does, and nothing else.
func TestDNSRoles(t *testing.T) {
	loaded := load(t)
	role := the[*rbacv1.ClusterRole](t, loaded, "dns/rbac.yaml")
	var may []string
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			may = append(may, fmt.Sprint(rule.APIGroups, resource, rule.Verbs))
		}
	}
	if want := []string{"[turnout.router]routers[list watch]", "[turnout.router]routebindings[list watch]", "[authentication.k8s.io]tokenreviews[create]", "[authorization.k8s.io]subjectaccessreviews[create]"}; !slices.Equal(may, want) {
		t.Errorf("it may %q", may)
	}
	account := the[*corev1.ServiceAccount](t, loaded, "dns/rbac.yaml")
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}
	if b := the[*rbacv1.ClusterRoleBinding](t, loaded, "dns/rbac.yaml"); b.RoleRef.Name != role.Name || b.RoleRef.Kind != "ClusterRole" || !reflect.DeepEqual(b.Subjects, subjects) {
		t.Errorf("the binding is of %v to %v", b.RoleRef, b.Subjects)
	}
	if d := the[*appsv1.Deployment](t, loaded, "dns/deployment.yaml"); d.Spec.Template.Spec.ServiceAccountName != account.Name {
		t.Errorf("it runs as %s", d.Spec.Template.Spec.ServiceAccountName)
	}
	write, bound := the[*rbacv1.Role](t, loaded, "optional/dns-endpoints.yaml"), the[*rbacv1.RoleBinding](t, loaded, "optional/dns-endpoints.yaml")
	if len(write.Rules) != 1 || fmt.Sprint(write.Rules[0].APIGroups, write.Rules[0].Resources, write.Rules[0].Verbs) != "[externaldns.k8s.io] [dnsendpoints] [list create patch delete]" {
		t.Errorf("it may %v", write.Rules)
	}
	if bound.RoleRef.Name != write.Name || bound.Namespace != write.Namespace || !reflect.DeepEqual(bound.Subjects, subjects) {
		t.Errorf("the binding is of %v to %v", bound.RoleRef, bound.Subjects)
	}
}

// TestDNSWorkload: the pods are what the Pod Security Standard restricted asks for, and Service, policy and budget find them.
func TestDNSWorkload(t *testing.T) {
	loaded := load(t)
	d := the[*appsv1.Deployment](t, loaded, "dns/deployment.yaml")
	pod, labels := d.Spec.Template.Spec, d.Spec.Template.Labels
	if !contains(labels, d.Spec.Selector.MatchLabels) || pod.HostNetwork || pod.HostPID || pod.HostIPC || len(pod.Volumes) > 0 || len(pod.Containers) != 1 {
		t.Errorf("the pods are %v", pod)
	}
	if want := (&corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}); !reflect.DeepEqual(pod.SecurityContext, want) {
		t.Errorf("securityContext of the pod %v", pod.SecurityContext)
	}
	c := pod.Containers[0]
	if want := (&corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_BIND_SERVICE"}},
	}); !reflect.DeepEqual(c.SecurityContext, want) {
		t.Errorf("securityContext %v", c.SecurityContext)
	}
	if grace := pod.TerminationGracePeriodSeconds; grace != nil && *grace < 15 {
		t.Errorf("%d s at the end: --shutdown-delay and what is under way take 10 s", *grace)
	}
	ports := map[string]string{}
	for _, p := range c.Ports {
		ports[p.Name] = fmt.Sprintf("%d %s", p.ContainerPort, p.Protocol)
	}
	if want := map[string]string{"dns": "53 UDP", "dns-tcp": "53 TCP", "metrics": "1936 TCP"}; !maps.Equal(ports, want) {
		t.Errorf("ports %v", ports)
	}
	s := the[*corev1.Service](t, loaded, "dns/service.yaml")
	if !contains(labels, s.Spec.Selector) || s.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal || len(s.Spec.Ports) != 2 {
		t.Errorf("the Service is %v", s.Spec)
	}
	for _, p := range s.Spec.Ports {
		if ports[p.TargetPort.StrVal] != fmt.Sprintf("%d %s", p.Port, p.Protocol) {
			t.Errorf("port %s of the Service is none of the pods", p.Name)
		}
	}
	policy := the[*networkingv1.NetworkPolicy](t, loaded, "dns/networkpolicy.yaml")
	if !contains(labels, policy.Spec.PodSelector.MatchLabels) {
		t.Errorf("the policy is for %v", policy.Spec.PodSelector)
	}
	open := map[string]bool{}
	for _, rule := range policy.Spec.Ingress {
		for _, p := range rule.Ports {
			open[p.Port.StrVal+" "+string(*p.Protocol)] = len(rule.From) == 0
		}
	}
	if want := map[string]bool{"dns UDP": true, "dns-tcp TCP": true, "metrics TCP": false}; !maps.Equal(open, want) {
		t.Errorf("the policy opens %v", open)
	}
	if b := the[*policyv1.PodDisruptionBudget](t, loaded, "dns/poddisruptionbudget.yaml"); !contains(labels, b.Spec.Selector.MatchLabels) || *b.Spec.MaxUnavailable != intstr.FromInt32(1) {
		t.Errorf("the budget is %v", b.Spec)
	}
	for _, o := range loaded.kustomizations["dns/kustomization.yaml"].Resources {
		if loaded.objects["dns/"+o] == nil {
			t.Errorf("there is no %s", o)
		}
	}
}

// written is what a program writes, until a text is in it.
type written struct {
	mu   sync.Mutex
	text strings.Builder
	want string
	seen chan struct{}
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.text.Write(p)
	if w.want != "" && strings.Contains(w.text.String(), w.want) {
		w.want = ""
		close(w.seen)
	}
	return n, err
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// TestDNSProgram: the command takes the arguments of the Deployment, asks the API server for what the role allows, and answers the probes.
func TestDNSProgram(t *testing.T) {
	c := the[*appsv1.Deployment](t, load(t), "dns/deployment.yaml").Spec.Template.Spec.Containers[0]
	if c.Args[0] != "dns" {
		t.Fatalf("the command is %s", c.Args[0])
	}
	asked := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.URL.Path
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	log := &written{want: `"msg":"listening"`, seen: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	args := append(slices.Clone(c.Args[1:]), "--server", server.URL, "--listen", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--log-format", "json", "--shutdown-delay", "0s")
	go func() {
		ended <- nameserver.Run(ctx, args, func(string) (string, bool) { return "", false }, "test", log, func() {})
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-log.seen:
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	case <-time.After(30 * time.Second):
		t.Fatal("it does not listen")
	}
	_, rest, _ := strings.Cut(log.String(), `"admin":"`)
	admin, _, _ := strings.Cut(rest, `"`)
	for probe, want := range map[*corev1.Probe]int{c.LivenessProbe: http.StatusOK, c.ReadinessProbe: http.StatusInternalServerError} { // there are no names
		resp, err := http.Get("http://" + admin + probe.HTTPGet.Path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		if resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("%s: %s", probe.HTTPGet.Path, resp.Status)
		}
	}
	seen := map[string]bool{}
	for deadline := time.After(30 * time.Second); len(seen) < 2; {
		select {
		case a := <-asked:
			seen[a] = true
		case <-deadline:
			t.Fatalf("it has asked %v only", seen)
		}
	}
	if want := map[string]bool{"GET /apis/turnout.router/v1alpha1/routers": true, "GET /apis/turnout.router/v1alpha1/routebindings": true}; !maps.Equal(seen, want) {
		t.Errorf("it asks %v", seen)
	}
}
