package main

import (
	"errors"
	"io"
	"os"
	"path"
	"syscall"
	"time"
)

// copyConfig copies what is in the folder of the image into the volume, as
// cp -R -p FOLDER/* does: all but hidden names, with modes and times, and with owners
// where this user may set them.
func copyConfig(at places, _ io.Writer) error {
	entries, err := os.ReadDir(at.config)
	if err != nil {
		return err
	}
	copied := 0
	for _, e := range entries {
		if e.Name()[0] == '.' {
			continue
		}
		if err := copyTree(path.Join(at.config, e.Name()), path.Join(at.copied, e.Name())); err != nil {
			return err
		}
		copied++
	}
	if copied == 0 {
		return errors.New("nothing to copy in " + at.config)
	}
	return nil
}

// copyTree copies a file, a link or a folder with all that is in it. Files that are
// there already, as after a restart of the container, are replaced.
func copyTree(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		if err := copyFolder(from, to); err != nil {
			return err
		}
	case info.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err == nil {
			err = errors.Join(remove(to), os.Symlink(target, to))
		}
		if err != nil {
			return err
		}
		return own(to, info)
	case info.Mode().IsRegular():
		if err := copyFile(from, to); err != nil {
			return err
		}
	default:
		return errors.New("cannot copy " + from + ": neither a file nor a folder nor a link")
	}
	// The owner first: the kernel takes set-user-ID bits away with it.
	return errors.Join(own(to, info), os.Chmod(to, info.Mode()), os.Chtimes(to, time.Time{}, info.ModTime()))
}

func copyFolder(from, to string) error {
	// 0o700 until the end: whatever the mode, its content must be written.
	if err := os.Mkdir(to, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := copyTree(path.Join(from, e.Name()), path.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	// A new file, because one that is being executed cannot be written.
	if err := remove(to); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}

// remove removes a file, if there is one.
func remove(name string) error {
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// own gives a file the owner that info says. Who may not do that keeps it: cp -p of a
// user other than root does the same.
func own(name string, info os.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if err := os.Lchown(name, int(stat.Uid), int(stat.Gid)); err != nil && !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
