// Command checks measures what the health checks of many endpoints cost a router that does nothing else: the processor time
// of a minute with checks less that of a minute without, the descriptors, and how evenly the checks come; first of checks that
// connect, then of those that ask, both without TLS, and last of those that do over TLS. It fails if they cost more than the share of a core that docs/reliability.md promises.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"turnout/bench/site"
)

// options are the flags of the command.
type options struct {
	program   string
	endpoints int
	interval  time.Duration
	seconds   int
	bound     float64 // percent of a core
	asking    float64 // the same, of checks that ask
	secure    float64 // the same, of checks that ask over TLS
}

func main() {
	os.Exit(site.Main("checks", func(ctx context.Context) (bool, error) { return true, run(ctx, os.Args[1:], os.Stdout) }))
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("checks", flag.ContinueOnError)
	flags.StringVar(&o.program, "turnout", "bin/turnout", "the router's program")
	flags.IntVar(&o.endpoints, "endpoints", 20_000, "how many endpoints are checked")
	flags.DurationVar(&o.interval, "interval", 5*time.Second, "of the checks of an endpoint")
	flags.IntVar(&o.seconds, "seconds", 60, "how long each of the four measurements is")
	flags.Float64Var(&o.bound, "bound", 7, "percent of a core that checks may cost")
	flags.Float64Var(&o.asking, "asking", 9, "percent of a core that checks may cost that ask")
	flags.Float64Var(&o.secure, "secure", 40, "percent of a core that checks may cost that ask over TLS")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("cannot read flags: %w", err)
	}
	plain, err := listen(nil)
	if err != nil {
		return err
	}
	defer plain.Close()
	made, err := site.NewKeyPair("pod.test", false)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair([]byte(made.Certificate), []byte(made.Key))
	if err != nil {
		return fmt.Errorf("cannot use a certificate: %w", err)
	}
	secure, err := listen(&tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		return err
	}
	defer secure.Close()
	port := plain.Addr().(*net.TCPAddr).Port
	asks := ", annotations: {turnout.router/health-check-path: /healthz}"
	without, err := o.measure(ctx, sites(o.endpoints, port, "", ""), 24*time.Hour, out)
	if err != nil {
		return err
	}
	for _, kind := range []struct {
		name  string
		sites string
		bound float64
	}{
		{"connect", sites(o.endpoints, port, "", ""), o.bound},
		{"ask", sites(o.endpoints, port, asks, ""), o.asking},
		{"ask over TLS", sites(o.endpoints, secure.Addr().(*net.TCPAddr).Port, asks, fmt.Sprintf(", tls: {termination: reencrypt, destinationCACertificate: %q}", made.Certificate)), o.secure},
	} {
		with, err := o.measure(ctx, kind.sites, o.interval, out)
		if err != nil {
			return err
		}
		cost := with.cpu - without.cpu
		share := 100 * cost.Seconds() / float64(o.seconds)
		fmt.Fprintf(out, "checks that %s, of %d endpoints every %v: %.2f s of processor time in %d s, %.1f %% of a core; %.1f µs for each of %.0f checks\n",
			kind.name, o.endpoints, o.interval, cost.Seconds(), o.seconds, share, cost.Seconds()*1e6/max(with.checks, 1), with.checks)
		fmt.Fprintf(out, "from %.0f to %.0f checks in a second; %d descriptors more than without, at most\n", with.least, with.most, with.descriptors-without.descriptors)
		switch {
		case with.failed > 0:
			return fmt.Errorf("%.0f of the checks failed", with.failed)
		case share > kind.bound:
			return fmt.Errorf("checks that %s cost %.1f %% of a core, more than %.1f", kind.name, share, kind.bound)
		}
	}
	return nil
}

// listen has all addresses of loopback accept connections, over TLS unless cfg is nil. Who asks is answered.
func listen(cfg *tls.Config) (net.Listener, error) {
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if cfg != nil {
				c = tls.Server(c, cfg)
			}
			go answer(c)
		}
	}()
	return l, nil
}

// answer is a pod.
func answer(c net.Conn) {
	defer c.Close()
	if n, err := c.Read(make([]byte, 1024)); n == 0 || err != nil {
		return // nothing was asked
	}
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
}

// perService is how many endpoints a service has.
const perService = 100

// sites are routes to services of perService endpoints each, n in all. The texts stand at the ends of the routes' metadata and spec.
func sites(n, port int, metadata, spec string) string {
	var b strings.Builder
	for first := 0; first < n; first += perService {
		name := fmt.Sprintf("app-%d", first/perService)
		fmt.Fprintf(&b, "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: %s%s}\nspec: {host: %s.test, to: {kind: Service, name: %s}%s}\n---\n", name, metadata, name, name, spec)
		fmt.Fprintf(&b, "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: %s-1, labels: {kubernetes.io/service-name: %s}}\naddressType: IPv4\n", name, name)
		fmt.Fprintf(&b, "ports: [{name: http, port: %d, protocol: TCP}]\nendpoints:\n", port)
		for i := first; i < min(first+perService, n); i++ {
			fmt.Fprintf(&b, "- {addresses: [127.%d.%d.%d], conditions: {ready: true}}\n", 1+i/62500, i/250%250, 1+i%250)
		}
		b.WriteString("---\n")
	}
	return b.String()
}

// figures are what a measurement found.
type figures struct {
	cpu         time.Duration
	checks      float64
	failed      float64
	least, most float64 // in a second
	descriptors int     // most at a time
}

// measure runs a router whose endpoints are checked every interval.
func (o *options) measure(ctx context.Context, manifests string, interval time.Duration, out io.Writer) (f figures, err error) {
	router, err := site.Start(ctx, site.Config{
		Program: o.program, Manifests: manifests,
		Env: []string{"ROUTER_BACKEND_CHECK_INTERVAL=" + fmt.Sprint(interval.Milliseconds()) + "ms"},
	})
	if err != nil {
		return f, fmt.Errorf("cannot start a router: %w", err)
	}
	defer router.Stop()
	settle := 5 * time.Second // after reading the manifests
	if interval < time.Hour {
		settle = 10 * interval // until every endpoint was checked
	}
	if err := pause(ctx, settle); err != nil {
		return f, err
	}
	began, before, err := o.state(ctx, router)
	if err != nil {
		return f, err
	}
	last := before
	for second := range o.seconds {
		if err := o.second(ctx, router, &f); err != nil {
			return f, err
		}
		now, err := router.Metric(ctx, "turnout_health_checks_total")
		if err != nil {
			return f, fmt.Errorf("cannot count checks: %w", err)
		}
		if n := now - last; second == 0 || n < f.least {
			f.least = n
		}
		f.most = max(f.most, now-last)
		last = now
	}
	ended, checks, err := o.state(ctx, router)
	if err != nil {
		return f, err
	}
	samples, err := router.Samples(ctx)
	if err != nil {
		return f, fmt.Errorf("cannot count checks: %w", err)
	}
	f.failed = samples[`turnout_health_checks_total{outcome="failed"}`]
	f.cpu, f.checks = ended-began, checks-before
	fmt.Fprintf(out, "%d endpoints, checked every %v: %.2f s of processor time in %d s\n", o.endpoints, interval, f.cpu.Seconds(), o.seconds)
	return f, nil
}

// state is the processor time that the router has used, and the checks that it has made.
func (o *options) state(ctx context.Context, router *site.Router) (time.Duration, float64, error) {
	checks, err := router.Metric(ctx, "turnout_health_checks_total")
	if err != nil {
		return 0, 0, fmt.Errorf("cannot count checks: %w", err)
	}
	cpu, err := router.CPU()
	if err != nil {
		return 0, 0, fmt.Errorf("cannot measure: %w", err)
	}
	return cpu, checks, nil
}

// looks is how often descriptors are counted in a second.
const looks = 10

func (o *options) second(ctx context.Context, router *site.Router, f *figures) error {
	for range looks {
		if err := pause(ctx, time.Second/looks); err != nil {
			return err
		}
		n, err := router.Descriptors()
		if err != nil {
			return fmt.Errorf("cannot measure: %w", err)
		}
		f.descriptors = max(f.descriptors, n)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("interrupted: %w", ctx.Err())
	case <-timer.C:
		return nil
	}
}
