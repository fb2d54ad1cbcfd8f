package expose

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/owned"
	"turnout/controller/source"
)

// clusterRole is what the pods of all Gateways read, and the name of the binding whose subjects are their accounts. Both are in the manifests.
const clusterRole = "turnout-gateway-pods"

// adminPort is where pods say whether they are ready.
const adminPort = 1936

// stage is when an object is written, relative to the others of its Gateway.
type stage uint8

const (
	accounts stage = iota // with permissions, without which pods would not start
	ways                  // Services with their EndpointSlices
	workloads
	stages
)

// thing is an object that there is to be.
type thing struct {
	owned.Object
	of    source.Key // the Gateway; the zero value = all of them
	stage stage
	body  any
}

// own adds what a Gateway has pods of its own by.
func (p *Ports) own(g *Gateway, w *Wanted) {
	name, key := ObjectName(g.Object), g.key()
	meta := p.metadata(g.Object)
	meta.Name = name
	w.Others = append(w.Others,
		thing{owned.Object{Resource: owned.ServiceAccounts, Namespace: meta.Namespace, Name: name}, key, accounts, &corev1.ServiceAccount{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: owned.ServiceAccounts.Kind}, ObjectMeta: meta,
		}},
		thing{owned.Object{Resource: owned.Deployments, Namespace: meta.Namespace, Name: name}, key, workloads, p.deployment(g, meta)},
	)
	p.permit(g, w)
}

// permit adds the permissions to read the Gateway, and the Secrets and ConfigMaps that it is served with, and no others.
func (p *Ports) permit(g *Gateway, w *Wanted) {
	of := map[string]*[2][]string{g.Object.Namespace: new([2][]string)} // by namespace
	for i, list := range []map[source.Key]struct{}{g.Secrets, g.ConfigMaps} {
		for key := range list {
			if of[key.Namespace] == nil {
				of[key.Namespace] = new([2][]string)
			}
			of[key.Namespace][i] = append(of[key.Namespace][i], key.Name)
		}
	}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: g.Object.Namespace, Name: ObjectName(g.Object)}
	for _, namespace := range slices.Sorted(maps.Keys(of)) {
		meta := p.metadata(g.Object)
		meta.Namespace, meta.Name = namespace, roleName(g.key())
		if namespace != g.Object.Namespace {
			meta.OwnerReferences = nil // none of another namespace is allowed; the router that leads deletes it
		}
		role := &rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: owned.Roles.Kind}, ObjectMeta: meta}
		if namespace == g.Object.Namespace {
			role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{gatewayv1.GroupName}, Resources: []string{"gateways"}, ResourceNames: []string{g.Object.Name}, Verbs: []string{"get", "list", "watch"}})
		}
		for i, kind := range []string{"secrets", "configmaps"} {
			if names := of[namespace][i]; len(names) > 0 {
				slices.Sort(names)
				role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{kind}, ResourceNames: names, Verbs: []string{"get", "list", "watch"}})
			}
		}
		binding := &rbacv1.RoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: owned.RoleBindings.Kind}, ObjectMeta: meta,
			Subjects: []rbacv1.Subject{account}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: owned.Roles.Kind, Name: meta.Name},
		}
		w.Others = append(w.Others, thing{owned.Object{Resource: owned.Roles, Namespace: namespace, Name: meta.Name}, g.key(), accounts, role},
			thing{owned.Object{Resource: owned.RoleBindings, Namespace: namespace, Name: meta.Name}, g.key(), accounts, binding})
	}
}

// roleName is the name of the Roles of a Gateway's pods, in whichever namespaces these are.
func roleName(g source.Key) string { return "turnout-gateway:" + g.Namespace + ":" + g.Name }

// readers is the binding by which the pods of Gateways read what routes are made of, for the accounts of those that have pods.
func readers(list []*Gateway) thing {
	binding := &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: owned.ClusterBindings.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: clusterRole}, Subjects: []rbacv1.Subject{},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole},
	}
	for _, g := range list {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: g.Object.Namespace, Name: ObjectName(g.Object)})
	}
	return thing{owned.Object{Resource: owned.ClusterBindings, Name: clusterRole}, source.Key{}, accounts, binding}
}

// selector has the pods of a Gateway found. It never changes.
func (p *Ports) selector(o *gatewayv1.Gateway) map[string]string {
	return map[string]string{gatewayv1.GatewayNameLabelKey: gatewayLabel(o.Name), labelOfController: labelOf(p.controller)}
}

// deployment is what keeps the pods of a Gateway. They are rolled one after the other, each after one in its place is ready.
func (p *Ports) deployment(g *Gateway, meta metav1.ObjectMeta) *appsv1.Deployment {
	none, surge := intstr.FromInt32(0), intstr.FromString("25%")
	labels := &metav1.LabelSelector{MatchLabels: p.selector(g.Object)}
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels, Annotations: meta.Annotations}, Spec: p.pod(g)}
	for _, topology := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			TopologyKey: topology, MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: labels, MatchLabelKeys: []string{appsv1.DefaultDeploymentUniqueLabelKey},
		})
	}
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: owned.Deployments.Kind}, ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas: g.Parameters.Replicas, Selector: labels, Template: pod,
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &none, MaxSurge: &surge}},
		},
	}
}

// pod is one that serves a Gateway: as restricted as those of the router in the manifests.
func (p *Ports) pod(g *Gateway) corev1.PodSpec {
	yes, no, grace := true, false, int64(3600) // the program is gone as soon as nothing runs any more
	image := g.Parameters.Image
	if image == "" {
		image = p.image
	}
	env := append([]corev1.EnvVar{
		{Name: "TURNOUT_GATEWAY_API", Value: "true"},
		{Name: "TURNOUT_GATEWAY", Value: g.key().String()},
		{Name: "TURNOUT_GATEWAY_CONTROLLER", Value: p.controller},
	}, g.Parameters.Env...)
	needs := *g.Parameters.Resources.DeepCopy()
	for name, amount := range map[corev1.ResourceName]string{corev1.ResourceCPU: "100m", corev1.ResourceMemory: "128Mi"} {
		if _, limited := needs.Limits[name]; limited { // then the limit is what is asked for, unless something else is said
			continue
		}
		if _, said := needs.Requests[name]; !said {
			if needs.Requests == nil {
				needs.Requests = make(corev1.ResourceList)
			}
			needs.Requests[name] = resource.MustParse(amount)
		}
	}
	probe := func(path string, period, failures int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(adminPort), Scheme: corev1.URISchemeHTTP}},
			PeriodSeconds: period, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: failures,
		}
	}
	return corev1.PodSpec{
		ServiceAccountName: ObjectName(g.Object), EnableServiceLinks: &no, TerminationGracePeriodSeconds: &grace, PriorityClassName: g.Parameters.PriorityClass,
		NodeSelector:    map[string]string{corev1.LabelOSStable: "linux"},
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{
			Name: "router", Image: image, Args: []string{"run"}, Env: env, Resources: needs, TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: adminPort, Protocol: corev1.ProtocolTCP}},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_BIND_SERVICE"}}, // that the program's file asks for
			},
			StartupProbe: probe("/healthz/ready", 1, 120), LivenessProbe: probe("/healthz", 10, 3), ReadinessProbe: probe("/healthz/ready", 5, 3),
		}},
	}
}

// mostAddresses is how many addresses a Gateway may ask for, by its API.
const mostAddresses = 16
