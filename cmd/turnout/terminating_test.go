package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"turnout/controller"
)

// TestTerminatingPodFinishes is a pod that is asked to stop while it serves a request: it
// gets no new ones, also not as the last of its service, and finishes what it has.
func TestTerminatingPodFinishes(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/long" {
			close(began)
			<-finish
		}
		_, _ = io.WriteString(w, "page")
	}))
	t.Cleanup(pod.Close)
	addr := pod.Listener.Addr().(*net.TCPAddr)
	dir := t.TempDir()
	publish := func(conditions, host string) {
		text := fmt.Sprintf("apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: app}\nspec: {host: app.test, to: {kind: Service, name: app}}\n---\n"+
			"apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: mark}\nspec: {host: %s, to: {kind: Service, name: app}}\n---\n"+
			"apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: app-1, labels: {kubernetes.io/service-name: app}}\naddressType: IPv4\n"+
			"ports: [{name: http, port: %d, protocol: TCP}]\nendpoints: [{addresses: [%q], conditions: {%s}}]\n", host, addr.Port, addr.IP, conditions)
		write(t, dir, "app.yaml", []byte(text))
	}
	publish("ready: true", "one.test")
	plane, store := startInProcess(t, dir, controller.Options{})
	get := func(path string) (string, error) {
		q, err := http.NewRequest("GET", "http://"+plane.HTTP().String()+path, nil)
		if err != nil {
			return "", err
		}
		q.Host = "app.test"
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.Status, err
	}
	type answer struct {
		status string
		err    error
	}
	long := make(chan answer)
	go func() {
		status, err := get("/long")
		long <- answer{status, err}
	}()
	<-began
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	// The table may come before the endpoints that changed with it; those of what was
	// read before are there with the next.
	change := func(conditions, host string) {
		for i := range 2 {
			generation := store.Load().Generation()
			publish(conditions, fmt.Sprint(host, i, ".test"))
			if err := store.Wait(ctx, generation+1); err != nil {
				t.Fatal(err)
			}
		}
	}
	change("ready: false, serving: true, terminating: true", "two")
	if status, err := get("/"); status != "503 Service Unavailable" || err != nil {
		t.Errorf("a new request: %s, %v", status, err)
	}
	close(finish)
	if got := <-long; got.status != "200 OK" || got.err != nil {
		t.Errorf("the running request: %+v", got)
	}
	change("ready: true", "three")
	if status, err := get("/"); status != "200 OK" || err != nil {
		t.Errorf("ready again: %s, %v", status, err)
	}
}
