package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// image makes a folder like that of the image.
func image(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"", "run", "conf", "conf/deep"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]fs.FileMode{"start-haproxy": 0o555, "conf/map": 0o640, "conf/deep/x": 0o444, ".hidden": 0o644} {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte("content of "+filepath.Base(name)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../run", filepath.Join(dir, "conf", "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "conf", "deep"), 0o555); err != nil {
		t.Fatal(err)
	}
	old := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, name := range []string{"start-haproxy", "conf/map", "conf/deep", "conf", "run"} {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
}

// content describes all files below dir, each with its mode, time and content.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " to " + target
		case d.Type() == 0:
			octets, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + info.ModTime().UTC().String() + " " + string(octets)
		default:
			text += " " + info.ModTime().UTC().String()
		}
		name, err := filepath.Rel(dir, path)
		all[name] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestCopy: what the init container copies is what cp -R -p copies, also for the second time.
func TestCopy(t *testing.T) {
	at, _ := here(t)
	image(t, at.config)
	if err := os.Mkdir(at.copied, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var stderr bytes.Buffer
		if status := command(known[0], at, nil, &stderr); status != 0 {
			t.Fatalf("status %d: %s", status, &stderr)
		}
		want, got := content(t, at.config), content(t, at.copied)
		delete(want, ".hidden")
		if len(got) != len(want) || len(want) != 7 {
			t.Errorf("copied %v, want %v", got, want)
		}
		for name, text := range want {
			if name == "conf" {
				continue // a link made in it after it was given its time
			}
			if got[name] != text {
				t.Errorf("%s: %s, want %s", name, got[name], text)
			}
		}
	}
}

func TestCopyFails(t *testing.T) {
	at, _ := here(t)
	fails := func(what string) {
		t.Helper()
		var stderr bytes.Buffer
		if status := command(known[0], at, nil, &stderr); status != 1 || !strings.Contains(stderr.String(), what) {
			t.Errorf("status %d, %q, want 1 and %q", status, &stderr, what)
		}
	}
	fails("no such file")
	if err := os.Mkdir(at.config, 0o755); err != nil {
		t.Fatal(err)
	}
	fails("nothing to copy")
	if err := syscall.Mkfifo(at.config+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	fails("neither a file nor a folder nor a link")
	if err := os.Remove(at.config + "/pipe"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at.config+"/x", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fails("no such file") // the volume
}
