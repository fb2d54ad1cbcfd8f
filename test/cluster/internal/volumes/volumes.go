// Package volumes makes the volumes of a pod: folders of this machine with what Secrets,
// ConfigMaps, tokens and the pod's own fields say, empty folders, and folders of the node.
//
// What is in a volume, with which names, modes and in which order, is decided by the
// kubelet's own code. A change of contents replaces all files of a volume at once, by a
// symbolic link ..data, as programs that watch their files expect it (Set.Refresh).
package volumes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"

	"golang.org/x/sys/unix"
)

// Config is what volumes are made with.
type Config struct {
	Client      kubernetes.Interface
	Allocatable v1.ResourceList // of the node, for limits that a container does not have
}

// Set is the volumes of one pod.
type Set struct {
	config Config
	dir    string

	mu      sync.Mutex // guards what follows, and writing
	volumes map[string]*volume
	tokens  map[string]*token // by volume and path
	closed  bool
}

// volume is one of a pod.
type volume struct {
	path   string
	writer *volumeutil.AtomicWriter // nil unless contents come from the API
	tmpfs  bool
}

// New makes the volumes of the pod below dir. When it fails nothing is left, and it may
// be tried again.
func New(ctx context.Context, config Config, dir string, pod *v1.Pod) (*Set, error) {
	s := &Set{config: config, dir: dir, volumes: map[string]*volume{}, tokens: map[string]*token{}}
	for i := range pod.Spec.Volumes {
		if err := s.add(ctx, pod, &pod.Spec.Volumes[i]); err != nil {
			return nil, errors.Join(fmt.Errorf("volume %s: %w", pod.Spec.Volumes[i].Name, err), s.Close())
		}
	}
	return s, nil
}

// Path is the folder, or file, of the volume of that name; "" when there is none.
func (s *Set) Path(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.volumes[name]; v != nil {
		return v.path
	}
	return ""
}

func (s *Set) add(ctx context.Context, pod *v1.Pod, spec *v1.Volume) error {
	v := &volume{path: filepath.Join(s.dir, spec.Name)}
	switch {
	case spec.HostPath != nil:
		v.path = spec.HostPath.Path
		s.volumes[spec.Name] = v
		return checkHostPath(spec.HostPath)
	case spec.EmptyDir == nil && spec.Secret == nil && spec.ConfigMap == nil && spec.DownwardAPI == nil && spec.Projected == nil:
		return errors.New("has a type that is not supported here; supported are secret, configMap, projected, downwardAPI, emptyDir and hostPath")
	}
	if err := errors.Join(os.MkdirAll(v.path, 0o755), os.Chmod(v.path, 0o777)); err != nil {
		return err
	}
	s.volumes[spec.Name] = v
	if spec.EmptyDir != nil {
		return v.makeEmpty(pod, spec.EmptyDir)
	}
	var err error
	if v.writer, err = volumeutil.NewAtomicWriter(v.path, pod.Namespace+"/"+pod.Name); err != nil {
		return err
	}
	return s.write(ctx, pod, spec)
}

// makeEmpty makes an emptyDir, in memory of its own if it has a limit or asks for it.
func (v *volume) makeEmpty(pod *v1.Pod, spec *v1.EmptyDirVolumeSource) error {
	if spec.Medium == v1.StorageMediumMemory {
		options := "mode=0777"
		if spec.SizeLimit != nil && !spec.SizeLimit.IsZero() {
			options += fmt.Sprintf(",size=%d", spec.SizeLimit.Value())
		}
		if err := unix.Mount("tmpfs", v.path, "tmpfs", 0, options); err != nil {
			return fmt.Errorf("cannot mount memory: %w", err)
		}
		v.tmpfs = true
	}
	return setGroup(v.path, fsGroup(pod), false)
}

// checkHostPath makes or checks the path, as its type says.
func checkHostPath(spec *v1.HostPathVolumeSource) error {
	kind := v1.HostPathUnset
	if spec.Type != nil {
		kind = *spec.Type
	}
	switch kind {
	case v1.HostPathDirectoryOrCreate:
		return os.MkdirAll(spec.Path, 0o755)
	case v1.HostPathFileOrCreate:
		f, err := os.OpenFile(spec.Path, os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		return f.Close()
	case v1.HostPathUnset:
		return nil
	}
	info, err := os.Stat(spec.Path)
	if err != nil {
		return err
	}
	types := map[v1.HostPathType]fs.FileMode{
		v1.HostPathDirectory: fs.ModeDir, v1.HostPathFile: 0, v1.HostPathSocket: fs.ModeSocket,
		v1.HostPathCharDev: fs.ModeDevice | fs.ModeCharDevice, v1.HostPathBlockDev: fs.ModeDevice,
	}
	if want, ok := types[kind]; !ok || info.Mode().Type() != want {
		return fmt.Errorf("%s is not a %s", spec.Path, kind)
	}
	return nil
}

// Refresh writes the contents again that come from the API, as they are now. Nothing is
// written that did not change. The pod is the newest version of the Set's own.
func (s *Set) Refresh(ctx context.Context, pod *v1.Pod) error {
	var errs []error
	for i := range pod.Spec.Volumes {
		spec := &pod.Spec.Volumes[i]
		s.mu.Lock()
		written := !s.closed && s.volumes[spec.Name] != nil && s.volumes[spec.Name].writer != nil
		s.mu.Unlock()
		if !written {
			continue
		}
		if err := s.write(ctx, pod, spec); err != nil {
			errs = append(errs, fmt.Errorf("volume %s: %w", spec.Name, err))
		}
	}
	return errors.Join(errs...)
}

// write collects the contents of a volume and writes them.
func (s *Set) write(ctx context.Context, pod *v1.Pod, spec *v1.Volume) error {
	payload, err := s.collect(ctx, pod, spec)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	v := s.volumes[spec.Name]
	return v.writer.Write(payload, func(dir string) error {
		return setGroup(filepath.Join(v.path, dir), fsGroup(pod), true)
	})
}

// NextToken is when a token must be replaced by Refresh; zero when there is none.
func (s *Set) NextToken() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	var next time.Time
	for _, t := range s.tokens {
		if next.IsZero() || t.replace.Before(next) {
			next = t.replace
		}
	}
	return next
}

// Close removes the volumes.
func (s *Set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var errs []error
	for _, v := range s.volumes {
		if v.tmpfs {
			errs = append(errs, unix.Unmount(v.path, unix.MNT_DETACH))
		}
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// Uses tells whether a volume or an environment variable of the pod comes from the object
// of that kind, Secret or ConfigMap, and name.
func Uses(pod *v1.Pod, kind, name string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v v1.Volume) bool {
		switch {
		case v.Secret != nil:
			return kind == "Secret" && v.Secret.SecretName == name
		case v.ConfigMap != nil:
			return kind == "ConfigMap" && v.ConfigMap.Name == name
		case v.Projected != nil:
			return slices.ContainsFunc(v.Projected.Sources, func(p v1.VolumeProjection) bool {
				return kind == "Secret" && p.Secret != nil && p.Secret.Name == name ||
					kind == "ConfigMap" && p.ConfigMap != nil && p.ConfigMap.Name == name
			})
		}
		return false
	})
}

// fsGroup is the group that owns the pod's volumes, nil for none.
func fsGroup(pod *v1.Pod) *int64 {
	if c := pod.Spec.SecurityContext; c != nil {
		return c.FSGroup
	}
	return nil
}

// setGroup gives all below path to a group, which may read it, and write it unless
// readOnly; what is made there later belongs to the group too.
func setGroup(path string, group *int64, readOnly bool) error {
	if group == nil {
		return nil
	}
	return filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := os.Lchown(path, -1, int(*group)); err != nil {
			return err
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		add := fs.FileMode(0o660)
		if readOnly {
			add = 0o440
		}
		if entry.IsDir() {
			add |= fs.ModeSetgid | 0o110
		}
		return os.Chmod(path, info.Mode()|add)
	})
}
