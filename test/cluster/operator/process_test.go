package operator

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"turnout/test/cluster/internal/proc"
)

// process returns the folder below /proc of the process of a container of a pod.
func process(t testing.TB, pod *corev1.Pod, container string) string {
	t.Helper()
	return must[string](t)(proc.Of(pod, container))
}

// resident is the memory of a process in MiB, now and at most.
func resident(t testing.TB, dir string) (now, peak float64) {
	t.Helper()
	m := must[proc.Memory](t)(proc.MemoryOf(dir))
	return m.Resident, m.Peak
}

// capNetBindService is the set of that capability alone, as the kernel prints it.
const capNetBindService = 1 << 10

// runsAs checks user and group of a process, that it may do nothing but listen on low
// ports, and, if asked for, that its root file system cannot be written.
func runsAs(t testing.TB, dir string, user, capabilities int, readOnly bool) {
	t.Helper()
	all := must[map[string]string](t)(proc.Status(dir))
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
