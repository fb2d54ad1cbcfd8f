package main

import (
	"errors"
	"io"
	"syscall"
	"time"
)

// Bounds of the log container.
const (
	maxMessage = 8096 // octets of a message that are printed, as many as rsyslogd keeps of one by default
	maxLine    = 4*maxMessage + 512
	receiving  = 1 << 20 // octets of messages that may wait in the kernel while nobody reads the log; root alone gets more than the system's limit
)

// The stamp of a line, as rsyslogd writes it: microseconds and the zone in digits.
const stamp = "2006-01-02T15:04:05.000000-07:00"

// printLog is the log container: what arrives at the socket is printed, one line per
// message. A reader of the standard output that does not read makes senders wait or
// drop, which is up to them: the router drops and counts.
func printLog(at places, stdout io.Writer) error {
	over := at.until()
	host, err := at.hostname()
	if err != nil {
		return err
	}
	fd, err := listen(at.log, syscall.SOCK_DGRAM, 0o666)
	if err != nil {
		return err
	}
	defer func() { _ = remove(at.log) }() // the volume goes with the pod
	_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_RCVBUF, receiving)
	done := make(chan error, 1)
	go func() { done <- printAll(fd, shortName(host), at.now, stdout) }()
	select {
	case err := <-done:
		return err
	case <-over:
		return nil
	}
}

// printAll prints messages until that fails. It ends with the process.
func printAll(fd int, host string, now func() time.Time, stdout io.Writer) error {
	message, line := make([]byte, maxMessage), make([]byte, 0, maxLine)
	for {
		n, _, err := syscall.Recvfrom(fd, message, 0) // the rest of a longer one is gone
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return errors.New("cannot receive messages: " + err.Error())
		}
		line = appendLine(line[:0], now(), host, message[:n])
		if len(line) == 0 {
			continue
		}
		if _, err := stdout.Write(line); err != nil {
			return errors.New("cannot print a message: " + err.Error())
		}
	}
}

// shortName is a host name without its domain.
func shortName(host string) string {
	for i := range len(host) {
		if host[i] == '.' && i > 0 {
			return host[:i]
		}
	}
	return host
}

// appendLine appends the line of a message: when it arrived, the name of this host, and
// what follows priority and time in it. That is what rsyslogd's module omstdout prints of
// messages from a local socket: it takes the host that HAProxy names for the tag, so that
// both names stand there. Control characters are written in octal. An empty message
// has no line.
func appendLine(line []byte, now time.Time, host string, message []byte) []byte {
	for len(message) > 0 && message[len(message)-1] == '\n' {
		message = message[:len(message)-1]
	}
	message = afterTime(afterPriority(message))
	if len(message) == 0 {
		return line
	}
	line = now.UTC().AppendFormat(line, stamp)
	line = append(line, ' ')
	line = append(line, host...)
	line = append(line, ' ')
	for _, c := range message {
		if c < ' ' || c == 0x7f {
			line = append(line, '#', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
			continue
		}
		line = append(line, c)
	}
	return append(line, '\n')
}

// afterPriority is a message without the <PRI> of RFC 3164, 4.1.1.
func afterPriority(message []byte) []byte {
	if len(message) == 0 || message[0] != '<' {
		return message
	}
	for i, c := range message[1:] {
		switch {
		case c == '>' && i > 0:
			return message[i+2:]
		case c < '0' || c > '9' || i == 3:
			return message
		}
	}
	return message
}

// afterTime is a message without a TIMESTAMP of RFC 3164, 4.1.2: "Mmm dd hh:mm:ss " with
// a blank in place of a leading zero of the day.
func afterTime(message []byte) []byte {
	const form = "Aaa _0 00:00:00 "
	if len(message) < len(form) {
		return message
	}
	for i := range len(form) {
		c := message[i]
		digit := '0' <= c && c <= '9'
		var ok bool
		switch form[i] {
		case 'A':
			ok = 'A' <= c && c <= 'Z'
		case 'a':
			ok = 'a' <= c && c <= 'z'
		case '0':
			ok = digit
		case '_':
			ok = digit || c == ' '
		default:
			ok = c == form[i]
		}
		if !ok {
			return message
		}
	}
	return message[len(form):]
}
