package cluster

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
)

// Ports of echo pods.
const (
	echoHTTP = 8080
	echoUDP  = 5353
)

// echo is what pods of the tests run: it answers over HTTP and UDP with the name of the
// pod, the address it was asked from, and the address of the pod that was asked.
func echo() error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	conn, err := net.ListenPacket("udp", fmt.Sprintf(":%d", echoUDP))
	if err != nil {
		return err
	}
	go func() {
		for buf := make([]byte, 100); ; {
			_, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo([]byte(reply(name, from.String())), from)
		}
	}()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, reply(name, r.RemoteAddr)) })
	return http.ListenAndServe(fmt.Sprintf(":%d", echoHTTP), mux)
}

func reply(name, from string) string {
	host, _, _ := net.SplitHostPort(from)
	return name + " " + strings.TrimPrefix(host, "::ffff:")
}
