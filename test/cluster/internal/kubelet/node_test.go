package kubelet

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNodeDies(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	k, err := shared.startNode(context.Background(), "mortal")
	must(t, err)
	c := sh("trap 'sleep 100' TERM; while :; do sleep 0.05; done")
	c.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 4}}}
	create(t, ns, "pod", v1.PodSpec{NodeName: "mortal", Containers: []v1.Container{c}})
	p := eventually(t, ns, "pod", "ready", ready)
	k.mu.Lock()
	running := k.pods[p.UID].containers[0].running
	k.mu.Unlock()
	k.Kill()
	select {
	case <-running.Done():
	case <-time.After(patience):
		t.Fatal("the container outlives its node")
	}
	k.wg.Wait()
	after, err := shared.client.CoreV1().Pods(ns).Get(t.Context(), "pod", metav1.GetOptions{})
	must(t, err)
	if after.ResourceVersion != p.ResourceVersion {
		t.Errorf("a dead node has changed the pod: %+v", after.Status)
	}
	if _, err := shared.client.CoreV1().Pods(ns).GetLogs("pod", &v1.PodLogOptions{}).DoRaw(t.Context()); err == nil {
		t.Error("a dead node answers")
	}
}

func TestPodsComeAndGo(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	const many = 20
	begun := time.Now()
	for i := range many {
		create(t, ns, "pod-"+string(rune('a'+i)), v1.PodSpec{TerminationGracePeriodSeconds: new(int64(1)), Containers: []v1.Container{sh("trap exit TERM; while :; do sleep 0.2; done")}})
	}
	for i := range many {
		eventually(t, ns, "pod-"+string(rune('a'+i)), "ready", ready)
	}
	up := time.Since(begun)
	must(t, shared.client.CoreV1().Pods(ns).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	for i := range many {
		gone(t, ns, "pod-"+string(rune('a'+i)))
	}
	t.Logf("%d pods were ready after %v and gone after %v", many, up, time.Since(begun)-up)
}
