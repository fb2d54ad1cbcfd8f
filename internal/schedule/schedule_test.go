package schedule

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/zap"

	"turnout/controller/shard"
	"turnout/controller/shard/scheduler"
	"turnout/internal/option"
)

func nothing(string) (string, bool) { return "", false }

// TestOptions: what is wrong in the command line is said before anything is asked.
func TestOptions(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--admin-addr nowhere", "--admin-addr"},
		{"--log-level loud", "--log-level"},
		{"--kubeconfig /nowhere/at/all --identity me", "/nowhere/at/all"},
		{"--manifests dir", "manifests"},
	} {
		err := Run(context.Background(), strings.Fields(c.args), nothing, "test", io.Discard, func() {})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want something with %q", c.args, err, c.want)
		}
	}
}

// TestAdminPort: a scheduler answers probes and scrapes while it cannot reach an API server.
func TestAdminPort(t *testing.T) {
	o := new(Options)
	if _, _, err := option.Parse(o.Table(), nil, strings.Fields("--server http://127.0.0.1:1 --identity me --admin-addr 127.0.0.1:0 --admin-open"), nothing); err != nil {
		t.Fatal(err)
	}
	lines := &addresses{found: make(chan string, 1)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.run(ctx, "test", zap.NewExample(zap.WrapCore(lines.core))) }()
	base := "http://" + <-lines.found
	for path, want := range map[string]string{"/healthz": "", "/healthz/ready": "", "/metrics": "turnout_scheduler_leading 0"} {
		resp, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		_, err = body.ReadFrom(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(body.String(), want) {
			t.Errorf("%s: %s, %v: %s", path, resp.Status, err, body.String())
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestCounted: each count has the name that docs/metrics.md has.
func TestCounted(t *testing.T) {
	s := &scheduler.Stats{Leading: true, Troubles: map[shard.Reason]int{shard.ReasonNoRouter: 3}, Routers: map[shard.RouterPhase]int{"": 1, shard.RouterLost: 2}}
	s.Summary.Bound, s.Counts.Placed = 7, 8
	s.Counts.Actions[shard.MarkLeaving], s.Counts.Results[shard.NotFound] = 4, 5
	m := counted(s)
	if !m.Leading || m.Bound != 7 || m.Placed != 8 || m.Troubles["NoRouter"] != 3 || m.Routers["Pending"] != 1 || m.Routers["Lost"] != 2 || m.Actions["mark-leaving"] != 4 || m.Results["not-found"] != 5 {
		t.Errorf("%+v", m)
	}
}
