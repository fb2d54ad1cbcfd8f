// Package zonefile writes zones as files (RFC 1035 section 5), for those who have a server of their own. A file is replaced as a whole by a
// rename, so that who reads it while it is written finds the old or the new one. It also remembers serials while the program does not run.
package zonefile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/miekg/dns"

	"turnout/internal/dns/zone"
)

// mark begins each file. Files without it are somebody else's and stay.
const mark = "; Written by turnout dns, which replaces this file when the zone changes.\n"

// suffix ends the name of each file, after the origin of its zone.
const suffix = ".zone"

// Write writes a zone. Names within it are relative to its origin.
func Write(w io.Writer, z *zone.Zone) error {
	out := bufio.NewWriter(w)
	_, _ = out.WriteString(mark + "$ORIGIN " + z.Origin() + "\n") // Flush has the error
	for rr := range z.Records() {
		h := rr.Header()
		owner := relative(h.Name, z.Origin())
		if soa, ok := rr.(*dns.SOA); ok {
			fmt.Fprintf(out, "%s\t%d\tIN SOA\t%s %s (\n\t\t\t%d ; serial\n\t\t\t%d ; refresh\n\t\t\t%d ; retry\n\t\t\t%d ; expire\n\t\t\t%d ) ; negative TTL\n",
				owner, h.Ttl, soa.Ns, soa.Mbox, soa.Serial, soa.Refresh, soa.Retry, soa.Expire, soa.Minttl)
			continue
		}
		fmt.Fprintf(out, "%s\t%d\tIN %s\t%s\n", owner, h.Ttl, dns.TypeToString[h.Rrtype], strings.TrimPrefix(rr.String(), h.String()))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("cannot write zone %s: %w", z.Origin(), err)
	}
	return nil
}

// relative is a name as it is written below an origin.
func relative(name, origin string) string {
	if name == origin {
		return "@"
	}
	return strings.TrimSuffix(name, "."+origin)
}

// Dir is a folder of zone files. It is made by Open, and used by one goroutine. Nobody else may write there.
type Dir struct {
	path    string
	written map[string]*zone.Zone // by origin
}

// Open returns a folder that exists and can be written to.
func Open(path string) (*Dir, error) {
	d := &Dir{path: path, written: map[string]*zone.Zone{}}
	probe := filepath.Join(path, ".turnout")
	if err := os.WriteFile(probe, nil, 0o600); err != nil {
		return nil, fmt.Errorf("cannot write zone files: %w", err)
	}
	if err := os.Remove(probe); err != nil {
		return nil, fmt.Errorf("cannot write zone files: %w", err)
	}
	return d, nil
}

// file is the path of the file of a zone. Origins have letters, digits, '-', '_' and dots between them only.
func (d *Dir) file(origin string) string {
	return filepath.Join(d.path, strings.TrimSuffix(origin, ".")+suffix)
}

// Last returns the serial in the file of a zone; known is false without a file. same says that the file has what z has, but for the serial.
func (d *Dir) Last(z *zone.Zone) (serial uint32, known, same bool) {
	text, err := os.ReadFile(d.file(z.Origin()))
	if err != nil || !bytes.HasPrefix(text, []byte(mark)) {
		return 0, false, false
	}
	// What follows the first record is not read.
	first, ok := dns.NewZoneParser(bytes.NewReader(text), z.Origin(), "").Next()
	soa, is := first.(*dns.SOA)
	if !ok || !is || soa.Hdr.Name != z.Origin() {
		return 0, false, false
	}
	var now bytes.Buffer
	if Write(&now, z.WithSerial(soa.Serial)) != nil {
		return soa.Serial, true, false
	}
	return soa.Serial, true, bytes.Equal(now.Bytes(), text)
}

// Write brings the folder to what a set is: files of zones that have changed are replaced, and those of zones that are gone are removed. The
// error is about all that could not be done; it is tried again the next time.
func (d *Dir) Write(set *zone.Set) error {
	var failed []error
	for _, z := range set.All() {
		if before := d.written[z.Origin()]; before != nil && before.Same(z) && before.Serial() == z.Serial() {
			continue
		}
		if err := d.replace(z); err != nil {
			failed = append(failed, err)
			continue
		}
		d.written[z.Origin()] = z
	}
	return errors.Join(append(failed, d.sweep(set))...)
}

// replace writes a file beside the one of a zone and renames it.
func (d *Dir) replace(z *zone.Zone) error {
	name := d.file(z.Origin())
	temporary := filepath.Join(d.path, "."+filepath.Base(name)+".new")
	err := create(temporary, z)
	if err == nil {
		err = os.Rename(temporary, name)
	}
	if err != nil {
		_ = os.Remove(temporary)
		return fmt.Errorf("cannot write zone file %s: %w", name, err)
	}
	return nil
}

// create writes a file so that a rename cannot survive a crash that its content does not.
func create(name string, z *zone.Zone) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644) // servers of other users read it
	if err != nil {
		return fmt.Errorf("cannot create it: %w", err)
	}
	return errors.Join(Write(f, z), f.Sync(), f.Close())
}

// sweep removes the files of zones that are gone.
func (d *Dir) sweep(set *zone.Set) error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("cannot read the folder of zone files: %w", err)
	}
	var failed []error
	for _, e := range entries {
		origin, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || strings.HasPrefix(origin, ".") || set.Zone(origin) != nil || !ours(filepath.Join(d.path, e.Name())) {
			continue
		}
		delete(d.written, origin+".")
		if err := os.Remove(filepath.Join(d.path, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, fmt.Errorf("cannot remove a zone file: %w", err))
		}
	}
	return errors.Join(failed...)
}

// ours reports whether a file begins with our mark.
func ours(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	begin := make([]byte, len(mark))
	_, err = io.ReadFull(f, begin)
	return err == nil && string(begin) == mark
}
