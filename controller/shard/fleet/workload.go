package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"turnout/controller/owned"
	"turnout/controller/shard/api"
)

// RouterLabel has the name of the Router on its pods.
const RouterLabel = "turnout.router/router"

// hashAnnotation has a hash of what was applied last.
const hashAnnotation = "turnout.router/applied"

// ParseTemplate reads NAMESPACE/NAME of a PodTemplate; nil for "".
func ParseTemplate(s string) (*api.PodTemplateReference, error) {
	if s == "" {
		return nil, nil
	}
	namespace, name, ok := strings.Cut(s, "/")
	if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, errors.New("allowed: NAMESPACE/NAME of a PodTemplate")
	}
	return &api.PodTemplateReference{Namespace: namespace, Name: name}, nil
}

// resourceOf are the resources of workloads.
var resourceOf = map[api.Workload]owned.Resource{api.WorkloadDeployment: owned.Deployments, api.WorkloadDaemonSet: owned.DaemonSets}

// asks reports whether a Router asks for pods.
func asks(r *api.Router) bool { return r.Spec.Replicas != nil || r.Spec.PodTemplate != nil }

// kindOf is what keeps the pods of a Router.
func kindOf(r *api.Router) api.Workload {
	if r.Spec.Workload == "" {
		return api.WorkloadDeployment
	}
	return r.Spec.Workload
}

// NameOf is the name of the Deployment or DaemonSet of a Router.
func NameOf(router string) string { return "router-" + router }

// wanted is the workload of a Router as it is applied, and its hash. The template is not changed.
func wanted(r *api.Router, template *corev1.PodTemplate) (body []byte, hash string, err error) {
	pod := template.Template.DeepCopy()
	if len(pod.Spec.Containers) == 0 {
		return nil, "", fmt.Errorf("PodTemplate %s/%s has no container", template.Namespace, template.Name)
	}
	at := max(slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == "router" }), 0)
	c := &pod.Spec.Containers[at]
	set(c, corev1.EnvVar{Name: "TURNOUT_ROUTER", Value: r.Name}, true)
	set(c, field("POD_NAME", "metadata.name"), false)
	set(c, field("POD_IP", "status.podIP"), false)
	selector := map[string]string{RouterLabel: r.Name}
	labels := maps.Clone(pod.Labels)
	if labels == nil {
		labels = make(map[string]string)
	}
	maps.Copy(labels, selector)
	meta := map[string]any{"labels": labels}
	if len(pod.Annotations) > 0 {
		meta["annotations"] = pod.Annotations
	}
	kind := kindOf(r)
	spec := map[string]any{"selector": map[string]any{"matchLabels": selector}, "template": map[string]any{"metadata": meta, "spec": pod.Spec}}
	if kind == api.WorkloadDeployment {
		spec["replicas"] = replicas(r)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, "", fmt.Errorf("BUG: cannot write the pods of router %s: %w", r.Name, err)
	}
	sum := sha256.Sum256(text)
	hash = hex.EncodeToString(sum[:8])
	body, err = json.Marshal(map[string]any{
		"apiVersion": "apps/v1", "kind": string(kind),
		"metadata": map[string]any{
			"name": NameOf(r.Name), "namespace": template.Namespace, "labels": selector, "annotations": map[string]string{hashAnnotation: hash},
			"ownerReferences": []map[string]any{{"apiVersion": api.GroupVersion.String(), "kind": "Router", "name": r.Name, "uid": r.UID, "controller": true}},
		},
		"spec": spec,
	})
	return body, hash, err
}

// replicas is how many pods a Deployment has.
func replicas(r *api.Router) int32 {
	if r.Spec.Replicas == nil {
		return 1
	}
	return *r.Spec.Replicas
}

func field(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

// set gives a container a variable, in place of one that it has if it is to win.
func set(c *corev1.Container, v corev1.EnvVar, wins bool) {
	at := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == v.Name })
	switch {
	case at < 0:
		c.Env = append(c.Env, v)
	case wins:
		c.Env[at] = v
	}
}
