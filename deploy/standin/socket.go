package main

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"path"
	"syscall"
	"time"
)

// The sockets of the sidecar, by their names in its folder.
const (
	adminSocket = "admin.sock"
	statsSocket = "haproxy.sock"
)

// What the sidecar and its probes say to each other. The answers begin with what this
// is, so that nobody takes them for HAProxy's.
const (
	question    = "show version"
	version     = "turnout stand-in, not HAProxy: the router is the container \"router\"\n"
	otherAnswer = "turnout stand-in, not HAProxy: answers \"show version\" only; ask port 1936 of the container \"router\"\n"
)

// Bounds of the sidecar's sockets (docs/limits.md). Only processes with its user reach them.
const (
	maxVisitors  = 8               // answered at the same time by each socket; more wait in the kernel's queue
	maxQuestion  = 256             // octets that are read of a question
	maxReads     = 8               // receives that they may come in
	visitTimeout = 2 * time.Second // one receive or send
	maxAnswer    = 64 << 10        // octets that a probe prints
	backlog      = 16              // connections that wait to be accepted
)

// ending is a channel that gets the first signal that ends the program.
func ending() <-chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1) // the last makes HAProxy drain
	return c
}

// holdSockets is the sidecar: it answers at both sockets until a signal ends it.
// There is nothing to drain, as it carries no traffic.
func holdSockets(at places, stdout io.Writer) error {
	over := at.until()
	broken := make(chan error, 2)
	var names []string
	defer func() {
		for _, name := range names {
			_ = remove(name) // the volume goes with the pod
		}
	}()
	for _, name := range []string{adminSocket, statsSocket} {
		name = path.Join(at.run, name)
		fd, err := listen(name, syscall.SOCK_STREAM, 0o600)
		if err != nil {
			return err
		}
		names = append(names, name)
		// It ends with the process: main returns after the signal.
		go func() { broken <- answerAll(fd) }()
	}
	say(stdout, "turnout stand-in, not HAProxy: holds "+names[0]+" and "+names[1]+" for the pod's probes; the router is the container \"router\"")
	select {
	case err := <-broken:
		return err
	case <-over:
		return nil
	}
}

// listen makes a UNIX socket of a type, with a mode. What stands there, as after a
// restart of the container, is replaced.
func listen(name string, kind int, mode uint32) (int, error) {
	if err := remove(name); err != nil {
		return -1, err
	}
	// Nobody else may connect before the mode is set.
	defer syscall.Umask(syscall.Umask(0o177))
	fd, err := syscall.Socket(syscall.AF_UNIX, kind|syscall.SOCK_CLOEXEC, 0)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: name})
	}
	if err == nil {
		err = syscall.Chmod(name, mode)
	}
	if err == nil && kind == syscall.SOCK_STREAM {
		err = syscall.Listen(fd, backlog)
	}
	if err != nil {
		return -1, errors.New("cannot listen on " + name + ": " + err.Error())
	}
	return fd, nil
}

// answerAll answers everybody who comes to a socket, maxVisitors at the same time, until
// nobody can be accepted any more.
func answerAll(fd int) error {
	places := make(chan struct{}, maxVisitors)
	for {
		places <- struct{}{}
		visitor, _, err := syscall.Accept4(fd, syscall.SOCK_CLOEXEC)
		if errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.ECONNABORTED) {
			<-places
			continue
		}
		if err != nil {
			return errors.New("cannot accept connections: " + err.Error())
		}
		go func() {
			answer(visitor)
			<-places
		}()
	}
}

// answer reads one question and answers it.
func answer(fd int) {
	defer done(fd)
	if limitTime(fd, visitTimeout) != nil {
		return
	}
	var buf [maxQuestion]byte
	n := 0
	for range maxReads {
		m, err := syscall.Read(fd, buf[n:])
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if m > 0 {
			n += m
		}
		if err != nil || m <= 0 || n == len(buf) || buf[n-1] == '\n' {
			break
		}
	}
	reply := otherAnswer
	if asked(buf[:n]) == question {
		reply = version
	}
	_, _ = syscall.Write(fd, []byte(reply)) // the probe says when none arrives
}

// asked is the first line of what was read, without blanks around it.
func asked(read []byte) string {
	for i, c := range read {
		if c == '\n' || c == ';' {
			read = read[:i]
			break
		}
	}
	for len(read) > 0 && blank(read[0]) {
		read = read[1:]
	}
	for len(read) > 0 && blank(read[len(read)-1]) {
		read = read[:len(read)-1]
	}
	return string(read)
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// done closes a socket that nothing is expected of any more.
func done(fd int) { _ = syscall.Close(fd) }

func limitTime(fd int, d time.Duration) error {
	t := syscall.NsecToTimeval(d.Nanoseconds())
	return errors.Join(syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &t),
		syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &t))
}

func askAdmin(at places, stdout io.Writer) error {
	return ask(path.Join(at.run, adminSocket), at.patience, stdout)
}

func askStats(at places, stdout io.Writer) error {
	return ask(path.Join(at.run, statsSocket), at.patience, stdout)
}

// ask is a probe: it puts the question to a socket and prints the answer. No answer is
// an error.
func ask(name string, patience time.Duration, stdout io.Writer) error {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer done(fd)
	if err := limitTime(fd, patience); err != nil {
		return err
	}
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: name}); err != nil {
		return errors.New("cannot connect " + name + ": " + err.Error())
	}
	if _, err := syscall.Write(fd, []byte(question+"\n")); err != nil {
		return errors.New("cannot write to " + name + ": " + err.Error())
	}
	_ = syscall.Shutdown(fd, syscall.SHUT_WR) // then the answer would not end, and the read fails
	var buf [1024]byte
	total := 0
	for total < maxAnswer {
		n, err := syscall.Read(fd, buf[:])
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return errors.New("cannot read from " + name + ": " + err.Error())
		}
		if n == 0 {
			break
		}
		total += n
		if _, err := stdout.Write(buf[:n]); err != nil {
			return err
		}
	}
	if total == 0 {
		return errors.New("no answer from " + name)
	}
	return nil
}
