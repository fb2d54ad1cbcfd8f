package kubelet

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"turnout/test/cluster/pki"
)

// role says, in the environment, which server this test program is in a container.
const role = "KUBELET_TEST_ROLE"

// serveAs is that server. It returns when it cannot serve.
func serveAs(name string) error {
	listener, err := net.Listen("tcp", ":9000")
	if err != nil {
		return err
	}
	switch name {
	case "grpc":
		service := health.NewServer()
		service.SetServingStatus("good", grpc_health_v1.HealthCheckResponse_SERVING)
		service.SetServingStatus("bad", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
		server := grpc.NewServer()
		grpc_health_v1.RegisterHealthServer(server, service)
		return server.Serve(listener)
	case "https":
		ca, err := pki.NewCA("a pod's own")
		if err != nil {
			return err
		}
		cert, err := tls.X509KeyPair([]byte(ca.Cert), []byte(ca.Key))
		if err != nil {
			return err
		}
		server := &http.Server{TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/healthz" {
				http.NotFound(w, r)
			}
		})}
		return server.ServeTLS(listener, "", "")
	}
	return fmt.Errorf("there is no role %q", name)
}

// addSelf makes this program the image "self".
func (r *rig) addSelf() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	return r.store.AddProgram("self", program, &ocispec.ImageConfig{})
}

// self is a container with this program in a role.
func self(as string) v1.Container {
	return v1.Container{Name: "main", Image: "self", Env: []v1.EnvVar{{Name: role, Value: as}}}
}

func TestProbeOverGRPC(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	probed := func(name, service string) {
		c := self("grpc")
		c.ReadinessProbe = &v1.Probe{PeriodSeconds: 1, ProbeHandler: v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: 9000, Service: &service}}}
		create(t, ns, name, v1.PodSpec{Containers: []v1.Container{c}})
	}
	probed("good", "good")
	probed("bad", "bad")
	eventually(t, ns, "good", "ready", ready)
	wantEvent(t, ns, "Unhealthy", "Readiness probe failed: service is NOT_SERVING")
	if p := eventually(t, ns, "bad", "running", phase(v1.PodRunning)); ready(p) {
		t.Error("the pod that does not serve is ready")
	}
}

func TestProbeOverHTTPS(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	probed := func(name, path string) {
		c := self("https")
		c.ReadinessProbe = &v1.Probe{PeriodSeconds: 1, ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Scheme: v1.URISchemeHTTPS, Path: path, Port: intstr.FromInt32(9000)}}}
		create(t, ns, name, v1.PodSpec{Containers: []v1.Container{c}})
	}
	probed("good", "/healthz")
	probed("bad", "/nothing")
	eventually(t, ns, "good", "ready", ready)
	wantEvent(t, ns, "Unhealthy", "HTTP probe failed with statuscode: 404")
}
