package handover

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// version is that of the conversation. Processes of different versions do not hand over.
const version = 1

const (
	maxMessage = 4096
	maxSockets = 253 // descriptors in one message, SCM_MAX_FD of Linux
	replyTime  = 10 * time.Second
)

// message is one packet of the conversation, as JSON. Sockets travel beside it.
type message struct {
	Version   int    `json:"version,omitempty"`
	Listeners int    `json:"listeners,omitempty"` // messages that follow
	Listener  string `json:"listener,omitempty"`
	Say       string `json:"say,omitempty"`
	Error     string `json:"error,omitempty"`
}

const (
	sayReady    = "ready"
	sayReleased = "released"
)

var errGone = errors.New("the other process is gone")

// Listener is the sockets that listen on one address.
type Listener struct {
	Name    string // what both processes call it
	Sockets []int  // descriptors
}

// Close closes the sockets.
func (l Listener) Close() {
	for _, fd := range l.Sockets {
		_ = os.NewFile(uintptr(fd), l.Name).Close() // nothing was written to it
	}
}

func send(c *net.UnixConn, m message, sockets []int) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	var rights []byte
	if len(sockets) > 0 {
		rights = syscall.UnixRights(sockets...)
	}
	if err := c.SetWriteDeadline(time.Now().Add(replyTime)); err != nil {
		return err
	}
	_, _, err = c.WriteMsgUnix(text, rights, nil)
	return err
}

// receive reads one packet. The sockets are the caller's, also with an error.
func receive(c *net.UnixConn) (m message, sockets []int, err error) {
	text, rights := make([]byte, maxMessage), make([]byte, syscall.CmsgSpace(4*maxSockets))
	n, nr, flags, _, err := c.ReadMsgUnix(text, rights)
	if err != nil {
		return m, nil, err
	}
	if n == 0 {
		return m, nil, errGone
	}
	controls, err := syscall.ParseSocketControlMessage(rights[:nr])
	if err != nil {
		return m, nil, err
	}
	for i := range controls {
		fds, err := syscall.ParseUnixRights(&controls[i])
		if err != nil {
			return m, sockets, err
		}
		sockets = append(sockets, fds...)
	}
	if flags&(syscall.MSG_TRUNC|syscall.MSG_CTRUNC) != 0 {
		return m, sockets, errors.New("a message was too long")
	}
	if err := json.Unmarshal(text[:n], &m); err != nil {
		return m, sockets, fmt.Errorf("not a message of this protocol: %w", err)
	}
	if m.Error != "" {
		return m, sockets, errors.New(m.Error)
	}
	return m, sockets, nil
}
