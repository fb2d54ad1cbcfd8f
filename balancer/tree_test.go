package balancer

import (
	"math/rand/v2"
	"sync"
	"testing"
)

// leastLoad returns the least load of the active servers.
func (s *set) leastLoad() load {
	least := s.load(0)
	for i := range s.active {
		if l := s.load(i); l.less(least) {
			least = l
		}
	}
	return least
}

// check compares every node with its children.
func (t *tree) check(tt *testing.T) {
	tt.Helper()
	for i := t.base - 1; i > 0; i-- {
		if got, want := t.node(i), better(t.node(2*i), t.node(2*i+1)); got != want {
			tt.Fatalf("node %d is %x, its children say %x", i, got, want)
		}
	}
}

func manyWeights(n int, random *rand.Rand) []int {
	weights := make([]int, n)
	for i := range weights {
		weights[i] = random.IntN(MaxWeight + 1)
	}
	return weights
}

// TestTreeChoosesTheLeast: whatever the loads, no server is less loaded than the one
// that is chosen.
func TestTreeChoosesTheLeast(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	for _, weights := range [][]int{equal(treeFrom), equal(100), manyWeights(64, random), manyWeights(333, random)} {
		p := pool(LeastConn, targets(weights...))
		var held []Lease
		for range 5000 {
			if len(held) > 0 && random.IntN(100) < 45 {
				i := random.IntN(len(held))
				held[i].Release()
				held[i] = held[len(held)-1]
				held = held[:len(held)-1]
				continue
			}
			s := p.set.Load()
			least := s.leastLoad()
			i := s.leastConn(&p.cursor, -1)
			if least.less(s.load(i)) {
				t.Fatalf("%d servers: chose load %v, the least is %v", len(weights), s.load(i), least)
			}
			held = append(held, s.server(i).lease(&Pick{}, false))
			s.loads().check(t)
		}
	}
}

// TestTreeTakesTurns: idle servers of equal weight are chosen in turn, those of other
// weights by weight.
func TestTreeTakesTurns(t *testing.T) {
	p := pool(LeastConn, targets(equal(50)...))
	busy, _ := p.Pick(Pick{})
	got := make(map[string]int)
	for range 49 * 20 {
		got[pick(p, Pick{})]++
	}
	for _, s := range p.Servers() {
		want := 20
		if s == busy.Server() {
			want = 0
		}
		if got[s.ID()] != want {
			t.Errorf("%s got %d, want %d", s.ID(), got[s.ID()], want)
		}
	}
	weights := make([]int, 40)
	total := 0
	for i := range weights {
		weights[i] = 5 + 50*(i%3)
		total += weights[i]
	}
	p, got = pool(LeastConn, targets(weights...)), make(map[string]int)
	const rounds = 20
	for range rounds * total {
		got[pick(p, Pick{})]++
	}
	for i, s := range p.Servers() {
		if d := got[s.ID()] - rounds*weights[i]; d < -20 || d > 20 {
			t.Errorf("weight %d got %d of %d", weights[i], got[s.ID()], rounds*total)
		}
	}
}

// TestTreeUnderLoad: many goroutines and updates. When they are done the tree says what
// is the case.
func TestTreeUnderLoad(t *testing.T) {
	for _, limit := range []int{0, 2} {
		weights := manyWeights(60, rand.New(rand.NewPCG(2, 2)))
		cfg := PoolConfig{Algorithm: LeastConn, Limit: limit}
		p := NewRegistry().Pool("p")
		p.Update(cfg, targets(weights...))
		var done sync.WaitGroup
		for n := range 8 {
			done.Go(func() {
				random := rand.New(rand.NewPCG(uint64(n), 1))
				var held []Lease
				for range 2000 {
					if l, ok := p.Pick(Pick{Rand: random.Uint64()}); ok {
						held = append(held, l)
					}
					if len(held) > 10 || random.IntN(2) == 0 {
						for i := range held {
							held[i].Release()
						}
						held = held[:0]
					}
				}
				for i := range held {
					held[i].Release()
				}
			})
		}
		done.Go(func() {
			for i := range 100 {
				p.Update(cfg, targets(weights...)[:40+i%20])
			}
		})
		done.Wait()
		for _, s := range p.Servers() {
			if s.InFlight() != 0 {
				t.Fatalf("%s has %d requests left", s.ID(), s.InFlight())
			}
		}
		s := p.set.Load()
		s.loads().check(t)
		if root := s.loads().node(1); root>>loadShift != 0 || root>>weightShift&weightMask != uint64(s.total) {
			t.Errorf("limit %d: all are idle, the root is %x", limit, root)
		}
	}
}
