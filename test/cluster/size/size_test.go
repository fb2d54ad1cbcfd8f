package size

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"turnout/test/cluster/internal/proc"
)

// mostResident is the memory that a router with 10,000 routes and 30,000 endpoints may have at rest, in MiB, with the pages of its program.
const mostResident = 80

// TestSize: three routers serve many routes, and no request fails while the cluster is in disorder.
func TestSize(t *testing.T) {
	client, err := shared.Client("clients")
	check(t, err)
	fill(t)
	routers := startRouters(t, client)
	t.Run("start", func(t *testing.T) {
		started(t, routers)
		received(t, routers)
	})
	t.Run("status", func(t *testing.T) {
		waitStatus(t)
		received(t, routers)
	})
	t.Run("rest", func(t *testing.T) { atRest(t, routers) })
	end := startLoad(t, routers)
	t.Run("propagation", func(t *testing.T) { t.Log(propagation(t, routers, *samples)) })
	for _, f := range []struct {
		name  string
		begin func(t *testing.T)
		end   func(t *testing.T)
	}{
		{"API server killed", func(t *testing.T) { check(t, shared.API.Kill()); outage() }, func(t *testing.T) { check(t, shared.API.Start(t.Context())) }},
		{"watch expired", func(t *testing.T) { expire(t) }, func(t *testing.T) { check(t, shared.API.Start(t.Context())) }},
		{"etcd slow", func(t *testing.T) { slowEtcd(t) }, func(*testing.T) {}},
		{"node lost", func(t *testing.T) { check(t, shared.KillNode(nodes[2])) }, func(*testing.T) {}},
	} {
		t.Run(f.name, func(t *testing.T) {
			f.begin(t)
			f.end(t)
			begin := time.Now()
			t.Logf("after it: %s; the first change was served after %s", propagation(t, alive(t, routers), max(*samples/10, 2)), time.Since(begin).Round(time.Millisecond))
		})
		if f.name == "etcd slow" { // the routers of the node that is lost next are lost with it
			end()
			routers = onOtherNodes(t, routers)
			end = startLoad(t, routers)
		}
	}
	end()
	t.Run("rest after it", func(t *testing.T) { atRest(t, routers) })
}

// outage is how long the API server is away. Nothing is waited for: that is the point.
func outage() { <-time.After(3 * time.Second) }

// started says how long the routers took from listening to ready, by their logs.
func started(t *testing.T, routers []*replica) {
	for _, r := range routers {
		stream, err := shared.core.CoreV1().Pods(routerNamespace).GetLogs(r.name, &corev1.PodLogOptions{}).Stream(t.Context())
		check(t, err)
		var listening, ready time.Time
		for lines := bufio.NewScanner(stream); lines.Scan(); {
			switch {
			case strings.Contains(lines.Text(), `"msg":"listening"`):
				listening = stamp(t, lines.Text())
			case strings.Contains(lines.Text(), `"msg":"ready"`):
				ready = stamp(t, lines.Text())
			}
		}
		check(t, stream.Close())
		if ready.IsZero() || listening.IsZero() {
			t.Fatalf("the log of %s does not say when it was ready", r.name)
		}
		t.Logf("%s: ready %s after it listened", r.name, ready.Sub(listening).Round(10*time.Millisecond))
	}
}

// received says how many bytes have come to each router since its start, which are those of the API server, as nobody else has asked for
// anything but its probes.
func received(t *testing.T, routers []*replica) {
	const name = "process_network_receive_bytes_total"
	for _, r := range routers {
		t.Logf("%s: %.1f MiB received", r.name, r.metrics(t, name)[name]/(1<<20))
	}
	t.Logf("asked of the API server by all routers: %s", countRequests(t))
}

// stamp is the time of a log line.
func stamp(t *testing.T, line string) time.Time {
	_, rest, _ := strings.Cut(line, `"ts":"`)
	text, _, _ := strings.Cut(rest, `"`)
	at, err := time.Parse(time.RFC3339Nano, text)
	check(t, err)
	return at
}

// waitStatus waits until every route is said to be admitted, and counts how many writes that took.
func waitStatus(t *testing.T) {
	begin := time.Now()
	eventually(t, "status", func() error { // each router writes 100 in a second at most
		list, err := shared.routes.RouteV1().Routes("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		missing := 0
		for i := range list.Items {
			if len(list.Items[i].Status.Ingress) == 0 {
				missing++
			}
		}
		if missing > 0 {
			return fmt.Errorf("%d routes have no status", missing)
		}
		return nil
	})
	t.Logf("all routes had a status %s later", time.Since(begin).Round(time.Second))
}

// atRest measures what routers cost while nothing changes.
func atRest(t *testing.T, routers []*replica) {
	const name = "process_cpu_seconds_total"
	rest := time.Duration(min(*routes, 6000)) * 10 * time.Millisecond
	<-time.After(rest / 2) // what starting has left behind goes
	before := make([]float64, len(routers))
	requests := countRequests(t)
	for i, r := range routers {
		before[i] = r.metrics(t, name)[name]
	}
	<-time.After(rest)
	for i, r := range routers {
		m, err := proc.MemoryOf(r.dir) // before metrics are read, which takes memory itself
		check(t, err)
		spent := r.metrics(t, name)[name] - before[i]
		scraped, err := proc.MemoryOf(r.dir)
		check(t, err)
		t.Logf("%s: %.0f MiB resident, of which %.0f are pages of its program; %.0f once its metrics were read; %.0f at most; %.2f %% of a processor",
			r.name, m.Resident, m.Files, scraped.Resident, m.Peak, 100*spent/rest.Seconds())
		if m.Resident > mostResident {
			t.Errorf("router %s has %.0f MiB resident at rest, want at most %d", r.name, m.Resident, mostResident)
		}
	}
	after := countRequests(t)
	t.Logf("asked of the API server by all routers in %s: %d requests; since they started: %s", rest, after.all-requests.all, after)
}

// requested is what the routers have asked the API server for.
type requested struct {
	all   int
	verbs map[string]int
}

func (r requested) String() string { return fmt.Sprintf("%d, %v", r.all, r.verbs) }

func countRequests(t *testing.T) requested {
	events, err := shared.Audit("system:serviceaccount:" + routerNamespace + ":" + routerAccount)
	check(t, err)
	r := requested{verbs: map[string]int{}}
	for i := range events {
		if e := &events[i]; e.Stage == auditv1.StageResponseComplete || e.Stage == auditv1.StageResponseStarted && e.Verb == "watch" {
			r.all++
			verb := e.Verb
			if strings.Contains(e.RequestURI, "sendInitialEvents=true") {
				verb = "watch of what is there"
			}
			r.verbs[verb]++
		}
	}
	return r
}

// expire ends the API server and has etcd forget what was: watches cannot go on where they were.
func expire(t *testing.T) {
	check(t, shared.API.Kill())
	var now struct {
		Header struct {
			Revision json.Number `json:"revision"`
		} `json:"header"`
	}
	check(t, json.Unmarshal(askEtcd(t, "put", `{"key":"dHVybm91dA==","value":"eA=="}`), &now))
	askEtcd(t, "compaction", fmt.Sprintf(`{"revision":%q}`, now.Header.Revision))
}

// askEtcd asks etcd by its JSON gateway, in which numbers of 64 bits are strings and bytes are base64.
func askEtcd(t *testing.T, what, body string) []byte {
	resp, err := http.Post("http://10.0.0.2:2379/v3/kv/"+what, "application/json", strings.NewReader(body))
	check(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	check(t, err)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("etcd says %d to %s: %s", resp.StatusCode, what, text)
	}
	return text
}

// slowEtcd stops etcd for 400 of each 500 ms, while routes change.
func slowEtcd(t *testing.T) {
	for range 10 {
		check(t, shared.Etcd.Pause())
		<-time.After(400 * time.Millisecond)
		check(t, shared.Etcd.Resume(t.Context()))
		<-time.After(100 * time.Millisecond)
	}
}

// alive are those of the routers that answer.
func alive(t *testing.T, routers []*replica) []*replica {
	var some []*replica
	for _, r := range routers {
		c, err := r.client.Dial(t.Context(), "tcp", net.JoinHostPort(r.ip, strconv.Itoa(httpPort)))
		if err == nil {
			some = append(some, r)
			check(t, c.Close())
		}
	}
	return some
}

// onOtherNodes are the routers that are not on the node that will be lost.
func onOtherNodes(t *testing.T, routers []*replica) []*replica {
	var some []*replica
	for _, r := range routers {
		p, err := shared.core.CoreV1().Pods(routerNamespace).Get(t.Context(), r.name, metav1.GetOptions{})
		check(t, err)
		if p.Spec.NodeName != nodes[2] {
			some = append(some, r)
		}
	}
	if len(some) == 0 {
		t.Fatal("all routers are on the node that is to be lost")
	}
	return some
}
