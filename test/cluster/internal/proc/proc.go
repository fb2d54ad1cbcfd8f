// Package proc finds the processes of containers of the stand-in cluster, and reads what the kernel says of them (proc(5)).
package proc

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Of returns the folder below /proc of the process of a container of a pod. Its control group is called after the container's id.
func Of(pod *corev1.Pod, container string) (dir string, err error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return "", fmt.Errorf("cannot list processes: %w", err)
	}
	var found []string
	for _, dir := range dirs {
		groups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
		if err == nil && strings.Contains(string(groups), "/"+string(pod.UID)+"-"+container+"-") {
			found = append(found, dir)
		}
	}
	if len(found) == 0 {
		return "", fmt.Errorf("no process of container %s of pod %s", container, pod.Name)
	}
	// Those of probes, which come and go, are younger.
	return slices.MinFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }), nil
}

// Status is /proc/PID/status, by the name of the field, with one space between words.
func Status(dir string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the status of a process: %w", err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		all[name] = strings.Join(strings.Fields(value), " ")
	}
	return all, nil
}

// Memory is the memory of a process, in MiB.
type Memory struct {
	Resident float64 // now
	Peak     float64 // the most that was resident
	Files    float64 // of Resident: pages of files, its program's first of all. An image in a file system in memory has them, too.
}

// MemoryOf reads the memory of a process.
func MemoryOf(dir string) (m Memory, err error) {
	all, err := Status(dir)
	if err != nil {
		return m, err
	}
	for _, field := range []struct {
		name string
		to   *float64
	}{{"VmRSS", &m.Resident}, {"VmHWM", &m.Peak}, {"RssFile", &m.Files}, {"RssShmem", &m.Files}} {
		n, err := strconv.ParseFloat(strings.TrimSuffix(all[field.name], " kB"), 64)
		if err != nil {
			return m, fmt.Errorf("%s of %s: %w", field.name, dir, err)
		}
		*field.to += n / 1024
	}
	return m, nil
}
