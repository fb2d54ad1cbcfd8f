package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"
)

// capability is cap_net_bind_service=ep as the kernel keeps it.
const capability = "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// layer is an archive, compressed.
func layer(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, h := range headers {
		content := []byte("content of " + h.Name)
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(content))
		}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write(content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// writeLayout makes an OCI layout of layers.
func writeLayout(t *testing.T, config ocispec.ImageConfig, layers ...[]byte) string {
	t.Helper()
	dir := t.TempDir()
	put := func(kind string, content []byte) ocispec.Descriptor {
		d := digest.FromBytes(content)
		path := filepath.Join(dir, blob(d))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil {
			t.Fatal(err)
		}
		return ocispec.Descriptor{MediaType: kind, Digest: d, Size: int64(len(content))}
	}
	encode := func(v any) []byte {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	manifest := ocispec.Manifest{Config: put(ocispec.MediaTypeImageConfig, encode(ocispec.Image{Config: config}))}
	for _, l := range layers {
		manifest.Layers = append(manifest.Layers, put(ocispec.MediaTypeImageLayerGzip, l))
	}
	index := ocispec.Index{Manifests: []ocispec.Descriptor{put(ocispec.MediaTypeImageManifest, encode(manifest))}}
	if err := os.WriteFile(filepath.Join(dir, "index.json"), encode(index), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestLayout(t *testing.T) {
	first := layer(t,
		tar.Header{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o711},
		tar.Header{Name: "bin/program", Typeflag: tar.TypeReg, Mode: 0o4750, Uid: 12, Gid: 34, Format: tar.FormatPAX,
			PAXRecords: map[string]string{"SCHILY.xattr.security.capability": capability}},
		tar.Header{Name: "bin/same", Typeflag: tar.TypeLink, Linkname: "bin/program"},
		tar.Header{Name: "old", Typeflag: tar.TypeReg}, tar.Header{Name: "dir/a", Typeflag: tar.TypeReg}, tar.Header{Name: "dir/b", Typeflag: tar.TypeReg},
		tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "bin"},
	)
	second := layer(t,
		tar.Header{Name: ".wh.old", Typeflag: tar.TypeReg}, tar.Header{Name: "dir/.wh..wh..opq", Typeflag: tar.TypeReg},
		tar.Header{Name: "dir/c", Typeflag: tar.TypeReg}, tar.Header{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755},
	)
	s := New(t.TempDir())
	if err := s.AddLayout("example/image", writeLayout(t, ocispec.ImageConfig{User: "1001"}, first, second)); err != nil {
		t.Fatal(err)
	}
	image, err := s.Get("example/image:latest")
	if err != nil {
		t.Fatal(err)
	}
	if image.Config.User != "1001" || !strings.HasPrefix(image.ID, "sha256:") {
		t.Errorf("the image is %+v", image)
	}
	var names []string
	for _, pattern := range []string{"*", "*/*"} {
		found, err := filepath.Glob(filepath.Join(image.Root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			names = append(names, strings.TrimPrefix(f, image.Root))
		}
	}
	if got := strings.Join(names, " "); got != "/bin /dir /link /bin/program /bin/same /dir/c /link/program /link/same" {
		t.Errorf("files: %s", got)
	}
	path := filepath.Join(image.Root, "bin/same")
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil || stat.Uid != 12 || stat.Gid != 34 || stat.Mode&0o7777 != 0o4750 {
		t.Errorf("the program is %+v, %v", stat, err)
	}
	value := make([]byte, 64)
	if n, err := unix.Getxattr(path, "security.capability", value); err != nil || string(value[:n]) != capability {
		t.Errorf("its capability is %q, %v", value[:max(n, 0)], err)
	}
	if info, err := os.Stat(filepath.Join(image.Root, "bin")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the folder is %v, %v", info, err)
	}
}

func TestLayerStaysInside(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "target")
	bad := layer(t, tar.Header{Name: "out", Typeflag: tar.TypeSymlink, Linkname: filepath.Dir(outside)}, tar.Header{Name: "out/target", Typeflag: tar.TypeReg})
	s := New(t.TempDir())
	if err := s.AddLayout("bad", writeLayout(t, ocispec.ImageConfig{}, bad)); err == nil {
		t.Error("a layer with a file behind a link to the outside is unpacked")
	}
	if _, err := os.Stat(outside); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was written: %v", err)
	}
}

func TestNames(t *testing.T) {
	s := New(t.TempDir())
	one, two := &Image{ID: "one"}, &Image{ID: "two"}
	s.Add("localhost/turnout", one)
	s.Add("*/echo-basic:v*", two)
	for name, want := range map[string]*Image{
		"localhost/turnout": one, "localhost/turnout:v1": one, "turnout": nil, "localhost/turnout-x:v1": nil,
		"registry.example.com:5000/a/b/echo-basic:v1.5": two, "registry.example.com:5000/a/b/echo-basic": nil,
	} {
		if got, err := s.Get(name); got != want || (want == nil) != errors.Is(err, ErrUnknown) {
			t.Errorf("%s is %+v, %v", name, got, err)
		}
	}
	s.Add("localhost/turnout:v1", two)
	if got, err := s.Get("localhost/turnout:v1"); err != nil || got != two {
		t.Errorf("the newest is not used: %+v, %v", got, err)
	}
}

func TestUser(t *testing.T) {
	s := New(t.TempDir())
	if err := s.AddMachine("machine"); err != nil {
		t.Fatal(err)
	}
	image, err := s.Get("machine")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]int{"": {0, 0}, "nobody": {65534, 65534}, "1001": {1001, 0}, "1001:7": {1001, 7}, "nobody:root": {65534, 0}} {
		u, err := image.User(name)
		if err != nil || u.Uid != want[0] || u.Gid != want[1] {
			t.Errorf("user %q is %+v, %v", name, u, err)
		}
	}
	if _, err := image.User("stranger"); err == nil {
		t.Error("a user that is not there is found")
	}
}
