package images

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"
)

// AddLayout makes an image of the first manifest of an OCI layout, a folder as buildah push
// IMAGE oci:FOLDER writes it. Owners, modes and extended attributes are kept.
func (s *Store) AddLayout(name, folder string) error {
	root, err := s.newRoot()
	if err != nil {
		return err
	}
	l := layout(folder)
	config, id, err := l.unpack(root)
	if err != nil {
		return errors.Join(fmt.Errorf("cannot unpack the image of %s: %w", folder, err), os.RemoveAll(root))
	}
	s.Add(name, &Image{Root: root, Config: config, ID: id})
	return nil
}

// layout is the folder of an OCI layout.
type layout string

func (l layout) read(path string, into any) error {
	text, err := os.ReadFile(filepath.Join(string(l), path))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func blob(d digest.Digest) string {
	return filepath.Join("blobs", d.Algorithm().String(), d.Encoded())
}

// unpack writes the layers to root and returns the configuration and its digest.
func (l layout) unpack(root string) (config ocispec.ImageConfig, id string, err error) {
	var (
		index    ocispec.Index
		manifest ocispec.Manifest
		image    ocispec.Image
	)
	if err := l.read("index.json", &index); err != nil {
		return image.Config, "", err
	}
	if len(index.Manifests) == 0 {
		return image.Config, "", errors.New("index.json names no manifest")
	}
	if err := l.read(blob(index.Manifests[0].Digest), &manifest); err != nil {
		return image.Config, "", err
	}
	if err := l.read(blob(manifest.Config.Digest), &image); err != nil {
		return image.Config, "", err
	}
	for _, d := range manifest.Layers {
		if err := l.apply(d, root); err != nil {
			return image.Config, "", fmt.Errorf("layer %s: %w", d.Digest, err)
		}
	}
	return image.Config, manifest.Config.Digest.String(), nil
}

// apply writes one layer to root.
func (l layout) apply(d ocispec.Descriptor, root string) error {
	f, err := os.Open(filepath.Join(string(l), blob(d.Digest)))
	if err != nil {
		return err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(d.MediaType, "gzip") {
		if r, err = gzip.NewReader(f); err != nil {
			return err
		}
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := extract(dir, h, archive); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

// Names of files that say what a layer removes from those below (OCI image specification,
// "Whiteouts").
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

// extract makes one entry of a layer. Nothing outside of the folder is touched.
func extract(dir *os.Root, h *tar.Header, content io.Reader) error {
	name := strings.TrimPrefix(filepath.Clean("/"+h.Name), "/")
	if name == "" {
		return setAttributes(dir, ".", h)
	}
	parent, base := filepath.Split(name)
	if parent != "" {
		if err := dir.MkdirAll(filepath.Clean(parent), 0o755); err != nil {
			return err
		}
	}
	switch {
	case base == opaque:
		return empty(dir, filepath.Clean(parent))
	case strings.HasPrefix(base, whiteout):
		return dir.RemoveAll(filepath.Join(parent, strings.TrimPrefix(base, whiteout)))
	}
	if info, err := dir.Lstat(name); err == nil && (h.Typeflag != tar.TypeDir || !info.IsDir()) {
		if err := dir.RemoveAll(name); err != nil {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := dir.MkdirAll(name, 0o755); err != nil {
			return err
		}
	case tar.TypeReg:
		f, err := dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	case tar.TypeSymlink:
		if err := dir.Symlink(h.Linkname, name); err != nil {
			return err
		}
		return dir.Lchown(name, h.Uid, h.Gid)
	case tar.TypeLink:
		return dir.Link(strings.TrimPrefix(filepath.Clean("/"+h.Linkname), "/"), name)
	default:
		return fmt.Errorf("has type %q, which is not supported", h.Typeflag)
	}
	return setAttributes(dir, name, h)
}

// empty removes what a folder holds.
func empty(dir *os.Root, name string) error {
	f, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	for _, n := range names {
		err = errors.Join(err, dir.RemoveAll(filepath.Join(name, n)))
	}
	return err
}

// setAttributes gives a file or folder its owner, mode, time and extended attributes, in the
// order in which the kernel does not take one away for another.
func setAttributes(dir *os.Root, name string, h *tar.Header) error {
	if err := errors.Join(dir.Chown(name, h.Uid, h.Gid), dir.Chmod(name, h.FileInfo().Mode())); err != nil {
		return err
	}
	f, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for key, value := range h.PAXRecords {
		if attribute, ok := strings.CutPrefix(key, "SCHILY.xattr."); ok {
			if err := unix.Fsetxattr(int(f.Fd()), attribute, []byte(value), 0); err != nil {
				return fmt.Errorf("cannot set %s: %w", attribute, err)
			}
		}
	}
	return dir.Chtimes(name, h.ModTime, h.ModTime)
}
