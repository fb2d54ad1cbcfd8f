package metrics

import (
	"maps"
	"os"
	"strings"
	"testing"
)

// own are metrics with the names of the HAProxy router that it does not export by default, or not at all.
var own = map[string]bool{
	"haproxy_backend_max_queue": true, "haproxy_server_max_queue": true, "haproxy_backend_weight": true, "haproxy_server_weight": true,
	"haproxy_backend_http_average_total_latency_milliseconds": true, "haproxy_server_http_average_total_latency_milliseconds": true,
}

// TestMetricsOfTheHAProxyRouter holds names, types and labels against those of the HAProxy router.
func TestMetricsOfTheHAProxyRouter(t *testing.T) {
	text, err := os.ReadFile("testdata/haproxy-router.txt")
	if err != nil {
		t.Fatal(err)
	}
	byDefault, all := declared(t, nil), declared(t, everyColumn())
	maps.Copy(byDefault, ofProcess(t))
	maps.Copy(all, ofProcess(t))
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if f[0] == "#" {
			continue
		}
		name, want, exported := f[0], f[1]+" "+strings.Trim(f[2], "-"), f[3] == "default"
		if all[name] != want {
			t.Errorf("%s is %q, the HAProxy router has %q", name, all[name], want)
		}
		if got, ok := byDefault[name]; ok != exported && !own[name] {
			t.Errorf("%s is exported by default: %t (%q), the HAProxy router: %t", name, ok, got, exported)
		}
		delete(all, name)
		delete(byDefault, name)
	}
	for name := range all {
		if (strings.HasPrefix(name, "haproxy_") || strings.HasPrefix(name, "template_router_")) && !own[name] {
			t.Errorf("the HAProxy router has no %s", name)
		}
	}
}

// ofProcess are the metrics of the process by the names of the HAProxy router, as declared has others. What it counts of the network is new in the
// library, and has no counterpart.
func ofProcess(t *testing.T) map[string]string {
	t.Helper()
	h, err := New(config(t))
	if err != nil {
		t.Fatal(err)
	}
	families, err := h.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "haproxy_process_") && !strings.Contains(f.GetName(), "_network_") {
			all[f.GetName()] = declaration(strings.ToLower(f.GetType().String()), nil)
		}
	}
	return all
}

// TestColumnsThatAreAskedFor: the list of columns is all that is exported, and what means nothing here is nothing.
func TestColumnsThatAreAskedFor(t *testing.T) {
	columns, err := ParseColumns("4, 10,40,18")
	if err != nil {
		t.Fatal(err)
	}
	cfg := config(t)
	cfg.Columns = columns
	for name := range scrape(t, cfg) {
		family, _, _ := strings.Cut(name, "{")
		switch _, column, _ := strings.Cut(strings.TrimPrefix(family, "haproxy_"), "_"); {
		case !strings.HasPrefix(family, "haproxy_frontend_") && !strings.HasPrefix(family, "haproxy_backend_") && !strings.HasPrefix(family, "haproxy_server_"):
		case column == "current_sessions" || column == "weight" || column == "http_responses_total" && strings.Contains(name, "code=2xx"):
		default:
			t.Errorf("%s is exported", name)
		}
	}
	for _, list := range []string{"", "4,", "4,x", "-1", "4 5"} {
		if got, err := ParseColumns(list); err == nil {
			t.Errorf("%q is read as %v", list, got)
		}
	}
}
