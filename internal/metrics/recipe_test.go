package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"turnout/proxy"
)

// TestRecipeOfAMetric adds a metric by the recipe of docs/hacking.md: one declaration in the family of its totals and one row of
// docs/metrics.md. Nothing else is needed to scrape it, and each of the two without the other is noticed.
func TestRecipeOfAMetric(t *testing.T) {
	const name, row = "turnout_throwaway_total", "| `turnout_throwaway_total` | counter | `port` | nothing |\n"
	cfg := config(t)
	without, err := newCollector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCollector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.totals = append(c.totals, counter(name, "Nothing.", func(_ proxy.Totals, send send) { send(7, "http") }, "port"))

	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if want := name + `{port="http"} 7`; !strings.Contains(answer.Body.String(), want) {
		t.Errorf("%s is not scraped", want)
	}
	page := metricsPage(t)
	if wrong := misdocumented(c, page+row); wrong != nil {
		t.Errorf("another place is needed: %q", wrong)
	}
	if wrong := misdocumented(c, page); len(wrong) != 1 || !strings.Contains(wrong[0], name) {
		t.Errorf("a metric without a row: %q", wrong)
	}
	if wrong := misdocumented(without, page+row); len(wrong) != 1 || !strings.Contains(wrong[0], name) {
		t.Errorf("a row without a metric: %q", wrong)
	}
}
