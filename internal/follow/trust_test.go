package follow

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"turnout/internal/problem"
	"turnout/internal/testkit/testcert"
	"turnout/tlsmux/clientcert"
)

// TestRevocationListsThatCannotBeFetched: they are a problem until an update succeeds.
func TestRevocationListsThatCannotBeFetched(t *testing.T) {
	var list atomic.Pointer[[]byte]
	points := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if of := list.Load(); of != nil {
			_, _ = w.Write(*of)
			return
		}
		http.NotFound(w, r)
	}))
	defer points.Close()
	authority := func(name string) *testcert.Pair {
		form := &x509.Certificate{NotAfter: time.Now().Add(time.Hour), CRLDistributionPoints: []string{points.URL + "/list"}}
		form.Subject.CommonName = name
		testcert.Authority(form)
		return testcert.Sign(t, form, nil)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	put := func(of *testcert.Pair) {
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: of.Cert.Raw})
		if err := os.WriteFile(file+".next", text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".next", file); err != nil {
			t.Fatal(err)
		}
	}
	put(authority("one"))

	core, logged := observer.New(zap.ErrorLevel)
	failed := make(chan struct{}, 100)
	log := zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
		if e.Level == zap.ErrorLevel {
			failed <- struct{}{}
		}
		return nil
	}))
	problems := problem.NewList()
	trust, err := NewTrust(TrustConfig{Authorities: file, Log: log, Problems: problems})
	if err != nil {
		t.Fatal(err)
	}
	used := make(chan int, 100)
	trust.Use(func(t *clientcert.Trust) error { used <- t.Lists(); return nil })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); trust.Run(ctx) }()

	<-failed
	all, _ := problems.All("", 0)
	of := slices.Collect(all)
	const text = "revocation lists of client certificates stay as they were"
	if len(of) != 1 || of[0].Kind != problem.File || of[0].File != file || !strings.HasPrefix(of[0].Text, text+": ") || !strings.Contains(of[0].Text, points.URL) {
		t.Errorf("problems are %+v", of)
	}
	if message := logged.All()[0].Message; message != text {
		t.Errorf("logged %q", message)
	}

	next := authority("two") // another bundle does not wait for the next try of the first one
	now := time.Now()
	crl := next.Revoke(t, &x509.RevocationList{ThisUpdate: now.Add(-time.Hour), NextUpdate: now.Add(time.Hour)})
	list.Store(&crl)
	put(next)
	for <-used != 1 { // none at first
	}
	stop()
	<-ended
	if n := problems.Counts()[problem.File]; n != 0 {
		t.Errorf("%d problems though the lists are there", n)
	}
}
