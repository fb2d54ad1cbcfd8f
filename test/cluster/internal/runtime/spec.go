package runtime

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Container is what Start runs.
type Container struct {
	ID       string // unique in the Runtime
	Root     string // folder that is /; the container may write to it unless ReadonlyRoot
	Process  Process
	Mounts   []Mount
	Hostname string // "" in a network namespace of the host

	NetworkNamespace string // path; "" is that of this process
	ProcessNamespace string // path; "" is one of its own, "host" that of this process

	ReadonlyRoot  bool
	Privileged    bool // devices, and nothing of /proc and /sys hidden
	MaskedPaths   []string
	ReadonlyPaths []string
	Memory        int64 // limit in octets, 0 for none

	Stdin, Stdout, Stderr *os.File // nil is /dev/null
}

// Process is a program in a container and what it may do.
type Process struct {
	Args            []string
	Env             []string // KEY=value
	Dir             string   // working folder; "" is /
	UID, GID        uint32
	Groups          []uint32 // further groups
	Capabilities    []string // such as CAP_NET_BIND_SERVICE; permitted, not inherited
	NoNewPrivileges bool     // programs cannot gain others by being executed
	Terminal        bool
}

// Mount is a folder or file of the machine in a container.
type Mount struct {
	Source, Target string
	ReadOnly       bool
}

// process is p in the words of the OCI runtime specification. Its capabilities are permitted
// for every user, and not inherited, as the runtimes of Kubernetes have it: a program of a
// user other than root keeps those that are file capabilities of it, also with NoNewPrivileges,
// by which it cannot gain any that were not permitted before.
func (p *Process) process() *specs.Process {
	caps := &specs.LinuxCapabilities{Bounding: p.Capabilities, Permitted: p.Capabilities, Effective: p.Capabilities}
	dir := p.Dir
	if dir == "" {
		dir = "/"
	}
	env := p.Env
	if !slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "PATH=") }) {
		env = append([]string{"PATH=" + defaultPath}, env...)
	}
	return &specs.Process{
		Terminal:        p.Terminal,
		User:            specs.User{UID: p.UID, GID: p.GID, AdditionalGids: p.Groups},
		Args:            p.Args,
		Env:             env,
		Cwd:             dir,
		Capabilities:    caps,
		NoNewPrivileges: p.NoNewPrivileges,
	}
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// spec is the container in the words of the OCI runtime specification.
func (c *Container) spec(cgroup string) *specs.Spec {
	s := &specs.Spec{
		Version:  "1.0.2",
		Process:  c.Process.process(),
		Root:     &specs.Root{Path: c.Root, Readonly: c.ReadonlyRoot},
		Hostname: c.Hostname,
		Mounts:   systemMounts(c.Privileged),
		Linux: &specs.Linux{
			CgroupsPath:   filepath.Join("/", cgroup, c.ID),
			Namespaces:    c.namespaces(),
			MaskedPaths:   c.MaskedPaths,
			ReadonlyPaths: c.ReadonlyPaths,
			Resources:     &specs.LinuxResources{Devices: deviceRules(c.Privileged)},
		},
	}
	if c.Memory > 0 {
		s.Linux.Resources.Memory = &specs.LinuxMemory{Limit: &c.Memory}
	}
	for _, m := range c.Mounts {
		access := "rw"
		if m.ReadOnly {
			access = "ro"
		}
		s.Mounts = append(s.Mounts, specs.Mount{Destination: m.Target, Source: m.Source, Type: "bind", Options: []string{"rbind", "rprivate", access}})
	}
	return s
}

func (c *Container) namespaces() []specs.LinuxNamespace {
	list := []specs.LinuxNamespace{{Type: specs.IPCNamespace}, {Type: specs.MountNamespace}}
	if c.Hostname != "" {
		list = append(list, specs.LinuxNamespace{Type: specs.UTSNamespace})
	}
	if c.NetworkNamespace != "" {
		list = append(list, specs.LinuxNamespace{Type: specs.NetworkNamespace, Path: c.NetworkNamespace})
	}
	if c.ProcessNamespace != "host" {
		list = append(list, specs.LinuxNamespace{Type: specs.PIDNamespace, Path: c.ProcessNamespace})
	}
	return list
}

// systemMounts are the file systems that every container has.
func systemMounts(privileged bool) []specs.Mount {
	access := "ro"
	if privileged {
		access = "rw"
	}
	return []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=64k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "noexec", "nodev", "mode=1777", "size=64m"}},
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", access}},
		{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"nosuid", "noexec", "nodev", "relatime", access}},
	}
}

// deviceRules refuse every device; runc itself adds those that all containers have.
func deviceRules(privileged bool) []specs.LinuxDeviceCgroup {
	return []specs.LinuxDeviceCgroup{{Allow: privileged, Access: "rwm"}}
}
