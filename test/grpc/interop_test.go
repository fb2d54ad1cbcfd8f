package grpc

import (
	"bufio"
	"context"
	"crypto/tls"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"turnout/balancer"
	"turnout/internal/testkit"
	"turnout/internal/wire/protocol"
	"turnout/routing"
)

// road is one way through the router.
type road struct {
	name        string
	secureFront bool // the client speaks TLS
	secureBack  bool // the endpoint does, and selects HTTP/2 by ALPN
	termination routing.Termination
}

var roads = []road{
	{"h2c to h2c", false, false, routing.TermNone},
	{"edge to h2c", true, false, routing.TermEdge},
	{"re-encrypt", true, true, routing.TermReencrypt},
	{"h2c to TLS", false, true, routing.TermReencrypt},
}

// open publishes a route to the server at addr, whose certificate ca has signed, and returns how a client gets there.
func (r *road) open(t *testing.T, router *testkit.Router, addr, ca string) (target string, options []grpc.DialOption) {
	t.Helper()
	spec := testkit.Spec("grpc.test", addr)
	spec.Termination, spec.Insecure = r.termination, routing.InsecureAllow
	spec.Targets[0].Protocol = protocol.HTTP2
	if r.secureBack {
		id, err := balancer.NewTLS(balancer.TLSConfig{CA: ca, Verify: true, ServerName: podName, ALPN: []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}})
		if err != nil {
			t.Fatal(err)
		}
		spec.Targets[0].Protocol, spec.Targets[0].TLS = protocol.HTTP1, id
	}
	router.Publish(t, spec)
	front := insecure.NewCredentials()
	target = "passthrough:///" + router.Addr.String()
	if r.secureFront {
		front = credentials.NewTLS(&tls.Config{ServerName: "grpc.test", InsecureSkipVerify: true})
		target = "passthrough:///" + router.SecureAddr.String()
	}
	return target, []grpc.DialOption{grpc.WithAuthority("grpc.test"), grpc.WithTransportCredentials(front)}
}

// dial is a channel to a route that open has made.
func dial(t *testing.T, target string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// suite is the server of the suite as it is published, as processes.
type suite struct{ program string }

func buildSuite(t *testing.T) *suite {
	t.Helper()
	s := &suite{filepath.Join(t.TempDir(), "server")}
	if out, err := exec.Command("go", "build", "-o", s.program, "google.golang.org/grpc/interop/server").CombinedOutput(); err != nil {
		t.Fatalf("cannot build the suite's server: %v\n%s", err, out)
	}
	return s
}

var listening = regexp.MustCompile(`interop server listening on .*:(\d+)`)

// start runs a server, with TLS by the certificate c unless it is nil, and returns its address.
func (s *suite) start(t *testing.T, c *certificate) string {
	t.Helper()
	args := []string{"-port", "0"}
	if c != nil {
		args = append(args, "-use_tls", "-tls_cert_file", c.certFile, "-tls_key_file", c.keyFile)
	}
	cmd := exec.Command(s.program, args...)
	cmd.Env = append(os.Environ(), "GRPC_GO_LOG_SEVERITY_LEVEL=info")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, drained := bufio.NewScanner(out), make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-drained
		_ = cmd.Wait()
	})
	port := make(chan string, 1)
	go func() {
		defer close(drained)
		for lines.Scan() {
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				port <- m[1]
			}
		}
	}()
	select {
	case p := <-port:
		return "127.0.0.1:" + p
	case <-drained:
		t.Fatal("the suite's server does not listen")
	case <-time.After(30 * time.Second):
		t.Fatal("the suite's server does not say where it listens")
	}
	return ""
}

// balanced has the client give the load reports of answers to the case, as the suite's own client does for the orca cases.
const balanced = `{"loadBalancingConfig":[{"test_backend_metrics_load_balancer":{}}]}`

// left says which cases of the suite's client are not run, and why: each needs an account.
//
//	compute_engine_creds, compute_engine_channel_credentials   the metadata server of a Google virtual machine
//	service_account_creds, jwt_token_creds, per_rpc_creds,
//	oauth2_auth_token                                          the key of a Google service account, and Google's server to judge its tokens
//	google_default_credentials                                 credentials of a Google cloud account
//	all with -use_alts                                         the ALTS handshaker of a Google virtual machine
//
// What they would send through the router is an Authorization field, as custom_metadata sends others.

// TestInterop runs every other case of the suite on every road, with the suite's own server, but for pick_first_unary, which
// that server does not know: TestPickFirstUnary. A case that fails ends the process
// with its reason: that is how the suite is written.
func TestInterop(t *testing.T) {
	s := buildSuite(t)
	cert := newCertificate(t)
	for _, r := range roads {
		t.Run(r.name, func(t *testing.T) {
			var own *certificate
			if r.secureBack {
				own = cert
			}
			router := testkit.StartRouter(t, 1, nil)
			target, options := r.open(t, router, s.start(t, own), cert.authority)
			conn := dial(t, target, options...)
			reported := dial(t, target, append(options, grpc.WithDisableServiceConfig(), grpc.WithDefaultServiceConfig(balanced))...)
			service, reporting := testgrpc.NewTestServiceClient(conn), testgrpc.NewTestServiceClient(reported)
			soak := func(ctx context.Context, channel func() (*grpc.ClientConn, func())) {
				interop.DoSoakTest(ctx, interop.SoakTestConfig{
					RequestSize: 271828, ResponseSize: 314159, PerIterationMaxAcceptableLatency: 10 * time.Second, OverallTimeout: time.Minute,
					ServerAddr: target, NumWorkers: 4, Iterations: 40, ChannelForTest: channel,
				})
			}
			for _, tc := range []struct {
				name string
				run  func(context.Context)
			}{
				{"empty_unary", func(ctx context.Context) { interop.DoEmptyUnaryCall(ctx, service) }},
				{"large_unary", func(ctx context.Context) { interop.DoLargeUnaryCall(ctx, service) }},
				{"client_streaming", func(ctx context.Context) { interop.DoClientStreaming(ctx, service) }},
				{"server_streaming", func(ctx context.Context) { interop.DoServerStreaming(ctx, service) }},
				{"ping_pong", func(ctx context.Context) { interop.DoPingPong(ctx, service) }},
				{"empty_stream", func(ctx context.Context) { interop.DoEmptyStream(ctx, service) }},
				{"timeout_on_sleeping_server", func(ctx context.Context) { interop.DoTimeoutOnSleepingServer(ctx, service) }},
				{"cancel_after_begin", func(ctx context.Context) { interop.DoCancelAfterBegin(ctx, service) }},
				{"cancel_after_first_response", func(ctx context.Context) { interop.DoCancelAfterFirstResponse(ctx, service) }},
				{"status_code_and_message", func(ctx context.Context) { interop.DoStatusCodeAndMessage(ctx, service) }},
				{"special_status_message", func(ctx context.Context) { interop.DoSpecialStatusMessage(ctx, service) }},
				{"custom_metadata", func(ctx context.Context) { interop.DoCustomMetadata(ctx, service) }},
				{"unimplemented_method", func(ctx context.Context) { interop.DoUnimplementedMethod(ctx, conn) }},
				{"unimplemented_service", func(ctx context.Context) {
					interop.DoUnimplementedService(ctx, testgrpc.NewUnimplementedServiceClient(conn))
				}},
				{"rpc_soak", func(ctx context.Context) {
					soak(ctx, func() (*grpc.ClientConn, func()) { return conn, func() {} })
				}},
				{"channel_soak", func(ctx context.Context) {
					soak(ctx, func() (*grpc.ClientConn, func()) { return dial(t, target, options...), func() {} })
				}},
				{"orca_per_rpc", func(ctx context.Context) { interop.DoORCAPerRPCTest(ctx, reporting) }},
				{"orca_oob", func(ctx context.Context) { interop.DoORCAOOBTest(ctx, reporting) }},
			} {
				t.Run(tc.name, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					tc.run(ctx)
				})
			}
		})
	}
}
