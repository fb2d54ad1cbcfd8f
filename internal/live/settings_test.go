package live_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"turnout/controller/source"
	"turnout/controller/source/folder"
	"turnout/internal/live"
	"turnout/internal/option"
)

var web = source.Key{Namespace: "openshift-ingress-operator", Name: "web"}

// controllerSpec writes an IngressController with these fields of its spec.
func controllerSpec(t *testing.T, dir, fields string) {
	t.Helper()
	write(t, dir, "controller.yaml", "apiVersion: operator.openshift.io/v1\nkind: IngressController\nmetadata: {namespace: openshift-ingress-operator, name: web}\nspec: {"+fields+"}\n")
}

// read is Parse: a small table of options on top of a plan. The client timeout may not be an hour, as an option of a program might refuse
// what others do not.
func read(plan live.Plan) func(said []option.Said) (*live.Parsed, error) {
	return func(said []option.Said) (*live.Parsed, error) {
		p := &live.Parsed{Plan: plan, AdminAddr: "0.0.0.0:1936"}
		table := []option.Option{
			{Flag: "default-client-timeout", Def: "30s", Set: option.Into(&p.Plan.Server.Proxy.Timeouts.Client, option.ParseTimespec)},
			{Flag: "buf-size", Def: "32768", Set: option.Into(&p.Plan.Server.Limits.BufferSize, option.ParsePort)},
			{Flag: "stats-port", Def: "1936", Set: func(s string) error { p.AdminAddr = "0.0.0.0:" + s; return nil }},
		}
		known := slices.DeleteFunc(slices.Clone(said), func(s option.Said) bool {
			return !slices.ContainsFunc(table, func(o option.Option) bool { return o.Flag == s.Flag })
		})
		parsed, err := option.ParseSaid(table, nil, nil, func(string) (string, bool) { return "", false }, known)
		if err != nil {
			return nil, err
		}
		p.Origins = parsed.Origins
		if p.Plan.Server.Proxy.Timeouts.Client == time.Hour {
			return nil, errors.New("an hour is too long")
		}
		if p.Plan.Server.Proxy.Timeouts.Client == time.Minute {
			p.Doubts = []string{"a minute is used as it is, and nobody knows why"}
		}
		return p, nil
	}
}

// follow has a router follow the object of the rig's folder. It returns the settings, and what there is to say.
func (r *rig) follow() (s *live.Settings, said func() string) {
	r.Helper()
	parse := read(r.plan)
	s, err := live.NewSettings(live.SettingsConfig{Object: web, Manifests: r.dir, Log: zap.NewNop(), Parse: parse})
	if err != nil {
		r.Fatal(err)
	}
	used, ok := s.Begin(r.Context())
	if !ok {
		r.Fatal("nothing was read")
	}
	first, err := parse(used)
	if err != nil {
		r.Fatal(err)
	}
	s.Use(r.keeper, first, r.problems)
	feeder, err := folder.New(folder.Config{Paths: []string{r.dir}, Sink: s.Tee(nowhere{})})
	if err != nil {
		r.Fatal(err)
	}
	ctx, stop := context.WithCancel(r.Context())
	ended := make(chan error, 2)
	go func() { ended <- feeder.Run(ctx) }()
	go func() { ended <- s.Run(ctx) }()
	r.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				r.Error(err)
			}
		}
	})
	return s, func() string {
		var text strings.Builder
		all, _ := r.problems.All("", 100)
		for p := range all {
			fmt.Fprintf(&text, "%s: %s\n", p.Object, p.Text)
		}
		return text.String()
	}
}

// nowhere is a sink that forgets.
type nowhere struct{}

func (nowhere) Event(...source.Event) {}
func (nowhere) Synced()               {}

// TestSettingsFollow: the router goes by the object as it is now, says what of that has no effect as long as it has none, and what decided each option.
func TestSettingsFollow(t *testing.T) {
	r := start(t, nil)
	controllerSpec(t, r.dir, "")
	s, said := r.follow()
	timeout := func() string { return r.server.Applied().Proxy.Timeouts.Client.String() }
	const of = "IngressController openshift-ingress-operator/web: "
	for _, step := range []struct{ spec, timeout, says string }{
		{"tuningOptions: {clientTimeout: 7s}", "7s", ""},
		{"tuningOptions: {clientTimeout: -1s}", "30s", of + "spec.tuningOptions.clientTimeout: "},
		{"tuningOptions: {clientTimeout: 8s, threadCount: 4}", "8s", of + "spec.tuningOptions.threadCount: "},
		{"tuningOptions: {clientTimeout: 1h, healthCheckInterval: 9s}", "30s", of + "spec.tuningOptions.clientTimeout: an hour is too long"},
		{"tuningOptions: {clientTimeout: 1m}", "1m0s", of + "a minute is used as it is"},
		{"tuningOptions: {headerBufferBytes: 60000}", "30s", ""},
		{"endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {statsPort: 1937}}", "30s", of + "spec.endpointPublishingStrategy.hostNetwork.statsPort: 0.0.0.0:1937 takes effect at the next start; until then it is 0.0.0.0:1936"},
		{"", "30s", ""},
	} {
		controllerSpec(t, r.dir, step.spec)
		r.until(step.spec+", the timeout", step.timeout, timeout)
		if step.says == "" {
			r.until(step.spec+", what is said", "nothing", func() string { return said() + "nothing"[:7*max(0, 1-len(said()))] })
			continue
		}
		r.until(step.spec+", what is said", step.says, said)
	}
	controllerSpec(t, r.dir, "tuningOptions: {clientTimeout: 9s}")
	r.until("what decided it", "{default-client-timeout  9s IngressController openshift-ingress-operator/web, spec.tuningOptions.clientTimeout }", func() string { return fmt.Sprint(s.Origins()) })
}

// TestLargerHeadsThanAtTheStart: heads that are longer than what is read at once wait for the next start, and the rest of the object counts.
func TestLargerHeadsThanAtTheStart(t *testing.T) {
	r := start(t, nil)
	controllerSpec(t, r.dir, "")
	_, said := r.follow()
	controllerSpec(t, r.dir, "tuningOptions: {headerBufferBytes: 65535, clientTimeout: 7s}")
	r.until("the rest", "7s", func() string { return r.server.Applied().Proxy.Timeouts.Client.String() })
	most := r.server.Applied().Limits.BufferSize
	if most == 0 || most > 65535 {
		t.Errorf("heads of %d bytes", most)
	}
	if most < 65535 {
		r.until("what is said", fmt.Sprintf("65535 takes effect at the next start; until then it is %d", most), said)
	}
}

// TestBegin: the first options are those of the object, which is there or not, and an end of the wait is an end.
func TestBegin(t *testing.T) {
	dir := t.TempDir()
	controllerSpec(t, dir, "tuningOptions: {clientTimeout: 7s}")
	for _, c := range []struct {
		name string
		want string
	}{{"web", "7s"}, {"other", "30s"}} {
		s, err := live.NewSettings(live.SettingsConfig{Object: source.Key{Namespace: web.Namespace, Name: c.name}, Manifests: dir, Log: zap.NewNop(), Parse: read(basic())})
		if err != nil {
			t.Fatal(err)
		}
		used, ok := s.Begin(t.Context())
		if !ok {
			t.Fatal("no options")
		}
		p, err := read(basic())(used)
		if err != nil || p.Plan.Server.Proxy.Timeouts.Client.String() != c.want {
			t.Errorf("%s: %v, %v", c.name, err, p.Plan.Server.Proxy.Timeouts.Client)
		}
	}
	if _, err := live.NewSettings(live.SettingsConfig{Object: web, Manifests: filepath.Join(dir, "none"), Log: zap.NewNop(), Parse: read(basic())}); err == nil {
		t.Error("no error for a folder that is not there")
	}
}

// TestOnce: commands that serve nothing get the same options, and what has no effect as texts.
func TestOnce(t *testing.T) {
	dir := t.TempDir()
	controllerSpec(t, dir, "tuningOptions: {clientTimeout: 1m, threadCount: 4}")
	content, err := folder.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	cfg := live.SettingsConfig{Manifests: filepath.Join(dir, "is not read"), Content: content, Log: zap.NewNop(), Parse: read(basic())}
	if used, ignored, err := live.Once(t.Context(), cfg); len(used)+len(ignored) > 0 || err != nil {
		t.Errorf("without an IngressController: %v, %v, %v", used, ignored, err)
	}
	cfg.Object = web
	used, ignored, err := live.Once(t.Context(), cfg)
	if err != nil || !slices.ContainsFunc(used, func(s option.Said) bool { return s.Flag == "default-client-timeout" && s.Value == "1m" }) {
		t.Errorf("%v, %+v", err, used)
	}
	if text := strings.Join(ignored, "\n"); len(ignored) != 2 || !strings.HasPrefix(text, "IngressController openshift-ingress-operator/web: spec.tuningOptions.threadCount: ") || !strings.HasSuffix(text, "\na minute is used as it is, and nobody knows why") {
		t.Errorf("%q", ignored)
	}
	cfg.Object.Name = "other"
	if _, ignored, err := live.Once(t.Context(), cfg); err != nil || len(ignored) != 1 || !strings.Contains(ignored[0], "there is no IngressController openshift-ingress-operator/other") {
		t.Errorf("%v, %q", err, ignored)
	}
}
