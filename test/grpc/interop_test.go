package grpc

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"turnout/balancer"
	"turnout/internal/testkit"
)

// TestInterop runs every case of the suite that is about calls, not about cloud accounts or client-side balancing, over HTTP/2 without TLS on both
// sides. A case that fails ends the process with its reason: that is how the suite is written.
func TestInterop(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	testgrpc.RegisterTestServiceServer(server, interop.NewTestServer())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	router := testkit.StartRouter(t, 1, nil)
	spec := testkit.Spec("grpc.test", ln.Addr().String())
	spec.Targets[0].Protocol = balancer.H2C
	router.Publish(t, spec)

	conn, err := grpc.NewClient("passthrough:///"+router.Addr.String(), grpc.WithAuthority("grpc.test"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	service := testgrpc.NewTestServiceClient(conn)
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
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			tc.run(ctx)
		})
	}
}
