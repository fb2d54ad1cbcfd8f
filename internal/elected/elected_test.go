package elected

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/zap"

	"turnout/internal/admin"
	"turnout/internal/metrics"
	"turnout/internal/option"
)

func nothing(string) (string, bool) { return "", false }

// show has the admin port show the metrics of a scheduler.
func show(cfg *admin.Config) (err error) {
	cfg.Metrics, err = metrics.NewScheduler(func() metrics.Scheduler { return metrics.Scheduler{} })
	return err
}

// TestAdminPort: a process answers probes and scrapes while it cannot reach an API server, and ends when it is told to.
func TestAdminPort(t *testing.T) {
	o := new(Options)
	args := strings.Fields("--server http://127.0.0.1:1 --identity me --admin-addr 127.0.0.1:0 --admin-open")
	if _, _, err := option.Parse(o.Table("Group", "lease", "doers", nil), nil, args, nothing); err != nil {
		t.Fatal(err)
	}
	lines := &addresses{found: make(chan string, 1)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	work := func() (Work, error) {
		if o.Cluster.UserAgent != "test" || o.Cluster.Log == nil || o.Identity != "me" || o.Namespace != "turnout" {
			t.Errorf("%+v", o)
		}
		return Work{Name: "work", Run: func(ctx context.Context) error { <-ctx.Done(); return nil }, Show: show}, nil
	}
	go func() { ended <- o.run(ctx, "test", zap.NewExample(zap.WrapCore(lines.core)), work) }()
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

// TestWorkThatFails: what ends the work ends the process, with the reason.
func TestWorkThatFails(t *testing.T) {
	broken := errors.New("broken")
	for name, work := range map[string]func() (Work, error){
		"cannot be made": func() (Work, error) { return Work{}, broken },
		"has no metrics": func() (Work, error) {
			return Work{Name: "work", Show: func(*admin.Config) error { return broken }}, nil
		},
		"ends": func() (Work, error) {
			return Work{Name: "work", Run: func(context.Context) error { return broken }, Show: show}, nil
		},
	} {
		o := new(Options)
		args := strings.Fields("--server http://127.0.0.1:1 --identity me --admin-addr 127.0.0.1:0")
		if _, _, err := option.Parse(o.Table("Group", "lease", "doers", nil), nil, args, nothing); err != nil {
			t.Fatal(err)
		}
		if err := o.run(t.Context(), "test", zap.NewNop(), work); !errors.Is(err, broken) {
			t.Errorf("work that %s: %v", name, err)
		}
	}
}
