package scheduler

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"turnout/controller/shard"
	"turnout/controller/shard/api"
)

// statusPause is between two writes of the status of the RouteScheduler.
const statusPause = 2 * time.Second

// report writes the status of the RouteScheduler if it is to say something else.
func (l *leader) report(ctx context.Context, now time.Time, s *shard.Summary) {
	if l.scheduler == nil || now.Sub(l.saidAt) < statusPause {
		return
	}
	want := api.RouteSchedulerStatus{
		Leader: l.cfg.Identity, Bound: int32(s.Bound), Waiting: int32(s.Waiting), Moving: int32(s.Moving), Rebalanced: s.Rebalanced,
		ObservedGeneration: l.scheduler.Generation,
	}
	valid := shard.Condition{Type: api.ConditionValid, True: l.invalid == "", Reason: "Valid", Message: "the spec can be used"}
	if !valid.True {
		valid.Reason, valid.Message = "InvalidSpec", l.invalid+"; routes are bound as before"
	}
	held := shard.Condition{Type: api.ConditionHeld, True: s.Held, Reason: "NotHeld", Message: "bindings are moved when they have to be"}
	if s.Held {
		held.Reason, held.Message = "ManyRoutersLost", s.Message
	}
	for _, c := range []shard.Condition{valid, held} {
		want.Conditions = append(want.Conditions, schedulerCondition(c, l.scheduler))
	}
	if reflect.DeepEqual(want, l.said) || same(&want, &l.scheduler.Status) {
		return
	}
	l.said, l.saidAt = want, now
	patch, err := json.Marshal(map[string]any{"status": want})
	if err != nil {
		return
	}
	name := l.scheduler.Name
	l.writing.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		_, err := l.clients.shards.Schedulers().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager}, "status")
		if err != nil && ctx.Err() == nil {
			l.log.Warn("cannot write the status of the RouteScheduler; it is tried again at the next change", zap.Error(err))
		}
	})
}

// same reports whether two statuses say the same.
func same(a, b *api.RouteSchedulerStatus) bool {
	text := func(s *api.RouteSchedulerStatus) string {
		copied := s.DeepCopy()
		for i := range copied.Conditions {
			copied.Conditions[i].LastTransitionTime = metav1.Time{}
		}
		out, _ := json.Marshal(copied) // a status can always be written
		return string(out)
	}
	return text(a) == text(b)
}

func schedulerCondition(c shard.Condition, seen *api.RouteScheduler) metav1.Condition {
	return condition(c, &api.Router{ObjectMeta: metav1.ObjectMeta{Generation: seen.Generation}, Status: api.RouterStatus{Conditions: seen.Status.Conditions}})
}
