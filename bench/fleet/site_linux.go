package main

import (
	"bufio"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The hosts of the site. Each of the first two has a certificate of its own.
const (
	hostECDSA       = "ecdsa.fleet.test"
	hostRSA         = "rsa.fleet.test"
	hostPassthrough = "through.fleet.test"
)

// site is a router in a process of its own, before backends in this one.
type site struct {
	dir         string
	http, https string // host:port
	router      *exec.Cmd
	plain       *http.Server
	through     net.Listener
}

// startSite starts everything and waits until requests are served. cores is what the router may run on, as taskset wants it,
// "" for all.
func startSite(ctx context.Context, o *options, cores string, args ...string) (*site, error) {
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder: %w", err)
	}
	s := &site{dir: dir}
	if err := s.start(ctx, o, cores, args); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *site) start(ctx context.Context, o *options, cores string, args []string) error {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot start the backend: %w", err)
	}
	s.plain = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello\n")
	})}
	go serve(s.plain, plain)
	if s.through, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return fmt.Errorf("cannot start the backend: %w", err)
	}
	go echoAll(s.through)
	if err := s.writeManifests(plain.Addr(), s.through.Addr()); err != nil {
		return err
	}
	command := append([]string{o.turnout, "run", "--manifests", s.dir, "--http-addr", "127.0.0.1:0", "--https-addr", "127.0.0.1:0",
		"--admin-addr", "127.0.0.1:0"}, args...)
	if cores != "" {
		command = append([]string{"taskset", "-c", cores}, command...)
	}
	s.router = exec.CommandContext(ctx, command[0], command[1:]...)
	s.router.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	logs, err := s.router.StderrPipe()
	if err != nil {
		return fmt.Errorf("cannot read the router's log: %w", err)
	}
	if err := s.router.Start(); err != nil {
		return fmt.Errorf("cannot start the router: %w", err)
	}
	return s.ready(bufio.NewScanner(logs))
}

func serve(s *http.Server, ln net.Listener) { _ = s.Serve(ln) }

// ready reads the log until the router serves.
func (s *site) ready(logs *bufio.Scanner) error {
	for logs.Scan() {
		var line struct{ Msg, HTTP, HTTPS string }
		if json.Unmarshal(logs.Bytes(), &line) != nil {
			continue
		}
		switch line.Msg {
		case "listening":
			s.http, s.https = line.HTTP, line.HTTPS
		case "ready":
			go drain(logs)
			return nil
		}
	}
	return errors.New("the router ended before it was ready")
}

// drain keeps the router from waiting for its log.
func drain(logs *bufio.Scanner) {
	for logs.Scan() {
	}
}

func (s *site) close() {
	if s.router != nil && s.router.Process != nil {
		_ = s.router.Process.Signal(os.Interrupt)
		_ = s.router.Wait()
	}
	if s.plain != nil {
		_ = s.plain.Close()
	}
	if s.through != nil {
		_ = s.through.Close()
	}
	_ = os.RemoveAll(s.dir)
}

// resident returns the memory of the router's process, in bytes.
func (s *site) resident() (int64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(s.router.Process.Pid) + "/statm")
	if err != nil {
		return 0, fmt.Errorf("cannot read the router's memory: %w", err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0, fmt.Errorf("cannot read the router's memory: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// echoAll is the pod of the route that is passed through: it sends back what it gets. TLS would be the client's matter.
func echoAll(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go echo(c)
	}
}

func echo(c net.Conn) {
	defer c.Close()
	var p [2 << 10]byte
	for {
		n, err := c.Read(p[:])
		if _, werr := c.Write(p[:n]); err != nil || werr != nil {
			return
		}
	}
}

func (s *site) writeManifests(plain, through net.Addr) error {
	var text strings.Builder
	ecdsaKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("cannot make a key: %w", err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("cannot make a key: %w", err)
	}
	const options = "annotations: {haproxy.router.openshift.io/disable_cookies: \"true\"}"
	for host, key := range map[string]crypto.Signer{hostECDSA: ecdsaKey, hostRSA: rsaKey} {
		cert, private, err := certificate(host, key)
		if err != nil {
			return err
		}
		name, _, _ := strings.Cut(host, ".")
		fmt.Fprintf(&text, "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: %s, namespace: fleet, %s}\nspec:\n"+
			"  host: %s\n  to: {kind: Service, name: plain}\n  tls:\n    termination: edge\n    insecureEdgeTerminationPolicy: Allow\n"+
			"    certificate: %q\n    key: %q\n---\n", name, options, host, cert, private)
	}
	fmt.Fprintf(&text, "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: through, namespace: fleet}\nspec:\n"+
		"  host: %s\n  to: {kind: Service, name: through}\n  tls: {termination: passthrough}\n", hostPassthrough)
	for name, addr := range map[string]net.Addr{"plain": plain, "through": through} {
		fmt.Fprintf(&text, "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n"+
			"metadata: {name: %s-1, namespace: fleet, labels: {kubernetes.io/service-name: %s}}\naddressType: IPv4\n"+
			"ports: [{name: p, port: %d}]\nendpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]\n",
			name, name, addr.(*net.TCPAddr).Port)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "site.yaml"), []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("cannot write manifests: %w", err)
	}
	return nil
}

// certificate makes one that signs itself.
func certificate(host string, key crypto.Signer) (cert, private []byte, err error) {
	form := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(0, 1, 0),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}

// clientTLS is the client's side. What it checks is not measured.
func clientTLS(host string, version uint16, protocols ...string) *tls.Config {
	return &tls.Config{
		ServerName: host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12, MaxVersion: version, NextProtos: protocols,
		CurvePreferences: []tls.CurveID{tls.X25519},
	}
}
