package memory

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// returnCode has the pages of the program's file no longer count as resident. Starting takes most of them once: each package
// initializes, kinds of objects are registered. What is executed or read again comes back from the page cache by a minor
// fault, 64 KiB at a time; no byte is read from a disk that was in the page cache before.
func returnCode() {
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return // without /proc they stay
	}
	defer maps.Close()
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	for _, m := range unchanged(maps, exe) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(m.from), uintptr(m.to-m.from), unix.MADV_DONTNEED) // what fails stays
	}
}

// residentCode is how many bytes of files are resident, of which nearly all are the program's; 0 = not known. It reads proc_pid_statm(5).
func residentCode() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 3 {
		return 0
	}
	pages, _ := strconv.ParseUint(fields[2], 10, 64) // 0 for what is no number
	return pages * uint64(os.Getpagesize())
}

// mapping is a range of addresses.
type mapping struct{ from, to uint64 }

// unchanged returns the mappings of a file, of those in smaps (proc_pid_smaps(5)), that can neither be written nor hold a page that differs
// from the file: a private page that was written and made read-only after, as those of relocations are, would be lost.
func unchanged(smaps io.Reader, file string) []mapping {
	var found []mapping
	var now mapping
	ours := false
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && !strings.HasSuffix(fields[0], ":"):
			ours = len(fields) > 5 && strings.Join(fields[5:], " ") == file && strings.HasPrefix(fields[1], "r-")
			from, to, _ := strings.Cut(fields[0], "-")
			var err1, err2 error
			now.from, err1 = strconv.ParseUint(from, 16, 64)
			now.to, err2 = strconv.ParseUint(to, 16, 64)
			ours = ours && err1 == nil && err2 == nil
		case ours && len(fields) >= 2 && fields[0] == "Anonymous:" && fields[1] == "0":
			found = append(found, now)
		}
	}
	return found
}
