package nameserver

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"turnout/controller/shard/externaldns"
	"turnout/controller/shard/naming"
	"turnout/internal/dns/server"
	"turnout/internal/dns/zone"
	"turnout/internal/dns/zonefile"
	"turnout/internal/problem"
)

// outputs are where names go.
type outputs struct {
	log      *zap.Logger
	problems *problem.List
	server   *server.Server      // nil = none
	files    *files              // nil = none
	writer   *externaldns.Writer // nil = none

	current atomic.Pointer[zone.Set] // never nil
	ready   chan struct{}            // closed when there are names
	first   sync.Once
	said    map[string]bool // what is left out, as the log has it
}

// publish has names go everywhere.
func (o *outputs) publish(c *naming.Change) error {
	before := o.current.Swap(c.Set)
	if o.server != nil {
		o.server.Publish(c.Set)
	}
	if o.files != nil {
		o.files.publish(c.Set)
	}
	if o.writer != nil {
		o.writer.Publish(c.Shards)
	}
	o.first.Do(func() { close(o.ready) })
	for _, z := range c.Set.All() {
		if old := before.Zone(z.Origin()); old != z {
			o.log.Info("zone", zap.String("zone", z.Origin()), zap.Uint32("serial", z.Serial()), zap.Int("addresses", z.Addresses()), zap.Int("names", z.Names()))
		}
	}
	for _, z := range before.All() {
		if c.Set.Zone(z.Origin()) == nil {
			o.log.Warn("a zone is gone: its Router is, or has another domain", zap.String("zone", z.Origin()))
		}
	}
	o.leftOut(c)
	return nil
}

// leftOut tells what has no names, each once for as long as it is so.
func (o *outputs) leftOut(c *naming.Change) {
	said := make(map[string]bool, len(c.LeftOut))
	var list []problem.Problem
	for _, l := range c.LeftOut {
		text := l.String()
		if list = append(list, problem.Problem{Kind: problem.Rejected, Object: l.Router, Text: text}); !o.said[text] && !said[text] {
			o.log.Warn(text)
		}
		said[text] = true
	}
	o.said = said
	o.problems.Set("dns/left out", list...)
}

// files is a folder of zone files that follows.
type files struct {
	dir      *zonefile.Dir
	log      *zap.Logger
	problems *problem.List
	again    time.Duration // after a failure
	wake     chan struct{} // holds one
	latest   atomic.Pointer[zone.Set]
	errors   atomic.Uint64
}

// filesAgain is how long after a failure files are written again.
const filesAgain = 10 * time.Second

func newFiles(path string, log *zap.Logger, problems *problem.List) (*files, error) {
	dir, err := zonefile.Open(path)
	if err != nil {
		return nil, err
	}
	return &files{dir: dir, log: log, problems: problems, again: filesAgain, wake: make(chan struct{}, 1)}, nil
}

// publish has files be written.
func (f *files) publish(set *zone.Set) {
	f.latest.Store(set)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run writes files until ctx is done. It returns nil then.
func (f *files) run(ctx context.Context) error {
	var again <-chan time.Time
	said := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		case <-again:
		}
		again = nil
		const owner = "file/zones"
		err := f.dir.Write(f.latest.Load())
		if err == nil {
			said = ""
			f.problems.Set(owner)
			continue
		}
		again = time.After(f.again)
		f.errors.Add(1)
		f.problems.Set(owner, problem.Problem{Kind: problem.File, Text: err.Error()})
		if text := err.Error(); text != said {
			said = text
			f.log.Error("zone files are not written; it is tried again", zap.Error(err))
		}
	}
}

// events logs what the server tells. What clients can repeat is logged once a second at most.
type events struct {
	log  *zap.Logger
	last [server.Panicked + 1]atomic.Int64 // when a line of each kind was written, in ns
}

// tell is called by any goroutine.
func (e *events) tell(ev server.Event) {
	now := time.Now().UnixNano()
	last := e.last[ev.Kind].Load()
	often := ev.Kind == server.TransferRefused || ev.Kind == server.TransferDeferred || ev.Kind == server.TransferFailed || ev.Kind == server.Panicked
	if often && (now-last < int64(time.Second) || !e.last[ev.Kind].CompareAndSwap(last, now)) {
		return
	}
	about := []zap.Field{zap.String("zone", ev.Zone), zap.Uint32("serial", ev.Serial), zap.Stringer("peer", ev.Peer)}
	if ev.Err != nil {
		about = append(about, zap.Error(ev.Err))
	}
	switch ev.Kind {
	case server.Transferred:
		e.log.Info("zone was transferred", about...)
	case server.TransferFailed:
		e.log.Warn("a transfer has ended early", about...)
	case server.TransferRefused:
		e.log.Warn("a transfer was refused: its client is not in --allow-transfer, or has not signed with a key of --tsig-key-file", about...)
	case server.TransferDeferred:
		e.log.Warn("a transfer was put off: too many are under way", about...)
	case server.Notified:
		e.log.Debug("secondary knows of the change", about...)
	case server.NotifyFailed:
		e.log.Warn("a secondary does not know of a change: it will ask after the refresh time", about...)
	case server.Panicked:
		e.log.Error("BUG: a query was given up", about...)
	default:
		e.log.Error(fmt.Sprintf("BUG: event %d", ev.Kind), about...)
	}
}
