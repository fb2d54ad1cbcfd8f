package origin

import (
	"context"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// changes counts the changes of a namespace's routes since it was made.
type changes struct {
	t       testing.TB
	watcher watch.Interface
}

// watch begins to count.
func (n namespace) watch() changes {
	n.Helper()
	client := shared.routes.RouteV1().Routes(n.name)
	list := must[*routev1.RouteList](n)(client.List(n.Context(), metav1.ListOptions{}))
	watcher := must[watch.Interface](n)(client.Watch(n.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion}))
	n.Cleanup(watcher.Stop)
	return changes{n, watcher}
}

// within counts for that long, and returns the changes by route.
func (c changes) within(d time.Duration) map[string]int {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), d)
	defer cancel()
	count := map[string]int{}
	for {
		select {
		case event, ok := <-c.watcher.ResultChan():
			if !ok {
				c.t.Fatal("the watch ended early")
			}
			if route, ok := event.Object.(*routev1.Route); ok && event.Type == watch.Modified {
				count[route.Name]++
			}
		case <-ctx.Done():
			return count
		}
	}
}

// entries are the routes of the namespace of which a router says something, and that once.
func (n namespace) entries(router string) []string {
	n.Helper()
	var found []string
	list := must[*routev1.RouteList](n)(shared.routes.RouteV1().Routes(n.name).List(n.Context(), metav1.ListOptions{}))
	for i := range list.Items {
		if in := list.Items[i].Status.Ingress; len(in) == 1 && in[0].RouterName == router {
			found = append(found, list.Items[i].Name)
		}
	}
	return found
}
