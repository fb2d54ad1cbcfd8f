// Command cluster starts a cluster to play with, in namespaces of its own, until it is
// interrupted. make cluster builds what it needs; docs/cluster.md says what to do with it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"turnout/test/cluster"
	"turnout/test/cluster/sandbox"
)

// apiVariable tells the process in the sandbox where this machine reaches the API server.
const apiVariable = "TURNOUT_CLUSTER_API"

// apiInside is the API server's address in the sandbox.
const apiInside = "10.0.0.3:6443"

// options are the command line.
type options struct {
	state    string // folder of programs, logs and the kubeconfig
	nodes    int
	api      string
	images   pairs
	router   string // root folder of the router's image; empty: there is none
	forwards pairs
	apply    list
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == helloCommand {
		fail(hello())
	}
	var o options
	flag.StringVar(&o.state, "state", "bin", "folder with kube-apiserver and kube-controller-manager, for logs and the kubeconfig too")
	flag.IntVar(&o.nodes, "nodes", 2, "number of nodes")
	flag.StringVar(&o.api, "api", "127.0.0.1:0", "address of this machine at which the API server is reached")
	flag.Var(&o.images, "image", "NAME=PROGRAM: an image of that name runs this program (repeatable; * stands for any characters)")
	flag.StringVar(&o.router, "router", "", "root folder of the router's image, which has any name that ends with turnout")
	flag.Var(&o.forwards, "forward", "ADDRESS=ADDRESS: an address of this machine leads to one in the cluster (repeatable)")
	flag.Var(&o.apply, "apply", "manifest or folder of manifests to begin with (repeatable)")
	flag.Parse()
	if o.nodes < 1 || o.nodes > 200 {
		fail(fmt.Errorf("-nodes %d: want 1 to 200", o.nodes))
	}
	cfg := sandbox.Config{Dir: filepath.Join(o.state, "run"), Programs: map[string]string{"runc": "runc", "nft": "nftables"}}
	if !sandbox.Inside() {
		fail(o.listen(&cfg))
	}
	os.Exit(sandbox.Run(cfg, func(dir string) int {
		if err := o.run(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}))
}

// listen opens the ports of this machine.
func (o *options) listen(cfg *sandbox.Config) error {
	forwards := append(pairs{{o.api, apiInside}}, o.forwards...)
	for i, f := range forwards {
		listener, err := net.Listen("tcp", f[0])
		if err != nil {
			return fmt.Errorf("cannot listen at %s: %w", f[0], err)
		}
		cfg.Forwards = append(cfg.Forwards, sandbox.Forward{Listener: listener, To: f[1]})
		if i == 0 {
			if err := os.Setenv(apiVariable, listener.Addr().String()); err != nil {
				return fmt.Errorf("cannot pass on the address of the API server: %w", err)
			}
			continue
		}
		fmt.Printf("%v leads to %s\n", listener.Addr(), f[1])
	}
	cfg.Started = func(pid int) {
		fmt.Printf("A shell that is in the cluster's network:  nsenter -t %d -n -m\n", pid)
	}
	return nil
}

// run starts the cluster and waits for the end.
func (o *options) run(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	logs := filepath.Join(o.state, "logs")
	if err := errors.Join(os.RemoveAll(logs), os.MkdirAll(logs, 0o755)); err != nil {
		return fmt.Errorf("cannot make the folder of logs: %w", err)
	}
	cfg := cluster.Config{Dir: dir, Logs: logs, Programs: o.state}
	for i := range o.nodes {
		cfg.Nodes = append(cfg.Nodes, cluster.Node{Name: fmt.Sprintf("node-%d", i+1)})
	}
	c, err := cluster.Start(ctx, cfg)
	if err != nil {
		return err
	}
	if err := o.install(ctx, c); err != nil {
		return errors.Join(err, c.Stop())
	}
	fmt.Printf("Logs are in %s. Ctrl-C ends the cluster.\n", logs)
	<-ctx.Done()
	stop()
	fmt.Println("ending")
	return c.Stop()
}

// install gives the cluster its images and objects and writes the kubeconfig.
func (o *options) install(ctx context.Context, c *cluster.Cluster) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	hello := &ocispec.ImageConfig{Entrypoint: []string{"/" + filepath.Base(self), helloCommand}}
	if err := errors.Join(c.Images.AddProgram("hello", self, hello), c.Images.AddMachine("shell")); err != nil {
		return err
	}
	if o.router != "" {
		// As deploy/Dockerfile has it.
		config := ocispec.ImageConfig{User: "1001", Entrypoint: []string{"/usr/bin/turnout"}}
		if err := c.Images.AddFolder("*turnout", o.router, config); err != nil {
			return err
		}
	}
	for _, image := range o.images {
		if err := c.Images.AddProgram(image[0], image[1], nil); err != nil {
			return err
		}
	}
	for _, path := range o.apply {
		if err := c.Apply(ctx, path); err != nil {
			return err
		}
	}
	path, err := filepath.Abs(filepath.Join(o.state, "kubeconfig"))
	if err != nil {
		return fmt.Errorf("cannot name the kubeconfig: %w", err)
	}
	if err := c.WriteKubeconfig(path, "https://"+os.Getenv(apiVariable), ""); err != nil {
		return err
	}
	fmt.Printf("The cluster is ready:  export KUBECONFIG=%s\n", path)
	return nil
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// pairs is a flag that is given as A=B, several times.
type pairs [][2]string

func (p *pairs) String() string { return "" }

func (p *pairs) Set(s string) error {
	a, b, ok := strings.Cut(s, "=")
	if !ok || a == "" || b == "" {
		return fmt.Errorf("%q: want two words with = between them", s)
	}
	*p = append(*p, [2]string{a, b})
	return nil
}

// list is a flag that is given several times.
type list []string

func (l *list) String() string { return "" }

func (l *list) Set(s string) error {
	*l = append(*l, s)
	return nil
}
