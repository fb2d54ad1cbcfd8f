package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// serve answers on port 8080 without TLS (HTTP/1.1, and HTTP/2 with prior knowledge), and
// with -tls on port 8443 with it. The body of an answer is what arrived: over HTTP/1.1
// without TLS the head to the byte, else its fields. The query changes the answer:
//
//	status=503       another status
//	delay=2s         wait before the answer
//	size=100000      so many letters instead of the echo
//	text=hello       this instead of the echo
//	field=Name:Value one more field; may be repeated
//	close=before     close the connection instead of answering
//	close=after      close it after the answer
//	upgrade=echo     101, then every byte comes back
//
// Each answer says who gave it in x-pod-name, and in x-proto by which protocol it was asked.
// /healthz is always answered 200.
func serve(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	dir := flags.String("tls", "", "folder with tls.crt and tls.key: answer on port 8443 too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler: http.HandlerFunc(answer), Protocols: protocols, MaxHeaderBytes: 1 << 20, ReadHeaderTimeout: time.Minute,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, tapKey{}, c)
		},
	}
	ended := make(chan error, 2)
	plain, err := net.Listen("tcp", ":8080")
	if err != nil {
		return err
	}
	go func() { ended <- server.Serve(tapped{plain}) }()
	if *dir != "" {
		secure, err := net.Listen("tcp", ":8443")
		if err != nil {
			return err
		}
		go func() {
			ended <- server.ServeTLS(secure, filepath.Join(*dir, "tls.crt"), filepath.Join(*dir, "tls.key"))
		}()
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return server.Close()
	}
}

// tapKey is the key of the connection in a request's context.
type tapKey struct{}

// tapped accepts connections that keep what they read.
type tapped struct{ net.Listener }

func (l tapped) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &tap{Conn: c}, nil
}

// tap keeps what was read since the last answer. The server reads and answers one request
// after the other, so nothing is read while somebody looks.
type tap struct {
	net.Conn
	read []byte
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.read = append(t.read, p[:n]...)
	return n, err
}

// head is the request head that was read last, and forgets it.
func (t *tap) head() string {
	head, _, _ := strings.Cut(string(t.read), "\r\n\r\n")
	t.read = t.read[:0]
	return head + "\r\n\r\n"
}

func answer(w http.ResponseWriter, r *http.Request) {
	echo := heard(r)
	if r.URL.Path == "/healthz" {
		return
	}
	query := r.URL.Query()
	if err := sleep(r.Context(), query.Get("delay")); err != nil {
		return
	}
	name, _ := os.Hostname()
	if pod, ok := os.LookupEnv("POD_NAME"); ok {
		name = pod
	}
	header := w.Header()
	header.Set("X-Pod-Name", name)
	header.Set("X-Proto", r.Proto)
	header.Set("Content-Type", "text/plain")
	for _, f := range query["field"] {
		name, value, _ := strings.Cut(f, ":")
		if http.CanonicalHeaderKey(name) == "Content-Type" {
			header.Del(name)
		}
		header.Add(name, value)
	}
	switch {
	case query.Get("close") == "before":
		panic(http.ErrAbortHandler)
	case query.Get("close") == "after":
		header.Set("Connection", "close")
	case query.Get("upgrade") != "":
		upgrade(w, r)
		return
	}
	status := http.StatusOK
	if s, err := strconv.Atoi(query.Get("status")); err == nil {
		status = s
	}
	if text := query.Get("text"); text != "" {
		echo = text
	}
	if size, err := strconv.Atoi(query.Get("size")); err == nil {
		echo = strings.Repeat("a", size)
	}
	header.Set("Content-Length", strconv.Itoa(len(echo)))
	w.WriteHeader(status)
	io.WriteString(w, echo)
}

// heard is what arrived of the request.
func heard(r *http.Request) string {
	if t, ok := r.Context().Value(tapKey{}).(*tap); ok {
		if head := t.head(); r.ProtoMajor == 1 {
			return head
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s\r\nhost: %s\r\n", r.Method, r.URL.RequestURI(), r.Proto, r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			fmt.Fprintf(&b, "%s: %s\r\n", strings.ToLower(name), v)
		}
	}
	return b.String() + "\r\n"
}

// sleep waits as long as the client does, at most.
func sleep(ctx context.Context, text string) error {
	if text == "" {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// upgrade switches to a protocol in which every byte comes back.
func upgrade(w http.ResponseWriter, r *http.Request) {
	c, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	defer c.Close()
	fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
	if _, err := io.Copy(c, buffered); err != nil && !errors.Is(err, net.ErrClosed) {
		fmt.Fprintln(os.Stderr, "echo: upgraded connection:", err)
	}
}
