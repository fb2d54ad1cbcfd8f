package cluster

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func daemonSet(name string, labels map[string]string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: echoSpec()},
	}}
}

// Pods and Services go on while the control plane is away, and changes are followed after it is back.
func TestRestarts(t *testing.T) {
	namespace := newNamespace(t)
	s := expose(t, namespace, "echo", nil)
	deploy(t, namespace, "echo", 1)
	to, dial := netip.MustParseAddr(s.Spec.ClusterIP), (&net.Dialer{}).DialContext
	eventually(t, func(ctx context.Context) error { _, _, err := get(ctx, dial, to, 80); return err })
	replicas := int32(1)
	for name, part := range map[string]*Component{"etcd": shared.Etcd, "the API server": shared.API, "the controllers": shared.Controllers} {
		t.Run(name, func(t *testing.T) {
			if err := part.Kill(); err != nil {
				t.Fatal(err)
			}
			if _, _, err := get(t.Context(), dial, to, 80); err != nil {
				t.Errorf("while it is away: %v", err)
			}
			if err := part.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			replicas++
			eventually(t, func(ctx context.Context) error { return scale(ctx, namespace, "echo", replicas) })
			waitReady(t, namespace, "echo", int(replicas))
			answered := map[string]bool{}
			eventually(t, func(ctx context.Context) error {
				pod, _, err := get(ctx, dial, to, 80)
				answered[pod] = true
				if err == nil && len(answered) < int(replicas) {
					err = fmt.Errorf("only %v answered, want %d", answered, replicas)
				}
				return err
			})
		})
	}
}

func scale(ctx context.Context, namespace, name string, replicas int32) error {
	d, err := shared.client.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	d.Spec.Replicas = &replicas
	_, err = shared.client.AppsV1().Deployments(namespace).Update(ctx, d, metav1.UpdateOptions{})
	return err
}

// A node that dies is found out, its pods get no connections any more, and it comes back.
func TestNodeDies(t *testing.T) {
	namespace := newNamespace(t)
	s := expose(t, namespace, "echo", nil)
	pods := deploy(t, namespace, "echo", 2)
	if err := shared.KillNode("two"); err != nil {
		t.Fatal(err)
	}
	to, dial := netip.MustParseAddr(s.Spec.ClusterIP), (&net.Dialer{}).DialContext
	lives := pods[0].Name
	if pods[0].Spec.NodeName == "two" {
		lives = pods[1].Name
	}
	eventually(t, func(ctx context.Context) error {
		for range 10 {
			if pod, _, err := get(ctx, dial, to, 80); err != nil || pod != lives {
				return fmt.Errorf("%s answers, %w; want %s", pod, err, lives)
			}
		}
		return nil
	})
	if err := shared.StartNode(t.Context(), Node{Name: "two"}); err != nil {
		t.Fatal(err)
	}
	waitReady(t, namespace, "echo", 2)
}
