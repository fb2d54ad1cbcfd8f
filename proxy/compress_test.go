package proxy

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"
)

func TestTakesGzip(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "deflate, gzip;q=1.0, *;q=0.5": true, "gzip;q=0": false, "gzip;q=0.000": false, "gzip ; q=0.001": true,
		"*": true, "*;q=0": false, "gzip;q=0, *": false, "br": false, "identity": false, "gzip;q=2": false, "gzip;q=abc": false, "gzip;q=": false,
		"gzip;q=0.5": true, "gzip;q=1.": true, "gzip;q=00": false, "xgzip": false, ",,gzip": true,
	} {
		if got := takesGzip([]Field{{Name: []byte("x")}, {Name: []byte("accept-encoding"), Value: []byte(value)}}); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
	if takesGzip(nil) {
		t.Error("a client that says nothing")
	}
	for v, want := range map[string]int{"q=1": 1000, "q=0.5": 500, "Q=0.123": 123, "q=1.000": 1000, "q=1.001": 0, "q=0.1234": 0, "q=.5": 0, "x=1": 0, "": 0} {
		if got := quality([]byte(v)); got != want {
			t.Errorf("%q: %d, want %d", v, got, want)
		}
	}
}

func TestCompressors(t *testing.T) {
	w := newRig(t, nil).w
	c := w.compressor("ns")
	var all bytes.Buffer
	for _, piece := range []string{"data: 1\n\n", "", "data: 2\n\n"} {
		all.Write(c.data([]byte(piece)))
		r, err := gzip.NewReader(bytes.NewReader(all.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if !bytes.HasSuffix(got, []byte(piece)) || err != io.ErrUnexpectedEOF {
			t.Errorf("%q is not out yet: %q, %v", piece, got, err)
		}
	}
	all.Write(c.end())
	r, err := gzip.NewReader(&all)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); string(got) != "data: 1\n\ndata: 2\n\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	w.freeCompressor(c, "ns")
	if w.compressor("ns") != c || w.Compressing() != 1 {
		t.Error("a free compressor is not used again")
	}
	for range maxCompressors {
		w.compressor("ns")
	}
	if w.compressor("ns") != nil || w.Compressing() != maxCompressors/2 {
		t.Errorf("%d compressors are in use", w.Compressing())
	}
}
