package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"turnout/test/cluster/internal/images"
	"turnout/test/cluster/internal/network"
	"turnout/test/cluster/pki"
	"turnout/test/cluster/process"
	"turnout/test/cluster/sandbox"
)

// rig is an API server and one node, which all tests share. Each test has a namespace.
type rig struct {
	admin  *rest.Config
	client kubernetes.Interface
	fabric *network.Fabric
	node   *Kubelet
	ca     *pki.CA
	dir    string
	store  *images.Store
}

var shared rig

const (
	apiAddress = "10.0.0.3"
	nodeName   = "one"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(role); name != "" {
		fmt.Fprintln(os.Stderr, serveAs(name))
		os.Exit(1)
	}
	os.Exit(sandbox.Run(sandbox.Config{Dir: filepath.Join("..", "..", "bin", "run-kubelet")}, func(dir string) int {
		// Pods wait more than they work.
		if err := errors.Join(flag.Set("test.parallel", "12"), shared.start(dir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}))
}

func (r *rig) start(dir string) error {
	r.dir = dir
	ctx := context.Background()
	var err error
	if r.fabric, err = network.NewFabric(context.Background()); err != nil {
		return err
	}
	if err := network.AddLocal(netip.MustParseAddr(apiAddress)); err != nil {
		return err
	}
	if err := r.startAPI(ctx); err != nil {
		return err
	}
	r.store = images.New(filepath.Join(dir, "images"))
	if err := errors.Join(r.store.AddMachine("client"), r.addSelf()); err != nil {
		return err
	}
	r.node, err = r.startNode(ctx, nodeName)
	return err
}

// startNode makes a node and runs its pods.
func (r *rig) startNode(ctx context.Context, name string) (*Kubelet, error) {
	n, err := r.fabric.Node(name)
	if err != nil {
		return nil, err
	}
	address := n.HostNetwork().IPs[0].String()
	pair, err := r.ca.Issue(address)
	if err != nil {
		return nil, err
	}
	serving, err := tls.X509KeyPair([]byte(pair.Cert), []byte(pair.Key))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(r.ca.Cert))
	k, err := New(Config{
		Node: name, Admin: r.admin, Network: n, Dir: filepath.Join(r.dir, "node-"+name), Cgroup: sandbox.Cgroup(),
		Images: r.store, Serving: serving, ClientCA: roots, DNS: []netip.Addr{netip.MustParseAddr("10.96.0.10")},
	})
	if err != nil {
		return nil, err
	}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: address}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = Port
	if _, err := r.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	go func() {
		if err := k.Run(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "kubelet:", err)
		}
	}()
	return k, nil
}

func (r *rig) startAPI(ctx context.Context) error {
	var err error
	if r.ca, err = pki.NewCA("kubelet test"); err != nil {
		return err
	}
	serving, err := r.ca.Issue(apiAddress)
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"api.crt": serving.Cert, "api.key": serving.Key, "ca.crt": r.ca.Cert, "ca.key": r.ca.Key, "tokens.csv": "admin,admin,admin,\"system:masters\"\n",
	} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	log, err := os.Create(filepath.Join(r.dir, "..", "kubelet-api.log"))
	if err != nil {
		return err
	}
	run := func(path string, args ...string) error {
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "DIR", r.dir)
		}
		_, err := process.Start(process.Spec{Path: path, Args: args, Output: log, Env: []string{"PATH=" + os.Getenv("PATH")}})
		return err
	}
	if err := errors.Join(
		run("etcd", "--data-dir=DIR/etcd", "--unsafe-no-fsync", "--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379", "--listen-peer-urls=http://127.0.0.1:2380"),
		run(filepath.Join("..", "..", "bin", "kube-apiserver"), "--etcd-servers=http://127.0.0.1:2379", "--bind-address="+apiAddress, "--advertise-address="+apiAddress,
			"--tls-cert-file=DIR/api.crt", "--tls-private-key-file=DIR/api.key", "--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=DIR/api.crt", "--service-account-signing-key-file=DIR/api.key", "--authorization-mode=RBAC", "--allow-privileged",
			"--token-auth-file=DIR/tokens.csv", "--service-cluster-ip-range=10.96.0.0/16", "--kubelet-preferred-address-types=InternalIP",
			"--kubelet-certificate-authority=DIR/ca.crt", "--kubelet-client-certificate=DIR/ca.crt", "--kubelet-client-key=DIR/ca.key"),
	); err != nil {
		return err
	}
	r.admin = &rest.Config{Host: "https://" + apiAddress + ":6443", BearerToken: "admin", QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(r.ca.Cert)}}
	if r.client, err = kubernetes.NewForConfig(r.admin); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		var status int
		r.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&status)
		if status == http.StatusOK {
			return nil
		}
		if !pause(ctx, 50*time.Millisecond) {
			return errors.New("the API server is not ready; see bin/kubelet-api.log")
		}
	}
}

// namespace makes a namespace with what controllers would put into it.
func (r *rig) namespace(t *testing.T) string {
	t.Helper()
	ctx := t.Context()
	ns, err := r.client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = r.client.CoreV1().ServiceAccounts(ns.Name).Create(ctx, &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = r.client.CoreV1().ConfigMaps(ns.Name).Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt"}, Data: map[string]string{"ca.crt": r.ca.Cert}}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		err := r.client.CoreV1().Pods(ns.Name).DeleteCollection(context.Background(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	return ns.Name
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// create makes a pod on the node.
func create(t *testing.T, ns, name string, spec v1.PodSpec) *v1.Pod {
	t.Helper()
	if spec.NodeName == "" {
		spec.NodeName = nodeName
	}
	if spec.TerminationGracePeriodSeconds == nil {
		spec.TerminationGracePeriodSeconds = new(int64(5))
	}
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if list[i].Image == "" {
				list[i].Image = "client"
			}
			if list[i].Name == "" {
				list[i].Name = "main"
			}
		}
	}
	pod, err := shared.client.CoreV1().Pods(ns).Create(t.Context(), &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Spec: spec}, metav1.CreateOptions{})
	must(t, err)
	return pod
}

// sh is a container that runs a script.
func sh(script string) v1.Container {
	return v1.Container{Command: []string{"/bin/sh", "-c", script}}
}

// patience is how long a state may take on a machine with more to do.
const patience = 40 * time.Second

// eventually waits for a state of the pod.
func eventually(t *testing.T, ns, name, what string, reached func(*v1.Pod) bool) *v1.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var last *v1.Pod
	for {
		w, err := shared.client.CoreV1().Pods(ns).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			t.Fatalf("pod %s is not %s: %v; last: %+v", name, what, err, last)
		}
		for e := range w.ResultChan() {
			if pod, ok := e.Object.(*v1.Pod); ok {
				if last = pod; reached(pod) {
					w.Stop()
					return pod
				}
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("pod %s is not %s: %+v", name, what, last.Status)
		}
	}
}

func ready(p *v1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

func phase(want v1.PodPhase) func(*v1.Pod) bool {
	return func(p *v1.Pod) bool { return p.Status.Phase == want }
}

// logs returns the output of a container.
func logs(t *testing.T, ns, name string, o v1.PodLogOptions) string {
	t.Helper()
	text, err := shared.client.CoreV1().Pods(ns).GetLogs(name, &o).DoRaw(t.Context())
	must(t, err)
	return string(text)
}
