package operator

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"turnout/test/cluster/pki"
)

// The ports of backend pods: two of plain HTTP, as the operator's canary has, one of TLS.
const (
	backendHTTP, backendCanary, backendTLS = 8080, 8888, 8443
)

// What the operator's canary answers.
const canaryBody = "Healthcheck requested"

// serveBackend serves pages until it fails.
func serveBackend() error {
	ca, err := pki.NewCA("backend")
	if err != nil {
		return err
	}
	pair, err := ca.Issue("backend")
	if err != nil {
		return err
	}
	certificate, err := tls.X509KeyPair([]byte(pair.Cert), []byte(pair.Key))
	if err != nil {
		return err
	}
	ended := make(chan error, 3)
	for _, port := range []int{backendHTTP, backendCanary, backendTLS} {
		ln, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if err != nil {
			return err
		}
		if port == backendTLS {
			ln = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{certificate}})
		}
		go func() { ended <- http.Serve(ln, pages(port)) }()
	}
	return <-ended
}

// pages are what a port serves: its number and the pod's name, and /slow, which takes as many
// seconds as are asked for.
func pages(port int) http.Handler {
	name, err := os.Hostname()
	if err != nil {
		name = err.Error()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Port", strconv.Itoa(port))
		fmt.Fprintf(w, "%s by %s\n", canaryBody, name)
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		seconds, err := strconv.Atoi(r.URL.Query().Get("seconds"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for i := range 10 * seconds {
			<-tick.C
			if _, err := fmt.Fprintf(w, "%d\n", i); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, "the end\n")
	})
	return mux
}
