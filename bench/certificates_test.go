package bench

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/balancer"
	"turnout/controller"
	"turnout/controller/source"
	"turnout/routing"
)

// mint makes certificates, all different, of one authority.
type mint struct {
	authority *x509.Certificate
	signer    *ecdsa.PrivateKey
	text      string
	key       func(i int) crypto.Signer
}

func newMint(b *testing.B, key func(i int) crypto.Signer) *mint {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	m := &mint{signer: signer, key: key, authority: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench authority"}, NotAfter: time.Now().AddDate(10, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	m.text = m.sign(b, m.authority, &signer.PublicKey)
	return m
}

func (m *mint) sign(b *testing.B, template *x509.Certificate, public crypto.PublicKey) string {
	der, err := x509.CreateCertificate(rand.Reader, template, m.authority, public, m.signer)
	if err != nil {
		b.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// route returns an edge route as a client of the API server would have decoded it: no text is shared with another.
func (m *mint) route(b *testing.B, i int) source.Event {
	name, host := "web-"+strconv.Itoa(i), fmt.Sprintf("web-%d.apps.example.test", i)
	key := m.key(i)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		b.Fatal(err)
	}
	r := &routev1.Route{ObjectMeta: metav1.ObjectMeta{Namespace: "bench", Name: name}}
	r.Spec.Host, r.Spec.To.Name, r.Spec.WildcardPolicy = host, name, routev1.WildcardPolicyNone
	r.Spec.TLS = &routev1.TLSConfig{
		Termination: routev1.TLSTerminationEdge, CACertificate: strings.Clone(m.text),
		Key: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		Certificate: m.sign(b, &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 2)), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}, key.Public()),
	}
	return source.Event{Kind: source.Route, Key: source.Key{Namespace: "bench", Name: name}, Object: r}
}

// resident returns what the process has of memory, after garbage was given back.
func resident(b *testing.B) int64 {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Fatalf("cannot tell resident memory without /proc: %v", err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// cpuTime returns what the process has used of processors.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCertificates loads as many routes with a certificate of their own, from the objects to the published table, on one
// processor. cpu-s is the processor time that takes, collections included, MiB what the process holds afterwards, and ns/op the time to find the
// certificate of a random server name; cpu-ns/lookup is the processor time of the same, which a busy machine changes less.
func BenchmarkCertificates(b *testing.B) {
	kinds := []struct {
		name string
		key  func() (crypto.Signer, error)
		keys int // as many different ones; what a key costs to make is not the question
	}{
		{"RSA2048", func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) }, 32},
		{"P256", func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }, 1 << 20},
		{"P384", func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P384(), rand.Reader) }, 1024},
	}
	sizes := []int{10, 1_000, 50_000}
	if testing.Short() {
		sizes = sizes[:2]
	}
	for _, kind := range kinds {
		for _, n := range sizes {
			b.Run(fmt.Sprintf("%s/%d", kind.name, n), func(b *testing.B) {
				made := make([]crypto.Signer, 0, min(n, kind.keys))
				for range cap(made) {
					key, err := kind.key()
					if err != nil {
						b.Fatal(err)
					}
					made = append(made, key)
				}
				benchmarkCertificates(b, n, func(i int) crypto.Signer { return made[i%len(made)] })
			})
		}
	}
}

func benchmarkCertificates(b *testing.B, n int, key func(i int) crypto.Signer) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	m := newMint(b, key)
	before := resident(b)
	events := make([]source.Event, n)
	for i := range events {
		events[i] = m.route(b, i)
	}
	store := routing.NewStore()
	c, err := controller.New(controller.Config{Store: store, Routing: routing.Options{Registry: balancer.NewRegistry()}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	runtime.GC()
	began := cpuTime(b)
	sink := c.Sink("bench")
	go func() { _ = c.Run(ctx); close(ended) }()
	for _, e := range events {
		sink.Event(e)
	}
	sink.Synced()
	if err := c.Wait(ctx); err != nil {
		b.Fatal(err)
	}
	took := cpuTime(b) - began
	if _, rejected := c.Counts(); rejected > 0 || store.Load().Len() != n {
		b.Fatalf("%d routes, %d rejected; want %d and none; the first: %+v", store.Load().Len(), rejected, n, c.Routes()[0].Status)
	}
	clear(events) // as in the program, where nobody but the controller has them
	held := resident(b) - before
	table, names := store.Load(), randomHosts(n)
	for _, name := range names { // the first handshake of each reads it
		table.SNI(name)
	}
	i := 0
	b.ResetTimer()
	began = cpuTime(b)
	for b.Loop() {
		if d := table.SNI(names[i&(len(names)-1)]); !d.Own {
			b.Fatal("a route without its certificate")
		}
		i++
	}
	b.ReportMetric(float64((cpuTime(b)-began).Nanoseconds())/float64(b.N), "cpu-ns/lookup")
	b.ReportMetric(took.Seconds(), "cpu-s")
	b.ReportMetric(float64(held)/(1<<20), "MiB")
	runtime.KeepAlive(c)
	cancel()
	<-ended
}

// randomHosts returns names of random routes of n.
func randomHosts(n int) []string {
	names := make([]string, 1<<12)
	for i := range names {
		names[i] = fmt.Sprintf("web-%d.apps.example.test", (i*7919)%n)
	}
	return names
}
