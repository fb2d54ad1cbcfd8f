package http1

import (
	"testing"

	"turnout/internal/wire/field"
)

func TestNewAdjust(t *testing.T) {
	adjust, err := NewAdjust([]string{"Host", "X-Forwarded-For", "ETag", "eTag"})
	if err != nil {
		t.Fatal(err)
	}
	list := []field.Field{{Name: []byte("host"), Value: []byte("a.test")}, {Name: []byte("etag"), Value: []byte("x-forwarded-for")}, {Name: []byte("x-other")}}
	if got := string(AppendFields(nil, list, adjust)); got != "Host: a.test\r\neTag: x-forwarded-for\r\nx-other: \r\n" {
		t.Errorf("%q", got)
	}
	if string(list[0].Name) != "host" {
		t.Error("the name itself was changed")
	}
	if adjust, err := NewAdjust(nil); adjust != nil || err != nil {
		t.Error("no names do not give nil")
	}
	for _, bad := range []string{"", "a b", "x:"} {
		if _, err := NewAdjust([]string{bad}); err == nil || err.Error() != "invalid HTTP header name: "+bad {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
