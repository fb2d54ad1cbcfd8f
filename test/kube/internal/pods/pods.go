// Package pods answers for every pod of a test: on each port it listens on all addresses
// of the sandbox, and says in the answer which address was asked. The path /echo sends the body back.
package pods

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"

	"turnout/test/cluster/pki"
)

// The ports on which pods listen.
const (
	HTTP  = 8080
	HTTPS = 8443
)

// Answer is what a pod says about a request, as JSON.
type Answer struct {
	Pod    string      // address and port that was asked
	Host   string      // Host field
	Path   string      // path and query
	Header http.Header // of the request
}

// Serve answers on all addresses until the process ends. The certificate of HTTPS is cert.
func Serve(cert pki.Pair) error {
	pair, err := tls.X509KeyPair([]byte(cert.Cert), []byte(cert.Key))
	if err != nil {
		return fmt.Errorf("cannot use the certificate of pods: %w", err)
	}
	plain, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", HTTP))
	if err != nil {
		return fmt.Errorf("cannot listen for pods: %w", err)
	}
	secure, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", HTTPS))
	if err != nil {
		return fmt.Errorf("cannot listen for pods: %w", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(answer)}
	go func() { _ = server.Serve(plain) }()
	go func() { _ = server.Serve(tls.NewListener(secure, &tls.Config{Certificates: []tls.Certificate{pair}})) }()
	return nil
}

func answer(w http.ResponseWriter, r *http.Request) {
	a := Answer{Host: r.Host, Path: r.URL.RequestURI(), Header: r.Header}
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		a.Pod = addr.String()
	}
	w.Header().Set("X-Pod", a.Pod)
	if r.URL.Path == "/echo" {
		echo(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a)
}

// echo sends back what it gets while it gets it.
func echo(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	if err := control.EnableFullDuplex(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for buf := make([]byte, 1024); ; {
		n, err := r.Body.Read(buf)
		if n > 0 {
			_, _ = w.Write(buf[:n])
			_ = control.Flush()
		}
		if err != nil {
			return
		}
	}
}
