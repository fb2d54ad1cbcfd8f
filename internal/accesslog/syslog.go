package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SyslogConfig is what a Syslog needs. Address or Stream is required.
type SyslogConfig struct {
	Stream    io.Writer // gets each message with an end of line, instead of an address; the Syslog does not close it
	Address   string    // host, host:port (UDP, port 514 without one) or the path of a datagram socket
	Facility  string    // a name of RFC 3164 section 4.1.1 such as local1; "" = local1
	MaxLength int       // bytes of one message, its header included; longer ones are cut. 0 = 1024
	Host      string    // the machine's name
	Tag       string    // what calls itself so, such as "haproxy[7]"
}

// Syslog sends each line that is written to it as a message of its own (RFC 3164). It is used by one goroutine.
//
// The receiver may come later and go away: a line that cannot be sent is lost, and the next Write tries anew.
type Syslog struct {
	cfg      SyslogConfig
	network  string
	priority int
	now      func() time.Time
	conn     net.Conn // nil while nobody receives
	message  []byte
}

// Severity of a line about a request (RFC 3164 section 4.1.1), and how long one Write may take.
const (
	severityInfo  = 6
	syslogPatient = 200 * time.Millisecond
)

// DefaultSyslogLength is that of the HAProxy router.
const DefaultSyslogLength = 1024

// facilities of RFC 3164 section 4.1.1 by number.
var facilities = []string{
	"kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "auth2", "ftp", "ntp", "audit", "alert", "cron2",
	"local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
}

// ParseFacility returns why a text is no facility, nil if it is one.
func ParseFacility(name string) error {
	if !slices.Contains(facilities, name) {
		return fmt.Errorf("allowed: %s", strings.Join(facilities, ", "))
	}
	return nil
}

// ParseMessageLength reads the bytes of a datagram.
func ParseMessageLength(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n < 80 {
		return 0, errors.New("allowed: a number of bytes from 80 to 65535")
	}
	return int(n), nil
}

// CheckDestination returns why messages cannot go to a text, nil if they can: to SyslogConfig.Address, stdout, or nowhere ("").
func CheckDestination(s string) error {
	if s == "" || s == "stdout" {
		return nil
	}
	_, _, err := ParseSyslogAddress(s)
	return err
}

// ParseSyslogAddress returns the network and address of the text of SyslogConfig.Address.
func ParseSyslogAddress(text string) (network, address string, err error) {
	if strings.HasPrefix(text, "/") {
		return "unixgram", text, nil
	}
	text = strings.TrimPrefix(text, "udp@")
	host, port, err := net.SplitHostPort(text)
	if err != nil { // without a port
		host, port = strings.Trim(text, "[]"), "514"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" || strings.ContainsAny(host, " /@[]") {
		return "", "", errors.New("allowed: stdout, HOST, HOST:PORT or the path of a socket")
	}
	return "udp", net.JoinHostPort(host, port), nil
}

// NewSyslog checks the configuration. Nobody is connected yet.
func NewSyslog(cfg SyslogConfig) (*Syslog, error) {
	if cfg.Facility == "" {
		cfg.Facility = "local1"
	}
	if cfg.MaxLength == 0 {
		cfg.MaxLength = DefaultSyslogLength
	}
	if err := ParseFacility(cfg.Facility); err != nil {
		return nil, fmt.Errorf("cannot log to syslog as %q: %w", cfg.Facility, err)
	}
	s := &Syslog{cfg: cfg, priority: slices.Index(facilities, cfg.Facility)*8 + severityInfo, now: time.Now}
	if cfg.Stream != nil {
		return s, nil
	}
	network, address, err := ParseSyslogAddress(cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("cannot log to syslog at %q: %w", cfg.Address, err)
	}
	s.network, s.cfg.Address = network, address
	return s, nil
}

// Write implements io.Writer for whole lines.
func (s *Syslog) Write(p []byte) (int, error) {
	if s.cfg.Stream != nil {
		return s.stream(p)
	}
	if s.conn == nil {
		conn, err := net.DialTimeout(s.network, s.cfg.Address, syslogPatient)
		if err != nil {
			return 0, err
		}
		s.conn = conn
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(syslogPatient)); err != nil {
		return 0, s.lose(err)
	}
	header := s.header(s.message[:0])
	var failed error
	for line := range bytes.Lines(p) {
		message := append(header, bytes.TrimSuffix(line, []byte("\n"))...)
		s.message = message
		if _, err := s.conn.Write(message[:min(len(message), s.cfg.MaxLength)]); err != nil {
			failed = err // a UDP receiver that is away is reported once and may be back for the next line
		}
		header = message[:len(header)]
	}
	if failed != nil {
		return 0, s.lose(failed)
	}
	return len(p), nil
}

// header appends what each message begins with.
func (s *Syslog) header(b []byte) []byte {
	return fmt.Appendf(b, "<%d>%s %s %s: ", s.priority, s.now().Format(time.Stamp), s.cfg.Host, s.cfg.Tag)
}

// stream writes the messages of the lines p in one piece.
func (s *Syslog) stream(p []byte) (int, error) {
	all, header := s.message[:0], s.header(nil)
	for line := range bytes.Lines(p) {
		from := len(all)
		all = append(append(all, header...), bytes.TrimSuffix(line, []byte("\n"))...)
		all = append(all[:min(len(all), from+s.cfg.MaxLength)], '\n')
	}
	s.message = all
	if _, err := s.cfg.Stream.Write(all); err != nil {
		return 0, err
	}
	return len(p), nil
}

// lose ends the connection after an error: the socket may be another one next time.
func (s *Syslog) lose(err error) error {
	s.conn.Close()
	s.conn = nil
	return err
}

// Close ends the connection. Nothing may be written after it.
func (s *Syslog) Close() error {
	if s.conn == nil {
		return nil
	}
	return s.conn.Close()
}
