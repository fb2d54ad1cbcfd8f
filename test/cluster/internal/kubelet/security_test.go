package kubelet

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// rights prints user, groups, and the sets of capabilities that a program has.
const rights = "id -u; id -g; grep -E 'CapPrm|CapEff|CapBnd' /proc/self/status | cut -f2"

func TestUsersAndCapabilities(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh(rights)
	c.SecurityContext = &v1.SecurityContext{
		RunAsUser:    new(int64(1000690000)),
		Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}, Add: []v1.Capability{"NET_BIND_SERVICE", "KILL"}},
	}
	const none, bindAndKill = "0000000000000000", "0000000000000420"
	same(t, output(t, ns, "user", v1.PodSpec{Containers: []v1.Container{c}}), "1000690000", "0", none, none, bindAndKill)
	c.SecurityContext.RunAsUser, c.SecurityContext.RunAsGroup = new(int64(0)), new(int64(7))
	same(t, output(t, ns, "root", v1.PodSpec{Containers: []v1.Container{c}}), "0", "7", bindAndKill, bindAndKill, bindAndKill)
	c = sh(rights)
	same(t, output(t, ns, "nothing-said", v1.PodSpec{Containers: []v1.Container{c}}), "0", "0", "00000000a80425fb", "00000000a80425fb", "00000000a80425fb")
}

// capable makes an image, of that name, whose program /bound has a file capability and prints
// its rights.
func capable(t *testing.T, name string, effective bool) {
	t.Helper()
	root := t.TempDir()
	program, err := os.ReadFile("/usr/bin/grep")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(root, "bound"), program, 0o755))
	set := "cap_net_bind_service=p"
	if effective {
		set = "cap_net_bind_service=ep"
	}
	if out, err := exec.Command("setcap", set, filepath.Join(root, "bound")).CombinedOutput(); err != nil {
		t.Fatalf("setcap: %v: %s", err, out)
	}
	// grep needs libraries, which the image has at the places of this machine.
	out, err := exec.Command("ldd", "/usr/bin/grep").Output()
	must(t, err)
	for _, field := range strings.Fields(string(out)) {
		if filepath.IsAbs(field) {
			library, err := os.ReadFile(field)
			must(t, err)
			must(t, os.MkdirAll(filepath.Join(root, filepath.Dir(field)), 0o755))
			must(t, os.WriteFile(filepath.Join(root, field), library, 0o755))
		}
	}
	must(t, os.Chmod(root, 0o755))
	must(t, shared.store.AddFolder(name, root, ocispec.ImageConfig{
		Entrypoint: []string{"/bound", "CapEff"}, Cmd: []string{"/proc/self/status"}, User: "1001",
	}))
}

func TestFileCapabilities(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	capable(t, "test/capable", true)
	const with = "CapEff:\t0000000000000400"
	c := v1.Container{Name: "main", Image: "test/capable"}
	same(t, output(t, ns, "plain", v1.PodSpec{Containers: []v1.Container{c}}), with)
	// Dropped but for the one, and not allowed to gain any: it is permitted already.
	c.SecurityContext = &v1.SecurityContext{
		AllowPrivilegeEscalation: new(false), RunAsUser: new(int64(1000690000)),
		Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}, Add: []v1.Capability{"NET_BIND_SERVICE"}},
	}
	same(t, output(t, ns, "restricted", v1.PodSpec{Containers: []v1.Container{c}}), with)
	// Without it in the bounding set the kernel refuses to run a program that wants it effective.
	c.SecurityContext = &v1.SecurityContext{Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}}}
	create(t, ns, "dropped", v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{c}})
	p := eventually(t, ns, "dropped", "failed", phase(v1.PodFailed))
	text := logs(t, ns, "dropped", v1.PodLogOptions{})
	if end := p.Status.ContainerStatuses[0].State.Terminated; end.ExitCode != 1 || !strings.Contains(text, "operation not permitted") {
		t.Errorf("the container's state is %+v, its log %q", end, text)
	}
}

func TestNoNewPrivileges(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh("grep NoNewPrivs /proc/self/status | cut -f2")
	same(t, output(t, ns, "unset", v1.PodSpec{Containers: []v1.Container{c}}), "0")
	c.SecurityContext = &v1.SecurityContext{AllowPrivilegeEscalation: new(false)}
	same(t, output(t, ns, "refused", v1.PodSpec{Containers: []v1.Container{c}}), "1")
}

func TestReadOnlyRoot(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh("echo x >/written && echo writable; touch /tmp/x && echo tmp; touch /e/x && echo volume")
	c.VolumeMounts = []v1.VolumeMount{{Name: "e", MountPath: "/e"}}
	spec := v1.PodSpec{Containers: []v1.Container{c}, Volumes: []v1.Volume{volume("e", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})}}
	same(t, output(t, ns, "writable", spec), "writable", "tmp", "volume")
	spec.Containers[0].SecurityContext = &v1.SecurityContext{ReadOnlyRootFilesystem: new(true)}
	spec.Containers[0].Command[2] = "touch /written 2>/dev/null || echo no; touch /e/x && echo volume"
	same(t, output(t, ns, "readonly", spec), "no", "volume")
	// What one container writes, the next of the image does not see.
	same(t, output(t, ns, "other", v1.PodSpec{Containers: []v1.Container{sh("test -e /written || echo clean")}}), "clean")
}

func TestPrivileged(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh("mount -t tmpfs none /tmp && sysctl -w net.ipv4.ip_forward=0")
	c.SecurityContext = &v1.SecurityContext{Privileged: new(true)}
	if text := output(t, ns, "pod", v1.PodSpec{Containers: []v1.Container{c}}); text != "net.ipv4.ip_forward = 0\n" {
		t.Error(text)
	}
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh("cat /sys/fs/cgroup/memory/memory.limit_in_bytes; exec python3 -c 'x = bytearray(100 << 20); print(len(x))'")
	c.Resources.Limits = v1.ResourceList{v1.ResourceMemory: resource.MustParse("32Mi")}
	create(t, ns, "pod", v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{c}})
	p := eventually(t, ns, "pod", "failed", phase(v1.PodFailed))
	if end := p.Status.ContainerStatuses[0].State.Terminated; end.Reason != "OOMKilled" || end.ExitCode != 137 {
		t.Errorf("the container's state is %+v", end)
	}
	same(t, logs(t, ns, "pod", v1.PodLogOptions{}), "33554432")
}

func TestSharedProcessNamespace(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	// The first leaves a process behind when it ends, which must not outlive it.
	one := named("one", sh("sleep 999 & touch /e/up; until test -e /e/seen; do sleep 0.05; done; exit 3"))
	two := named("two", sh(`tr '\0' ' ' </proc/1/cmdline; echo; until test -e /e/up; do sleep 0.05; done
		ps ax -o args | grep -c '^sleep 999'; touch /e/seen
		while ps ax -o args | grep -q '^sleep 999'; do sleep 0.05; done; ps ax | grep -c '[d]efunct'; true`))
	for _, c := range []*v1.Container{&one, &two} {
		c.VolumeMounts = []v1.VolumeMount{{Name: "e", MountPath: "/e"}}
	}
	create(t, ns, "pod", v1.PodSpec{
		ShareProcessNamespace: new(true), RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{one, two},
		Volumes: []v1.Volume{volume("e", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})},
	})
	p := eventually(t, ns, "pod", "failed", phase(v1.PodFailed))
	for _, s := range p.Status.ContainerStatuses {
		if want := map[string]int32{"one": 3, "two": 0}[s.Name]; s.State.Terminated.ExitCode != want {
			t.Errorf("the state of %s is %+v", s.Name, s.State)
		}
	}
	same(t, logs(t, ns, "pod", v1.PodLogOptions{Container: "two"}), "/pause infinity ", "1", "0")
}
