package load

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net/http"
	"sync"
	"testing"
	"time"
)

func podCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestSecureUpstream asks more than a window of HTTP/2 has room for, in parallel, and counts.
func TestSecureUpstream(t *testing.T) {
	for _, protocol := range []string{"h2", "http/1.1"} {
		t.Run(protocol, func(t *testing.T) {
			rig, err := NewRig(1)
			if err != nil {
				t.Fatal(err)
			}
			defer rig.Close()
			u, err := rig.Secure(&tls.Config{Certificates: []tls.Certificate{podCertificate(t)}, NextProtos: []string{protocol}})
			if err != nil {
				t.Fatal(err)
			}
			done, ended := make(chan struct{}), make(chan error, 1)
			go func() { _, err := rig.Answer(done); ended <- err }()
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
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if n := rig.backend.served; n != workers*each {
				t.Errorf("%d requests were counted", n)
			}
		})
	}
}
