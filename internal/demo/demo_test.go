package demo

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"turnout/deploy/examples"
)

func start(t *testing.T) *Demo {
	t.Helper()
	d, err := Start(Config{Manifests: examples.Files(), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *Demo) pod(t *testing.T, name string) *pod {
	t.Helper()
	for _, p := range d.pods {
		if p.name == name {
			return p
		}
	}
	t.Fatalf("no pod %s", name)
	return nil
}

func TestPodSaysWhatItSaw(t *testing.T) {
	p := start(t).pod(t, "host-service-2")
	req, err := http.NewRequest("PUT", "http://"+p.addr().String()+"/a?b=c", strings.NewReader("12345"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Add("X-Two", "1")
	req.Header.Add("X-Two", "2")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got answer
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Pod != "host-service-2" || got.Service != "host-service" || got.Method != "PUT" || got.Path != "/a?b=c" ||
		got.TLS || got.Body != 5 || got.Headers["x-two"] != "1, 2" || got.Headers["host"] != p.addr().String() {
		t.Errorf("answer %+v", got)
	}
}

func TestPodSpeaksTLS(t *testing.T) {
	d := start(t)
	ca, err := os.ReadFile(filepath.Join(d.Dir(), "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	for service, name := range map[string]string{
		"passthrough-service": "route-passthrough-secured.example.com",
		"reencrypt-service":   "reencrypt-service.examples.svc",
	} {
		c, err := tls.Dial("tcp", d.pod(t, service+"-1").addr().String(), &tls.Config{RootCAs: roots, ServerName: name})
		if err != nil {
			t.Errorf("%s: %v", service, err)
			continue
		}
		c.Close()
	}
}

// frame is one masked frame as a client sends it.
func frame(op byte, payload []byte) []byte {
	var b bytes.Buffer
	if err := writeFrame(&b, op, payload); err != nil {
		panic(err)
	}
	raw := b.Bytes()
	head := raw[:len(raw)-len(payload)]
	head[1] |= 0x80
	mask := []byte{1, 2, 3, 4}
	out := append(append([]byte{}, head...), mask...)
	for i, c := range payload {
		out = append(out, c^mask[i&3])
	}
	return out
}

// readPlain reads one unmasked frame as a server sends it.
func readPlain(t *testing.T, r *bufio.Reader, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got %.40q... want %.40q...", got, want)
	}
}

func TestWebSocketEcho(t *testing.T) {
	p := start(t).pod(t, "websocket-service-1")
	c, err := net.Dial("tcp", p.addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The key and its answer are those of RFC 6455 section 1.3.
	if resp.StatusCode != 101 || resp.Header.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		t.Fatalf("%v %v", resp.Status, resp.Header)
	}
	unmasked := func(op byte, payload []byte) []byte {
		var b bytes.Buffer
		if err := writeFrame(&b, op, payload); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	readPlain(t, r, unmasked(opText, []byte("hello from pod websocket-service-1\n")))
	for _, n := range []int{0, 5, 125, 126, 65535, 65536} {
		payload := bytes.Repeat([]byte("m"), n)
		if _, err := c.Write(frame(opText, payload)); err != nil {
			t.Fatal(err)
		}
		readPlain(t, r, unmasked(opText, payload))
	}
	if _, err := c.Write(append(frame(opPing, []byte("p")), frame(opClose, []byte{3, 0xe8})...)); err != nil {
		t.Fatal(err)
	}
	readPlain(t, r, unmasked(opPong, []byte("p")))
	readPlain(t, r, unmasked(opClose, []byte{3, 0xe8}))
}

func TestSlicesNameEveryPod(t *testing.T) {
	d := start(t)
	text, err := os.ReadFile(filepath.Join(d.Dir(), "endpointslices.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	ports := map[string]int{}
	for _, doc := range strings.Split(string(text), "\n---\n")[1:] {
		var s struct {
			Metadata  struct{ Name string }
			Ports     []struct{ Port int }
			Endpoints []struct{ Addresses []string }
		}
		if err := yaml.Unmarshal([]byte(doc), &s); err != nil {
			t.Fatal(err)
		}
		if s.Endpoints[0].Addresses[0] != "127.0.0.1" {
			t.Errorf("%s: addresses %v", s.Metadata.Name, s.Endpoints[0].Addresses)
		}
		ports[s.Metadata.Name] = s.Ports[0].Port
	}
	for _, p := range d.pods {
		if ports[p.name] != int(p.addr().Port()) {
			t.Errorf("%s listens on %d, its slice says %d", p.name, p.addr().Port(), ports[p.name])
		}
	}
	if len(ports) != d.Pods() {
		t.Errorf("%d slices for %d pods", len(ports), d.Pods())
	}
}

// TestTourShowsEveryRoute: an example without a command to try would rot unseen.
func TestTourShowsEveryRoute(t *testing.T) {
	d := start(t)
	shown := map[string]bool{}
	for _, s := range Tour(d.Dir(), Addresses{HTTP: netip.MustParseAddrPort("127.0.0.1:1"), HTTPS: netip.MustParseAddrPort("0.0.0.0:2"), Admin: netip.MustParseAddrPort("[::1]:3")}) {
		shown[s.File] = true
		if len(s.Want) == 0 || s.About == "" {
			t.Errorf("%s: no expectation or description", s.Command)
		}
	}
	files, err := examples.Files().ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := examples.Files().ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("kind: Route\n")) != shown[f.Name()] {
			t.Errorf("%s: shown in the tour: %v", f.Name(), shown[f.Name()])
		}
	}
}

func TestTourAddresses(t *testing.T) {
	steps := Tour("/tmp/a b", Addresses{HTTP: netip.MustParseAddrPort("[::]:8080"), HTTPS: netip.MustParseAddrPort("[::1]:8443"), Admin: netip.MustParseAddrPort("127.0.0.1:1936")})
	if !strings.Contains(steps[0].Command, "--connect-to :80:127.0.0.1:8080 ") {
		t.Error(steps[0].Command)
	}
	if !strings.Contains(steps[4].Command, "--cacert '/tmp/a b/ca.crt' --connect-to :443:[::1]:8443 ") {
		t.Error(steps[4].Command)
	}
}

func TestStartErrors(t *testing.T) {
	if _, err := Start(Config{Manifests: examples.Files(), Dir: filepath.Join(t.TempDir(), "missing")}); err == nil {
		t.Error("missing folder: no error")
	}
}

// TestCloseRightAfterStart: a pod that has not begun to serve must end as well.
func TestCloseRightAfterStart(t *testing.T) {
	for range 200 {
		p, err := startPod("p", "s", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.close(); err != nil {
			t.Fatal(err)
		}
	}
}
