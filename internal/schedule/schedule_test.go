package schedule

import (
	"context"
	"io"
	"strings"
	"testing"

	"turnout/controller/shard"
	"turnout/controller/shard/scheduler"
	"turnout/internal/elected"
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
		err := Run(context.Background(), elected.Call{Args: strings.Fields(c.args), Env: nothing, Agent: "test", Stderr: io.Discard, Exit: func() {}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want something with %q", c.args, err, c.want)
		}
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
