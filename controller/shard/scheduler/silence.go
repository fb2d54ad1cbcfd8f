package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"turnout/controller/shard"
	"turnout/controller/shard/api"
)

// silent is a replica and since when it says nothing new.
type silent struct {
	renewed time.Time // by the replica's clock
	heard   time.Time // by this process' clock
	removed bool      // its entry is being removed
}

// goneAfter is how many times longer than a router may be lost a replica says nothing until its entry is removed: each pod that was killed leaves one.
const goneAfter = 10

// listen notes which replicas of a Router have said something.
func (l *leader) listen(o *api.Router, now time.Time) {
	known := l.silence[o.Name]
	if known == nil {
		known = make(map[string]*silent)
		l.silence[o.Name] = known
	}
	there := make(map[string]bool, len(o.Status.Replicas))
	for i := range o.Status.Replicas {
		r := &o.Status.Replicas[i]
		there[r.Name] = true
		if s := known[r.Name]; s == nil || !s.renewed.Equal(r.Renewed.Time) {
			known[r.Name] = &silent{renewed: r.Renewed.Time, heard: now}
		}
	}
	for name := range known {
		if !there[name] {
			delete(known, name)
		}
	}
}

// sweep removes the entries of replicas that have said nothing for very long. One that does come back writes a new one.
func (l *leader) sweep(ctx context.Context, now time.Time) {
	patience := goneAfter * cmp.Or(l.config.LostAfter, shard.DefaultLostAfter)
	for router, known := range l.silence {
		for name, s := range known {
			if s.removed || now.Sub(s.heard) < patience {
				continue
			}
			if patch := removal(l.routers[router], name); patch != nil {
				s.removed = true
				l.writing.Go(func() { l.remove(ctx, router, name, patch) })
				return // one at a time
			}
		}
	}
}

// removal is the JSON patch (RFC 6902) that removes the entry of a replica if it still says what was seen; nil if it has none.
func removal(o *api.Router, name string) []byte {
	if o == nil {
		return nil
	}
	for i := range o.Status.Replicas {
		if r := &o.Status.Replicas[i]; r.Name == name {
			path := fmt.Sprintf("/status/replicas/%d", i)
			patch, err := json.Marshal([]map[string]any{
				{"op": "test", "path": path + "/name", "value": name},
				{"op": "test", "path": path + "/renewed", "value": r.Renewed},
				{"op": "remove", "path": path},
			})
			if err != nil {
				return nil
			}
			return patch
		}
	}
	return nil
}

func (l *leader) remove(ctx context.Context, router, name string, patch []byte) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err := l.clients.shards.Routers().Patch(ctx, router, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: manager}, "status")
	if err == nil {
		l.log.Info("a replica of a router has said nothing for very long; its entry was removed", zap.String("router", router), zap.String("replica", name))
	}
}
