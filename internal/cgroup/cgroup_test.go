package cgroup

import (
	"testing"
	"testing/fstest"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestProcessors(t *testing.T) {
	second := func(limit string) fstest.MapFS {
		return fstest.MapFS{
			"proc/self/cgroup": file("0::/pod/c\n"), "sys/fs/cgroup/pod/c/cpu.max": file(limit), "sys/fs/cgroup/pod/cpu.max": file("max 100000\n"),
		}
	}
	first := func(quota, period string) fstest.MapFS {
		return fstest.MapFS{
			"proc/self/cgroup":                   file("4:cpu,cpuacct:/c\n5:memory:/c\n0::/\n"),
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us": file(quota), "sys/fs/cgroup/cpu/cpu.cfs_period_us": file(period),
		}
	}
	above := second("800000 100000\n")
	above["sys/fs/cgroup/pod/cpu.max"] = file("150000 100000\n")
	for name, tc := range map[string]struct {
		root fstest.MapFS
		want float64
	}{
		"half a processor":         {second("50000 100000\n"), 0.5},
		"four":                     {second("400000 100000\n"), 4},
		"of a group above":         {above, 1.5},
		"no limit":                 {second("max 100000\n"), 0},
		"version 1":                {first("50000\n", "100000\n"), 0.5},
		"version 1, no limit":      {first("-1\n", "100000\n"), 0},
		"a period of zero":         {second("50000 0\n"), 0},
		"no control groups":        {fstest.MapFS{}, 0},
		"something else in a file": {second("what\n"), 0},
		"a quota without a period": {second("50000\n"), 0},
	} {
		if got := Processors(tc.root); got != tc.want {
			t.Errorf("%s: %v processors, want %v", name, got, tc.want)
		}
	}
}

func TestMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		root fstest.MapFS
		want uint64
	}{
		"version 2":         {fstest.MapFS{"proc/self/cgroup": file("0::/c\n"), "sys/fs/cgroup/c/memory.max": file("5000\n"), "sys/fs/cgroup/memory.max": file("max\n")}, 5000},
		"of a group above":  {fstest.MapFS{"proc/self/cgroup": file("0::/c\n"), "sys/fs/cgroup/c/memory.max": file("max\n"), "sys/fs/cgroup/memory.max": file("7\n")}, 7},
		"version 1":         {fstest.MapFS{"proc/self/cgroup": file("1:cpu:/c\n7:memory:/c\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9\n")}, 9},
		"version 1, none":   {fstest.MapFS{"proc/self/cgroup": file("7:memory:/\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n")}, 0},
		"no control groups": {fstest.MapFS{}, 0},
	} {
		if got := Memory(tc.root); got != tc.want {
			t.Errorf("%s: %d bytes, want %d", name, got, tc.want)
		}
	}
}
