package header

import (
	"math"
	"strings"
	"testing"
	"time"

	"turnout/internal/wire/field"
	"turnout/internal/work"
)

// TestWhatAMessageMayCost: however a list multiplies what a message brings, it ends within the room and the work.
func TestWhatAMessageMayCost(t *testing.T) {
	converters := strings.Repeat(",base64", MaxConverters)
	big, commas := strings.Repeat("x", 60_000), strings.Repeat(",", 60_000)
	repeat := func(value string, n int) []Action {
		var list []Action
		for range n {
			list = append(list, Action{Name: "o", Value: value})
		}
		return list
	}
	for name, c := range map[string]struct {
		list       []Action
		fields     []string
		room, work int
		ok         bool
	}{
		"a short value through all converters":   {repeat("%[req.hdr(x)"+converters+"]", 1), []string{"x: a"}, 8192, work.Request, true},
		"a long one through all converters":      {repeat("%[req.hdr(x)"+converters+"]", 1), []string{"x: " + big}, 8192, work.Request, false},
		"no end of room":                         {repeat("%[req.hdr(x)"+converters+"]", 1), []string{"x: " + big}, math.MaxInt, work.Request, false},
		"many of the same":                       {repeat(strings.Repeat("%[req.hdr(x)]", MaxExpressions), 20), []string{"x: " + big}, 8192, work.Request, false},
		"much to read, nothing to write":         {repeat(strings.Repeat("%[req.hdr(x)]", MaxExpressions), 20), []string{"x: " + commas}, 8192, work.Request, false},
		"many fields to look at":                 {repeat(strings.Repeat("%[req.hdr(x)]", MaxExpressions), 20), make([]string, 101), 8192, work.Request, false},
		"as many actions as a route may have":    {repeat("%[req.hdr(x)]", 20), append(make([]string, 100), "x: a"), 8192, work.Request, true},
		"escapes":                                {repeat("%{+E}[req.hdr(x)]", 1), []string{"x: " + strings.Repeat(`"`, 5000)}, 8192, work.Request, false},
		"deletes without end":                    {append(repeat("a", 0), manyDeletes(3000)...), make([]string, 101), 8192, work.Request, false},
		"no work at all":                         {repeat("a", 1), []string{"x: a"}, 8192, 0, false},
		"text that is longer than the room":      {repeat("a%[req.hdr(x)]"+strings.Repeat("b", 9000), 1), []string{"x: a"}, 8192, work.Request, false},
		"text and what was found, just too long": {repeat("a%[req.hdr(x)]", 1), []string{"x: " + big[:8191]}, 8192, work.Request, false},
	} {
		a, errs := Compile(Request, c.list)
		if len(errs) > 0 {
			t.Fatal(name, errs)
		}
		left := work.Of(c.work)
		m := &Message{Fields: fields(c.fields...), Arena: new(field.Arena), Room: c.room, Work: &left}
		if ok := a.Apply(m); ok != c.ok {
			t.Errorf("%s: %v", name, ok)
		}
		if held := cap(m.Arena.Begin(0)); held > 16<<10 {
			t.Errorf("%s: the arena grew to %d bytes", name, held)
		}
	}
}

func manyDeletes(n int) []Action {
	list := make([]Action, n)
	for i := range list {
		list[i] = Action{Name: "gone", Delete: true}
	}
	return list
}

// FuzzCost: no list and no message makes the evaluation grow beyond the room, or go on beyond the work.
func FuzzCost(f *testing.F) {
	f.Add("%[req.hdr(x),base64,base64]", uint8(16), uint16(60_000), uint8(20), uint16(8192), []byte("a"))
	f.Add("%{+E}[req.hdr(x)]", uint8(64), uint16(60_000), uint8(1), uint16(65535), []byte(`"\]`))
	f.Add("%[ssl_c_der]", uint8(255), uint16(9000), uint8(255), uint16(1), []byte{0, ','})
	f.Add("a%[req.hdr(o),lower]", uint8(3), uint16(10), uint8(200), uint16(8192), []byte("A,"))
	f.Fuzz(func(t *testing.T, value string, times uint8, size uint16, actions uint8, room uint16, from []byte) {
		if strings.ContainsFunc(string(from), func(r rune) bool { return r == '\r' || r == '\n' }) || len(from) == 0 {
			return
		}
		list := make([]Action, actions)
		for i := range list {
			list[i] = Action{Name: "o", Value: strings.Repeat(value, int(times))}
		}
		a, _ := Compile(Request, list)
		if a == nil {
			return
		}
		content := []byte(strings.Repeat(string(from), int(size)/len(from)))
		var took time.Duration
		for range 5 { // a busy machine may make one of them late
			m := &Message{Certificate: content, Arena: new(field.Arena), Room: int(room), Work: new(work.Of(work.Request))}
			m.Fields = []field.Field{{Name: []byte("x"), Value: content}, {Name: []byte("o"), Value: content}}
			start := time.Now()
			ok := a.Apply(m)
			took = time.Since(start)
			if held := cap(m.Arena.Begin(0)); held > max(16<<10, 2*int(room)) {
				t.Fatalf("%q x %d, room %d: the arena grew to %d bytes", value, times, room, held)
			}
			if ok && (m.Work.Over() || m.Room < 0) {
				t.Fatalf("%q x %d: done, with work %d and room %d", value, times, m.Work.Left(), m.Room)
			}
			if took < 100*time.Millisecond {
				return
			}
		}
		t.Fatalf("%q x %d, %d actions on %d bytes took %v", value, times, actions, len(content), took)
	})
}
