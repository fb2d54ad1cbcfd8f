package cluster

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"turnout/controller/source"
	"turnout/internal/bound"
)

// TestSecretWatchesAreBounded: a namespace with more secrets than may be watched has the rest read from time to time, others are
// watched as ever, and one that is forgotten makes room.
func TestSecretWatchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeSecrets(nil)
		s := newSecrets(api, newHealth(nopLog, "", 1), nopLog, soon, 24*time.Hour)
		s.open = newWatches(4, 2)
		var counts bound.Counts
		s.bounds = &counts
		sink := newRecorder()
		stop := run(t, s, sink)
		var keys []source.Key
		for i := range 5 {
			keys = append(keys, source.Key{Namespace: "many", Name: fmt.Sprint(i)})
		}
		other := source.Key{Namespace: "other", Name: "cert"}
		keys = append(keys, other)
		for _, k := range keys {
			api.change(k, "1")
		}
		watching := func() (n int) {
			api.mu.Lock()
			defer api.mu.Unlock()
			return len(api.watches)
		}
		holding := func(content string) (n int) {
			sink.mu.Lock()
			defer sink.mu.Unlock()
			for _, k := range keys {
				if o, ok := sink.latest["Secret "+k.String()].Object.(*corev1.Secret); ok && string(o.Data["tls.crt"]) == "cert "+content {
					n++
				}
			}
			return n
		}
		for _, k := range keys {
			s.Watch(k)
		}
		synctest.Wait()
		if n := holding("1"); n != 6 || watching() != 3 || counts.Of(bound.SecretWatches) != 3 {
			t.Fatalf("%d of 6 secrets are delivered, %d watched, the bound counted %d times", n, watching(), counts.Of(bound.SecretWatches))
		}
		for _, k := range keys {
			api.change(k, "2")
		}
		synctest.Wait()
		if n := holding("2"); n != 3 {
			t.Errorf("%d changes of secrets that are watched have come", n)
		}
		<-time.After(readPeriod) // virtual
		synctest.Wait()
		if n := holding("2"); n != 6 {
			t.Errorf("%d changes have come after a while", n)
		}
		s.Forget(func() (of source.Key) {
			api.mu.Lock()
			defer api.mu.Unlock()
			for _, of = range api.watches {
				if of != other {
					break
				}
			}
			return of
		}())
		<-time.After(readPeriod) // virtual
		synctest.Wait()
		if watching() != 3 {
			t.Errorf("%d are watched once one is forgotten", watching())
		}
		stop()
		if len(s.open.of) != 0 || s.open.open != 0 {
			t.Errorf("counted in the end: %+v", s.open.of)
		}
	})
}
