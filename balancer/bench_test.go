package balancer

import (
	"fmt"
	"testing"
)

// BenchmarkPick is one Pick and its Release among idle servers of equal weight: the
// cost by algorithm and number of servers.
func BenchmarkPick(b *testing.B) {
	for _, a := range allAlgorithms {
		for _, n := range []int{1, 10, 100, 1000} {
			b.Run(fmt.Sprintf("%v/%d", a, n), func(b *testing.B) {
				p := pool(a, targets(equal(n)...))
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					l, ok := p.Pick(Pick{Source: client(i), Rand: mix(uint64(i))})
					if !ok {
						b.Fatal("no server")
					}
					l.Release()
				}
			})
		}
	}
}

// BenchmarkPickTogether is the same by as many event loops as -cpu says that all lead to one pool: what its shared cache lines cost.
func BenchmarkPickTogether(b *testing.B) {
	for _, a := range allAlgorithms {
		for _, n := range []int{1, 10} {
			b.Run(fmt.Sprintf("%v/%d", a, n), func(b *testing.B) {
				p := pool(a, targets(equal(n)...))
				b.RunParallel(func(pb *testing.PB) {
					for i := 0; pb.Next(); i++ {
						l, ok := p.Pick(Pick{Source: client(i), Rand: mix(uint64(i))})
						if !ok {
							b.Error("no server")
							return
						}
						l.Release()
					}
				})
			})
		}
	}
}

// equal is n weights of 1.
func equal(n int) []int {
	weights := make([]int, n)
	for i := range weights {
		weights[i] = 1
	}
	return weights
}
