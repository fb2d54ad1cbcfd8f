// Package images knows the images of a cluster: the folder that is a container's root file
// system, and the configuration that says what runs in it.
//
// There is no registry. An image is an OCI layout as make image and buildah write it, a
// folder, a program of this machine, or the machine itself with its shell and tools. All
// containers of an image read the same folder; each writes to a layer of its own (Mount).
package images

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/moby/sys/user"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"
)

// ErrUnknown says that no image has the name.
var ErrUnknown = errors.New("image is not known")

// Image is what containers are made from.
type Image struct {
	Root   string // folder; nobody writes to it
	Config ocispec.ImageConfig
	ID     string // tells images apart
	// Machine says that the folders of this machine that hold programs and libraries belong
	// in the container, read-only.
	Machine bool
}

// Store holds images by name. It is safe for concurrent use.
type Store struct {
	dir string

	mu     sync.Mutex
	images []named // newest first
}

type named struct {
	pattern *regexp.Regexp
	image   *Image
}

// New returns a Store that makes root folders below dir, on a file system with extended
// attributes.
func New(dir string) *Store { return &Store{dir: dir} }

// Add gives an image a name. In name, * stands for any characters; without a tag it is the
// name with every tag. An image that was added later goes before those that match too.
func (s *Store) Add(name string, image *Image) {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(name), `\*`, `.*`)
	if !strings.Contains(name[strings.LastIndexByte(name, '/')+1:], ":") {
		pattern += `(:[^/]*)?`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.images = append([]named{{pattern: regexp.MustCompile("^" + pattern + "$"), image: image}}, s.images...)
}

// Get returns the image of that name. Its error is ErrUnknown when there is none.
func (s *Store) Get(name string) (*Image, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.images {
		if n.pattern.MatchString(name) {
			return n.image, nil
		}
	}
	return nil, fmt.Errorf("%w: %q", ErrUnknown, name)
}

// newRoot makes a folder for an image, with what every image has.
func (s *Store) newRoot() (string, error) {
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	root, err := os.MkdirTemp(dir, "image-")
	if err != nil {
		return "", err
	}
	return root, os.Chmod(root, 0o755)
}

// skeleton makes the folders and files that libraries expect, in an image without any.
func skeleton(root string) error {
	for name, text := range map[string]string{
		"etc/passwd":        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
		"etc/group":         "root:x:0:\nnogroup:x:65534:\n",
		"etc/nsswitch.conf": "hosts: files dns\n",
	} {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	for _, dir := range []string{"tmp", "var/tmp"} {
		path := filepath.Join(root, dir)
		// Chmod, as the process's mask takes bits from the mode given to Mkdir.
		if err := errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, 0o777|os.ModeSticky)); err != nil {
			return err
		}
	}
	return os.MkdirAll(filepath.Join(root, "root"), 0o700)
}

// AddProgram makes an image whose entrypoint is a copy of the program at path, with the
// options of config, which may be nil. A program that needs shared libraries gets the
// machine's.
func (s *Store) AddProgram(name, path string, config *ocispec.ImageConfig) error {
	dynamic, err := isDynamic(path)
	if err != nil {
		return fmt.Errorf("cannot make an image of %s: %w", path, err)
	}
	image, err := s.programRoot(dynamic)
	if err != nil {
		return err
	}
	if config != nil {
		image.Config = *config
	}
	target := "/" + filepath.Base(path)
	if err := copyFile(path, filepath.Join(image.Root, target), 0o755); err != nil {
		return fmt.Errorf("cannot make an image of %s: %w", path, err)
	}
	if image.Config.Entrypoint == nil {
		image.Config.Entrypoint = []string{target}
	}
	s.Add(name, image)
	return nil
}

// AddMachine makes an image with all programs of this machine: a client for tests, with
// its shell, curl and whatever is installed.
func (s *Store) AddMachine(name string) error {
	image, err := s.programRoot(true)
	if err != nil {
		return err
	}
	image.Config.Cmd = []string{"/bin/sh"}
	s.Add(name, image)
	return nil
}

// AddFolder makes an image of a folder, which must not change any more.
func (s *Store) AddFolder(name, folder string, config ocispec.ImageConfig) error {
	root, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	s.Add(name, &Image{Root: root, Config: config, ID: "folder:" + root})
	return nil
}

func (s *Store) programRoot(machine bool) (*Image, error) {
	root, err := s.newRoot()
	if err != nil {
		return nil, err
	}
	if err := skeleton(root); err != nil {
		return nil, err
	}
	if machine {
		if err := linkMachine(root); err != nil {
			return nil, err
		}
	}
	return &Image{Root: root, Machine: machine, ID: filepath.Base(root)}, nil
}

// isDynamic tells whether the program at path asks for a dynamic linker.
func isDynamic(path string) (bool, error) {
	f, err := elf.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return true, nil
		}
	}
	return false, nil
}

func copyFile(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), os.Chmod(to, mode))
}

// machineFolders hold programs, libraries and what they need.
func machineFolders() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ssl", "/etc/alternatives", "/etc/ld.so.cache"}
}

// linkMachine makes in root the mount points of machineFolders, and the links among them.
func linkMachine(root string) error {
	for _, path := range machineFolders() {
		info, err := os.Lstat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		target := filepath.Join(root, path)
		switch {
		case info.Mode()&os.ModeSymlink != 0:
			var to string
			if to, err = os.Readlink(path); err == nil {
				err = os.Symlink(to, target)
			}
		case info.IsDir():
			err = os.MkdirAll(target, 0o755)
		default:
			err = os.WriteFile(target, nil, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Binds are folders and files of this machine that belong at the same place in containers
// of the image, read-only.
func (i *Image) Binds() []string {
	if !i.Machine {
		return nil
	}
	var list []string
	for _, path := range machineFolders() {
		if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink == 0 {
			list = append(list, path)
		}
	}
	return list
}

// Mount makes a root file system from the image below dir, which must be there, and returns
// it. What is written to it stays in dir. Unmount ends it.
func (i *Image) Mount(dir string) (string, error) {
	var paths [3]string
	for n, name := range []string{"upper", "work", "root"} {
		paths[n] = filepath.Join(dir, name)
		if err := errors.Join(os.Mkdir(paths[n], 0o755), os.Chmod(paths[n], 0o755)); err != nil {
			return "", err
		}
	}
	options := "lowerdir=" + i.Root + ",upperdir=" + paths[0] + ",workdir=" + paths[1]
	if err := unix.Mount("overlay", paths[2], "overlay", 0, options); err != nil {
		return "", fmt.Errorf("cannot mount a layer over %s: %w", i.Root, err)
	}
	return paths[2], nil
}

// Unmount ends what Mount made in dir, and removes dir.
func Unmount(dir string) error {
	err := unix.Unmount(filepath.Join(dir, "root"), unix.MNT_DETACH)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		err = nil // it was never mounted
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// User is the user of the image's configuration by its own /etc/passwd, and its groups.
func (i *Image) User(name string) (*user.ExecUser, error) {
	u, err := user.GetExecUserPath(name, &user.ExecUser{Home: "/"}, filepath.Join(i.Root, "etc/passwd"), filepath.Join(i.Root, "etc/group"))
	if err != nil {
		return nil, fmt.Errorf("cannot find user %q in the image: %w", name, err)
	}
	return u, nil
}
