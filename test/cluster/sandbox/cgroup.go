package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	cgroupRoot   = "/sys/fs/cgroup"
	cgroupPrefix = "turnout-sandbox-"
)

// Cgroup is the path of the control group that everything in this sandbox which wants
// groups has to make its own below, in each hierarchy: groups belong to the whole
// machine. The process outside removes it at the end; if that was killed, the next
// sandbox does.
func Cgroup() string { return "/" + cgroupPrefix + os.Getenv(marker) }

// removeCgroups removes the groups of this sandbox and of all others whose process has
// ended. Groups with processes in them stay: the kernel does not remove those.
func removeCgroups() {
	hierarchies, err := filepath.Glob(filepath.Join(cgroupRoot, "*"))
	if err != nil {
		return // only for a bad pattern
	}
	// In version 2 there is one hierarchy, the folder itself.
	for _, hierarchy := range append(hierarchies, cgroupRoot) {
		groups, err := filepath.Glob(filepath.Join(hierarchy, cgroupPrefix+"*"))
		if err != nil {
			return
		}
		for _, group := range groups {
			owner, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(group), cgroupPrefix))
			if err != nil || owner != os.Getpid() && alive(owner) {
				continue
			}
			removeTree(group)
		}
	}
}

func alive(pid int) bool {
	_, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	return err == nil
}

// removeTree removes a group and those in it, innermost first.
func removeTree(group string) {
	var folders []string
	_ = filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			folders = append(folders, path)
		}
		return nil
	})
	for _, folder := range slices.Backward(folders) {
		_ = os.Remove(folder) // the files in it are not removed one by one; a busy group stays
	}
}
