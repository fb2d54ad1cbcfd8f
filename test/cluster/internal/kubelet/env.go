package kubelet

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/pkg/kubelet/envvars"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// variables are those of an environment, in the order in which they were set first.
type variables struct {
	names  []string
	values map[string]string
}

func (v *variables) set(name, value string) {
	if _, ok := v.values[name]; !ok {
		v.names = append(v.names, name)
	}
	v.values[name] = value
}

func (v *variables) list() []string {
	var list []string
	for _, name := range v.names {
		list = append(list, name+"="+v.values[name])
	}
	return list
}

// environment is what the pod says about the container's variables: those of Services, those
// of envFrom, then those of env, which may refer to all before them.
func (c *container) environment(ctx context.Context, object *v1.Pod) (*variables, error) {
	v := &variables{values: map[string]string{}}
	if err := c.services(object, v); err != nil {
		return nil, err
	}
	for _, source := range c.spec.EnvFrom {
		if err := c.envFrom(ctx, source, v); err != nil {
			return nil, err
		}
	}
	expand := expansion.MappingFuncFor(v.values)
	for _, e := range c.spec.Env {
		value, ok, err := expansion.Expand(e.Value, expand), true, error(nil)
		if e.ValueFrom != nil {
			value, ok, err = c.valueFrom(ctx, object, e.ValueFrom)
		}
		if err != nil {
			return nil, err
		}
		if ok {
			v.set(e.Name, value)
		}
	}
	return v, nil
}

// services sets the variables of the API server, and of the namespace's Services unless the
// pod does not want them.
func (c *container) services(object *v1.Pod, v *variables) error {
	var list []*v1.Service
	if api, err := c.pod.kubelet.services.Services(metav1.NamespaceDefault).Get("kubernetes"); err == nil {
		list = append(list, api)
	}
	if enable := object.Spec.EnableServiceLinks; enable == nil || *enable {
		all, err := c.pod.kubelet.services.Services(object.Namespace).List(labels.Everything())
		if err != nil {
			return err
		}
		for _, s := range all {
			if s.Spec.ClusterIP != "" && s.Spec.ClusterIP != v1.ClusterIPNone {
				list = append(list, s)
			}
		}
	}
	for _, e := range envvars.FromServices(list) {
		v.set(e.Name, e.Value)
	}
	return nil
}

func (c *container) envFrom(ctx context.Context, source v1.EnvFromSource, v *variables) error {
	var (
		values map[string]string
		err    error
	)
	switch {
	case source.ConfigMapRef != nil:
		values, err = c.configMap(ctx, source.ConfigMapRef.Name, source.ConfigMapRef.Optional)
	case source.SecretRef != nil:
		values, err = c.secret(ctx, source.SecretRef.Name, source.SecretRef.Optional)
	}
	for key, value := range values {
		if name := source.Prefix + key; len(validation.IsRelaxedEnvVarName(name)) == 0 {
			v.set(name, value)
		}
	}
	return err
}

// valueFrom returns a variable's value, and false when it is not there and need not be.
func (c *container) valueFrom(ctx context.Context, object *v1.Pod, source *v1.EnvVarSource) (string, bool, error) {
	switch {
	case source.FieldRef != nil:
		value, err := field(object, source.FieldRef.FieldPath)
		return value, err == nil, err
	case source.ResourceFieldRef != nil:
		of := source.ResourceFieldRef.ContainerName
		if of == "" {
			of = c.spec.Name
		}
		value, err := resource.ExtractResourceValueByContainerNameAndNodeAllocatable(source.ResourceFieldRef, object, of, c.pod.kubelet.capacity)
		return value, err == nil, err
	case source.ConfigMapKeyRef != nil:
		r := source.ConfigMapKeyRef
		values, err := c.configMap(ctx, r.Name, r.Optional)
		return key(values, err, "configmap", r.Name, r.Key, r.Optional)
	case source.SecretKeyRef != nil:
		r := source.SecretKeyRef
		values, err := c.secret(ctx, r.Name, r.Optional)
		return key(values, err, "secret", r.Name, r.Key, r.Optional)
	}
	return "", false, fmt.Errorf("variable has a source that is not supported here")
}

// key picks the value of a key, which may be missing when it is optional.
func key(values map[string]string, err error, kind, name, key string, optional *bool) (string, bool, error) {
	if err != nil {
		return "", false, err
	}
	value, ok := values[key]
	if !ok && (optional == nil || !*optional) {
		return "", false, fmt.Errorf("couldn't find key %s in %s %s", key, kind, name)
	}
	return value, ok, nil
}

// field is a field of the pod. Those of the node and of the status are not in the object's
// metadata, where the kubelet's code looks.
func field(object *v1.Pod, path string) (string, error) {
	switch path {
	case "spec.nodeName":
		return object.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return object.Spec.ServiceAccountName, nil
	case "status.hostIP":
		return object.Status.HostIP, nil
	case "status.podIP":
		return object.Status.PodIP, nil
	case "status.hostIPs":
		return joined(object.Status.HostIPs, func(ip v1.HostIP) string { return ip.IP }), nil
	case "status.podIPs":
		return joined(object.Status.PodIPs, func(ip v1.PodIP) string { return ip.IP }), nil
	}
	return fieldpath.ExtractFieldPathAsString(object, path)
}

func joined[T any](list []T, text func(T) string) string {
	var s string
	for i, e := range list {
		if i > 0 {
			s += ","
		}
		s += text(e)
	}
	return s
}

func (c *container) configMap(ctx context.Context, name string, optional *bool) (map[string]string, error) {
	object, err := c.pod.kubelet.client.CoreV1().ConfigMaps(c.pod.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return object.Data, nil
}

func (c *container) secret(ctx context.Context, name string, optional *bool) (map[string]string, error) {
	object, err := c.pod.kubelet.client.CoreV1().Secrets(c.pod.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for k, v := range object.Data {
		values[k] = string(v)
	}
	return values, nil
}
