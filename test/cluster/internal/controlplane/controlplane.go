// Package controlplane runs etcd, kube-apiserver and kube-controller-manager as
// processes, with certificates, permissions and an audit log, as a cluster has them.
package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"turnout/test/cluster/pki"
)

// Where etcd and the API server listen, in the network namespace of the calling process.
var (
	EtcdAddress = netip.MustParseAddr("10.0.0.2")
	APIAddress  = netip.MustParseAddr("10.0.0.3")
)

// APIPort is the port of the API server.
const APIPort = "6443"

// Tokens of users that may do everything. They are two, so that the audit log tells them apart.
const (
	adminToken      = "admin-of-the-tests"
	controllerToken = "controller-manager-of-the-tests"
)

// Config is what New needs.
type Config struct {
	Dir      string   // for data; memory is best
	Logs     string   // for logs
	Programs string   // folder of kube-apiserver and kube-controller-manager
	Services []string // address ranges of Services, IPv4 first
	Pods     []string // address ranges of all pods
	Names    []string // further names and addresses of the API server
	APIArgs  []string // further arguments of kube-apiserver
	// ControllerArgs are further arguments of kube-controller-manager, after its own.
	ControllerArgs []string
}

// ControlPlane is the three programs. They end with the calling process at the latest.
type ControlPlane struct {
	Admin                  *rest.Config // may do everything, without a limit of its own
	CA                     *pki.CA      // signs certificates of servers and of users
	Etcd, API, Controllers *Component

	cfg Config
}

// EtcdURL is where etcd listens for clients.
func EtcdURL() string { return "http://" + EtcdAddress.String() + ":2379" }

// New writes the files that the programs need. It starts none.
func New(cfg Config) (*ControlPlane, error) {
	c := &ControlPlane{cfg: cfg}
	if err := c.writeFiles(); err != nil {
		return nil, err
	}
	c.Admin = &rest.Config{
		Host: "https://" + APIAddress.String() + ":" + APIPort, BearerToken: adminToken, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte(c.CA.Cert)},
	}
	if err := c.Kubeconfig(c.path("controllers.kubeconfig"), c.Admin.Host, controllerToken); err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(c.CA.Cert))
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true,
	}}
	c.Etcd = &Component{name: "etcd", path: "etcd", logs: cfg.Logs, args: c.etcdArgs("http://" + EtcdAddress.String()), ask: ready(client, EtcdURL()+"/health")}
	c.API = &Component{
		name: "kube-apiserver", path: filepath.Join(cfg.Programs, "kube-apiserver"), logs: cfg.Logs,
		args: c.apiArgs(EtcdURL()), ask: ready(client, c.Admin.Host+"/readyz"),
	}
	c.Controllers = &Component{
		name: "kube-controller-manager", path: filepath.Join(cfg.Programs, "kube-controller-manager"), logs: cfg.Logs, args: c.controllerArgs(),
	}
	return c, nil
}

func (c *ControlPlane) path(name string) string { return filepath.Join(c.cfg.Dir, name) }

// writeFiles writes what the API server reads.
func (c *ControlPlane) writeFiles() error {
	var err error
	if c.CA, err = pki.NewCA("test cluster"); err != nil {
		return err
	}
	names := append([]string{
		APIAddress.String(), "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost", "127.0.0.1",
	}, c.cfg.Names...)
	for _, text := range c.cfg.Services {
		// The API server gives the first address of a range to the Service that it is itself.
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("cannot parse an address range of Services: %w", err)
		}
		names = append(names, prefix.Masked().Addr().Next().String())
	}
	serving, err := c.CA.Issue(names...)
	if err != nil {
		return err
	}
	accounts, err := c.CA.Issue("service-accounts")
	if err != nil {
		return err
	}
	kubelet, err := c.CA.IssueClient("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"ca.crt": c.CA.Cert, "api.crt": serving.Cert, "api.key": serving.Key, "sa.crt": accounts.Cert, "sa.key": accounts.Key,
		"kubelet.crt": kubelet.Cert, "kubelet.key": kubelet.Key, "audit.yaml": auditPolicy,
		"tokens.csv": adminToken + `,admin,admin,"system:masters"` + "\n" +
			controllerToken + `,system:kube-controller-manager,controllers,"system:masters"` + "\n",
	} {
		if err := os.WriteFile(c.path(name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("cannot write a file of the API server: %w", err)
		}
	}
	return nil
}

func (c *ControlPlane) etcdArgs(url string) []string {
	return []string{
		"--data-dir", c.path("etcd"), "--listen-client-urls", url + ":2379", "--advertise-client-urls", url + ":2379",
		"--listen-peer-urls", url + ":2380", "--initial-advertise-peer-urls", url + ":2380", "--initial-cluster", "default=" + url + ":2380",
		"--quota-backend-bytes", "8589934592", // 8 GiB, the most that etcd recommends; hundreds of thousands of objects are more than its default of 2
	}
}

func (c *ControlPlane) apiArgs(etcd string) []string {
	return append([]string{
		"--etcd-servers=" + etcd,
		"--bind-address=" + APIAddress.String(), "--advertise-address=" + APIAddress.String(), "--secure-port=" + APIPort,
		"--tls-cert-file=" + c.path("api.crt"), "--tls-private-key-file=" + c.path("api.key"), "--client-ca-file=" + c.path("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.path("sa.crt"), "--service-account-signing-key-file=" + c.path("sa.key"),
		"--authorization-mode=RBAC", "--token-auth-file=" + c.path("tokens.csv"), "--allow-privileged",
		"--service-cluster-ip-range=" + strings.Join(c.cfg.Services, ","),
		"--kubelet-client-certificate=" + c.path("kubelet.crt"), "--kubelet-client-key=" + c.path("kubelet.key"),
		"--kubelet-certificate-authority=" + c.path("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
		"--audit-policy-file=" + c.path("audit.yaml"), "--audit-log-path=" + c.auditLog(), "--audit-log-mode=blocking",
	}, c.cfg.APIArgs...)
}

// controllers are those that tests need. There are no clouds, volumes or certificates to be had.
var controllers = []string{
	"deployment-controller", "replicaset-controller", "daemonset-controller", "statefulset-controller", "job-controller", "cronjob-controller",
	"endpointslice-controller", "endpoints-controller", "endpointslice-mirroring-controller",
	"namespace-controller", "garbage-collector-controller", "clusterrole-aggregation-controller",
	"serviceaccount-controller", "serviceaccount-token-controller", "root-ca-certificate-publisher-controller",
	"disruption-controller", "pod-garbage-collector-controller", "node-lifecycle-controller", "taint-eviction-controller",
}

func (c *ControlPlane) controllerArgs() []string {
	return append([]string{
		"--kubeconfig=" + c.path("controllers.kubeconfig"), "--leader-elect=false", "--secure-port=0",
		"--controllers=" + strings.Join(controllers, ","),
		"--service-account-private-key-file=" + c.path("sa.key"), "--root-ca-file=" + c.path("ca.crt"),
		"--cluster-cidr=" + strings.Join(c.cfg.Pods, ","), "--service-cluster-ip-range=" + strings.Join(c.cfg.Services, ","),
		// Its own limit would make many objects wait for seconds.
		"--kube-api-qps=1000", "--kube-api-burst=2000",
		// A node that is silent is found out in seconds, so that tests of it take no minutes.
		"--node-monitor-period=1s", "--node-monitor-grace-period=8s",
	}, c.cfg.ControllerArgs...)
}

// Kubeconfig writes a configuration that uses a token at a server.
func (c *ControlPlane) Kubeconfig(path, server, token string) error {
	config := api.NewConfig()
	config.Clusters["test"] = &api.Cluster{Server: server, CertificateAuthorityData: []byte(c.CA.Cert)}
	config.AuthInfos["user"] = &api.AuthInfo{Token: token}
	config.Contexts["test"] = &api.Context{Cluster: "test", AuthInfo: "user"}
	config.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("cannot write a kubeconfig: %w", err)
	}
	return nil
}

// ready returns a question for an address that answers 200 when all is well.
func ready(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("cannot ask %s: %w", url, err)
		}
		resp, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("cannot ask %s: %w", url, err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, resp.Status)
		}
		return nil
	}
}
