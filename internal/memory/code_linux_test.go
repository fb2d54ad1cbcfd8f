package memory

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestUnchanged(t *testing.T) {
	const smaps = `00400000-01a00000 r-xp 00000000 00:21 77 /usr/bin/turnout
Rss:               17000 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
01a00000-02a00000 r--p 01600000 00:21 77 /usr/bin/turnout
Anonymous:             0 kB
02a00000-02a10000 r--p 02600000 00:21 77 /usr/bin/turnout
Anonymous:            64 kB
02a10000-02b00000 rw-p 02610000 00:21 77 /usr/bin/turnout
Anonymous:             0 kB
02b00000-02c00000 r-xp 02610000 00:21 77 /usr/lib/libc.so.6
Anonymous:             0 kB
c000000000-c004000000 rw-p 00000000 00:00 0
Anonymous:          4000 kB
zz-c004000000 r-xp 00000000 00:00 0 /usr/bin/turnout
Anonymous:             0 kB
`
	want := []mapping{{0x400000, 0x1a00000}, {0x1a00000, 0x2a00000}}
	if got := unchanged(strings.NewReader(smaps), "/usr/bin/turnout"); !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
	if got := unchanged(strings.NewReader(smaps), "/usr/bin/other"); got != nil {
		t.Errorf("of another file: %x", got)
	}
}

// TestReturnCode: the program's own pages are resident because they were used, and then those only that are used again.
func TestReturnCode(t *testing.T) {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	touch(t, exe)
	before := fileResident(t)
	returnCode()
	if after := fileResident(t); after > before*3/4 {
		t.Errorf("%d KiB of files are resident, %d before", after, before)
	}
	touch(t, exe)
	if now, want := residentCode()>>10, uint64(fileResident(t)); now < want*9/10 || now > want*11/10 {
		t.Errorf("%d KiB, RssFile is %d KiB", now, want)
	}
}

// TestPagesOfTheStartAreReturned: who looks some seconds after the start finds what serving takes, not what initializing took.
func TestPagesOfTheStartAreReturned(t *testing.T) {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		touch(t, exe)
		before := fileResident(t)
		go returnMemory(t.Context(), nil)
		<-time.After(startPeriod + 1)
		synctest.Wait()
		if after := fileResident(t); after > before*3/4 {
			t.Errorf("%d KiB of files are resident, %d before", after, before)
		}
	})
}

// touch reads a byte of each page that returnCode gives back.
func touch(t *testing.T, exe string) {
	t.Helper()
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer smaps.Close()
	all := unchanged(smaps, exe)
	if len(all) == 0 {
		t.Fatal("no mapping of the program's file was found")
	}
	mem, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	var b [1]byte
	for _, m := range all {
		for at := m.from; at < m.to; at += 4096 {
			if _, err := mem.ReadAt(b[:], int64(at)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// fileResident is RssFile, in KiB.
func fileResident(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "RssFile:"); ok {
			n := 0
			for _, c := range rest {
				if c >= '0' && c <= '9' {
					n = 10*n + int(c-'0')
				}
			}
			return n
		}
	}
	t.Fatal("no RssFile")
	return 0
}
