package recipes

// metric is one more counter of the pipeline.
var metric = addition{
	recipe: "A metric",
	places: []insertion{
		{"the package that knows it", "proxy/worker.go", "type Totals struct {", "\tThrowaway uint64"},
		{
			"`internal/metrics/names.go`, of routes and servers `table.go`", "internal/metrics/names.go", `gauge("turnout_requests_active"`,
			"\t\tcounter(\"turnout_throwaway_total\", \"Nothing.\", number(func(t proxy.Totals) uint64 { return t.Throwaway })),",
		},
		{"[metrics.md](metrics.md)", "docs/metrics.md", "| `turnout_requests_total` |", "| `turnout_throwaway_total` | counter | | nothing |"},
	},
	leftOut:  map[string]string{"for a new source of numbers only: `metrics.Config`, and `cmd/turnout` which fills it": "the totals are there already"},
	packages: []string{"./internal/metrics", "./internal/archtest"},
}
