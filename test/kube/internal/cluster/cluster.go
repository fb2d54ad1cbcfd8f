// Package cluster runs what a router needs of a cluster, for real: etcd and
// kube-apiserver, with the Route API as a custom resource. There are no nodes and no
// controllers: tests write Services and EndpointSlices themselves, and namespaces are
// never removed.
package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"turnout/test/cluster/pki"
	"turnout/test/cluster/process"
)

const (
	etcdURL     = "http://10.0.0.2:2379"
	etcdPeerURL = "http://10.0.0.2:2380"
	adminToken  = "admin-of-the-tests"
)

// Where the API server listens.
const (
	APIAddress = "10.0.0.3"
	APIPort    = "6443"
)

// Config is what Start needs.
type Config struct {
	Dir       string // for data; memory is best
	Logs      string // for logs that outlive the run
	APIServer string // path of kube-apiserver
	CRD       string // path of the Route CustomResourceDefinition
}

// Cluster is etcd and an API server.
type Cluster struct {
	Admin *rest.Config // may do everything, without a limit of its own
	Etcd  *process.Process
	CA    *pki.CA // of the API server

	cfg  Config
	api  *process.Process
	http *http.Client
}

// Start starts both, and waits until routes can be made.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	c := &Cluster{cfg: cfg}
	if err := c.writeFiles(); err != nil {
		return nil, err
	}
	c.Admin = &rest.Config{
		Host: "https://" + APIAddress + ":" + APIPort, BearerToken: adminToken, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte(c.CA.Cert)},
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(c.CA.Cert))
	c.http = &http.Client{Timeout: time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true,
	}}
	if err := c.startEtcd(); err != nil {
		return nil, err
	}
	if err := c.StartAPI(ctx); err != nil {
		return nil, err
	}
	return c, c.installRoutes(ctx)
}

func (c *Cluster) path(name string) string { return filepath.Join(c.cfg.Dir, name) }

// writeFiles writes what the API server reads.
func (c *Cluster) writeFiles() error {
	var err error
	if c.CA, err = pki.NewCA("test cluster"); err != nil {
		return err
	}
	serving, err := c.CA.Issue(APIAddress, "kubernetes.default.svc", "10.96.0.1")
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"api.crt": serving.Cert, "api.key": serving.Key,
		"sa.crt": serving.Cert, "sa.key": serving.Key,
		"tokens.csv": adminToken + `,admin,admin,"system:masters"` + "\n",
		"audit.yaml": auditPolicy,
	} {
		if err := os.WriteFile(c.path(name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("cannot write a file of the API server: %w", err)
		}
	}
	return nil
}

func (c *Cluster) startEtcd() error {
	log, err := c.log("etcd.log")
	if err != nil {
		return err
	}
	c.Etcd, err = process.Start(process.Spec{
		Path: "etcd", Output: log, Env: []string{"PATH=" + os.Getenv("PATH")},
		Args: []string{
			"--data-dir", c.path("etcd"), "--listen-client-urls", etcdURL, "--advertise-client-urls", etcdURL,
			"--listen-peer-urls", etcdPeerURL, "--initial-advertise-peer-urls", etcdPeerURL,
			"--initial-cluster", "default=" + etcdPeerURL,
		},
	})
	return err
}

// StartAPI starts the API server, which must not be running, and waits until it serves.
func (c *Cluster) StartAPI(ctx context.Context) error {
	log, err := c.log("kube-apiserver.log")
	if err != nil {
		return err
	}
	c.api, err = process.Start(process.Spec{
		Path: c.cfg.APIServer, Output: log, Env: []string{"PATH=" + os.Getenv("PATH")},
		Args: []string{
			"--etcd-servers=" + etcdURL, "--bind-address=" + APIAddress, "--advertise-address=" + APIAddress, "--secure-port=" + APIPort,
			"--tls-cert-file=" + c.path("api.crt"), "--tls-private-key-file=" + c.path("api.key"),
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + c.path("sa.crt"), "--service-account-signing-key-file=" + c.path("sa.key"),
			"--authorization-mode=RBAC", "--token-auth-file=" + c.path("tokens.csv"), "--service-cluster-ip-range=10.96.0.0/16",
			"--audit-policy-file=" + c.path("audit.yaml"), "--audit-log-path=" + c.auditLog(), "--audit-log-mode=blocking",
		},
	})
	if err != nil {
		return err
	}
	return c.waitAPI(ctx)
}

// waitAPI waits until the API server says that it is ready.
func (c *Cluster) waitAPI(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		resp, err := c.http.Get("https://" + APIAddress + ":" + APIPort + "/readyz")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("it answers %s", resp.Status)
		}
		select {
		case <-tick.C:
		case <-c.api.Done():
			return fmt.Errorf("kube-apiserver ended: %w; see %s", c.api.Err(), filepath.Join(c.cfg.Logs, "kube-apiserver.log"))
		case <-ctx.Done():
			return fmt.Errorf("kube-apiserver is not ready: %w; see %s", err, filepath.Join(c.cfg.Logs, "kube-apiserver.log"))
		}
	}
}

// KillAPI ends the API server at once.
func (c *Cluster) KillAPI() error { return c.api.Kill() }

// PauseAPI makes the API server silent; connections to it stay open.
func (c *Cluster) PauseAPI() error { return c.api.Pause() }

// ResumeAPI ends what PauseAPI began, and waits until the API server serves.
func (c *Cluster) ResumeAPI(ctx context.Context) error {
	if err := c.api.Resume(); err != nil {
		return err
	}
	return c.waitAPI(ctx)
}

// log opens a log, which each run of the tests begins anew.
func (c *Cluster) log(name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(c.cfg.Logs, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot write a log: %w", err)
	}
	return f, nil
}
