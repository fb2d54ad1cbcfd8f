package operator

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// process finds the process of a container of a pod, and returns its folder below /proc.
// Its control group is called after the container's id.
func process(t testing.TB, pod *corev1.Pod, container string) string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, dir := range dirs {
		groups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
		if err == nil && strings.Contains(string(groups), "/"+string(pod.UID)+"-"+container+"-") {
			found = append(found, dir)
		}
	}
	if len(found) == 0 {
		t.Fatalf("no process of container %s of pod %s", container, pod.Name)
	}
	// Those of probes, which come and go, are younger.
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	return found[0]
}

// status is what the kernel says of a process, by the name of the field.
func status(t testing.TB, dir string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		all[name] = strings.Join(strings.Fields(value), " ")
	}
	return all
}

// resident is the memory of a process in MiB, now and at most.
func resident(t testing.TB, dir string) (now, peak float64) {
	t.Helper()
	all := status(t, dir)
	mib := func(field string) float64 {
		n, err := strconv.Atoi(strings.TrimSuffix(all[field], " kB"))
		if err != nil {
			t.Fatalf("%s of %s: %v", field, dir, err)
		}
		return float64(n) / 1024
	}
	return mib("VmRSS"), mib("VmHWM")
}

// capNetBindService is the set of that capability alone, as the kernel prints it.
const capNetBindService = 1 << 10

// runsAs checks user and group of a process, that it may do nothing but listen on low
// ports, and, if asked for, that its root file system cannot be written.
func runsAs(t testing.TB, dir string, user, capabilities int, readOnly bool) {
	t.Helper()
	all := status(t, dir)
	id := strconv.Itoa(user)
	if want := strings.Join([]string{id, id, id, id}, " "); all["Uid"] != want || all["Gid"] != "0 0 0 0" {
		t.Errorf("%s runs as %s, %s", all["Name"], all["Uid"], all["Gid"])
	}
	if want := fmt.Sprintf("%016x", capabilities); all["CapEff"] != want || all["CapPrm"] != want || all["CapAmb"] != fmt.Sprintf("%016x", 0) {
		t.Errorf("%s has the capabilities %s of %s, want %s", all["Name"], all["CapEff"], all["CapPrm"], want)
	}
	if !readOnly {
		return
	}
	mounts, err := os.ReadFile(filepath.Join(dir, "mountinfo"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		// The fifth field is the place, the sixth its options.
		if f := strings.Fields(line); f[4] == "/" && !strings.Contains(","+f[5]+",", ",ro,") {
			t.Errorf("%s can write its root file system: %s", all["Name"], line)
		}
	}
}
