package shards

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"turnout/test/cluster"
)

var (
	manyRouters = flag.Int("many-routers", 3, "routers of TestMany")
	manyRoutes  = flag.Int("many-routes", 60, "its routes")
)

// TestMany: many routes on many routers are bound evenly, and what that takes is said: docs/lab/scale.md.
func TestMany(t *testing.T) {
	const many = "many"
	client, err := shared.Client("scraper")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shared.core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: many}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	shared.kubectl.Must(t, schedulerObject("default", `{"writesPerSecond": 1000, "lostAfterSeconds": 120}`), "apply", "-f", "-")
	names := make([]string, *manyRouters)
	for i := range names {
		names[i] = fmt.Sprintf("m%d", i)
		shared.kubectl.Must(t, router(names[i], `{"routeSelector": {"matchLabels": {"many": "yes"}}}`), "create", "-f", "-")
	}
	all := watchAll(t)
	startScheduler(t)
	for _, name := range names {
		startReplicas(t, name, 1)
		is(t, "router/"+name, "{.status.readyReplicas}", "1")
	}
	begin := time.Now()
	manyAtOnce(t, many, *manyRoutes)
	t.Logf("%d routes were made in %s", *manyRoutes, time.Since(begin).Round(100*time.Millisecond))
	counts := all.settled(t, many, *manyRoutes, names...)
	t.Logf("all of them were bound and served %s after the first was made", time.Since(begin).Round(100*time.Millisecond))
	for _, name := range names {
		if mean := *manyRoutes / *manyRouters; counts[name] < mean*9/10 || counts[name] > mean*11/10+1 {
			t.Errorf("%s has %d routes, the mean is %d", name, counts[name], mean)
		}
	}
	memory(t, client, "app.kubernetes.io/component=scheduler")
	memory(t, client, "app=router")
}

// manyAtOnce makes routes, some at a time.
func manyAtOnce(t *testing.T, namespace string, n int) {
	t.Helper()
	routes := shared.objects.Resource(schema.GroupVersionResource{Group: "route.openshift.io", Version: "v1", Resource: "routes"}).Namespace(namespace)
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for i := range numbers {
				o := &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "route.openshift.io/v1", "kind": "Route",
					"metadata": map[string]any{"name": fmt.Sprintf("r%d", i), "labels": map[string]any{"many": "yes"}},
					"spec":     map[string]any{"host": fmt.Sprintf("r%d.many.test", i), "to": map[string]any{"kind": "Service", "name": "none", "weight": int64(100)}},
				}}
				if _, err := routes.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	workers.Wait()
}

// memory says what the processes of pods have resident.
func memory(t *testing.T, from cluster.Pod, labels string) {
	t.Helper()
	pods, err := shared.core.CoreV1().Pods(programs).List(t.Context(), metav1.ListOptions{LabelSelector: labels})
	if err != nil {
		t.Fatal(err)
	}
	sum, most := 0.0, 0.0
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning {
			continue
		}
		mib := resident(t, from, p.Status.PodIP)
		sum, most = sum+mib, max(most, mib)
	}
	t.Logf("%d pods with %s have %.0f MiB resident together, one of them %.0f", len(pods.Items), labels, sum, most)
}

// resident is the memory of a process by its metrics, in MiB.
func resident(t *testing.T, from cluster.Pod, ip string) float64 {
	t.Helper()
	c := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return from.Dial(ctx, network, net.JoinHostPort(ip, "1936"))
	}}}
	resp, err := c.Get("http://pod/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if value, is := strings.CutPrefix(lines.Text(), "process_resident_memory_bytes "); is {
			var bytes float64
			if _, err := fmt.Sscan(value, &bytes); err != nil {
				t.Fatal(err)
			}
			return bytes / (1 << 20)
		}
	}
	t.Fatalf("%s does not say its memory", ip)
	return 0
}
