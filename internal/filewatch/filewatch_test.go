package filewatch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// follow reads a file whenever its folder changes and returns what it has read, without repetition.
func follow(t *testing.T, cfg Config, name string) <-chan string {
	t.Helper()
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	texts, ended := make(chan string, 16), make(chan struct{})
	last := ""
	go func() {
		defer close(ended)
		w.Run(ctx, func() {
			text, err := os.ReadFile(filepath.Join(cfg.Dir, name))
			if err == nil && string(text) != last {
				last = string(text)
				texts <- last
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return texts
}

func want(t *testing.T, texts <-chan string, text string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case got := <-texts:
			if got == text {
				return
			}
		case <-deadline:
			t.Fatalf("%q is not reported", text)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestChanges(t *testing.T) {
	dir := t.TempDir()
	texts := follow(t, Config{Dir: dir, Settle: time.Millisecond, Poll: time.Hour}, "f")
	write(t, dir+"/f", "created")
	want(t, texts, "created")
	write(t, dir+"/f", "written")
	want(t, texts, "written")
	write(t, dir+"/.f", "renamed")
	if err := os.Rename(dir+"/.f", dir+"/f"); err != nil {
		t.Fatal(err)
	}
	want(t, texts, "renamed")
}

func TestKubernetesVolume(t *testing.T) {
	dir := t.TempDir()
	swap := func(version string) {
		t.Helper()
		write(t, filepath.Join(dir, ".."+version, "f"), version)
		if err := os.Symlink(".."+version, dir+"/..data_tmp"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(dir+"/..data_tmp", dir+"/..data"); err != nil {
			t.Fatal(err)
		}
	}
	swap("one")
	if err := os.Symlink("..data/f", dir+"/f"); err != nil {
		t.Fatal(err)
	}
	texts := follow(t, Config{Dir: dir, Settle: time.Millisecond, Poll: time.Hour}, "f")
	swap("two")
	want(t, texts, "two")
	swap("three")
	want(t, texts, "three")
}

func TestPolls(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	write(t, elsewhere+"/f", "old")
	if err := os.Symlink(elsewhere+"/f", dir+"/f"); err != nil {
		t.Fatal(err)
	}
	texts := follow(t, Config{Dir: dir, Poll: time.Millisecond}, "f")
	want(t, texts, "old")
	write(t, elsewhere+"/f", "new") // nothing in dir has changed
	want(t, texts, "new")
}

func TestNewFails(t *testing.T) {
	if _, err := New(Config{Dir: "/does/not/exist"}); err == nil {
		t.Error("a folder that does not exist is taken")
	}
}
