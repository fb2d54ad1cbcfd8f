package load

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"turnout/internal/testkit/testcert"
)

// TestSecureUpstream asks more than a window of HTTP/2 has room for, in parallel, and counts.
func TestSecureUpstream(t *testing.T) {
	for _, protocol := range []string{"h2", "http/1.1"} {
		t.Run(protocol, func(t *testing.T) {
			rig, err := NewRig(1)
			if err != nil {
				t.Fatal(err)
			}
			defer rig.Close()
			u := rig.Secure(&tls.Config{Certificates: []tls.Certificate{testcert.Sign(t, &x509.Certificate{}, nil).TLS()}, NextProtos: []string{protocol}})
			done, ended := make(chan struct{}), make(chan struct{})
			go func() { rig.Answer(done); close(ended) }()
			transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, MaxConnsPerHost: 8}
			client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
			const workers, each = 16, 60
			var group sync.WaitGroup
			for range workers {
				group.Go(func() {
					for range each {
						resp, err := client.Get("https://" + u.Addr().String() + "/items/0")
						if err != nil {
							t.Error(err)
							return
						}
						body, err := io.ReadAll(resp.Body)
						_ = resp.Body.Close()
						if err != nil || !bytes.Equal(body, Body(0)) || (resp.ProtoMajor == 2) != (protocol == "h2") {
							t.Errorf("%s %d bytes, %v", resp.Proto, len(body), err)
							return
						}
					}
				})
			}
			group.Wait()
			transport.CloseIdleConnections()
			u.Close()
			close(done)
			<-ended
			if n := rig.backend.served; n != workers*each {
				t.Errorf("%d requests were counted", n)
			}
		})
	}
}
