package clientcert

import (
	"bytes"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"io"
	"math/big"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
)

// longList makes a list of issuer's name with n shortest entries and an invalid signature.
func longList(t testing.TB, issuer *pair, n int) []byte {
	t.Helper()
	short, err := x509.ParseRevocationList(list(t, issuer, nil, issuer))
	must(t, err)
	one := element(tagSequence, element(tagInteger, []byte{1, 2, 3}), element(tagUTCTime, []byte("200101000000Z")))
	text := der(short.RawTBSRevocationList)
	content, _ := text.take(tagSequence)
	fields := content
	for range 5 {
		_, _, _, _ = fields.next()
	}
	before := content[:len(content)-len(fields)]
	_, _ = fields.take(tagSequence)
	signed := element(tagSequence, before, element(tagSequence, bytes.Repeat(one, n)), fields)
	rest := content
	_, _, _, _ = rest.next()
	_, _, algorithm, _ := rest.next()
	return element(tagSequence, signed, algorithm, element(asn1.TagBitString, make([]byte, 65)))
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestListsAreAuthenticatedBeforeTheyAreRead checks that an unsigned list costs no memory beyond
// its bytes, whatever its fields announce.
func TestListsAreAuthenticatedBeforeTheyAreRead(t *testing.T) {
	ca, stranger := issue(t, nil, "ca"), issue(t, nil, "stranger")
	b := bundle(t, ca)
	for what, issuer := range map[string]*pair{"an authority's name": ca, "another name": stranger} {
		text := longList(t, issuer, 200_000)
		if _, err := x509.ParseRevocationList(text); err != nil {
			t.Fatalf("the list is not one: %v", err)
		}
		var err error
		bytes := allocated(func() { _, err = ParseLists(text, b) })
		if err == nil || !strings.Contains(err.Error(), "signed") || bytes > 128<<10 {
			t.Errorf("%s: %v, with %d KiB allocated for %d", what, err, bytes>>10, len(text)>>10)
		}
	}
	// Everything but the entries is parsed before the signature. That is little for every layout of
	// the list.
	for what, text := range map[string]der{
		"extensions":   extended(t, list(t, ca, nil), bytes.Repeat([]byte{tagSequence, 6, tagObject, 2, 0x2a, 3, tagOctets, 0}, 1<<20)),
		"an extension": extended(t, list(t, ca, nil), element(tagSequence, []byte{tagObject, 2, 0x2a, 3}, element(tagOctets, make([]byte, 8<<20)))),
		"a signature":  element(tagSequence, append(list(t, ca, nil)[4:], make([]byte, 8<<20)...)),
	} {
		var err error
		if bytes := allocated(func() { _, err = ParseLists(text, b) }); err == nil || bytes > 128<<10 {
			t.Errorf("%s of %d KiB: %v, with %d KiB allocated", what, len(text)>>10, err, bytes>>10)
		}
	}
	u, err := NewUpdater(b, UpdaterConfig{
		Fetch:   func(context.Context, string) ([]byte, error) { return list(t, issue(t, nil, "ca"), nil), nil },
		Changed: func(*Trust) {},
	})
	must(t, err)
	if _, err := u.fetchList(t.Context(), b, "http://here.test/crl"); err == nil || !strings.Contains(err.Error(), "not signed by its issuer") {
		t.Errorf("a short list that was fetched: %v", err)
	}
}

// extended returns a list with other extensions. Its signature does not match any more.
func extended(t *testing.T, text der, extensions []byte) der {
	t.Helper()
	list, ok := text.take(tagSequence)
	_, fields, _, ok2 := list.next()
	var before []byte
	for ok && ok2 && len(fields) > 0 && !fields.begins(contextual|constructed) {
		_, _, whole, _ := fields.next()
		before = append(before, whole...)
	}
	return element(tagSequence, element(tagSequence, before, element(contextual|constructed, element(tagSequence, extensions))), list)
}

// TestListsHoldLittle checks that a list becomes a set of hashes once its authority is known, and
// that its bytes are freed.
func TestListsHoldLittle(t *testing.T) {
	ca := issue(t, nil, "ca")
	const n = 100_000
	text := list(t, ca, func(l *x509.RevocationList) {
		for i := range n {
			l.RevokedCertificateEntries = append(l.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: big.NewInt(int64(i) << 20), RevocationTime: time.Now()})
		}
	})
	lists, err := ParseLists(text, bundle(t, ca))
	must(t, err)
	l := lists[0]
	if len(l.revoked.hashes) != n || cap(l.revoked.hashes) > n+1 || l.entries != nil || l.header.RawTBSRevocationList != nil || len(l.header.Raw) > 1<<10 {
		t.Errorf("%d serial numbers with room for %d, and %d bytes", len(l.revoked.hashes), cap(l.revoked.hashes), len(l.entries)+len(l.header.Raw))
	}
	if bytes := allocated(func() { _, err = ParseLists(text, bundle(t, ca)) }); err != nil || bytes > 16*n+128<<10 {
		t.Errorf("%v, with %d bytes for an entry allocated", err, bytes/n)
	}
	if revoked, err := l.names(&x509.Certificate{SerialNumber: big.NewInt(77 << 20)}); !revoked || err != nil {
		t.Errorf("an entry is not found: %v", err)
	}
	if revoked, _ := l.names(&x509.Certificate{SerialNumber: big.NewInt(77<<20 + 1)}); revoked {
		t.Error("what has no entry is found")
	}
}

// TestEntriesAreThoseOfX509 checks that valid lists have the entries that crypto/x509 finds.
func TestEntriesAreThoseOfX509(t *testing.T) {
	ca := issue(t, nil, "ca")
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		text := list(t, ca, func(l *x509.RevocationList) {
			for range r.IntN(20) {
				magnitude := make([]byte, 1+r.IntN(20))
				for i := range magnitude {
					magnitude[i] = byte(r.Uint32())
				}
				serial := new(big.Int).SetBytes(magnitude)
				e := x509.RevocationListEntry{SerialNumber: serial, RevocationTime: time.Unix(r.Int64N(1<<33), 0)}
				if r.IntN(2) == 0 {
					e.ReasonCode = []int{1, 4, 6, removedFromList}[r.IntN(4)]
				}
				if r.IntN(3) == 0 {
					e.ExtraExtensions = []pkix.Extension{{Id: oidMine, Value: []byte{5, 0}}}
				}
				l.RevokedCertificateEntries = append(l.RevokedCertificateEntries, e)
			}
		})
		sameEntries(t, text, bundle(t, ca))
	}
}

// sameEntries fails if a list that crypto/x509 parses gets other entries here.
func sameEntries(t *testing.T, text []byte, b *Bundle) {
	t.Helper()
	want, err := x509.ParseRevocationList(text)
	if err != nil {
		return
	}
	lists, err := ParseLists(text, b)
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]bool{}
	for _, e := range want.RevokedCertificateEntries {
		if e.ReasonCode != removedFromList {
			entries[string(e.SerialNumber.Bytes())] = true
		}
	}
	distinct := map[uint64]bool{}
	for _, hash := range lists[0].revoked.hashes {
		distinct[hash] = true
	}
	if len(distinct) != len(entries) {
		t.Fatalf("%d entries, want %d", len(distinct), len(entries))
	}
	for serial := range entries {
		if !lists[0].revoked.has([]byte(serial)) {
			t.Fatalf("%x is not revoked", serial)
		}
	}
}

// FuzzEntries checks that every entry that crypto/x509 finds is found here, unless the list is
// refused.
func FuzzEntries(f *testing.F) {
	ca := issue(f, nil, "a")
	for _, text := range [][]byte{list(f, ca, nil, ca, issue(f, ca, "b")), list(f, ca, func(l *x509.RevocationList) {
		l.RevokedCertificateEntries = []x509.RevocationListEntry{{SerialNumber: big.NewInt(128), RevocationTime: time.Now(), ReasonCode: removedFromList}}
	})} {
		l, err := parseHeader(text)
		must(f, err)
		f.Add([]byte(l.entries))
	}
	f.Add(element(tagSequence, element(tagInteger, []byte{0xff}), element(tagGeneralizedTime, []byte("20200101000000Z")), element(tagSequence)))
	empty, err := x509.ParseRevocationList(list(f, ca, nil))
	must(f, err)
	text := der(empty.RawTBSRevocationList)
	content, _ := text.take(tagSequence)
	fields := content
	for range 5 {
		_, _, _, _ = fields.next()
	}
	before := content[:len(content)-len(fields)]
	rest := content
	_, _, _, _ = rest.next()
	_, _, algorithm, _ := rest.next()
	f.Fuzz(func(t *testing.T, entries []byte) {
		set, err := readEntries(entries)
		want, xerr := x509.ParseRevocationList(element(tagSequence, element(tagSequence, before, element(tagSequence, entries), fields), algorithm, element(asn1.TagBitString, make([]byte, 65))))
		if err != nil || xerr != nil {
			return
		}
		for _, e := range want.RevokedCertificateEntries {
			if e.ReasonCode != removedFromList && !set.has(e.SerialNumber.Bytes()) {
				t.Fatalf("%v is not revoked", e.SerialNumber)
			}
		}
		if len(set.hashes) > len(want.RevokedCertificateEntries) {
			t.Fatalf("%d entries of %d", len(set.hashes), len(want.RevokedCertificateEntries))
		}
	})
}

// endless is a body that never ends. It counts the bytes read from it.
type endless struct {
	begin []byte
	read  int
}

func (e *endless) Read(p []byte) (int, error) {
	n := len(p)
	if len(e.begin) > 0 {
		n = copy(p, e.begin)
		e.begin = e.begin[n:]
	}
	e.read += n
	return n, nil
}

// TestDownloadsAreBounded checks that a list whose header announces too many bytes is not read. A
// list without a length is PEM text, which has a smaller limit.
func TestDownloadsAreBounded(t *testing.T) {
	long := &endless{begin: []byte{tagSequence, 0x84, 4, 0, 0, 1, 0x30, 0}}
	var err error
	if bytes := allocated(func() { _, err = readList(long, maxListSize) }); err == nil || long.read > 8 || bytes > 64<<10 {
		t.Errorf("%v after %d bytes, with %d allocated", err, long.read, bytes)
	}
	text := &endless{begin: []byte("-----BEGIN X509 CRL-----")}
	if _, err = readList(text, 1<<20); err == nil || text.read > 2<<20 {
		t.Errorf("%v after %d bytes", err, text.read)
	}
	whole := list(t, issue(t, nil, "ca"), nil)
	if got, err := readList(bytes.NewReader(whole), maxListSize); err != nil || !bytes.Equal(got, whole) {
		t.Errorf("%d bytes of %d, %v", len(got), len(whole), err)
	}
	if _, err := readList(bytes.NewReader(whole[:len(whole)-1]), maxListSize); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("torn: %v", err)
	}
}

// BenchmarkUnsignedList measures the cost of refusing a list of 62 MiB that names an authority as
// its issuer, after it was read.
func BenchmarkUnsignedList(b *testing.B) {
	ca := issue(b, nil, "ca")
	text, of := longList(b, ca, 62<<20/22), bundle(b, ca)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseLists(text, of); err == nil {
			b.Fatal("accepted")
		}
	}
}
