package main

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestArchive(t *testing.T) {
	dir := t.TempDir()
	binary, archive := filepath.Join(dir, "binary"), filepath.Join(dir, "rootfs.tar")
	if err := os.WriteFile(binary, []byte("program"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := create(binary, archive); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	if err := create(binary, archive); err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(archive); err != nil || !bytes.Equal(first, second) {
		t.Errorf("the same binary gives another archive (%v)", err)
	}

	r := tar.NewReader(bytes.NewReader(first))
	var names []string
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Uid != 0 || h.Gid != 0 || (h.Typeflag != tar.TypeSymlink && h.Mode != 0o555) {
			t.Errorf("%s: owner %d:%d, mode %o", h.Name, h.Uid, h.Gid, h.Mode)
		}
		capability := h.PAXRecords["SCHILY.xattr.security.capability"]
		switch h.Name {
		case "usr/bin/turnout":
			text, err := io.ReadAll(r)
			if err != nil || string(text) != "program" {
				t.Errorf("program: %q, %v", text, err)
			}
			if len(capability) != 20 || capability != netBindService {
				t.Errorf("capability %x", capability)
			}
		case "usr/bin/openshift-router":
			if h.Linkname != "turnout" {
				t.Errorf("openshift-router is a link to %s", h.Linkname)
			}
			fallthrough
		default:
			if capability != "" {
				t.Errorf("%s has a capability", h.Name)
			}
		}
	}
	if len(names) != 4 {
		t.Errorf("the image holds %v", names)
	}
}

func TestNoBinary(t *testing.T) {
	if err := create(filepath.Join(t.TempDir(), "none"), os.DevNull); err == nil {
		t.Error("no binary: no error")
	}
}
