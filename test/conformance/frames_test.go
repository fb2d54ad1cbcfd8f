package conformance

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"turnout/internal/wire/field"
)

// frames is the HTTP/2 of a client: frames as the script says, and what has come, by stream.
type frames struct {
	write   func([]byte)
	scheme  string
	out     bytes.Buffer
	framer  *http2.Framer
	asked   func(id uint32, end bool, list []field.Field) // told of header blocks before they are sent; nil = nobody is
	block   bytes.Buffer
	encoder *hpack.Encoder
	decoder *hpack.Decoder

	read    int // bytes of what was received
	streams map[uint32][]string
	goaways []string
	log     []byte // fields and data, as text
}

// speak begins HTTP/2 with its preface.
func speak(scheme string, write func([]byte)) *frames {
	f := &frames{write: write, scheme: scheme, streams: map[uint32][]string{}, decoder: hpack.NewDecoder(4096, nil)}
	f.framer = http2.NewFramer(&f.out, nil)
	f.encoder = hpack.NewEncoder(&f.block)
	write([]byte(http2.ClientPreface))
	f.sent(f.framer.WriteSettings())
	return f
}

// sent sends what the framer was given.
func (f *frames) sent(err error) {
	if err != nil {
		panic(err) // of a buffer
	}
	f.write(bytes.Clone(f.out.Bytes()))
	f.out.Reset()
}

// send sends a frame that a script has a line for: its words behind the name of its type.
func (f *frames) send(kind string, words []string) error {
	id, end := uint32(0), false
	if n, err := strconv.ParseUint(word(words, 0), 10, 31); err == nil {
		id = uint32(n)
	}
	rest := words[min(1, len(words)):]
	if word(rest, 0) == "END_STREAM" {
		end, rest = true, rest[1:]
	}
	code, _ := strconv.ParseUint(word(rest, 0), 10, 32)
	switch kind {
	case "HEADERS":
		return f.headers(id, end, rest)
	case "DATA":
		text, err := unescape(strings.Join(rest, " "))
		if err != nil {
			return err
		}
		f.sent(f.framer.WriteData(id, end, text))
	case "RST_STREAM":
		f.sent(f.framer.WriteRSTStream(id, http2.ErrCode(code)))
	case "WINDOW_UPDATE":
		f.sent(f.framer.WriteRawFrame(http2.FrameWindowUpdate, 0, id, binary.BigEndian.AppendUint32(nil, uint32(code))))
	case "PING":
		f.sent(f.framer.WritePing(false, [8]byte{}))
	case "GOAWAY":
		f.sent(f.framer.WriteGoAway(0, http2.ErrCode(id), nil))
	case "resets": // so many requests from a stream on, each taken back at once
		for range code {
			if err := f.headers(id, true, []string{":method=GET", ":path=/", ":authority=app.test"}); err != nil {
				return err
			}
			f.sent(f.framer.WriteRSTStream(id, http2.ErrCodeCancel))
			id += 2
		}
	}
	return nil
}

func word(words []string, i int) string {
	if i < len(words) {
		return words[i]
	}
	return ""
}

// headers sends a header block. One with a path gets a scheme too.
func (f *frames) headers(id uint32, end bool, pairs []string) error {
	f.block.Reset()
	var list []field.Field
	add := func(name, value string) {
		must(f.encoder.WriteField(hpack.HeaderField{Name: name, Value: value}))
		list = append(list, field.Field{Name: []byte(name), Value: []byte(value)})
	}
	for _, pair := range pairs {
		i := strings.Index(pair[1:], "=") + 1
		if i == 0 {
			return fmt.Errorf("%q is no field", pair)
		}
		value, err := unescape(pair[i+1:])
		if err != nil {
			return err
		}
		add(pair[:i], string(value))
		if pair[:i] == ":path" {
			add(":scheme", f.scheme)
		}
	}
	if f.asked != nil {
		f.asked(id, end, list)
	}
	f.sent(f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.block.Bytes(), EndHeaders: true, EndStream: end}))
	return nil
}

func must(err error) {
	if err != nil {
		panic(err) // of a buffer
	}
}

// receive takes note of the frames that are complete, of all that was received.
func (f *frames) receive(all []byte) error {
	for {
		b := all[f.read:]
		if len(b) < 9 {
			return nil
		}
		size := 9 + int(b[0])<<16 + int(b[1])<<8 + int(b[2])
		if len(b) < size {
			return nil
		}
		f.read += size
		frame, err := http2.NewFramer(nil, bytes.NewReader(b[:size])).ReadFrame()
		if err != nil {
			return fmt.Errorf("x/net cannot read what was sent: %w in %q", err, b[:size])
		}
		if err := f.got(frame); err != nil {
			return err
		}
	}
}

func (f *frames) got(frame http2.Frame) error {
	id := frame.Header().StreamID
	add := func(text string) { f.streams[id] = append(f.streams[id], text) }
	ended := func() {
		if frame.Header().Flags.Has(http2.FlagDataEndStream) { // the same bit in HEADERS
			add("END_STREAM")
		}
	}
	switch frame := frame.(type) {
	case *http2.SettingsFrame:
		if !frame.IsAck() {
			f.sent(f.framer.WriteSettingsAck())
		}
	case *http2.HeadersFrame:
		if !frame.HeadersEnded() {
			return fmt.Errorf("stream %d has a header block of several frames", id)
		}
		fields, err := f.decoder.DecodeFull(frame.HeaderBlockFragment())
		if err != nil {
			return fmt.Errorf("x/net cannot decode a header block: %w", err)
		}
		text := "trailers"
		for _, field := range fields {
			if field.Name == ":status" {
				text = field.Value
			}
			f.log = fmt.Appendf(f.log, "%s: %s\n", field.Name, field.Value)
		}
		add(text)
		ended()
	case *http2.DataFrame:
		f.log = append(f.log, frame.Data()...)
		if s := f.streams[id]; len(frame.Data()) > 0 && (len(s) == 0 || s[len(s)-1] != "DATA") {
			add("DATA")
		}
		ended()
	case *http2.RSTStreamFrame:
		add("RST_STREAM(" + frame.ErrCode.String() + ")")
	case *http2.GoAwayFrame:
		f.goaways = append(f.goaways, fmt.Sprintf("%v %d", frame.ErrCode, frame.LastStreamID))
	}
	return nil
}

// stream is what has come of a stream, "-" for nothing.
func (f *frames) stream(id string) string {
	n, _ := strconv.ParseUint(id, 10, 32)
	if s := f.streams[uint32(n)]; len(s) > 0 {
		return strings.Join(s, " ")
	}
	return "-"
}
