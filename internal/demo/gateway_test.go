package demo

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"

	"turnout/deploy/examples"
)

// TestGatewayPorts: a Gateway gets the ports of its manifest if they are free, and others that are otherwise, each listener of a port the same.
func TestGatewayPorts(t *testing.T) {
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	busy := taken.Addr().(*net.TCPAddr).Port
	d := &Demo{ports: map[int]int{}}
	manifest := fmt.Sprintf("kind: Gateway\n  - name: a\n    port: %[1]d\n  - name: b\n    port: %[1]d\n", busy)
	got, err := d.free(manifest, false)
	if want := fmt.Sprintf("kind: Gateway\n  - name: a\n    port: %[1]d\n  - name: b\n    port: %[1]d\n", d.ports[busy]); err != nil || got != want || d.ports[busy] == busy || d.ports[busy] == 0 {
		t.Errorf("%v, %q, ports %v", err, got, d.ports)
	}
	port := func(wanted int, other bool) (int, error) {
		ln, err := freePort(wanted, other)
		if err != nil {
			return 0, err
		}
		defer ln.Close()
		return ln.Addr().(*net.TCPAddr).Port, nil
	}
	if n, err := port(busy, true); err != nil || n == busy {
		t.Errorf("%d, %v", n, err)
	}
	free := d.ports[busy]
	if n, err := port(free, false); err != nil || n == free {
		t.Errorf("pods can get port %d, which is a Gateway's: %v", n, err)
	}
	d.release()
	if n, err := port(free, false); err != nil || n != free {
		t.Errorf("%d instead of %d, which is free: %v", n, free, err)
	}
}

// TestGatewayTourShowsEveryRoute: as TestTourShowsEveryRoute does of Routes; without the Gateway API nothing of it is there.
func TestGatewayTourShowsEveryRoute(t *testing.T) {
	d, err := Start(Config{Manifests: examples.Files(), Gateway: examples.Gateway(), GatewayAPI: true, AnyPort: true, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	shown := map[string]bool{}
	for _, s := range d.Tour(Addresses{}) {
		shown[s.File] = true
		if len(s.Want) == 0 || s.About == "" {
			t.Errorf("%s: no expectation or description", s.Command)
		}
	}
	files, err := fs.Glob(examples.Gateway(), "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(d.Dir(), f))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("\nspec:\n  parentRefs:\n")) != shown[f] {
			t.Errorf("%s: shown in the tour: %v", f, shown[f])
		}
	}
	if len(files) != 4 || len(start(t).Tour(Addresses{})) != len(Tour("", Addresses{})) {
		t.Errorf("files %v", files)
	}
}
