package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// most is how long anything may take in these tests.
const most = time.Minute

// eventually waits until f succeeds.
func eventually(t *testing.T, f func(context.Context) error) {
	t.Helper()
	if err := poll(t.Context(), most, f); err != nil {
		t.Fatal(err)
	}
}

var namespaces atomic.Int64

// newNamespace makes a namespace that ends with the test.
func newNamespace(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("test-%d", namespaces.Add(1))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := shared.client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.client.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	eventually(t, func(ctx context.Context) error {
		_, err := shared.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return name
}

// echoSpec is a pod that runs echo.
func echoSpec() corev1.PodSpec {
	grace := int64(1)
	return corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace,
		Containers: []corev1.Container{{
			Name: "echo", Image: "echo",
			ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(echoHTTP)}}},
		}},
	}
}

// deploy runs echo pods and waits until they are ready.
func deploy(t *testing.T, namespace, name string, replicas int32) []corev1.Pod {
	t.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: echoSpec()},
	}}
	if _, err := shared.client.AppsV1().Deployments(namespace).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return waitReady(t, namespace, name, int(replicas))
}

// waitReady waits until so many pods of an app are ready and no others are there, and returns them.
func waitReady(t *testing.T, namespace, name string, n int) []corev1.Pod {
	t.Helper()
	var found []corev1.Pod
	eventually(t, func(ctx context.Context) error {
		list, err := shared.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			return err
		}
		found = list.Items
		ready := 0
		for i := range found {
			if isReady(&found[i]) {
				ready++
			}
		}
		if ready != n || len(found) != n {
			return fmt.Errorf("%d of %d pods of %s are ready, want %d", ready, len(found), name, n)
		}
		return nil
	})
	return found
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// expose makes a Service of both families for an app, with port 80 for HTTP and 53 for UDP.
func expose(t *testing.T, namespace, name string, change func(*corev1.ServiceSpec)) *corev1.Service {
	t.Helper()
	policy := corev1.IPFamilyPolicyRequireDualStack
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": name}, IPFamilyPolicy: &policy,
		Ports: []corev1.ServicePort{
			{Name: "http", Port: 80, TargetPort: intstr.FromInt32(echoHTTP)},
			{Name: "udp", Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(echoUDP)},
		},
	}}
	if change != nil {
		change(&s.Spec)
	}
	s, err := shared.client.CoreV1().Services(namespace).Create(t.Context(), s, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// balanced waits for the addresses of a load balancer.
func balanced(t *testing.T, s *corev1.Service) []netip.Addr {
	t.Helper()
	var found []netip.Addr
	eventually(t, func(ctx context.Context) error {
		s, err := shared.client.CoreV1().Services(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		found = nil
		for _, in := range s.Status.LoadBalancer.Ingress {
			found = append(found, netip.MustParseAddr(in.IP))
		}
		if len(found) != len(s.Spec.IPFamilies) {
			return fmt.Errorf("Service %s has addresses %v, want one of each of %v", s.Name, found, s.Spec.IPFamilies)
		}
		return nil
	})
	return found
}

// dialer is a Pod, or the sandbox itself.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// get asks an address over HTTP on a new connection and returns which pod answered, and
// the address that it was asked from.
func get(ctx context.Context, from dialer, to netip.Addr, port int) (pod, seen string, err error) {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DialContext: from, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+netip.AddrPortFrom(to, uint16(port)).String(), nil)
	if err != nil {
		return "", "", err
	}
	resp, err := client.Do(request)
	if err != nil {
		return "", "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", "", err
	}
	pod, seen, _ = strings.Cut(string(text), " ")
	return pod, seen, nil
}

// ask does the same over UDP, on a socket that is given.
func ask(conn net.Conn) (pod, seen string, err error) {
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return "", "", err
	}
	if _, err := conn.Write([]byte("?")); err != nil {
		return "", "", err
	}
	buf := make([]byte, 200)
	n, err := conn.Read(buf)
	if err != nil {
		return "", "", err
	}
	pod, seen, _ = strings.Cut(string(buf[:n]), " ")
	return pod, seen, nil
}

// netOf returns the network namespace of a pod.
func netOf(t *testing.T, p *corev1.Pod) Pod {
	t.Helper()
	net, err := shared.nodes[p.Spec.NodeName].network.Add(string(p.UID)) // it is there already
	if err != nil {
		t.Fatal(err)
	}
	return net
}
