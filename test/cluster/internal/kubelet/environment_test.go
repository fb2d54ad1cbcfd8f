package kubelet

import (
	"fmt"
	"io"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	makeSecret(t, ns, "secret", map[string]string{"key": "hidden"})
	makeConfigMap(t, ns, "settings", map[string]string{"A": "one", "B": "two"})
	field := func(path string) *v1.EnvVarSource {
		return &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: path}}
	}
	ref := func(name string) v1.LocalObjectReference { return v1.LocalObjectReference{Name: name} }
	c := sh("")
	c.Command = []string{"/bin/sh", "-c", `echo "$0" "$@"; echo $NAME $NS $APP $NODE; test "$IP" = "$(hostname -i | cut -d' ' -f1)" && echo ip; echo $HOST $IPS; echo $SECRET $KEY $P_A $P_B "$NONE"; echo $BOTH "$LITERAL"; echo $LIMIT $CPU $ALLOCATABLE; env | grep -c ^KUBERNETES_SERVICE_`, "$(NAME)"}
	c.Args = []string{"$(BOTH)", "$(UNKNOWN)", "$$(NAME)"}
	c.EnvFrom = []v1.EnvFromSource{
		{Prefix: "P_", ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: ref("settings")}},
		{SecretRef: &v1.SecretEnvSource{LocalObjectReference: ref("missing"), Optional: new(true)}},
	}
	c.Env = []v1.EnvVar{
		{Name: "NAME", ValueFrom: field("metadata.name")}, {Name: "NS", ValueFrom: field("metadata.namespace")},
		{Name: "APP", ValueFrom: field("metadata.labels['app']")}, {Name: "NODE", ValueFrom: field("spec.nodeName")},
		{Name: "IP", ValueFrom: field("status.podIP")}, {Name: "HOST", ValueFrom: field("status.hostIP")}, {Name: "IPS", ValueFrom: field("status.hostIPs")},
		{Name: "SECRET", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: ref("secret"), Key: "key"}}},
		{Name: "KEY", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: ref("settings"), Key: "A"}}},
		{Name: "NONE", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: ref("settings"), Key: "X", Optional: new(true)}}},
		{Name: "BOTH", Value: "$(NAME)-$(P_B)"}, {Name: "LITERAL", Value: "$$(NAME) $(UNKNOWN)"},
		{Name: "LIMIT", ValueFrom: &v1.EnvVarSource{ResourceFieldRef: &v1.ResourceFieldSelector{Resource: "limits.memory", Divisor: resource.MustParse("1Mi")}}},
		{Name: "CPU", ValueFrom: &v1.EnvVarSource{ResourceFieldRef: &v1.ResourceFieldSelector{Resource: "requests.cpu", Divisor: resource.MustParse("1m")}}},
		{Name: "ALLOCATABLE", ValueFrom: &v1.EnvVarSource{ResourceFieldRef: &v1.ResourceFieldSelector{Resource: "limits.cpu"}}},
	}
	c.Resources = v1.ResourceRequirements{
		Limits:   v1.ResourceList{v1.ResourceMemory: resource.MustParse("64Mi")},
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("25m")},
	}
	same(t, output(t, ns, "pod", v1.PodSpec{Containers: []v1.Container{c}}),
		"pod pod-two $(UNKNOWN) $(NAME)", "pod "+ns+" pod one", "ip", "10.1.0.1 10.1.0.1,fd00:1::1",
		"hidden one one two ", "pod-two $(NAME) $(UNKNOWN)", "64 25 4", "3")
}

func TestServicesInTheEnvironment(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	_, err := shared.client.CoreV1().Services(ns).Create(t.Context(), &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "my-app"},
		Spec:       v1.ServiceSpec{ClusterIP: "10.96.7.7", Ports: []v1.ServicePort{{Port: 81}}},
	}, metav1.CreateOptions{})
	must(t, err)
	c := sh("echo $MY_APP_SERVICE_HOST:$MY_APP_SERVICE_PORT $KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT")
	// The informer may show the Service after the pod, as with a real kubelet.
	for n := 0; ; n++ {
		if text := output(t, ns, fmt.Sprint("with-", n), v1.PodSpec{Containers: []v1.Container{c}}); text == "10.96.7.7:81 10.96.0.1:443\n" {
			break
		} else if n > 20 {
			t.Fatalf("variables say %s", text)
		}
	}
	same(t, output(t, ns, "without", v1.PodSpec{EnableServiceLinks: new(false), Containers: []v1.Container{c}}), ": 10.96.0.1:443")
}

func TestConfigurationOfTheImage(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	image, err := shared.store.Get("client")
	must(t, err)
	configured := *image
	configured.Config = ocispec.ImageConfig{
		Entrypoint: []string{"/bin/sh", "-c", `echo "$0 $1" $OF_IMAGE $PWD $(id -u):$(id -g)`}, Cmd: []string{"cmd", "more"},
		Env: []string{"OF_IMAGE=image", "PATH=/bin"}, User: "nobody", WorkingDir: "/tmp",
	}
	shared.store.Add("test/configured", &configured)
	c := v1.Container{Name: "main", Image: "test/configured:v1"}
	same(t, output(t, ns, "image", v1.PodSpec{Containers: []v1.Container{c}}), "cmd more image /tmp 65534:65534")
	c.Args = []string{"args"}
	same(t, output(t, ns, "args", v1.PodSpec{Containers: []v1.Container{c}}), "args  image /tmp 65534:65534")
	c.Command, c.Args = []string{"/bin/sh", "-c", "echo $0 $OF_IMAGE $PWD $(id -u):$(id -g)"}, nil
	c.WorkingDir, c.Env = "/var", []v1.EnvVar{{Name: "OF_IMAGE", Value: "pod"}}
	c.SecurityContext = &v1.SecurityContext{RunAsUser: new(int64(12))}
	same(t, output(t, ns, "command", v1.PodSpec{Containers: []v1.Container{c}}), "/bin/sh pod /var 12:0")
}

func TestNames(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh("hostname; cat /etc/resolv.conf; tail -n +3 /etc/hosts | cut -f2-")
	same(t, output(t, ns, "pod", v1.PodSpec{
		Hostname: "me", Subdomain: "sub", HostAliases: []v1.HostAlias{{IP: "192.0.2.1", Hostnames: []string{"a.test", "b.test"}}},
		DNSConfig:  &v1.PodDNSConfig{Options: []v1.PodDNSConfigOption{{Name: "timeout", Value: new("1")}}},
		Containers: []v1.Container{c},
	}), "me", "nameserver 10.96.0.10", fmt.Sprintf("search %s.svc.cluster.local svc.cluster.local cluster.local", ns), "options ndots:5 timeout:1",
		fmt.Sprintf("me.sub.%s.svc.cluster.local\tme", ns), fmt.Sprintf("me.sub.%s.svc.cluster.local\tme", ns), "a.test\tb.test")
	none := output(t, ns, "none", v1.PodSpec{DNSPolicy: v1.DNSNone, DNSConfig: &v1.PodDNSConfig{Nameservers: []string{"192.0.2.53"}, Searches: []string{"test"}}, Containers: []v1.Container{sh("cat /etc/resolv.conf")}})
	same(t, none, "nameserver 192.0.2.53", "search test")
}

func TestHostNetwork(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh("exec python3 -m http.server --bind 127.0.0.1 8099")
	c.ReadinessProbe = &v1.Probe{PeriodSeconds: 1, ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Host: "localhost", Port: intstr.FromInt32(8099)}}}
	create(t, ns, "pod", v1.PodSpec{HostNetwork: true, DNSPolicy: v1.DNSClusterFirstWithHostNet, Containers: []v1.Container{c}})
	p := eventually(t, ns, "pod", "ready", ready)
	if p.Status.PodIP != p.Status.HostIP || p.Status.PodIP != "10.1.0.1" {
		t.Errorf("addresses are %s and %s", p.Status.PodIP, p.Status.HostIP)
	}
	if text := runIn(t, ns, "pod", "grep nameserver /etc/resolv.conf"); text != "nameserver 10.96.0.10\n" {
		t.Error(text)
	}
}

func TestTerminationMessage(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	message := func(name string, c v1.Container) string {
		t.Helper()
		create(t, ns, name, v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{c}})
		return eventually(t, ns, name, "failed", phase(v1.PodFailed)).Status.ContainerStatuses[0].State.Terminated.Message
	}
	c := sh("echo because >/dev/termination-log; exit 1")
	c.SecurityContext = &v1.SecurityContext{RunAsUser: new(int64(1234))}
	if got := message("file", c); got != "because\n" {
		t.Errorf("the message is %q", got)
	}
	c = sh("for i in $(seq 100); do echo line $i; done; exit 1")
	c.TerminationMessagePolicy = v1.TerminationMessageFallbackToLogsOnError
	if got := message("log", c); !strings.HasPrefix(got, "line 21\n") || !strings.HasSuffix(got, "line 100\n") {
		t.Errorf("the message is %q", got)
	}
}

func TestHooksOverHTTP(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh(serve)
	c.Ports = []v1.ContainerPort{{Name: "web", ContainerPort: 8080}}
	c.ReadinessProbe = execProbe("touch /tmp/ok; curl -sf 127.0.0.1:8080/up")
	c.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Path: "/stop", Port: intstr.FromString("web")}}}
	create(t, ns, "pod", v1.PodSpec{TerminationGracePeriodSeconds: new(int64(0)), Containers: []v1.Container{c}})
	eventually(t, ns, "pod", "ready", ready)
	stream, err := shared.client.CoreV1().Pods(ns).GetLogs("pod", &v1.PodLogOptions{Follow: true}).Stream(t.Context())
	must(t, err)
	defer stream.Close()
	must(t, shared.client.CoreV1().Pods(ns).Delete(t.Context(), "pod", metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}))
	var text strings.Builder
	_, err = io.Copy(&text, stream)
	must(t, err)
	if !strings.Contains(text.String(), "/stop ") {
		t.Errorf("requests were: %s", text.String())
	}
}
