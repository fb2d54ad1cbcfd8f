// Command rootfs writes the root file system of an image as a tar archive:
//
//	go run ./deploy/rootfs BINARY ARCHIVE
//	go run ./deploy/rootfs BINARY ARCHIVE STANDIN
//
// deploy/Dockerfile adds the first to an empty image, deploy/Dockerfile.openshift the
// second, which has deploy/standin under the names that the pods of OpenShift's ingress
// operator execute. An archive carries what a
// copied file loses on the way into an image, the capability of the binary, and is
// the same bytes for the same binary. Neither root nor setcap is needed to make it.
package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
)

// netBindService is the extended attribute security.capability of a file whose
// process gets CAP_NET_BIND_SERVICE, permitted and effective, no matter who starts it:
// struct vfs_ns_cap_data of the kernel in revision 2, words of little endian. Ports
// 80 and 443 need it, because the image's user is not root and Kubernetes has no
// ambient capabilities.
const netBindService = "\x01\x00\x00\x02" + // revision 2, effective
	"\x00\x04\x00\x00" + "\x00\x00\x00\x00" + // permitted: bit 10; inheritable: none
	"\x00\x00\x00\x00" + "\x00\x00\x00\x00" // the same of capabilities from 32 on

func main() {
	if len(os.Args) != 3 && len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: rootfs BINARY ARCHIVE [STANDIN]")
		os.Exit(2)
	}
	if err := create(os.Args[1], os.Args[2], os.Args[3:]...); err != nil {
		fmt.Fprintln(os.Stderr, "rootfs:", err)
		os.Exit(1)
	}
}

// create writes the archive with the program in binary, and with the stand-in if there is one.
func create(binary, archive string, standin ...string) (err error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("cannot read the binary: %w", err)
	}
	files := router(program)
	for _, name := range standin {
		text, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("cannot read the stand-in: %w", err)
		}
		files = append(files, standins(text)...)
	}
	out, err := os.Create(archive)
	if err != nil {
		return fmt.Errorf("cannot write the archive: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := write(out, files); err != nil {
		return fmt.Errorf("cannot write the archive %s: %w", archive, err)
	}
	return nil
}

// file is an entry of the archive.
type file struct {
	header  tar.Header
	content []byte // of a file
}

func folder(name string, mode int64) file {
	return file{header: tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode}}
}

func program(name string, content []byte) file {
	return file{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o555, Size: int64(len(content))}, content}
}

func link(name, target string) file {
	return file{header: tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}}
}

// router are the files of every image: the program under its own name and, for
// Deployments that name a command, under that of the OpenShift router. Everything
// belongs to root and nobody may write it.
func router(text []byte) []file {
	turnout := program("usr/bin/turnout", text)
	turnout.header.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": netBindService}
	return []file{folder("usr/", 0o555), folder("usr/bin/", 0o555), turnout, link("usr/bin/openshift-router", "turnout")}
}

// standins are the files that the pods of the ingress operator execute or copy besides.
//
// start-haproxy is a file and not a link, because cp -R copies links as links. In the
// volume it is copied to, the group root may write: users of OpenShift's own choice are
// in it.
func standins(text []byte) []file {
	const standin = "usr/libexec/turnout-standin"
	return []file{
		folder("usr/libexec/", 0o555), program(standin, text),
		folder("bin/", 0o555), link("bin/bash", "/"+standin), link("bin/sh", "/"+standin),
		folder("sbin/", 0o555), link("sbin/rsyslogd", "/"+standin),
		folder("var/", 0o555), folder("var/lib/", 0o555), folder("var/lib/haproxy/", 0o775),
		program("var/lib/haproxy/start-haproxy", text),
		folder("var/lib/haproxy/run/", 0o775), folder("var/lib/haproxy/conf/", 0o775),
	}
}

// write makes the archive.
func write(w io.Writer, files []file) error {
	archive := tar.NewWriter(w)
	for _, f := range files {
		f.header.Format = tar.FormatPAX
		if err := archive.WriteHeader(&f.header); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	return archive.Close()
}
