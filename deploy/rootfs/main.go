// Command rootfs writes the root file system of the image as a tar archive:
//
//	go run ./deploy/rootfs BINARY ARCHIVE
//
// deploy/Dockerfile adds the archive to an empty image. An archive carries what a
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
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: rootfs BINARY ARCHIVE")
		os.Exit(2)
	}
	if err := create(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "rootfs:", err)
		os.Exit(1)
	}
}

// create writes the archive with the program in binary.
func create(binary, archive string) (err error) {
	program, err := os.Open(binary)
	if err != nil {
		return fmt.Errorf("cannot read the binary: %w", err)
	}
	defer program.Close()
	info, err := program.Stat()
	if err != nil {
		return fmt.Errorf("cannot read the binary: %w", err)
	}
	out, err := os.Create(archive)
	if err != nil {
		return fmt.Errorf("cannot write the archive: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := write(out, program, info.Size()); err != nil {
		return fmt.Errorf("cannot write the archive %s: %w", archive, err)
	}
	return nil
}

// write makes the archive: the program of size bytes under its own name and, for
// Deployments that name a command, under that of the OpenShift router. Everything
// belongs to root and nobody may write it.
func write(w io.Writer, program io.Reader, size int64) error {
	archive := tar.NewWriter(w)
	for _, h := range []*tar.Header{
		{Typeflag: tar.TypeDir, Name: "usr/", Mode: 0o555},
		{Typeflag: tar.TypeDir, Name: "usr/bin/", Mode: 0o555},
		{Typeflag: tar.TypeReg, Name: "usr/bin/turnout", Mode: 0o555, Size: size,
			PAXRecords: map[string]string{"SCHILY.xattr.security.capability": netBindService}},
		{Typeflag: tar.TypeSymlink, Name: "usr/bin/openshift-router", Linkname: "turnout", Mode: 0o777},
	} {
		h.Format = tar.FormatPAX
		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if _, err := io.Copy(archive, program); err != nil {
			return err
		}
	}
	return archive.Close()
}
