package deploy

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// workload is what makes pods.
type workload struct {
	file     string
	selector map[string]string
	template corev1.PodTemplateSpec
}

// behindOperator is the workload whose pods take the place of those of the ingress operator.
const behindOperator = "behind-operator/deployment.yaml"

// workloads are those that are whole.
func workloads(t *testing.T, loaded tree) []workload {
	t.Helper()
	d := the[*appsv1.Deployment](t, loaded, "deployment/deployment.yaml")
	s := the[*appsv1.DaemonSet](t, loaded, "daemonset/daemonset.yaml")
	b := the[*appsv1.Deployment](t, loaded, behindOperator)
	return []workload{
		{"deployment/deployment.yaml", d.Spec.Selector.MatchLabels, d.Spec.Template},
		{"daemonset/daemonset.yaml", s.Spec.Selector.MatchLabels, s.Spec.Template},
		{behindOperator, b.Spec.Selector.MatchLabels, b.Spec.Template},
	}
}

func TestClusterRole(t *testing.T) {
	loaded := load(t)
	role := the[*rbacv1.ClusterRole](t, loaded, "base/rbac.yaml")
	mayWrite := map[string]string{"routes/status": "patch", "subjectaccessreviews": "create", "tokenreviews": "create"}
	for _, rule := range role.Rules {
		for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
			if strings.Contains(word, "*") {
				t.Errorf("%v has a wildcard", rule)
			}
		}
		if len(rule.NonResourceURLs) > 0 || len(rule.Resources) == 0 {
			t.Errorf("%v is not about resources", rule)
		}
		for _, resource := range rule.Resources {
			if resource == "secrets" {
				t.Error("the role reads the Secrets of everybody")
			}
			for _, verb := range rule.Verbs {
				if verb != "list" && verb != "watch" && verb != mayWrite[resource] {
					t.Errorf("%s of %s", verb, resource)
				}
			}
		}
	}

	account := the[*corev1.ServiceAccount](t, loaded, "base/serviceaccount.yaml")
	binding := the[*rbacv1.ClusterRoleBinding](t, loaded, "base/rbac.yaml")
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}
	if binding.RoleRef.Name != role.Name || binding.RoleRef.Kind != "ClusterRole" || !reflect.DeepEqual(binding.Subjects, want) {
		t.Errorf("the binding is of %v to %v", binding.RoleRef, binding.Subjects)
	}
	for _, w := range workloads(t, loaded) {
		own := account.Name
		if w.file == behindOperator {
			own = the[*corev1.ServiceAccount](t, loaded, "behind-operator/rbac.yaml").Name
		}
		if w.template.Spec.ServiceAccountName != own {
			t.Errorf("%s runs as %s", w.file, w.template.Spec.ServiceAccountName)
		}
	}
	if same := the[*rbacv1.ClusterRole](t, loaded, "behind-operator/rbac.yaml"); !reflect.DeepEqual(same.Rules, role.Rules) {
		t.Errorf("behind the operator a router may do %v, elsewhere %v", same.Rules, role.Rules)
	}
	behind := the[*rbacv1.ClusterRoleBinding](t, loaded, "behind-operator/rbac.yaml")
	if s := behind.Subjects; len(s) != 1 || s[0] != (rbacv1.Subject{Kind: "ServiceAccount", Name: "turnout", Namespace: "openshift-ingress"}) || behind.RoleRef.Name != "turnout-behind-operator" {
		t.Errorf("behind the operator the binding is of %v to %v", behind.RoleRef, s)
	}

	external := the[*rbacv1.Role](t, loaded, "optional/external-certificate.yaml")
	if len(external.Rules) != 1 || !reflect.DeepEqual(external.Rules[0].Resources, []string{"secrets"}) ||
		!reflect.DeepEqual(external.Rules[0].Verbs, []string{"get", "list", "watch"}) || len(external.Rules[0].ResourceNames) != 1 {
		t.Errorf("an owner grants %v", external.Rules)
	}
	if subjects := the[*rbacv1.RoleBinding](t, loaded, "optional/external-certificate.yaml").Subjects; subjects[0] != want[0] {
		t.Errorf("an owner grants it to %v", subjects)
	}
	tickets := the[*rbacv1.Role](t, loaded, "optional/ticket-keys.yaml")
	if len(tickets.Rules) != 1 || !reflect.DeepEqual(tickets.Rules[0].ResourceNames, []string{the[*corev1.Secret](t, loaded, "optional/ticket-keys.yaml").Name}) ||
		!reflect.DeepEqual(tickets.Rules[0].Verbs, []string{"get", "watch", "update"}) {
		t.Errorf("for session tickets routers may %v", tickets.Rules)
	}
	if subjects := the[*rbacv1.RoleBinding](t, loaded, "optional/ticket-keys.yaml").Subjects; !reflect.DeepEqual(subjects, want) {
		t.Errorf("session tickets are for %v", subjects)
	}
	if subjects := the[*rbacv1.RoleBinding](t, loaded, "openshift-hostnetwork/hostnetwork-scc.yaml").Subjects; !reflect.DeepEqual(subjects, want) {
		t.Errorf("the host network is for %v", subjects)
	}
}

// TestIngressControllerRoles: behind the operator, routers read their IngressController with the permissions that optional/ingress-controller.yaml
// has for others, under their own account and in the namespaces where the objects are, which no kustomization changes.
func TestIngressControllerRoles(t *testing.T) {
	loaded := load(t)
	const others, behind = "optional/ingress-controller.yaml", "behind-operator/ingress-controller.yaml"
	rules := func(file string, name string, account rbacv1.Subject) (all []string) {
		bound := 0
		for _, object := range loaded.objects[file] {
			switch o := object.(type) {
			case *rbacv1.Role:
				all = append(all, fmt.Sprint(o.Namespace, o.Rules))
			case *rbacv1.ClusterRole:
				all = append(all, fmt.Sprint("cluster", o.Rules))
			case *rbacv1.RoleBinding:
				if bound++; o.RoleRef.Name != name || !reflect.DeepEqual(o.Subjects, []rbacv1.Subject{account}) {
					t.Errorf("%s: the binding in %s is of %v to %v", file, o.Namespace, o.RoleRef, o.Subjects)
				}
			case *rbacv1.ClusterRoleBinding:
				if bound++; o.RoleRef.Name != name || !reflect.DeepEqual(o.Subjects, []rbacv1.Subject{account}) {
					t.Errorf("%s: the binding is of %v to %v", file, o.RoleRef, o.Subjects)
				}
			}
		}
		if bound != len(all) {
			t.Errorf("%s: %d roles, %d bindings", file, len(all), bound)
		}
		return all
	}
	want := rules(others, "turnout-ingress-controller", rbacv1.Subject{Kind: "ServiceAccount", Name: "router", Namespace: "turnout"})
	got := rules(behind, "turnout-behind-operator-ingress-controller", rbacv1.Subject{Kind: "ServiceAccount", Name: "turnout", Namespace: "openshift-ingress"})
	if !slices.Equal(got, want) || len(want) != 4 {
		t.Errorf("behind the operator a router may\n%v\nothers\n%v", got, want)
	}
	if k := loaded.kustomizations["behind-operator/kustomization.yaml"]; k.Namespace != "" {
		t.Errorf("all roles would be in %s", k.Namespace)
	}
	env := the[*appsv1.Deployment](t, loaded, behindOperator).Spec.Template.Spec.Containers[0].Env
	i := slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == "TURNOUT_INGRESS_CONTROLLER" })
	if i < 0 || env[i].Value != "openshift-ingress-operator/default" {
		t.Errorf("the routers behind the operator read no IngressController: %v", env)
	}
}

// TestSecurity: pods are what the Pod Security Standard restricted asks for, but for
// the host network.
func TestSecurity(t *testing.T) {
	loaded := load(t)
	for _, w := range workloads(t, loaded) {
		pod := w.template.Spec
		wantPod := &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
		if !reflect.DeepEqual(pod.SecurityContext, wantPod) {
			// No user in particular: OpenShift gives each namespace its own.
			t.Errorf("%s: securityContext of the pod %v", w.file, pod.SecurityContext)
		}
		want := &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_BIND_SERVICE"}},
		}
		if len(pod.Containers) != 1 || len(pod.InitContainers) != 0 || !reflect.DeepEqual(pod.Containers[0].SecurityContext, want) {
			t.Errorf("%s: securityContext %v", w.file, pod.Containers[0].SecurityContext)
		}
		if pod.HostPID || pod.HostIPC {
			t.Errorf("%s: namespaces of the host", w.file)
		}
		for _, v := range pod.Volumes {
			if v.Secret == nil && v.ConfigMap == nil || w.file != behindOperator {
				t.Errorf("%s: volume %s", w.file, v.Name)
			}
		}
		for _, m := range pod.Containers[0].VolumeMounts {
			if !m.ReadOnly || !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
				t.Errorf("%s: mount %v", w.file, m)
			}
		}
	}
	if label := "pod-security.kubernetes.io/enforce"; the[*corev1.Namespace](t, loaded, "base/namespace.yaml").Labels[label] != "restricted" ||
		the[*corev1.Namespace](t, loaded, "daemonset/namespace.yaml").Labels[label] != "privileged" {
		t.Error("the namespaces enforce another standard than the pods fit")
	}
}

// TestProbes: as the OpenShift ingress operator sets them.
func TestProbes(t *testing.T) {
	for _, w := range workloads(t, load(t)) {
		host := ""
		if w.template.Spec.HostNetwork {
			host = "localhost"
		}
		probe := func(path string, period, failures int32, grace *int64) *corev1.Probe {
			get := &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(1936), Host: host, Scheme: corev1.URISchemeHTTP}
			return &corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{HTTPGet: get}, PeriodSeconds: period, TimeoutSeconds: 1,
				SuccessThreshold: 1, FailureThreshold: failures, TerminationGracePeriodSeconds: grace,
			}
		}
		c := w.template.Spec.Containers[0]
		for name, got := range map[string][2]*corev1.Probe{
			"startup":   {c.StartupProbe, probe("/healthz/ready", 1, 120, nil)},
			"liveness":  {c.LivenessProbe, probe("/healthz", 10, 3, new(int64(10)))},
			"readiness": {c.ReadinessProbe, probe("/healthz/ready", 10, 3, nil)},
		} {
			if !reflect.DeepEqual(got[0], got[1]) {
				t.Errorf("%s: %s probe\n got %v\nwant %v", w.file, name, got[0], got[1])
			}
		}
		if grace := w.template.Spec.TerminationGracePeriodSeconds; grace == nil || *grace != 3600 {
			t.Errorf("%s: grace period %v", w.file, grace)
		}
	}
}

// TestReferences: Services, budget and monitor find what they are about.
func TestReferences(t *testing.T) {
	loaded := load(t)
	internal := the[*corev1.Service](t, loaded, "base/service-internal.yaml")
	services := map[string]*corev1.Service{"base/service-internal.yaml": internal, "deployment/service.yaml": the[*corev1.Service](t, loaded, "deployment/service.yaml")}
	for _, w := range workloads(t, loaded) {
		labels := w.template.Labels
		if !contains(labels, w.selector) {
			t.Errorf("%s selects %v, its pods have %v", w.file, w.selector, labels)
		}
		ports := map[string]int32{}
		for _, p := range w.template.Spec.Containers[0].Ports {
			ports[p.Name] = p.ContainerPort
		}
		if want := map[string]int32{"http": 80, "https": 443, "metrics": 1936}; !maps.Equal(ports, want) {
			t.Errorf("%s: ports %v", w.file, ports)
		}
		if w.file == behindOperator { // the operator's Services, with the same names of ports
			const operators = "ingresscontroller.operator.openshift.io/deployment-ingresscontroller"
			if labels[operators] != "default" {
				t.Errorf("%s: the operator's Services do not find %v", w.file, labels)
			}
			if w.selector[operators] != "" {
				t.Errorf("%s takes the pods of the operator's Deployment for its own", w.file)
			}
			continue
		}
		for file, s := range services {
			if !contains(labels, s.Spec.Selector) {
				t.Errorf("%s selects %v, the pods of %s have %v", file, s.Spec.Selector, w.file, labels)
			}
			for _, p := range s.Spec.Ports {
				if number, ok := ports[p.TargetPort.StrVal]; !ok || number != p.Port {
					t.Errorf("%s: port %s is none of %s", file, p.Name, w.file)
				}
			}
		}
	}
	for _, p := range services["deployment/service.yaml"].Spec.Ports {
		if p.Name == "metrics" {
			t.Error("the admin port is public")
		}
	}
	deployment := the[*appsv1.Deployment](t, loaded, "deployment/deployment.yaml")
	budget := the[*policyv1.PodDisruptionBudget](t, loaded, "deployment/poddisruptionbudget.yaml")
	if !contains(deployment.Spec.Template.Labels, budget.Spec.Selector.MatchLabels) {
		t.Errorf("the budget is for %v", budget.Spec.Selector)
	}
	behind := the[*policyv1.PodDisruptionBudget](t, loaded, "behind-operator/poddisruptionbudget.yaml")
	if w := workloads(t, loaded)[2]; !contains(w.template.Labels, behind.Spec.Selector.MatchLabels) || behind.Namespace != "openshift-ingress" {
		t.Errorf("the budget behind the operator is for %v", behind.Spec.Selector)
	}
	if patch := the[*appsv1.Deployment](t, loaded, "shard/shard.yaml"); patch.Spec.Template.Spec.Containers[0].Name != deployment.Spec.Template.Spec.Containers[0].Name {
		t.Error("the patch of a shard is for another container")
	}
	if m := loaded.monitor; m.Metadata.Namespace != internal.Namespace || !contains(internal.Labels, m.Spec.Selector.MatchLabels) ||
		len(m.Spec.Endpoints) != 1 || m.Spec.Endpoints[0].Path != "/metrics" ||
		!slices.ContainsFunc(internal.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == m.Spec.Endpoints[0].Port }) {
		t.Errorf("the monitor is for %v", m)
	}
}

// TestNetworkPolicy: all may reach the two ports of routers, monitoring alone the admin port, and nobody anything else.
func TestNetworkPolicy(t *testing.T) {
	loaded := load(t)
	policies := map[string]*networkingv1.NetworkPolicy{}
	for _, object := range loaded.objects[filepath.Join("deployment", "networkpolicy.yaml")] {
		p := object.(*networkingv1.NetworkPolicy)
		policies[p.Name] = p
		if p.Namespace != "turnout" || !slices.Equal(p.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
			t.Errorf("%s is of %s, and about %v", p.Name, p.Namespace, p.Spec.PolicyTypes)
		}
	}
	if deny := policies["default-deny"]; len(policies) != 2 || deny == nil || len(deny.Spec.Ingress) != 0 || !reflect.DeepEqual(deny.Spec.PodSelector, metav1.LabelSelector{}) {
		t.Fatalf("the policies are %v", policies)
	}
	own, w := policies["turnout"], workloads(t, loaded)[0]
	if !contains(w.template.Labels, own.Spec.PodSelector.MatchLabels) {
		t.Errorf("the policy is for %v", own.Spec.PodSelector)
	}
	open := map[string]bool{} // by port: whether all may reach it
	for _, rule := range own.Spec.Ingress {
		for _, p := range rule.Ports {
			open[p.Port.StrVal] = len(rule.From) == 0
		}
		for _, peer := range rule.From {
			if s := peer.NamespaceSelector; s == nil || peer.PodSelector != nil || peer.IPBlock != nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
				t.Errorf("a rule is for %v", peer)
			}
		}
	}
	if want := map[string]bool{"http": true, "https": true, "metrics": false}; !maps.Equal(open, want) {
		t.Errorf("the policy opens %v, want %v", open, want)
	}
	for _, p := range w.template.Spec.Containers[0].Ports {
		delete(open, p.Name)
	}
	if len(open) > 0 {
		t.Errorf("%v are no ports of the routers", open)
	}
}

// contains says whether labels fit a selector that is not empty.
func contains(labels, selector map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return len(selector) > 0
}
