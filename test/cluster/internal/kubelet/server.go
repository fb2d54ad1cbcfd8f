package kubelet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"turnout/test/cluster/internal/runtime"
)

// Port is that of the kubelet's server on the node's address.
const Port = 10250

// serve starts the server that the API server asks for logs and commands. It returns what
// stops it.
func (k *Kubelet) serve() (func(), error) {
	listener, err := k.config.Network.HostNetwork().Listen("tcp", net.JoinHostPort("::", strconv.Itoa(Port)))
	if err != nil {
		return nil, fmt.Errorf("cannot serve the API server: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.serveLogs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", k.serveExec)
	mux.HandleFunc("/portForward/{namespace}/{pod}", k.servePortForward)
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // clients see it
		BaseContext:       func(net.Listener) context.Context { return k.dying },
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{k.config.Serving},
			ClientCAs:    k.config.ClientCA,
			ClientAuth:   tls.RequireAndVerifyClientCert,
			NextProtos:   []string{"http/1.1"}, // commands upgrade their connection
		},
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.ServeTLS(listener, "", "")
	}()
	return func() {
		_ = server.Close()
		<-done
	}, nil
}

// serveLogs answers /containerLogs, with the parameters of v1.PodLogOptions.
func (k *Kubelet) serveLogs(w http.ResponseWriter, r *http.Request) {
	c, err := k.find(r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	previous, _ := strconv.ParseBool(r.FormValue("previous"))
	options, err := logOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	output, err := c.log(previous)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	_ = output.Read(r.Context(), flushing{w}, options) // the client has gone
}

// flushing sends each line at once.
type flushing struct{ http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	if err == nil {
		err = http.NewResponseController(f.ResponseWriter).Flush()
	}
	return n, err
}

// logOptions reads the parameters of a request for logs.
func logOptions(r *http.Request) (runtime.ReadOptions, error) {
	o := runtime.ReadOptions{Tail: -1}
	var errs []error
	read := func(name string, parse func(string) error) {
		if text := r.FormValue(name); text != "" {
			if err := parse(text); err != nil {
				errs = append(errs, fmt.Errorf("%s is %q: %w", name, text, err))
			}
		}
	}
	number := func(to *int64) func(string) error {
		return func(text string) (err error) {
			*to, err = strconv.ParseInt(text, 10, 64)
			return err
		}
	}
	truth := func(to *bool) func(string) error {
		return func(text string) (err error) {
			*to, err = strconv.ParseBool(text)
			return err
		}
	}
	read("follow", truth(&o.Follow))
	read("timestamps", truth(&o.Timestamps))
	read("tailLines", number(&o.Tail))
	read("limitBytes", number(&o.Limit))
	read("sinceTime", func(text string) (err error) {
		o.Since, err = time.Parse(time.RFC3339, text)
		return err
	})
	read("sinceSeconds", func(text string) error {
		seconds, err := strconv.ParseInt(text, 10, 64)
		o.Since = time.Now().Add(-time.Duration(seconds) * time.Second)
		return err
	})
	return o, errors.Join(errs...)
}

// log is the output of the container, or of the one before its last restart.
func (c *container) log(previous bool) (*runtime.Log, error) {
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	switch {
	case previous && c.previous == nil:
		return nil, fmt.Errorf("previous terminated container %q in pod %q not found", c.spec.Name, c.pod.name)
	case previous:
		return c.previous, nil
	case c.logs != nil:
		return c.logs, nil
	}
	reason := ""
	if c.state.Waiting != nil {
		reason = c.state.Waiting.Reason
	}
	return nil, fmt.Errorf("container %q in pod %q is waiting to start: %s", c.spec.Name, c.pod.name, reason)
}

// Times of a connection for commands.
const (
	idleTimeout     = 4 * time.Hour
	creationTimeout = 30 * time.Second
)

func (k *Kubelet) serveExec(w http.ResponseWriter, r *http.Request) {
	c, err := k.find(r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, executor{c}, c.pod.name, string(c.pod.uid), c.spec.Name, r.Form["command"], options,
		idleTimeout, creationTimeout, remotecommand.SupportedStreamingProtocols)
}

// executor runs commands in a container for a client of the API server.
type executor struct{ container *container }

// ExecInContainer runs cmd. Its error has the exit code when the command failed.
func (e executor) ExecInContainer(ctx context.Context, _, _, _ string, cmd []string, in io.Reader, out, err io.WriteCloser,
	tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	e.container.pod.mu.Lock()
	running := e.container.running
	e.container.pod.mu.Unlock()
	if running == nil {
		return fmt.Errorf("container %s is not running", e.container.spec.Name)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	streams := runtime.Streams{Stdin: in, Terminal: tty}
	if out != nil {
		streams.Stdout = out
	}
	if err != nil {
		streams.Stderr = err
	}
	if tty {
		streams.Resize = sizes(ctx, resize)
	}
	failure := running.Exec(ctx, cmd, streams)
	var code *runtime.ExitError
	if errors.As(failure, &code) {
		return utilexec.CodeExitError{Err: code, Code: code.Code}
	}
	return failure
}

// sizes passes sizes of a terminal on until ctx ends.
func sizes(ctx context.Context, in <-chan remotecommand.TerminalSize) <-chan runtime.Size {
	out := make(chan runtime.Size)
	go func() {
		defer close(out)
		for {
			select {
			case size, ok := <-in:
				if !ok {
					return
				}
				select {
				case out <- runtime.Size{Rows: size.Height, Columns: size.Width}:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func (k *Kubelet) servePortForward(w http.ResponseWriter, r *http.Request) {
	c, err := k.find(r.PathValue("namespace"), r.PathValue("pod"), "")
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, forwarder{c.pod}, c.pod.name, string(c.pod.uid), options, idleTimeout, creationTimeout, portforward.SupportedProtocols)
}

// forwarder connects to ports of a pod from inside of it, so that those of its loopback
// interface are reached.
type forwarder struct{ pod *pod }

// PortForward copies between stream and the port until both directions have ended.
func (f forwarder) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	conn, err := f.pod.network.Dial(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer conn.Close()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.Copy(conn, stream)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(stream, conn)
	_ = stream.Close()
	<-sent
	return err
}
