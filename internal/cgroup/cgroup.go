// Package cgroup reads the limits of the control group that the process runs in, of version 1 and 2.
package cgroup

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// Memory is the least limit of the control group of this process and of those above it, in bytes; 0 = there is none, or no
// such thing. root is the file system.
func Memory(root fs.FS) uint64 {
	least := uint64(math.MaxUint64)
	each(root, "memory", func(folder string, second bool) {
		file := "memory.limit_in_bytes"
		if second {
			file = "memory.max"
		}
		n, err := strconv.ParseUint(line(root, folder, file), 10, 64)
		if err == nil && n > 0 { // not "max"
			least = min(least, n)
		}
	})
	if least > math.MaxInt64/2 { // version 1 says "none" with a large number
		return 0
	}
	return least
}

// Processors is the least CPU limit of the control group of this process and of those above it, in processors; 0 = there is
// none, or no such thing. root is the file system.
func Processors(root fs.FS) float64 {
	least := 0.0
	each(root, "cpu", func(folder string, second bool) {
		var quota, period string
		if second {
			quota, period, _ = strings.Cut(line(root, folder, "cpu.max"), " ")
		} else {
			quota, period = line(root, folder, "cpu.cfs_quota_us"), line(root, folder, "cpu.cfs_period_us")
		}
		q, err := strconv.ParseUint(quota, 10, 32)
		if err != nil || q == 0 { // "max", -1
			return
		}
		p, err := strconv.ParseUint(period, 10, 32)
		if err != nil || p == 0 {
			return
		}
		if n := float64(q) / float64(p); least == 0 || n < least {
			least = n
		}
	})
	return least
}

// each calls look with the folder of the control group of this process for a controller, and with those of the groups above
// it. second says that it is one of version 2.
func each(root fs.FS, controller string, look func(folder string, second bool)) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return
	}
	for entry := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(entry), ":", 3)
		if len(fields) != 3 {
			continue
		}
		base, second := "sys/fs/cgroup", fields[0] == "0" && fields[1] == ""
		switch {
		case second:
		case strings.Contains(","+fields[1]+",", ","+controller+","):
			base = path.Join(base, controller)
		default:
			continue
		}
		// Within a container the path may be that of the host, and then the files are at the root.
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			look(path.Join(base, group), second)
			if group == "/" {
				break
			}
		}
	}
}

// line is the text of a file without the spaces around it, "" without one.
func line(root fs.FS, folder, file string) string {
	text, err := fs.ReadFile(root, path.Join(folder, file))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
