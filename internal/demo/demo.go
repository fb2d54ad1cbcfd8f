// Package demo is what the demo command serves and prints: the example manifests
// written to a folder, two small backends in this process for every service in
// them, EndpointSlices that name the backends' real ports, and a tour of commands
// with the answers they should give.
package demo

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"
)

// podsPerService is how many backends stand for each service.
const podsPerService = 2

// Config is what a Demo needs.
type Config struct {
	Manifests fs.FS  // *.yaml files in the root folder
	Dir       string // existing folder that receives the manifests
	// Gateway are more manifests, for GatewayAPI. Their Gateways get other ports where theirs are taken, or, with AnyPort, in any case.
	Gateway             fs.FS
	GatewayAPI, AnyPort bool
}

// Demo is the running backends. Close ends them.
type Demo struct {
	dir   string
	pods  []*pod
	ports map[int]int    // of listeners of Gateways, by those of the examples
	held  []net.Listener // at these ports, while pods get theirs
}

// object is the little of a manifest that the demo reads.
type object struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		Ports []struct{ Name string }
	}
	StringData map[string]string
}

// Start writes the manifests to cfg.Dir, starts the backends on loopback ports of
// the system's choice, and writes endpointslices.yaml and ca.crt beside them. A
// service whose first port is called https gets backends that speak TLS with the
// certificate of the secret pod-certificate.
func Start(cfg Config) (*Demo, error) {
	d := &Demo{dir: cfg.Dir, ports: make(map[int]int)}
	defer d.release()
	services, certificate, err := d.copyManifests(cfg.Manifests, cfg.AnyPort)
	if err != nil {
		return nil, err
	}
	if cfg.GatewayAPI {
		more, _, err := d.copyManifests(cfg.Gateway, cfg.AnyPort)
		if err != nil {
			return nil, err
		}
		services = append(services, more...)
	}
	var slices bytes.Buffer
	slices.WriteString("# Where the demo's pods listen in this run.\n")
	for _, s := range services {
		for i := 1; i <= podsPerService; i++ {
			p, err := startPod(fmt.Sprintf("%s-%d", s.Metadata.Name, i), s.Metadata.Name, tlsFor(s, certificate))
			if err != nil {
				return nil, errors.Join(err, d.Close())
			}
			d.pods = append(d.pods, p)
			writeSlice(&slices, s, p)
		}
	}
	if err := os.WriteFile(filepath.Join(cfg.Dir, "endpointslices.yaml"), slices.Bytes(), 0o644); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot write endpoint slices: %w", err), d.Close())
	}
	return d, nil
}

// Dir is the folder of the manifests in use; changes to it are served at once.
func (d *Demo) Dir() string { return d.dir }

// Pods is the number of backends.
func (d *Demo) Pods() int { return len(d.pods) }

// Close ends all backends. Connections that are still busy after a second are
// left to the end of the process.
func (d *Demo) Close() error {
	all := make([]error, len(d.pods))
	var ends sync.WaitGroup
	for i, p := range d.pods {
		ends.Go(func() { all[i] = p.close() })
	}
	ends.Wait()
	return errors.Join(all...)
}

// copyManifests copies the files and returns their services and the certificate
// of the pods, nil when the secret is not among them.
func (d *Demo) copyManifests(from fs.FS, anyPort bool) (services []object, certificate *tls.Certificate, err error) {
	names, err := fs.Glob(from, "*.yaml")
	if err != nil {
		return nil, nil, fmt.Errorf("cannot list example manifests: %w", err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(from, name)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot read example: %w", err)
		}
		if strings.Contains(string(text), "\nkind: Gateway\n") {
			changed, err := d.free(string(text), anyPort)
			if err != nil {
				return nil, nil, err
			}
			text = []byte(changed)
		}
		if err := os.WriteFile(filepath.Join(d.dir, name), text, 0o644); err != nil {
			return nil, nil, fmt.Errorf("cannot write example: %w", err)
		}
		for doc := range strings.SplitSeq(string(text), "\n---\n") {
			var o object
			if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
				return nil, nil, fmt.Errorf("cannot read example %s: %w", name, err)
			}
			switch {
			case o.Kind == "Service":
				services = append(services, o)
			case o.Kind == "Secret" && o.Metadata.Name == "pod-certificate":
				pair, err := tls.X509KeyPair([]byte(o.StringData["tls.crt"]), []byte(o.StringData["tls.key"]))
				if err != nil {
					return nil, nil, fmt.Errorf("cannot use certificate of the pods in %s: %w", name, err)
				}
				certificate = &pair
				if err := os.WriteFile(caFile(d.dir), []byte(o.StringData["ca.crt"]), 0o644); err != nil {
					return nil, nil, fmt.Errorf("cannot write authority of the pods: %w", err)
				}
			}
		}
	}
	return services, certificate, nil
}

// caFile is the authority that signed the pods' certificate.
func caFile(dir string) string { return filepath.Join(dir, "ca.crt") }

// cookieFile is where a tour step keeps curl's cookies.
func cookieFile(dir string) string { return filepath.Join(dir, "cookies.txt") }

// tlsFor is nil for a service whose pods speak plain HTTP.
func tlsFor(s object, certificate *tls.Certificate) *tls.Certificate {
	if len(s.Spec.Ports) > 0 && s.Spec.Ports[0].Name == "https" {
		return certificate
	}
	return nil
}

// writeSlice appends the EndpointSlice of one pod. Each pod has its own because
// all share an address and differ in the port.
func writeSlice(b *bytes.Buffer, s object, p *pod) {
	port := "http"
	if len(s.Spec.Ports) > 0 {
		port = s.Spec.Ports[0].Name
	}
	addr := p.addr()
	fmt.Fprintf(b, `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: %[1]s
  namespace: %[2]s
  labels:
    kubernetes.io/service-name: %[3]s
addressType: IPv4
ports:
- name: %[4]s
  protocol: TCP
  port: %[5]d
endpoints:
- addresses: [%[6]q]
  conditions:
    ready: true
  targetRef:
    kind: Pod
    name: %[1]s
    namespace: %[2]s
`, p.name, s.Metadata.Namespace, s.Metadata.Name, port, addr.Port(), addr.Addr().String())
}
