package reactor

import (
	"net"
	"testing"
)

func TestQuiet(t *testing.T) {
	for name, end := range map[string]func(*net.TCPConn) error{
		"FIN":   (*net.TCPConn).CloseWrite,
		"reset": func(c *net.TCPConn) error { _ = c.SetLinger(0); return c.Close() },
		"bytes": func(c *net.TCPConn) error { _, err := c.Write([]byte("x")); return err },
	} {
		t.Run(name, func(t *testing.T) {
			l := startLoop(t, Config{})
			peer, c := pair(t, l, &hooks{})
			on(t, l, c.Pause) // what comes is not presented
			on(t, l, func() {
				for range 2 {
					if !c.Quiet() {
						t.Error("a silent connection is not quiet")
					}
				}
				if err := end(peer); err != nil { // the loop is busy with this: it cannot know yet
					t.Error(err)
				}
				if c.Quiet() {
					t.Error("quiet after the end")
				}
			})
		})
	}
}
