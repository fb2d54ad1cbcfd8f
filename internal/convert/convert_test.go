package convert

import (
	"context"
	"io"
	"strings"
	"testing"

	"turnout/controller/ingress/converter"
	"turnout/internal/elected"
)

func nothing(string) (string, bool) { return "", false }

// TestOptions: what is wrong in the command line is said before anything is asked.
func TestOptions(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--class-controller example.com", "--class-controller"},
		{"--log-level loud", "--log-level"},
		{"--kubeconfig /nowhere/at/all --identity me", "/nowhere/at/all"},
	} {
		err := Run(context.Background(), elected.Call{Args: strings.Fields(c.args), Env: nothing, Agent: "test", Stderr: io.Discard, Exit: func() {}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want something with %q", c.args, err, c.want)
		}
	}
}

// TestCounted: each count has its metric.
func TestCounted(t *testing.T) {
	m := counted(&converter.Stats{
		Leading: true, Ingresses: 1, Routes: 2, Failing: 3, Created: 4, Updated: 5, Deleted: 6, Failed: 7,
		Classless: []converter.Object{{Namespace: "ns", Name: "a"}}, Unmanaged: []converter.Object{{Namespace: "ns", Name: "b", Host: "h"}},
	})
	if !m.Leading || m.Ingresses != 1 || m.Routes != 2 || m.Failing != 3 || m.Created != 4 || m.Updated != 5 || m.Deleted != 6 || m.Failed != 7 ||
		len(m.Classless) != 1 || m.Classless[0].Name != "a" || len(m.Unmanaged) != 1 || m.Unmanaged[0].Host != "h" {
		t.Errorf("%+v", m)
	}
}
