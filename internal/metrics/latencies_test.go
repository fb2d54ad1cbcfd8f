package metrics

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"

	"turnout/internal/traffic"
	"turnout/proxy"
	"turnout/routing"
)

// measuring is a config with requests of 3 ms and 2 s, of which one with a trace that is recorded; those of edge-route took 2 s.
func measuring(t *testing.T) Config {
	cfg := config(t)
	cfg.Routes = []string{"ns/edge-route"}
	cfg.Latencies = func(followed func(uint32) bool) *proxy.Latencies {
		scale := traffic.NewScale()
		var requests, route traffic.Histogram
		requests.Observe(3*time.Millisecond, scale)
		class := requests.Observe(2*time.Second, scale)
		requests.Exemplars[class] = traffic.Exemplar{Took: 2 * time.Second, At: time.Unix(1700000000, 0), Trace: [16]byte{0xab}, Span: [8]byte{0xcd}}
		route.Observe(2*time.Second, scale)
		l := &proxy.Latencies{Routes: map[uint32]*traffic.Histogram{1: &route}}
		l.Requests[routing.TermEdge][2] = &requests
		if !followed(1) || followed(2) {
			t.Error("not the route that is named is followed, and it alone")
		}
		return l
	}
	return cfg
}

// ask scrapes in the format of an Accept header.
func ask(t *testing.T, cfg Config, accept string) *httptest.ResponseRecorder {
	t.Helper()
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", accept)
	h.ServeHTTP(w, r)
	return w
}

func TestLatencyHistograms(t *testing.T) {
	text := ask(t, measuring(t), "application/openmetrics-text; version=1.0.0").Body.String()
	for _, line := range []string{
		`turnout_request_duration_seconds_bucket{code="2xx",termination="edge",le="0.005"} 1`,
		`turnout_request_duration_seconds_bucket{code="2xx",termination="edge",le="2.5"} 2 # {span_id="cd00000000000000",trace_id="ab000000000000000000000000000000"} 2.0 1.7e+09`,
		`turnout_request_duration_seconds_count{code="2xx",termination="edge"} 2`,
		`turnout_request_duration_seconds_sum{code="2xx",termination="edge"} 2.003`,
		`turnout_route_latency_seconds_sum{namespace="ns",route="edge-route"} 2.0`,
		`turnout_route_latency_seconds_count{namespace="",route="other"} 1`,
		`turnout_route_request_duration_seconds_count{namespace="ns",route="edge-route"} 0`,
		`# TYPE turnout_route_errors counter`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("there is no line %s", line)
		}
	}
	if !strings.HasSuffix(text, "\n# EOF\n") {
		t.Error("the text has no end")
	}
}

// TestFormatsAgree: Protocol Buffers say the same as text, and have native histograms besides.
func TestFormatsAgree(t *testing.T) {
	cfg := measuring(t)
	for r := range cfg.Table().Routes {
		r.Stats().Ended.Add(300)
		r.Stats().CountBytes(1<<40, 5)
	}
	texts := decoded(t, ask(t, cfg, "text/plain"))
	binary := decoded(t, ask(t, cfg, "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"))
	if len(texts) < 100 || len(texts) != len(binary) {
		t.Errorf("%d families as text, %d in Protocol Buffers", len(texts), len(binary))
	}
	for name, want := range texts {
		if strings.HasPrefix(name, "go_") || strings.Contains(name, "process_") || name == "haproxy_exporter_total_scrapes" {
			continue
		}
		got := binary[name]
		if h := got.GetMetric(); name == "turnout_request_duration_seconds" {
			if h := h[0].GetHistogram(); h.GetSchema() != traffic.Schema || len(h.PositiveDelta) != 2 || len(h.PositiveSpan) != 2 || h.PositiveSpan[1].GetOffset() != 74 {
				t.Errorf("the native histogram is %v", h)
			}
		}
		for _, m := range got.GetMetric() {
			slices.SortFunc(m.Label, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
			if h := m.Histogram; h != nil {
				h.Schema, h.ZeroThreshold, h.ZeroCount, h.PositiveDelta, h.PositiveSpan, h.Exemplars = nil, nil, nil, nil, nil, nil
				for _, b := range h.Bucket {
					b.Exemplar = nil
				}
			}
		}
		for _, m := range want.GetMetric() {
			if h := m.Histogram; h != nil { // the text has a bucket for what is above all bounds
				h.Bucket = h.Bucket[:len(h.Bucket)-1]
			}
		}
		if !proto.Equal(want, got) {
			t.Errorf("text: %v\nProtocol Buffers: %v", want, got)
		}
	}
}

// decoded reads an answer, whatever its format.
func decoded(t *testing.T, w *httptest.ResponseRecorder) map[string]*dto.MetricFamily {
	t.Helper()
	decoder, all := expfmt.NewDecoder(w.Body, expfmt.ResponseFormat(w.Header())), map[string]*dto.MetricFamily{}
	for {
		f := new(dto.MetricFamily)
		switch err := decoder.Decode(f); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("%v after %d families", err, len(all))
		}
		all[f.GetName()] = f
	}
}

// TestFollower: who is named is followed, and of the others those with the most requests, without coming and going.
func TestFollower(t *testing.T) {
	table := fixture(t)
	stats := map[string]*routing.Stats{}
	for r := range table.Routes {
		stats[r.Name()] = r.Stats()
	}
	f := follower{most: 1, named: map[objectKey]struct{}{{"ns", "http-route"}: {}, {"ns", "gone"}: {}}}
	now := time.Unix(1000, 0)
	step := func(what string, later time.Duration, requests map[string]int, want string) {
		t.Helper()
		for name, n := range requests {
			for range n {
				stats[name].Sessions.Begin(0)
			}
		}
		now = now.Add(later)
		got := map[string]uint32{}
		for _, of := range f.choose(backends(table), now) {
			got[of.name] = of.id
		}
		for name, s := range stats {
			if s.Followed.Load() != got[name] {
				t.Errorf("%s: %s was told %d, not %d", what, name, s.Followed.Load(), got[name])
			}
		}
		if text := fmt.Sprint(got); text != want {
			t.Errorf("%s: %s, want %s", what, text, want)
		}
	}
	step("only who is named", 0, nil, "map[http-route:1]")
	step("the next moment", roomPause/2, map[string]int{"edge-route": 10}, "map[http-route:1]")
	step("there is room for the one with requests", roomPause, map[string]int{"http-route": 50}, "map[edge-route:2 http-route:1]")
	step("too early for another choice", choicePause/2, map[string]int{"reencrypt-route": 5}, "map[edge-route:2 http-route:1]")
	step("another one has a few more", choicePause, map[string]int{"edge-route": 10, "reencrypt-route": 10}, "map[edge-route:2 http-route:1]")
	step("another one has many more", choicePause, map[string]int{"edge-route": 10, "reencrypt-route": 30}, "map[http-route:1 reencrypt-route:3]")
	step("no requests at all", choicePause, nil, "map[http-route:1 reencrypt-route:3]")
}

// TestFollowWithoutScrapes: who shows latencies has them measured, though nobody scrapes.
func TestFollowWithoutScrapes(t *testing.T) {
	cfg := config(t)
	cfg.TopRoutes, cfg.Latencies = 1, func(func(uint32) bool) *proxy.Latencies { return &proxy.Latencies{} }
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	followed := 0
	for r := range cfg.Table().Routes {
		r.Stats().Sessions.Begin(0)
	}
	h.Follow()
	for r := range cfg.Table().Routes {
		if r.Stats().Followed.Load() != 0 {
			followed++
		}
	}
	if followed != 1 {
		t.Errorf("%d routes are followed", followed)
	}
	cfg.Latencies = nil
	if h, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	h.Follow() // there is nothing to choose for
}

func TestRoutesThatAreNamed(t *testing.T) {
	cfg := config(t)
	cfg.Routes = []string{"no-slash"}
	if _, err := New(cfg); err == nil {
		t.Error("a route without a namespace is accepted")
	}
}
