package memory

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestLimitMemory(t *testing.T) {
	const gib = 1 << 30
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, tc := range map[string]struct {
		root fstest.MapFS
		had  int64 // GOMEMLIMIT
		want uint64
	}{
		"version 2": {fstest.MapFS{
			"proc/self/cgroup": file("0::/kubepods/pod1/c1\n"), "sys/fs/cgroup/kubepods/pod1/c1/memory.max": file("1073741824\n"),
			"sys/fs/cgroup/kubepods/pod1/memory.max": file("max\n"),
		}, math.MaxInt64, gib / 10 * 9},
		"of a group above": {fstest.MapFS{
			"proc/self/cgroup": file("0::/kubepods/pod1/c1\n"), "sys/fs/cgroup/kubepods/pod1/c1/memory.max": file("max\n"),
			"sys/fs/cgroup/kubepods/memory.max": file("2147483648\n"), "sys/fs/cgroup/kubepods/pod1/memory.max": file("1073741824\n"),
		}, math.MaxInt64, gib / 10 * 9},
		"a path of the host": {fstest.MapFS{
			"proc/self/cgroup": file("0::/../../c1\n"), "sys/fs/cgroup/memory.max": file("1073741824\n"),
		}, math.MaxInt64, gib / 10 * 9},
		"version 1": {fstest.MapFS{
			"proc/self/cgroup": file("11:cpu,cpuacct:/d\n7:memory:/docker/c1\n0::/\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("1073741824\n"),
			"sys/fs/cgroup/cpu,cpuacct/memory.limit_in_bytes": file("5\n"),
		}, math.MaxInt64, gib / 10 * 9},
		"version 1, none": {fstest.MapFS{
			"proc/self/cgroup": file("7:memory:/\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n"),
		}, math.MaxInt64, 0},
		"none":       {fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n")}, math.MaxInt64, 0},
		"no groups":  {fstest.MapFS{}, math.MaxInt64, 0},
		"odd":        {fstest.MapFS{"proc/self/cgroup": file("x\n\n1:2\n0::\n"), "sys/fs/cgroup/memory.max": file("-1\n")}, math.MaxInt64, 0},
		"GOMEMLIMIT": {fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("1073741824\n")}, 5 << 20, 5 << 20},
	} {
		now := tc.had
		got := limitMemory(tc.root, func(limit int64) int64 {
			before := now
			if limit >= 0 {
				now = limit
			}
			return before
		})
		if diff := int64(got) - int64(tc.want); diff < -16 || diff > 16 {
			t.Errorf("%s: limit %d, want %d", name, got, tc.want)
		}
		if got > 0 && uint64(now) != got {
			t.Errorf("%s: %d is set, %d returned", name, now, got)
		}
	}
}
