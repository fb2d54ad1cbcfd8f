package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ingressAPI is an API server with so many Ingresses, each with a Service of its own that has an endpoint, and with those that come from changes.
type ingressAPI struct {
	ingresses int
	changes   chan string
}

func (a *ingressAPI) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	plural := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]
	kind, known := map[string][2]string{
		"ingresses": {"networking.k8s.io/v1", "Ingress"}, "ingressclasses": {"networking.k8s.io/v1", "IngressClass"}, "services": {"v1", "Service"}, "endpointslices": {"discovery.k8s.io/v1", "EndpointSlice"},
	}[plural]
	if !known || req.FormValue("watch") == "" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	event := func(what, metadata, rest string) {
		fmt.Fprintf(w, `{"type":%q,"object":{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"5",%s}%s}}`+"\n", what, kind[0], kind[1], metadata, rest)
	}
	ingress := func(i int, host string) {
		event("ADDED", fmt.Sprintf(`"namespace":"ns%d","name":"web-%d","uid":"i%d"`, i%100, i, i), fmt.Sprintf(
			`,"spec":{"ingressClassName":"turnout","tls":[{"hosts":[%[2]q]}],"rules":[{"host":%[2]q,"http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"s-%[1]d","port":{"number":80}}}}]}}]}`, i, host))
	}
	for i := range a.ingresses {
		switch plural {
		case "ingresses":
			ingress(i, fmt.Sprintf("h%d.test", i))
		case "services":
			event("ADDED", fmt.Sprintf(`"namespace":"ns%d","name":"s-%d","uid":"s%d"`, i%100, i, i), `,"spec":{"ports":[{"name":"http","port":80}]}`)
		case "endpointslices":
			if i == a.ingresses-1 {
				continue // it is asked for, and answered by the router
			}
			event("ADDED", fmt.Sprintf(`"namespace":"ns%d","name":"s-%d","uid":"e%d","labels":{"kubernetes.io/service-name":"s-%d"}`, i%100, i, i, i), fmt.Sprintf(
				`,"addressType":"IPv4","ports":[{"name":"http","port":8080}],"endpoints":[{"addresses":["10.%d.%d.%d"],"conditions":{"ready":true}}]`, i>>16, i>>8&255, i&255))
		}
	}
	if plural == "ingressclasses" {
		event("ADDED", `"name":"turnout","uid":"c"`, `,"spec":{"controller":"turnout.router/ingress"}`)
	}
	event("BOOKMARK", `"annotations":{"k8s.io/initial-events-end":"true"}`, "")
	w.(http.Flusher).Flush()
	for n := a.ingresses; plural == "ingresses"; n++ {
		select {
		case host := <-a.changes:
			ingress(n, host)
			w.(http.Flusher).Flush()
		case <-req.Context().Done():
			return
		}
	}
	<-req.Context().Done()
}

// usage is the memory of a process in MiB, and the processor time that it has had.
func usage(t *testing.T, pid int) (resident int, took time.Duration) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kib, _ := strconv.Atoi(strings.Fields(rest)[0])
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))
	for _, field := range fields[11:13] { // utime and stime, in hundredths of a second
		n, _ := strconv.Atoi(field)
		took += time.Duration(n) * 10 * time.Millisecond
	}
	return kib >> 10, took
}

// TestIngressesAtScale: 10,000 Ingresses are served soon after the start, in memory that does not depend on chance, and one that comes is served soon. docs/lab/scale.md has
// what it prints.
func TestIngressesAtScale(t *testing.T) {
	a := &ingressAPI{ingresses: 10_000, changes: make(chan string)}
	if testing.Short() || raced {
		a.ingresses = 500
	}
	server := httptest.NewTLSServer(a)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	begin := time.Now()
	p := startRouter(t, nil, "--kubeconfig", kubeconfig(t, server.URL), "--ingress", "--admin-open", "--update-status=false")
	ready := time.Since(begin)
	resident, took := usage(t, p.Process.Pid)
	t.Logf("%d Ingresses: ready after %s, of which %s of a processor; %d MiB resident then", a.ingresses, ready.Round(10*time.Millisecond), took, resident)
	if status, _ := get(t, "http://"+p.http+"/", fmt.Sprintf("h%d.test", a.ingresses-1)); status == 404 {
		t.Error("the last Ingress is not there when the router is ready")
	}
	var all []time.Duration
	for i := range 50 {
		host := fmt.Sprintf("new%d.test", i)
		if status, _ := get(t, "http://"+p.http+"/", host); status != 404 {
			t.Fatalf("%s: %d before it is there", host, status)
		}
		sent := time.Now()
		a.changes <- host
		for status := 404; status == 404; {
			status, _ = get(t, "http://"+p.http+"/", host)
		}
		all = append(all, time.Since(sent))
	}
	slices.Sort(all)
	resident, _ = usage(t, p.Process.Pid)
	t.Logf("a new Ingress is served after %s (p50), %s (p98); %d MiB resident then", all[25].Round(100*time.Microsecond), all[48].Round(100*time.Microsecond), resident)
	if most := 400; resident > most {
		t.Errorf("%d MiB resident, at most %d", resident, most)
	}
}
