package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var monitoring = filepath.Join("..", "..", "deploy", "monitoring")

// decode reads a file of deploy/monitoring; a field that T does not have fails the test.
func decode[T any](t *testing.T, name string) (value T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(monitoring, name))
	if err == nil {
		err = yaml.UnmarshalStrict(text, &value)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return value
}

// rules is a file of rules of Prometheus, and the spec of a PrometheusRule.
type rules struct {
	Groups []struct {
		Name  string  `json:"name"`
		Rules []alert `json:"rules"`
	} `json:"groups"`
}

type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// ruleTests is a file of tests of rules, as far as ours go.
type ruleTests struct {
	Files    []string `json:"rule_files"`
	Interval string   `json:"evaluation_interval"`
	Tests    []struct {
		Name     string `json:"name"`
		Interval string `json:"interval"`
		Series   []struct {
			Series string `json:"series"`
			Values string `json:"values"`
		} `json:"input_series,omitempty"`
		Alerts []struct {
			Name   string           `json:"alertname"`
			Time   string           `json:"eval_time"`
			Expect []map[string]any `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

// TestAlerts has promtool run the tests of the alerts. Of each there is one that fires and one that does not.
func TestAlerts(t *testing.T) {
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range decode[ruleTests](t, "alerts_test.yaml").Tests {
		for _, a := range test.Alerts {
			if len(a.Expect) > 0 {
				fires[a.Name] = true
			} else {
				quiet[a.Name] = true
			}
		}
	}
	for _, group := range decode[rules](t, "alerts.yaml").Groups {
		for _, a := range group.Rules {
			if !fires[a.Alert] || !quiet[a.Alert] {
				t.Errorf("%s: a test that it fires: %t, that it does not: %t", a.Alert, fires[a.Alert], quiet[a.Alert])
			}
			if s := a.Labels["severity"]; !slices.Contains([]string{"critical", "warning", "info"}, s) || a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
				t.Errorf("%s has severity %q and annotations %v", a.Alert, s, a.Annotations)
			}
		}
	}
	program, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("needs promtool, which .ci/run installs")
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		c := exec.CommandContext(t.Context(), program, args...)
		c.Dir = monitoring
		if text, err := c.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, text)
		}
	}
}

// TestPrometheusRule: it has the rules of the plain file.
func TestPrometheusRule(t *testing.T) {
	monitor, object := decode[serviceMonitor](t, "servicemonitor.yaml"), decode[struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name      string            `json:"name"`
			Namespace string            `json:"namespace"`
			Labels    map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec rules `json:"spec"`
	}](t, "prometheusrule.yaml")
	if object.APIVersion != monitor.APIVersion || object.Kind != "PrometheusRule" || object.Metadata.Namespace != monitor.Metadata.Namespace {
		t.Errorf("the object is %s %s of %s", object.APIVersion, object.Kind, object.Metadata.Namespace)
	}
	if !reflect.DeepEqual(object.Spec, decode[rules](t, "alerts.yaml")) {
		t.Error("prometheusrule.yaml has other rules than alerts.yaml: make rules")
	}
}

// TestRunbooks: each alert leads to a section of docs/troubleshooting.md.
func TestRunbooks(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	anchors := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^#+ (.*)$").FindAllStringSubmatch(string(text), -1) {
		anchor := regexp.MustCompile("[^a-z0-9 -]").ReplaceAllString(strings.ToLower(m[1]), "")
		anchors[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	for _, group := range decode[rules](t, "alerts.yaml").Groups {
		for _, a := range group.Rules {
			if anchor, ok := strings.CutPrefix(a.Annotations["runbook_url"], "https://docs.example.com/turnout/troubleshooting.md#"); !ok || !anchors[anchor] {
				t.Errorf("%s leads to %q, which docs/troubleshooting.md does not have", a.Alert, a.Annotations["runbook_url"])
			}
		}
	}
}

// knownMetrics are the names in docs/metrics.md, which has all of them: internal/metrics compares. Histograms and summaries are there with their series.
func knownMetrics(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+) \\|").FindAllStringSubmatch(string(text), -1) {
		known[m[1]] = true
		if m[2] == "histogram" || m[2] == "summary" {
			known[m[1]+"_sum"], known[m[1]+"_count"], known[m[1]+"_bucket"] = true, true, m[2] == "histogram"
		}
	}
	if len(known) < 100 {
		t.Fatalf("only %d metrics found in docs/metrics.md", len(known))
	}
	return known
}

// TestMetricNames: alerts, their tests, the dashboard and the documentation name metrics that there are. A name that ends with an underscore is the
// beginning of several.
func TestMetricNames(t *testing.T) {
	known, docs := knownMetrics(t), filepath.Join("..", "..", "docs")
	name := regexp.MustCompile(`\b(?:turnout|haproxy|template_router)_[a-z0-9_]+`)
	least := map[string]int{filepath.Join(docs, "troubleshooting.md"): 10}
	for _, file := range []string{"alerts.yaml", "alerts_test.yaml", "dashboard.json"} {
		least[filepath.Join(monitoring, file)] = 20
	}
	chapters, err := filepath.Glob(filepath.Join(docs, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range chapters {
		least[file] += 0
	}
	for file, n := range least {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := name.FindAllString(string(text), -1)
		if len(found) < n {
			t.Errorf("%s has only %d names", file, len(found))
		}
		slices.Sort(found)
		for _, n := range slices.Compact(found) {
			if !known[n] && !strings.HasSuffix(n, "_") {
				t.Errorf("%s names %s, which there is not", file, n)
			}
		}
	}
}

// TestMetricsSearched: what docs/troubleshooting.md has grep look for among the metrics is in the name of one, each alternative of a pattern. Those of
// Go and of the process are not looked at.
func TestMetricsSearched(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for name := range knownMetrics(t) {
		lines = append(lines, name+"{")
	}
	commands := regexp.MustCompile(`/metrics \\?\| grep (?:-E )?(?:'([^']*)'|([a-z_]+))`).FindAllStringSubmatch(string(text), -1)
	if len(commands) < 5 {
		t.Errorf("only %d commands", len(commands))
	}
	for _, c := range commands {
		pattern := strings.ReplaceAll(c[1]+c[2], `\|`, "|") // as in a table
		pattern = regexp.MustCompile(`([a-z_]*)\(([a-z_]*)\|([a-z_]*)\)`).ReplaceAllString(pattern, "$1$2|$1$3")
		for part := range strings.SplitSeq(pattern, "|") {
			search, err := regexp.Compile(part)
			if err != nil {
				t.Errorf("%s: %v", c[0], err)
				continue
			}
			if !slices.ContainsFunc(lines, search.MatchString) && !strings.HasPrefix(part, "^go_") && !strings.HasPrefix(part, "^process_") {
				t.Errorf("%s: no metric has %s", c[0], part)
			}
		}
	}
}

// TestDashboard: each panel has a number of its own, a place that no other has, and asks the data source that is chosen.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(monitoring, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	type source struct{ Type, UID string }
	var dashboard struct {
		Panels []struct {
			ID          int
			Type, Title string
			GridPos     struct{ X, Y, W, H int }
			Datasource  source
			Targets     []struct {
				RefID, Expr string
				Datasource  source
			}
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	ids, cells, want := map[int]bool{}, map[[2]int]string{}, source{"prometheus", "${datasource}"}
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.GridPos.X+p.GridPos.W > 24 || p.GridPos.W*p.GridPos.H == 0 {
			t.Errorf("panel %d, %s, is at %v", p.ID, p.Title, p.GridPos)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := cells[cell]; other != "" {
					t.Fatalf("%s is where %s is", p.Title, other)
				}
				cells[cell] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if target.Datasource != want || p.Datasource != want || target.RefID == "" || refs[target.RefID] {
				t.Errorf("%s asks %v for %q", p.Title, target.Datasource, target.RefID)
			}
			refs[target.RefID] = true
		}
	}
}

// TestKustomization: kubectl makes of it the three objects, the dashboard as Grafana's sidecar finds it.
func TestKustomization(t *testing.T) {
	program, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("needs kubectl, which .ci/run installs")
	}
	text, err := exec.CommandContext(t.Context(), program, "kustomize", monitoring).Output()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, document := range documents(t, "kustomization.yaml", text) {
		var object struct {
			Kind     string
			Metadata struct {
				Name, Namespace string
				Labels          map[string]string
			}
			Data map[string]string
		}
		if err := yaml.Unmarshal(document, &object); err != nil {
			t.Fatal(err)
		}
		kinds[object.Kind] = true
		if object.Metadata.Namespace != "turnout" {
			t.Errorf("%s is of namespace %q", object.Kind, object.Metadata.Namespace)
		}
		if object.Kind == "ConfigMap" && (object.Metadata.Labels["grafana_dashboard"] != "1" || !json.Valid([]byte(object.Data["dashboard.json"]))) {
			t.Errorf("the dashboard has labels %v", object.Metadata.Labels)
		}
	}
	if want := map[string]bool{"ConfigMap": true, "ServiceMonitor": true, "PrometheusRule": true}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("it makes %v", kinds)
	}
}
