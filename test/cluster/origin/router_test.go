package origin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// shardLabel is the label of routes that routers select by.
const shardLabel = "shard"

// settings are those of a router, as the ingress operator gives them: in the environment.
type settings struct {
	Env      map[string]string
	Args     []string          // after those that every router has
	Files    map[string]string // where a file shall be → configmap/NAME/KEY or secret/NAME/KEY, in the routers' namespace
	Folders  map[string]string // the same for whole folders → configmap/NAME or secret/NAME
	Replicas int32             // 0 means 1
	// The router reads an IngressController, which has this spec and these annotations.
	Controller  bool
	Spec        string
	Annotations map[string]string

	Alone     string            // not to be shared with cases that say something else here
	Labels    map[string]string // of its pods
	Host      bool              // on the host network
	Closed    bool              // its admin port asks for a login
	Ports     [3]int            // plain, TLS, admin; zero means 80, 443 and 1936
	NameInPod bool              // its pod's name is in the variable POD_NAME
	Alive     int32             // timeout of a liveness probe, in seconds; 0 means no probe
	Seconds   int64             // that it may take to end; 0 means 1
}

// router is one or more pods that serve the routes of a shard.
type router struct {
	name  string // of the shard, the Deployment, and in route status
	start sync.Once
	err   error // why it did not start
	pods  []corev1.Pod
	ip    string // of the first pod
	ports [3]int // plain, TLS, admin
}

// routers are those that run, by their settings.
type routers struct {
	mu sync.Mutex
	by map[string]*router
}

// with returns the router that has these settings, and starts it if it is the first case that
// asks.
func with(t testing.TB, s settings) *router {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	name := "r" + hex.EncodeToString(sum[:5])
	shared.routers.mu.Lock()
	r := shared.routers.by[name]
	if r == nil {
		r = &router{name: name, ports: s.Ports}
		if r.ports == [3]int{} {
			r.ports = [3]int{80, 443, 1936}
		}
		shared.routers.by[name] = r
	}
	shared.routers.mu.Unlock()
	r.start.Do(func() { r.err = r.launch(context.Background(), s) })
	if r.err != nil {
		t.Fatalf("router with %s: %v", text, r.err)
	}
	return r
}

// alone returns a router of the case's own, which it may change and end.
func alone(t testing.TB, s settings) *router {
	t.Helper()
	s.Alone = t.Name()
	r := with(t, s)
	t.Cleanup(r.leave)
	return r
}

// leave scales the router to nothing, and waits for nobody.
func (r *router) leave() {
	patch := []byte(`{"spec":{"replicas":0}}`)
	if _, err := shared.core.AppsV1().Deployments(routerNamespace).Patch(context.Background(), r.name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		r.err = err
	}
}

// env is the environment of a router.
func env(pairs ...string) settings {
	s := settings{Env: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		s.Env[pairs[i]] = pairs[i+1]
	}
	return s
}

// launch makes the Deployment and waits until all of it is ready.
func (r *router) launch(ctx context.Context, s settings) error {
	if s.Controller {
		if err := r.put(ctx, s); err != nil {
			return err
		}
	}
	if _, err := shared.core.AppsV1().Deployments(routerNamespace).Create(ctx, r.deployment(s), metav1.CreateOptions{}); err != nil {
		return err
	}
	return r.await(ctx)
}

// end scales the router to nothing and waits until its pods are gone.
func (r *router) end(t testing.TB) {
	t.Helper()
	if r.leave(); r.err != nil {
		t.Fatal(r.err)
	}
	if err := r.await(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// await waits until the pods of the Deployment are those of its newest generation, all ready.
func (r *router) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	watcher, err := shared.core.CoreV1().Pods(routerNamespace).Watch(ctx, metav1.ListOptions{LabelSelector: "router=" + r.name})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	deployments, err := shared.core.AppsV1().Deployments(routerNamespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + r.name})
	if err != nil {
		return err
	}
	defer deployments.Stop()
	var last error
	for {
		now := r.complete(ctx)
		if now == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = now
		}
		select {
		case <-watcher.ResultChan():
		case <-deployments.ResultChan():
		case <-ctx.Done():
			return last
		}
	}
}

// complete looks whether the Deployment is rolled out, and remembers its pods.
func (r *router) complete(ctx context.Context) error {
	d, err := shared.core.AppsV1().Deployments(routerNamespace).Get(ctx, r.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if st := d.Status; st.ObservedGeneration < d.Generation || st.UpdatedReplicas != *d.Spec.Replicas || st.Replicas != *d.Spec.Replicas {
		return fmt.Errorf("rollout: %+v", st)
	}
	list, err := shared.core.CoreV1().Pods(routerNamespace).List(ctx, metav1.ListOptions{LabelSelector: "router=" + r.name})
	if err != nil {
		return err
	}
	if len(list.Items) != int(*d.Spec.Replicas) {
		return fmt.Errorf("%d pods, want %d", len(list.Items), *d.Spec.Replicas)
	}
	for i := range list.Items {
		if err := isReady(&list.Items[i]); err != nil {
			text, _ := logs(ctx, routerNamespace, list.Items[i].Name, "router")
			return errors.Join(err, errors.New(text))
		}
	}
	if r.pods = list.Items; len(r.pods) > 0 {
		r.ip = r.pods[0].Status.PodIP
	}
	return nil
}

// deployment is the manifest of the router.
func (r *router) deployment(s settings) *appsv1.Deployment {
	replicas, grace := max(s.Replicas, 1), max(s.Seconds, 1)
	labels := map[string]string{"router": r.name}
	maps.Copy(labels, s.Labels)
	spec := corev1.PodSpec{
		ServiceAccountName: routerAccount, TerminationGracePeriodSeconds: &grace, HostNetwork: s.Host,
		EnableServiceLinks: new(bool), Containers: []corev1.Container{r.container(s)},
	}
	if s.Host { // all of them on one node
		spec.NodeSelector = map[string]string{corev1.LabelHostname: hostNode}
	}
	for _, at := range slices.Sorted(maps.Keys(s.Files)) {
		rest, key := path.Split(s.Files[at])
		mount(&spec, path.Dir(at), strings.TrimSuffix(rest, "/"), corev1.KeyToPath{Key: key, Path: path.Base(at)})
	}
	for _, at := range slices.Sorted(maps.Keys(s.Folders)) {
		mount(&spec, at, s.Folders[at])
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: r.name, Namespace: routerNamespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"router": r.name}},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
}

// mount gives the container of a pod a folder with what is in secret/NAME or configmap/NAME.
func mount(spec *corev1.PodSpec, at, what string, items ...corev1.KeyToPath) {
	volume := corev1.Volume{Name: fmt.Sprintf("files-%d", len(spec.Volumes))}
	if kind, name, _ := strings.Cut(what, "/"); kind == "secret" {
		volume.Secret = &corev1.SecretVolumeSource{SecretName: name, Items: items}
	} else {
		volume.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items}
	}
	spec.Volumes = append(spec.Volumes, volume)
	c := &spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume.Name, MountPath: at, ReadOnly: true})
}

// container is the one of the router's pods. Its defaults are those that tests want:
// to end at once, to tell metrics to everybody, and why it refuses something.
func (r *router) container(s settings) corev1.Container {
	vars := map[string]string{
		"ROUTER_SERVICE_NAME": r.name, "ROUTER_SERVICE_NAMESPACE": routerNamespace, "ROUTE_LABELS": shardLabel + "=" + r.name,
		"ROUTER_GRACEFUL_SHUTDOWN_DELAY": "0s", "ROUTER_MAX_SHUTDOWN_TIMEOUT": "1",
		"STATS_PORT": fmt.Sprint(r.ports[2]), "ROUTER_METRICS_HAPROXY_SERVER_THRESHOLD": "100000",
	}
	args := append([]string{"run", "--reason-header"}, s.Args...)
	if s.Controller {
		delete(vars, "ROUTE_LABELS")
		args = append(args, "--ingress-controller="+operatorNamespace+"/"+r.name)
	}
	maps.Copy(vars, s.Env)
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt(r.ports[2])}},
			PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 120,
		}
	}
	yes := true
	c := corev1.Container{
		Name: "router", Image: routerImage, Args: args,
		Ports: []corev1.ContainerPort{
			{Name: "http", ContainerPort: int32(r.ports[0])}, {Name: "https", ContainerPort: int32(r.ports[1])},
			{Name: "metrics", ContainerPort: int32(r.ports[2])},
		},
		StartupProbe: probe("/healthz/ready"), ReadinessProbe: probe("/healthz/ready"),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(bool), ReadOnlyRootFilesystem: &yes,
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_BIND_SERVICE"}},
		},
	}
	if !s.Closed {
		c.Args = append(c.Args, "--admin-open")
	}
	if s.Alive > 0 {
		c.LivenessProbe = probe("/healthz")
		c.LivenessProbe.TimeoutSeconds, c.LivenessProbe.FailureThreshold = s.Alive, 1
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: vars[name]})
	}
	if s.NameInPod {
		c.Env = append(c.Env, corev1.EnvVar{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}})
	}
	return c
}

// logged waits until the router has written that.
func (r *router) logged(t testing.TB, want string) {
	t.Helper()
	eventually(t, "log of "+r.name, func() error {
		if text := r.log(t); !strings.Contains(text, want) {
			return fmt.Errorf("no %q in %s", want, text)
		}
		return nil
	})
}

// log is what the router has written.
func (r *router) log(t testing.TB) string {
	t.Helper()
	return must[string](t)(logs(t.Context(), routerNamespace, r.pods[0].Name, "router"))
}

// configMap makes a ConfigMap in the routers' namespace, for Files, or replaces it.
func configMap(t testing.TB, name string, data map[string]string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
	client := shared.core.CoreV1().ConfigMaps(routerNamespace)
	if _, err := client.Update(t.Context(), object, metav1.UpdateOptions{}); err == nil {
		return
	}
	must[*corev1.ConfigMap](t)(client.Create(t.Context(), object, metav1.CreateOptions{}))
}
