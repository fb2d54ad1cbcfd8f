package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"turnout/internal/testkit/testotlp"
	"turnout/internal/tracing"
	"turnout/proxy"
)

// TestTracesOfARouter: a request through the whole router, with variables as an operator sets them, is in the collector what the pod and the access
// log say; by each protocol.
func TestTracesOfARouter(t *testing.T) {
	t.Parallel()
	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	var told atomic.Value
	pod := backend(t, func(w http.ResponseWriter, r *http.Request) {
		told.Store(r.Header.Get("Traceparent") + " " + r.Header.Get("Tracestate"))
		_, _ = io.WriteString(w, "hello")
	})
	c := testotlp.Start(t)
	for i, env := range [][]string{
		{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.GRPC, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.HTTP},
	} {
		logFile := filepath.Join(t.TempDir(), "access.log")
		env = append(env, "OTEL_SERVICE_NAME=edge", "OTEL_TRACES_SAMPLER=parentbased_always_off", "OTEL_BSP_SCHEDULE_DELAY=10")
		p := startRouter(t, env, "run", "--manifests", siteDir(t, pod), "--access-log", logFile)
		ask := func(flags string) {
			t.Helper()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.http+"/x?y=1", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Host = "front.example.com"
			request.Header.Set("Traceparent", "00-"+trace+"-"+parent+"-"+flags)
			request.Header.Set("Tracestate", "a=1")
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != 200 {
				t.Fatal(answer.Status, err)
			}
		}
		ask("00") // and this one is not recorded
		ask("01")
		spans := c.Wait(t, 2*i+2)[2*i:]
		slices.SortFunc(spans, func(a, b testotlp.Span) int { return strings.Compare(b.Kind, a.Kind) })
		server, client := spans[0], spans[1]
		if server.Kind != "SERVER" || server.Trace != trace || server.Parent != parent || server.Name != "GET /" || client.Trace != trace || client.Parent != server.ID ||
			server.Resource["service.name"] != "edge" || server.Attributes["turnout.route"] != "front" || client.Attributes["http.response.status_code"] != "200" {
			t.Errorf("spans %+v", spans)
		}
		if want := "00-" + trace + "-" + client.ID + "-01 a=1"; told.Load() != want {
			t.Errorf("the pod was told %q, want %q", told.Load(), want)
		}
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if got := p.status(); got != 0 {
			t.Errorf("status %d after SIGTERM", got)
		}
		lines, err := os.ReadFile(logFile)
		if err != nil {
			t.Fatal(err)
		}
		var line struct {
			Trace   string `json:"trace_id"`
			Span    string `json:"span_id"`
			Sampled bool   `json:"trace_sampled"`
		}
		last := strings.Split(strings.TrimSpace(string(lines)), "\n")[1]
		if err := json.Unmarshal([]byte(last), &line); err != nil || line.Trace != trace || line.Span != server.ID || !line.Sampled {
			t.Errorf("%v, the access log has %s", err, last)
		}
	}
}

// TestFrozenCollector: a collector that takes connections and never answers is no matter to requests, to what is counted, or to the end of the process.
func TestFrozenCollector(t *testing.T) {
	c := testotlp.Start(t)
	c.Freeze()
	pod := backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	p := startRouter(t, []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.GRPC, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_BSP_SCHEDULE_DELAY=10", "OTEL_BSP_MAX_QUEUE_SIZE=20", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=10",
	}, "run", "--manifests", siteDir(t, pod), "--threads", "1")
	get(t, "http://"+p.http+"/", "front.example.com")
	<-c.Asked() // from now on it waits for an answer
	const requests = 800
	for range requests {
		if status, _ := get(t, "http://"+p.http+"/", "front.example.com"); status != 200 {
			t.Fatal(status)
		}
	}
	_, text := get(t, "http://"+p.admin+"/metrics", "")
	dropped := 0
	if m := regexp.MustCompile(`(?m)^turnout_traced_requests_dropped_total (\d+)$`).FindStringSubmatch(text); m != nil {
		_, _ = fmt.Sscan(m[1], &dropped)
	}
	if dropped < requests-512-40 || dropped > requests-512 { // a ring and, with two spans each, a queue and a batch fit
		t.Errorf("%d requests without spans were counted", dropped)
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if got := p.status(); got != 0 || time.Since(began) > 20*time.Second {
		t.Errorf("status %d, %v after SIGTERM", got, time.Since(began))
	}
}

// TestTracingOptions: what variables and flags come to.
func TestTracingOptions(t *testing.T) {
	const w3c = proxy.TraceW3C
	for _, c := range []struct {
		env      string
		args     string
		exporter tracing.Config // only protocol and endpoint are looked at
		requests proxy.TracingConfig
		off      bool
		warnings int
	}{
		{off: true},
		{env: "OTEL_TRACES_SAMPLER=always_on", off: true},
		{env: "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318 OTEL_SDK_DISABLED=true", off: true},
		{env: "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318 OTEL_TRACES_EXPORTER=none", off: true},
		{env: "OTEL_EXPORTER_OTLP_ENDPOINT=c:4318", off: true, warnings: 1},
		{env: "OTEL_TRACES_EXPORTER=otlp", requests: proxy.TracingConfig{Formats: w3c, ParentBased: true, Ratio: 1, ClientRate: 100}},
		{env: "OTEL_TRACES_EXPORTER=zipkin", off: true, warnings: 1},
		{env: "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318/", exporter: tracing.Config{Endpoint: "http://c:4318/v1/traces"}, requests: proxy.TracingConfig{Formats: w3c, ParentBased: true, Ratio: 1, ClientRate: 100}},
		{
			env:      "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318 OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://d/x OTEL_TRACES_SAMPLER=parentbased_traceidratio OTEL_TRACES_SAMPLER_ARG=0.25 OTEL_PROPAGATORS=b3,b3multi",
			exporter: tracing.Config{Endpoint: "https://d/x"}, requests: proxy.TracingConfig{Formats: proxy.TraceB3 | proxy.TraceB3Multi, ParentBased: true, Ratio: 0.25, ClientRate: 100},
		},
		{
			env: "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317 OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_TRACES_SAMPLER=always_off OTEL_PROPAGATORS=none", args: "--http-trace-context link --https-trace-context ignore --trace-client-rate 0",
			exporter: tracing.Config{Protocol: tracing.GRPC, Endpoint: "http://c:4317"}, requests: proxy.TracingConfig{Plain: proxy.TraceLink, Secure: proxy.TraceIgnore},
		},
		{
			env: "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317 OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json OTEL_TRACES_SAMPLER=jaeger_remote OTEL_TRACES_SAMPLER_ARG=2 OTEL_PROPAGATORS=xray", warnings: 3,
			exporter: tracing.Config{Protocol: tracing.HTTPJSON, Endpoint: "http://c:4317/v1/traces"}, requests: proxy.TracingConfig{Formats: w3c, ParentBased: true, Ratio: 1, ClientRate: 100},
		},
		{
			env: "OTEL_TRACES_EXPORTER=otlp OTEL_TRACES_SAMPLER_ARG=0.5", warnings: 1, // it has no effect
			requests: proxy.TracingConfig{Formats: w3c, ParentBased: true, Ratio: 1, ClientRate: 100},
		},
	} {
		o, warnings, err := parseOptions(strings.Fields(c.args), envOf(strings.FieldsFunc(c.env, func(r rune) bool { return r == ' ' || r == '=' })...))
		if err != nil || len(warnings) != c.warnings {
			t.Errorf("%s: %v, %q", c.env, err, warnings)
			continue
		}
		if o.tracing.On() == c.off {
			t.Errorf("%s: on is %v", c.env, o.tracing.On())
		}
		if c.off {
			continue
		}
		if got := o.tracing.ExporterConfig(); got.Protocol != c.exporter.Protocol || got.Endpoint != c.exporter.Endpoint {
			t.Errorf("%s: spans go to %+v", c.env, got)
		}
		if got := o.tracing.RequestsConfig(nil); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.requests) {
			t.Errorf("%s: got %+v, want %+v", c.env, got, c.requests)
		}
	}
	if _, _, err := parseOptions([]string{"--trace-sampler-arg", "2"}, envOf()); err == nil || !strings.Contains(err.Error(), `--trace-sampler-arg "2" is not valid; allowed: a number from 0 to 1`) {
		t.Error(err)
	}
}
