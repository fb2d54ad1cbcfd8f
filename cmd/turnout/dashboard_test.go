package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var monitoring = filepath.Join("..", "..", "deploy", "monitoring")

// podless is a route whose service has no pod.
const podless = `apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: %[1]s, namespace: shop}
spec:
  host: %[1]s.example.com
  path: /%[2]d
  to: {kind: Service, name: nobody}
`

// panelQueries are those of the dashboard of deploy/monitoring, for all routers and routes. Those of mayBeEmpty are about what happens rarely.
func panelQueries(t *testing.T) (queries, mayBeEmpty []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(monitoring, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Annotations struct{ List []struct{ Expr string } }
		Templating  struct {
			List []struct{ Name, Type, Definition string }
		}
		Panels []struct {
			Type, Title string
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	fill := []string{"$__rate_interval", "5s"}
	for _, v := range dashboard.Templating.List {
		fill = append(fill, "$"+v.Name, ".*")
		if series, ok := strings.CutPrefix(v.Definition, "label_values("); ok {
			at := strings.LastIndex(series, ", ")
			queries = append(queries, "count by ("+series[at+2:]+"("+series[:at]+")")
		}
	}
	rare := []string{
		"_queue", "turnout_route_ejections_total", "turnout_route_checks_failed_total", "_connection_errors_total", "_response_errors_total", "turnout_route_tunnels_open",
		"turnout_bound_reached_total", "turnout_status_",
	}
	add := func(query string) {
		for _, name := range rare {
			if strings.Contains(query, name) {
				mayBeEmpty = append(mayBeEmpty, query)
				return
			}
		}
		queries = append(queries, query)
	}
	for _, a := range dashboard.Annotations.List {
		add(a.Expr)
	}
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 && p.Type != "row" {
			t.Errorf("%s asks for nothing", p.Title)
		}
		for _, target := range p.Targets {
			add(target.Expr)
		}
	}
	if len(queries) < 60 {
		t.Fatalf("the dashboard has only %d queries", len(queries))
	}
	names := strings.NewReplacer(fill...)
	for _, list := range [][]string{queries, mayBeEmpty} {
		for i := range list {
			if list[i] = names.Replace(list[i]); strings.Contains(list[i], "$") {
				t.Errorf("a variable that there is not: %s", list[i])
			}
		}
	}
	return queries, mayBeEmpty
}

// checkRules waits until each alert was evaluated: none with an error.
func (p *prometheus) checkRules(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		response, err := http.Get("http://" + p.addr + "/api/v1/rules")
		if err != nil {
			t.Fatal(err)
		}
		var said struct {
			Data struct {
				Groups []struct {
					Rules []struct{ Name, Health, LastError, State string }
				}
			}
		}
		err = json.NewDecoder(response.Body).Decode(&said)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		alerts, waiting := 0, 0
		for _, g := range said.Data.Groups {
			for _, r := range g.Rules {
				alerts++
				switch {
				case r.Health == "unknown":
					waiting++
				case r.Health != "ok" || r.State == "firing":
					t.Errorf("alert %s is %s and %s: %s", r.Name, r.Health, r.State, r.LastError)
				}
			}
		}
		if alerts < 20 {
			t.Fatalf("only %d alerts", alerts)
		}
		if waiting == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d alerts were not evaluated", waiting)
		}
	}
}
