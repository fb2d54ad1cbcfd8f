package main

import (
	"archive/tar"
	"bytes"
	"fmt"
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

// TestStandins: the second image has, besides, what the operator's pods execute and copy.
func TestStandins(t *testing.T) {
	dir := t.TempDir()
	binary, standin, archive := filepath.Join(dir, "binary"), filepath.Join(dir, "standin"), filepath.Join(dir, "rootfs.tar")
	for name, text := range map[string]string{binary: "program", standin: "stand-in"} {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := create(binary, archive, standin); err != nil {
		t.Fatal(err)
	}
	text, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	got, seen := map[string]string{}, map[string]bool{}
	for r := tar.NewReader(text); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if parent := filepath.Dir(filepath.Clean(h.Name)); parent != "." && !seen[parent] {
			t.Errorf("%s comes before %s", h.Name, parent)
		}
		seen[filepath.Clean(h.Name)] = true
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = fmt.Sprintf("%o %s%s", h.Mode, content, h.Linkname)
		if h.Uid != 0 || h.Gid != 0 || (h.PAXRecords["SCHILY.xattr.security.capability"] != "") != (h.Name == "usr/bin/turnout") {
			t.Errorf("%s: owner %d:%d, %v", h.Name, h.Uid, h.Gid, h.PAXRecords)
		}
	}
	for name, want := range map[string]string{
		"usr/bin/turnout": "555 program", "usr/bin/openshift-router": "777 turnout", "usr/libexec/turnout-standin": "555 stand-in",
		"bin/sh": "777 /usr/libexec/turnout-standin", "bin/bash": "777 /usr/libexec/turnout-standin", "sbin/rsyslogd": "777 /usr/libexec/turnout-standin",
		"var/lib/haproxy/start-haproxy": "555 stand-in", "var/lib/haproxy/run/": "775 ", "var/lib/haproxy/conf/": "775 ",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if len(got) != 17 {
		t.Errorf("the image holds %v", got)
	}
	if err := create(binary, archive, filepath.Join(dir, "none")); err == nil {
		t.Error("no stand-in: no error")
	}
}

func TestNoBinary(t *testing.T) {
	if err := create(filepath.Join(t.TempDir(), "none"), os.DevNull); err == nil {
		t.Error("no binary: no error")
	}
}
