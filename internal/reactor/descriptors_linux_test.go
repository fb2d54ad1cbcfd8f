package reactor

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// descriptorTable is how many descriptors the table has now (proc(5)).
func descriptorTable(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	size := regexp.MustCompile(`(?m)^FDSize:\s+(\d+)`).FindSubmatch(status)
	if size == nil {
		t.Fatalf("no FDSize in %s", status)
	}
	n, err := strconv.Atoi(string(size[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestReserveDescriptors: the table grows, no descriptor is left open, and what the system refuses is an error.
func TestReserveDescriptors(t *testing.T) {
	open := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	before := open()
	if err := ReserveDescriptors(5000); err != nil {
		t.Fatal(err)
	}
	if size := descriptorTable(t); size < 5000 {
		t.Errorf("a table of %d", size)
	}
	if after := open(); after != before {
		t.Errorf("%d descriptors are open, %d were", after, before)
	}
	if err := ReserveDescriptors(1 << 31); err == nil {
		t.Error("a table for more than there can be")
	}
}
