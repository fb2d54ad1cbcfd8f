package tlsmux

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestThreadsAreNicer: a thread of the pool is nicer than that of who gave it its work.
func TestThreadsAreNicer(t *testing.T) {
	nice := func() int {
		stat, err := os.ReadFile("/proc/thread-self/stat")
		must(t, err)
		_, fields, _ := strings.Cut(string(stat), ") ")
		n, err := strconv.Atoi(strings.Fields(fields)[16]) // proc(5): the 19th
		must(t, err)
		return n
	}
	own := nice()
	got := make(chan int, 1)
	give(newWorkers(t, WorkersConfig{Handshakes: 1}), WorkRSA, 0, 0, func() { got <- nice() })
	if there, want := get(t, "the nice value", got), min(own+threadNice, 19); there != want || nice() != own {
		t.Errorf("nice value %d, and %d here; want %d and %d", there, nice(), want, own)
	}
}
