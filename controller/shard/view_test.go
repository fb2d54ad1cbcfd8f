package shard

import (
	"slices"
	"testing"
	"time"
)

// first takes the first router.
type first struct{}

func (first) Schedule(_ *Route, routers []*Router) (*Router, error) { return routers[0], nil }

// TestAddressesOfSilentRouters: a replica that says nothing any more is not sent clients while another is there; when all are silent, the addresses
// stay: they may have lost the API server and not their clients.
func TestAddressesOfSilentRouters(t *testing.T) {
	now := time.Unix(1000, 0)
	p := New(Config{Strategy: first{}}, now)
	heard := func(one, two int64) Router {
		return Router{Name: "a", UID: "u", Domain: "a.test", Replicas: []Replica{
			{Name: "one", Ready: true, Addresses: []string{"192.0.2.1"}, Renewed: time.Unix(one, 0)},
			{Name: "two", Ready: true, Addresses: []string{"192.0.2.2"}, Renewed: time.Unix(two, 0)},
		}}
	}
	said := func(after time.Duration, r Router) (status RouterStatus) {
		t.Helper()
		for end := now.Add(after); now.Before(end); { // a gap would be one of ours
			now = now.Add(time.Second)
			p.Advance(now)
		}
		p.SetRouter(r, RouterStatus{})
		for range 100 {
			for _, a := range p.Next(0) {
				if a.Kind == UpdateRouter {
					status = a.Status
				}
				p.Done(a.ID, Result{Version: 1})
			}
			now = now.Add(time.Second / 10)
			p.Advance(now)
		}
		return status
	}
	p.SetRouter(heard(1, 1), RouterStatus{})
	p.Synced("")
	both := []string{"192.0.2.1", "192.0.2.2"}
	if s := said(0, heard(1, 1)); !slices.Equal(s.Addresses, both) || s.ReadyReplicas != 2 || s.Phase != RouterReady {
		t.Errorf("both speak: %+v", s)
	}
	if s := said(DefaultLostAfter, heard(2, 1)); !slices.Equal(s.Addresses, both[:1]) || s.ReadyReplicas != 1 || s.Phase != RouterReady {
		t.Errorf("one speaks: %+v", s)
	}
	if s := said(2*DefaultLostAfter, heard(2, 1)); !slices.Equal(s.Addresses, both) || s.ReadyReplicas != 0 || s.Phase != RouterLost {
		t.Errorf("none speaks: %+v", s)
	}
}
