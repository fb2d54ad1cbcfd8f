package memory

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// cgroupShare is the part of a container's memory that is for Go: the rest is for the kernel, which keeps the sockets'
// buffers on the same account.
const cgroupShare = 0.9

// limitMemory gives the collector of garbage a limit if whoever runs the process has not (GOMEMLIMIT) and the control group
// that it runs in has one. It returns the limit in bytes, 0 for none. set is debug.SetMemoryLimit or a test's, root the
// file system.
func limitMemory(root fs.FS, set func(limit int64) int64) uint64 {
	limit := set(-1)
	if limit == math.MaxInt64 {
		if group := cgroupMemory(root); group > 0 {
			limit = int64(float64(group) * cgroupShare)
			set(limit)
		}
	}
	if limit == math.MaxInt64 || limit <= 0 {
		return 0
	}
	return uint64(limit)
}

// cgroupMemory is the least limit of the control group of this process and of those above it, in bytes; 0 = there is none,
// or no such thing.
func cgroupMemory(root fs.FS) uint64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	least := uint64(math.MaxUint64)
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		base, file := "sys/fs/cgroup", "memory.max"
		switch {
		case fields[0] == "0" && fields[1] == "": // version 2
		case strings.Contains(","+fields[1]+",", ",memory,"):
			base, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// Within a container the path may be that of the host, and then the files are at the root.
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			if n := readLimit(root, path.Join(base, group, file)); n > 0 {
				least = min(least, n)
			}
			if group == "/" {
				break
			}
		}
	}
	if least > math.MaxInt64/2 { // version 1 says "none" with a large number
		return 0
	}
	return least
}

// readLimit is a number in a file, 0 without one.
func readLimit(root fs.FS, name string) uint64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil { // "max"
		return 0
	}
	return n
}
