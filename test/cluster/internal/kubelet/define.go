package kubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/capability"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/securitycontext"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"

	"turnout/test/cluster/internal/images"
	"turnout/test/cluster/internal/runtime"
)

// define says what is to run as the container. dir is the folder of its own.
func (c *container) define(ctx context.Context, image *images.Image, dir string) (*runtime.Container, error) {
	object := c.pod.withAddresses()
	security := securitycontext.DetermineEffectiveSecurityContext(object, c.spec)
	variables, err := c.environment(ctx, object)
	if err != nil {
		return nil, configError{err}
	}
	expand := expansion.MappingFuncFor(variables.values)
	process := runtime.Process{
		Args: c.command(image, expand),
		Env:  slices.Concat(image.Config.Env, variables.list()),
		Dir:  c.spec.WorkingDir,
	}
	if process.Dir == "" {
		process.Dir = image.Config.WorkingDir
	}
	if len(process.Args) == 0 {
		return nil, configError{errors.New("no command specified")}
	}
	if err := setUser(&process, object, security, image); err != nil {
		return nil, configError{err}
	}
	process.NoNewPrivileges = securitycontext.AddNoNewPrivileges(security)
	privileged := security.Privileged != nil && *security.Privileged
	if process.Capabilities, err = capabilities(security.Capabilities, privileged); err != nil {
		return nil, configError{err}
	}
	mounts, err := c.mounts(image, expand, dir)
	if err != nil {
		return nil, err
	}
	wanted := &runtime.Container{
		Process: process, Mounts: mounts,
		Hostname:         c.pod.hostname(object),
		NetworkNamespace: c.pod.network.Netns,
		ReadonlyRoot:     security.ReadOnlyRootFilesystem != nil && *security.ReadOnlyRootFilesystem,
		Privileged:       privileged,
		Memory:           c.spec.Resources.Limits.Memory().Value(),
	}
	if !privileged {
		wanted.MaskedPaths = securitycontext.ConvertToRuntimeMaskedPaths(security.ProcMount)
		wanted.ReadonlyPaths = securitycontext.ConvertToRuntimeReadonlyPaths(security.ProcMount)
	}
	switch {
	case object.Spec.HostPID:
		wanted.ProcessNamespace = "host"
	case c.pod.pause != nil:
		wanted.ProcessNamespace = c.pod.pause.Namespace()
	}
	return wanted, nil
}

// command is what runs: a command in the pod leaves out both entrypoint and arguments of the
// image, arguments alone leave out the image's arguments.
func (c *container) command(image *images.Image, expand func(string) string) []string {
	command, args := image.Config.Entrypoint, image.Config.Cmd
	if len(c.spec.Command) > 0 {
		command, args = c.spec.Command, nil
	}
	if len(c.spec.Args) > 0 {
		args = c.spec.Args
	}
	var all []string
	for _, arg := range slices.Concat(command, args) {
		all = append(all, expansion.Expand(arg, expand))
	}
	return all
}

// setUser decides who the process is: the pod's word, else the image's.
func setUser(process *runtime.Process, object *v1.Pod, security *v1.SecurityContext, image *images.Image) error {
	name := image.Config.User
	if security.RunAsUser != nil {
		name = fmt.Sprint(*security.RunAsUser)
	}
	user, err := image.User(name)
	if err != nil {
		return err
	}
	process.UID, process.GID = uint32(user.Uid), uint32(user.Gid)
	if security.RunAsGroup != nil {
		process.GID = uint32(*security.RunAsGroup)
	}
	if must := security.RunAsNonRoot; must != nil && *must && process.UID == 0 {
		return errors.New("container has runAsNonRoot and image will run as root")
	}
	for _, g := range user.Sgids {
		process.Groups = append(process.Groups, uint32(g))
	}
	if s := object.Spec.SecurityContext; s != nil {
		for _, g := range s.SupplementalGroups {
			process.Groups = append(process.Groups, uint32(g))
		}
		if s.FSGroup != nil {
			process.Groups = append(process.Groups, uint32(*s.FSGroup))
		}
	}
	return nil
}

// defaultCapabilities are those of containers that neither add nor drop any.
func defaultCapabilities() []string {
	return []string{"CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP",
		"NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"}
}

// capabilities are the names that a container's programs may have.
func capabilities(changes *v1.Capabilities, privileged bool) ([]string, error) {
	// A machine that is one itself may lack some; nobody can give away what it does not have.
	own, err := capability.NewPid2(0)
	if err != nil {
		return nil, err
	}
	if err := own.Load(); err != nil {
		return nil, err
	}
	set := map[string]bool{}
	all := func(on bool) {
		for _, known := range capability.ListKnown() {
			set[strings.ToUpper(known.String())] = on && own.Get(capability.BOUNDING, known)
		}
	}
	for _, name := range defaultCapabilities() {
		set[name] = true
	}
	if changes != nil {
		change := func(names []v1.Capability, on bool) {
			for _, name := range names {
				if n := strings.TrimPrefix(strings.ToUpper(string(name)), "CAP_"); n == "ALL" {
					all(on)
				} else {
					set[n] = on
				}
			}
		}
		// ALL goes before names, so that one can be added while all others are dropped.
		change(changes.Drop, false)
		change(changes.Add, true)
		for _, name := range changes.Drop {
			if n := strings.TrimPrefix(strings.ToUpper(string(name)), "CAP_"); n != "ALL" {
				set[n] = false
			}
		}
	}
	if privileged {
		all(true)
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if set[name] {
			list = append(list, "CAP_"+name)
		}
	}
	return list, nil
}

// mounts are the container's volumes and the files that every container has.
func (c *container) mounts(image *images.Image, expand func(string) string, dir string) ([]runtime.Mount, error) {
	var list []runtime.Mount
	for _, path := range image.Binds() {
		list = append(list, runtime.Mount{Source: path, Target: path, ReadOnly: true})
	}
	own := map[string]string{"/etc/hosts": filepath.Join(c.pod.dir, "hosts"), "/etc/resolv.conf": filepath.Join(c.pod.dir, "resolv.conf")}
	if !c.pod.object().Spec.HostNetwork {
		own["/etc/hostname"] = filepath.Join(c.pod.dir, "hostname")
	}
	if path := c.spec.TerminationMessagePath; path != "" {
		own[path] = filepath.Join(dir, messageFile)
	}
	var volumes []runtime.Mount
	for _, m := range c.spec.VolumeMounts {
		source, err := c.volumeSource(m, expand)
		if err != nil {
			return nil, configError{err}
		}
		delete(own, filepath.Clean(m.MountPath))
		volumes = append(volumes, runtime.Mount{Source: source, Target: m.MountPath, ReadOnly: m.ReadOnly})
	}
	for _, target := range slices.Sorted(maps.Keys(own)) {
		list = append(list, runtime.Mount{Source: own[target], Target: target})
	}
	// A folder before what is mounted in it.
	slices.SortStableFunc(volumes, func(a, b runtime.Mount) int {
		return strings.Count(filepath.Clean(a.Target), "/") - strings.Count(filepath.Clean(b.Target), "/")
	})
	return append(list, volumes...), nil
}

// volumeSource is the folder or file of the machine that a mount shows.
func (c *container) volumeSource(m v1.VolumeMount, expand func(string) string) (string, error) {
	root := c.pod.volumes.Path(m.Name)
	if root == "" {
		return "", fmt.Errorf("volume %q of mount %s is not there", m.Name, m.MountPath)
	}
	sub := m.SubPath
	if m.SubPathExpr != "" {
		sub = expansion.Expand(m.SubPathExpr, expand)
	}
	if sub == "" {
		return root, nil
	}
	folder, err := os.OpenRoot(root)
	if err != nil {
		return "", err
	}
	defer func() { _ = folder.Close() }()
	if _, err := folder.Stat(sub); errors.Is(err, os.ErrNotExist) {
		if err := folder.MkdirAll(sub, 0o750); err != nil {
			return "", fmt.Errorf("cannot make subPath %q: %w", sub, err)
		}
	} else if err != nil {
		return "", fmt.Errorf("cannot use subPath %q: %w", sub, err)
	}
	return filepath.EvalSymlinks(filepath.Join(root, sub))
}
