package member

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"turnout/controller"
	"turnout/controller/shard/api"
	"turnout/controller/source"
	"turnout/controller/source/cluster"
	"turnout/internal/problem"
)

// Controller is what serves routes: *controller.Controller.
type Controller interface {
	Sink(origin string) source.Sink
	Wait(ctx context.Context) error
	Bound(ctx context.Context) (controller.Bound, error)
}

// Config is what a Member needs. All but Addresses and Problems are required.
type Config struct {
	Cluster    cluster.Config // how the API server is reached; its log, too
	Router     string
	Replica    string   // the name of this process among the replicas of the Router, such as that of its pod; "": the host name
	Addresses  []string // where clients reach it
	Controller Controller
	Complete   <-chan struct{} // closed when the first complete table is served
	Serving    func() error    // why requests are not answered, nil if they are; any goroutine may call it
	Requests   func() uint64   // how many there have been; any goroutine may call it
	Idle       time.Duration   // for which clients may keep a connection without asking
	Problems   *problem.List   // says why nothing can be written; nil: nobody asks
}

// Member reports for one replica. It is made by New.
type Member struct {
	cfg     Config
	log     *zap.Logger
	client  *api.Client
	tracker *tracker
	demand  demand
	rate    rate

	leaving atomic.Bool

	said    api.ReplicaStatus
	saidAt  time.Time
	trouble string
}

// New returns a Member. The API server is not asked yet.
func New(cfg Config) (*Member, error) {
	if cfg.Replica == "" {
		name, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("cannot tell the name of this replica: %w; give --replica", err)
		}
		cfg.Replica = name
	}
	reach, err := cfg.Cluster.API()
	if err != nil {
		return nil, err
	}
	client, err := api.NewClient(reach)
	if err != nil {
		return nil, err
	}
	log := cfg.Cluster.Log
	if log == nil {
		log = zap.NewNop()
	}
	return &Member{cfg: cfg, log: log, client: client, tracker: newTracker(cfg.Controller.Sink("cluster")), demand: demand{within: cfg.Idle + askedAgain}}, nil
}

// Sink is where objects of the cluster go, instead of that of the Controller. A nil Member has none.
func (m *Member) Sink() source.Sink {
	if m == nil {
		return nil
	}
	return m.tracker
}

const (
	renewal   = 10 * time.Second       // between two reports of which the later says nothing new; api.RouteSchedulerSpec.LostAfterSeconds is three of it at least
	look      = time.Second            // between two looks at what may be new
	hurry     = 200 * time.Millisecond // the same while bindings come
	patience  = 10 * time.Second       // of a write
	farewell  = 2 * time.Second        // of the last one
	retryLast = 30 * time.Second       // pauses after failures become no longer
)

// Run reports until ctx is done, and takes the entry of the replica away then: nobody is sent here any more. It returns nil.
func (m *Member) Run(ctx context.Context) error {
	tick := time.NewTicker(hurry)
	defer tick.Stop()
	failures, notBefore, looked := 0, time.Time{}, time.Time{}
	for {
		select {
		case <-ctx.Done():
			return m.leave()
		case <-tick.C:
		}
		now := time.Now()
		if now.Before(notBefore) || now.Sub(looked) < look && !m.tracker.changed.Swap(false) && !m.tracker.waits() {
			continue
		}
		looked = now
		status, err := m.status(ctx, now)
		if err != nil || !m.due(&status, now) {
			continue
		}
		status.Renewed = metav1.NewMicroTime(now)
		err = m.write(ctx, []api.ReplicaStatus{status}, patience)
		if m.tell(err); err != nil {
			failures = min(failures+1, 10)
			notBefore = now.Add(min(time.Second<<failures, retryLast))
			continue
		}
		failures, m.said, m.saidAt = 0, status, now
	}
}

// Leave says that nobody new is to be sent here. A nil Member has nobody to tell.
func (m *Member) Leave() {
	if m != nil {
		m.leaving.Store(true)
	}
}

// ready reports whether clients may be sent here.
func (m *Member) ready() bool {
	select {
	case <-m.cfg.Complete:
		return !m.leaving.Load() && m.cfg.Serving() == nil
	default:
		return false
	}
}

// leave takes the entry away.
func (m *Member) leave() error {
	if m.saidAt.IsZero() {
		return nil
	}
	if err := m.write(context.Background(), nil, farewell); err != nil {
		m.log.Info("the entry of this replica was not taken from its Router; the scheduler does so later", zap.Error(err))
	}
	return nil
}

// status is what the replica says now, but for the time.
func (m *Member) status(ctx context.Context, now time.Time) (s api.ReplicaStatus, err error) {
	latest := m.tracker.version()
	if err = m.cfg.Controller.Wait(ctx); err != nil {
		return s, err
	}
	bound, err := m.cfg.Controller.Bound(ctx)
	if err != nil {
		return s, err
	}
	return api.ReplicaStatus{
		Name: m.cfg.Replica, Ready: m.ready(), Addresses: m.cfg.Addresses, Routes: int32(bound.Known),
		ObservedBindings:  strconv.FormatUint(m.tracker.observed(latest, bound.Missing, now), 10),
		RequestsPerSecond: m.rate.add(m.cfg.Requests(), now), Leaving: m.demand.look(bound.Leaving, now),
	}, nil
}

// due reports whether a status is to be written: it says what the scheduler waits for, or it is time.
func (m *Member) due(s *api.ReplicaStatus, now time.Time) bool {
	return now.Sub(m.saidAt) >= renewal || s.Ready != m.said.Ready || s.ObservedBindings != m.said.ObservedBindings ||
		!slices.Equal(s.Addresses, m.said.Addresses) || len(s.Leaving) < len(m.said.Leaving) || !reflect.DeepEqual(s.Leaving, m.said.Leaving) && now.Sub(m.saidAt) >= 5*look
}

// write applies the entries of this replica, one or none, to the status of the Router.
func (m *Member) write(ctx context.Context, entries []api.ReplicaStatus, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if entries == nil {
		entries = []api.ReplicaStatus{}
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": api.GroupVersion.String(), "kind": "Router", "metadata": map[string]any{"name": m.cfg.Router}, "status": map[string]any{"replicas": entries},
	})
	if err != nil {
		return fmt.Errorf("BUG: cannot write the status of this replica: %w", err)
	}
	force := true
	_, err = m.client.Routers().Patch(ctx, m.cfg.Router, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "turnout-replica-" + m.cfg.Replica, Force: &force}, "status")
	return err
}

// tell logs and lists what is in the way, once.
func (m *Member) tell(err error) {
	trouble := ""
	switch {
	case err == nil:
	case apierrors.IsNotFound(err):
		trouble = fmt.Sprintf("there is no Router %s: nothing is bound to it, and clients are not sent here; create it, or change --router", m.cfg.Router)
	default:
		trouble = fmt.Sprintf("cannot write what this replica does to Router %s, so no further routes come here: %v", m.cfg.Router, err)
	}
	if trouble == m.trouble {
		return
	}
	m.trouble = trouble
	if trouble == "" {
		m.cfg.Problems.Set("router")
		m.log.Info("the Router knows of this replica", zap.String("router", m.cfg.Router))
		return
	}
	m.cfg.Problems.Set("router", problem.Problem{Kind: problem.Source, Object: "Router " + m.cfg.Router, Text: trouble})
	m.log.Error(trouble)
}
