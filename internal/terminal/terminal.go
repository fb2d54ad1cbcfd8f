// Package terminal tells what a file of the process is: a terminal, and how large.
package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// Is reports whether what is written to w is seen on a terminal. w may be anything.
func Is(w any) bool {
	_, _, ok := Size(w)
	return ok
}

// Size is how many columns and rows the terminal w has, 0 if it does not know; false for what is none.
func Size(w any) (columns, rows int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || f == nil {
		return 0, 0, false
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, 0, false
	}
	err = raw.Control(func(fd uintptr) {
		size, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ)
		if err == nil {
			columns, rows, ok = int(size.Col), int(size.Row), true
		}
	})
	return columns, rows, ok && err == nil
}
