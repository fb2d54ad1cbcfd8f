package live

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"turnout/controller/ingresscontroller"
	"turnout/controller/source"
	"turnout/controller/source/cluster"
	"turnout/controller/source/folder"
	"turnout/internal/option"
	"turnout/internal/problem"
)

// Parsed are options as they are with what is said below flags and environment.
type Parsed struct {
	Plan      Plan
	AdminAddr string
	Warnings  []string        // about flags and environment
	Doubts    []string        // about what is said, and put to use only in part
	Origins   []option.Origin // of all options
}

// SettingsConfig is what Settings are made from. Log and Parse are required.
type SettingsConfig struct {
	Object    source.Key      // the IngressController
	Cluster   *cluster.Config // how the cluster that has it is read; nil = Manifests has it
	Manifests string          // a folder
	Content   *folder.Content // of Manifests, read before; nil = it is read
	Log       *zap.Logger
	// Parse reads flags and environment with what is said below them.
	Parse func(said []option.Said) (*Parsed, error)
}

// Settings have the router go by an IngressController where flags and environment say nothing.
type Settings struct {
	cfg      SettingsConfig
	follower *ingresscontroller.Follower
	objects  *cluster.Objects // nil = a folder has the objects
	first    *Parsed          // by which the router was made; nil until Begin
	now      atomic.Pointer[Parsed]
	keeper   *Keeper
	problems *problem.List
}

// NewSettings begins to look for the object.
func NewSettings(cfg SettingsConfig) (s *Settings, err error) {
	s = &Settings{cfg: cfg}
	self := ingresscontroller.Ref{Kind: source.IngressController, Key: cfg.Object}
	if cfg.Cluster == nil {
		s.follower = ingresscontroller.NewFollower(self.Key, nil)
		content := cfg.Content
		if content == nil {
			if content, err = folder.Load(cfg.Manifests); err != nil {
				return s, err
			}
		}
		s.follower.Load(content.Events)
		return s, nil
	}
	s.follower = ingresscontroller.NewFollower(self.Key, func(refs []ingresscontroller.Ref) { s.objects.Follow(append(refs, self)) })
	if s.objects, err = cluster.NewObjects(*cfg.Cluster, s.follower.Put); err == nil {
		s.objects.Follow([]ingresscontroller.Ref{self})
	}
	return s, err
}

// Begin waits until the object and what it refers to have been looked for, and returns what said is then: a router that began without them
// would not ask clients for certificates that it is to ask for. The bool is false when ctx ends first. Objects are followed until then.
func (s *Settings) Begin(ctx context.Context) (used []option.Said, ok bool) {
	if !s.await(ctx, func(what string) { s.cfg.Log.Warn("waiting for the IngressController: " + what) }) {
		return nil, false
	}
	used, _ = s.said()
	return used, true
}

// await is false when ctx ends before the object and what it refers to have been looked for. waiting is called with what they are meanwhile.
func (s *Settings) await(ctx context.Context, waiting func(what string)) bool {
	if s.objects != nil {
		go func() { _ = s.objects.Run(ctx) }() // returns nil
	}
	return s.follower.Wait(ctx, waiting) == nil
}

// oncePatience is how long Once waits for an API server.
const oncePatience = time.Minute

// Once returns what is said of options by an IngressController that is read once, and what of it has no effect. Without cfg.Object nothing is
// said. An IngressController that does not exist says nothing, which is among what has no effect.
func Once(ctx context.Context, cfg SettingsConfig) (used []option.Said, ignored []string, err error) {
	if cfg.Object == (source.Key{}) {
		return nil, nil, nil
	}
	s, err := NewSettings(cfg)
	if err != nil {
		return nil, nil, err
	}
	ctx, stop := context.WithTimeout(ctx, oncePatience)
	defer stop()
	why := "nobody answers"
	if !s.await(ctx, func(what string) { why = what }) {
		return nil, nil, errors.New("cannot read the IngressController: " + why)
	}
	used, findings := s.said()
	next, err := cfg.Parse(used)
	if err != nil { // flags and environment have been read before
		return nil, nil, err
	}
	for _, f := range findings {
		ignored = append(ignored, "IngressController "+cfg.Object.String()+": "+f.String())
	}
	return used, append(ignored, next.Doubts...), nil
}

// Use says who goes by the object: k, which was made by first.
func (s *Settings) Use(k *Keeper, first *Parsed, problems *problem.List) {
	s.keeper, s.first, s.problems = k, first, problems
	s.now.Store(first)
}

// Tee returns a sink for the objects of a folder, which delivers to next.
func (s *Settings) Tee(next source.Sink) source.Sink {
	if s == nil {
		return next
	}
	return s.follower.Tee(next)
}

// Origins are where all options have their values from now.
func (s *Settings) Origins() []option.Origin { return s.now.Load().Origins }

// said is what the object says of options, as far as that can be used, and what of it cannot.
func (s *Settings) said() (used []option.Said, ignored []ingresscontroller.Finding) {
	out := s.follower.Outcome()
	of := "IngressController " + s.follower.Self().Key.String() + ", "
	said := make([]option.Said, len(out.Settings))
	for i, set := range out.Settings {
		said[i] = option.Said{Flag: set.Flag, Value: set.Value, Content: set.Content, From: of + set.Field, Unless: set.Unless}
	}
	used, refused := option.Sift(said, func(said []option.Said) error {
		_, err := s.cfg.Parse(said)
		return err
	})
	ignored = out.Findings
	for _, r := range refused {
		ignored = append(ignored, ingresscontroller.Finding{Field: r.From[len(of):], Text: r.Err.Error()})
	}
	return used, ignored
}

// Run has the router go by the object until ctx is done. It returns nil then.
func (s *Settings) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.follower.Changed():
		}
		used, ignored := s.said()
		next, err := s.cfg.Parse(used)
		if err != nil { // flags and environment have been read before
			return err
		}
		for _, text := range next.Doubts {
			ignored = append(ignored, ingresscontroller.Finding{Text: text})
		}
		ignored = append(ignored, next.keep(s.first)...)
		for _, err := range s.keeper.Apply(next.Plan) {
			ignored = append(ignored, ingresscontroller.Finding{Text: err.Error()})
		}
		s.now.Store(next)
		s.report(ctx, ignored)
	}
}

// keep has p go on with what of first cannot change any more, and says what that is.
func (p *Parsed) keep(first *Parsed) (kept []ingresscontroller.Finding) {
	if p.AdminAddr != first.AdminAddr {
		kept = append(kept, ingresscontroller.Finding{
			Field: "spec.endpointPublishingStrategy.hostNetwork.statsPort", Text: fmt.Sprintf("%s takes effect at the next start; until then it is %s", p.AdminAddr, first.AdminAddr),
		})
		p.AdminAddr = first.AdminAddr
	}
	limits := &p.Plan.Server.Limits
	if most := first.Plan.Server.ReadBuffer(); limits.BufferSize > most {
		kept = append(kept, ingresscontroller.Finding{
			Field: "spec.tuningOptions.headerBufferBytes", Text: fmt.Sprintf("%d takes effect at the next start; until then it is %d", limits.BufferSize, most),
		})
		limits.BufferSize = most
	}
	return kept
}

// report says what of the object has no effect: in the list of problems, the log, and the status of the object.
func (s *Settings) report(ctx context.Context, ignored []ingresscontroller.Finding) {
	of := "IngressController " + s.follower.Self().Key.String()
	all := make([]problem.Problem, len(ignored))
	for i, f := range ignored {
		all[i] = problem.Problem{Kind: problem.Note, Object: of, Text: f.String()}
	}
	for _, p := range s.problems.Set("settings/"+of, all...) {
		s.cfg.Log.Warn("a field of the IngressController has no effect", zap.String("object", of), zap.String("problem", p.Text))
	}
	if s.objects == nil {
		return
	}
	if err := s.follower.Report(ctx, s.objects.PatchStatus, ignored); err != nil {
		s.problems.Set("settings/status", problem.Problem{Kind: problem.Note, Object: of, Text: "what has no effect cannot be written to its status: " + err.Error()})
		return
	}
	s.problems.Set("settings/status")
}
