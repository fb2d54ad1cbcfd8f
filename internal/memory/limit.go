package memory

import (
	"io/fs"
	"math"

	"turnout/internal/cgroup"
)

// cgroupShare is the part of a container's memory that is for Go: the rest is for the kernel, which keeps the sockets'
// buffers on the same account.
const cgroupShare = 0.9

// limitMemory gives the collector of garbage a limit if GOMEMLIMIT has not and the control group
// that it runs in has one. It returns the limit in bytes, 0 for none. set is debug.SetMemoryLimit or a test's, root the
// file system.
func limitMemory(root fs.FS, set func(limit int64) int64) uint64 {
	limit := set(-1)
	if limit == math.MaxInt64 {
		if group := cgroup.Memory(root); group > 0 {
			limit = int64(float64(group) * cgroupShare)
			set(limit)
		}
	}
	if limit == math.MaxInt64 || limit <= 0 {
		return 0
	}
	return uint64(limit)
}
