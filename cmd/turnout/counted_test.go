package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestRequestsAreCounted: eight requests without a body are eight answers of the front end, the route and the server, with the bytes of heads.
func TestRequestsAreCounted(t *testing.T) {
	p := startRouter(t, nil, "run", "--admin-open", "--manifests", siteDir(t, backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })))
	for range 8 {
		if status, body := get(t, "http://"+p.http+"/", "front.example.com"); status != 200 || body != "hello" {
			t.Fatal(status, body)
		}
	}
	_, text := get(t, "http://"+p.admin+"/metrics", p.admin)
	for _, series := range []string{
		"haproxy_frontend_http_responses_total{code=\"2xx\",frontend=\"public\"} 8",
		"haproxy_backend_http_responses_total{backend=\"https-edge\",code=\"2xx\",namespace=\"shop\",route=\"front\"} 8",
		"haproxy_backend_connections_total{backend=\"https-edge\",namespace=\"shop\",route=\"front\"} 8",
		"haproxy_backend_current_sessions{backend=\"https-edge\",namespace=\"shop\",route=\"front\"} 0",
		"turnout_route_request_duration_seconds_count{namespace=\"shop\",route=\"front\"} 8",
	} {
		if !strings.Contains(text, series+"\n") {
			t.Errorf("there is no %s", series)
		}
	}
	answered := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "haproxy_server_http_responses_total{code=\"2xx\"") && strings.Contains(line, "route=\"front\"") && strings.HasSuffix(line, " 8\n") {
			answered++
		}
		if strings.HasPrefix(line, "haproxy_server_bytes_in_total{") && strings.Contains(line, "route=\"front\"") && strings.HasSuffix(line, " 0\n") {
			t.Errorf("no bytes are counted: %s", line)
		}
	}
	if answered != 1 {
		t.Errorf("the server has not eight answers in\n%s", text)
	}
}
