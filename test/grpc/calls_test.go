package grpc

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"turnout/internal/testkit"
)

// watched is the suite's service that tells how its bidirectional calls end.
type watched struct {
	testgrpc.TestServiceServer
	began chan time.Duration // the deadline that is left, 0 = none
	ended chan error
	fail  chan error // ends the call with an error
}

// UnaryCall says who answers, if asked.
func (w *watched) UnaryCall(ctx context.Context, in *testgrpc.SimpleRequest) (*testgrpc.SimpleResponse, error) {
	out, err := w.TestServiceServer.UnaryCall(ctx, in)
	if err == nil && in.GetFillServerId() {
		out.ServerId = "one"
	}
	return out, err
}

// FullDuplexCall answers nothing and waits for the end of the call.
func (w *watched) FullDuplexCall(stream testgrpc.TestService_FullDuplexCallServer) error {
	left := time.Duration(0)
	if d, ok := stream.Context().Deadline(); ok {
		left = time.Until(d)
	}
	if err := stream.SendHeader(metadata.Pairs("x-began", "yes")); err != nil {
		return err
	}
	w.began <- left
	select {
	case <-stream.Context().Done():
		w.ended <- stream.Context().Err()
		return stream.Context().Err()
	case err := <-w.fail:
		stream.SetTrailer(metadata.Pairs("x-last", "word"))
		return err
	}
}

// serve starts the service in this process and returns a client that reaches it by r, and what ends the server.
func serve(t *testing.T, r road, most int) (*watched, testgrpc.TestServiceClient, *grpc.Server) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cert := newCertificate(t)
	options := []grpc.ServerOption{grpc.MaxRecvMsgSize(most)}
	if r.secureBack {
		options = append(options, grpc.Creds(credentials.NewServerTLSFromCert(&cert.pair)))
	}
	server := grpc.NewServer(options...)
	w := &watched{interop.NewTestServer(), make(chan time.Duration, 1), make(chan error, 1), make(chan error, 1)}
	testgrpc.RegisterTestServiceServer(server, w)
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	router := testkit.StartRouter(t, 1, nil)
	target, dialing := r.open(t, router, ln.Addr().String(), cert.authority)
	dialing = append(dialing, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(most), grpc.MaxCallSendMsgSize(most)))
	return w, testgrpc.NewTestServiceClient(dial(t, target, dialing...)), server
}

// call begins a bidirectional call and returns it when the server has it.
func call(t *testing.T, ctx context.Context, w *watched, client testgrpc.TestServiceClient) (testgrpc.TestService_FullDuplexCallClient, time.Duration) {
	t.Helper()
	stream, err := client.FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if h, err := stream.Header(); err != nil || len(h["x-began"]) != 1 {
		t.Fatalf("header %v, %v", h, err)
	}
	return stream, <-w.began
}

// TestCancellation: a client that gives up, or whose time is over, ends the call at the server; the server knows the
// client's deadline; a server that fails ends it at the client, with its words; and one that dies too.
func TestCancellation(t *testing.T) {
	for _, r := range roads {
		t.Run(r.name, func(t *testing.T) {
			w, client, server := serve(t, r, 1<<20)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stream, left := call(t, ctx, w, client)
			if left != 0 {
				t.Errorf("a deadline of %v out of nothing", left)
			}
			cancel()
			if err := <-w.ended; err != context.Canceled {
				t.Errorf("the server's call ended with %v", err)
			}
			if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
				t.Errorf("the client's call ended with %v", err)
			}

			ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			stream, left = call(t, ctx, w, client)
			if left <= 0 || left > 3*time.Second {
				t.Errorf("the server has %v, the client gave 3 s", left)
			}
			if _, err := stream.Recv(); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("the client's call ended with %v", err)
			}
			<-w.ended

			stream, _ = call(t, t.Context(), w, client)
			w.fail <- status.Error(codes.ResourceExhausted, "no more of\nthat: ☺")
			if _, err := stream.Recv(); status.Code(err) != codes.ResourceExhausted || status.Convert(err).Message() != "no more of\nthat: ☺" {
				t.Errorf("the client's call ended with %v", err)
			}
			if got := stream.Trailer()["x-last"]; len(got) != 1 || got[0] != "word" {
				t.Errorf("trailer %v", stream.Trailer())
			}

			stream, _ = call(t, t.Context(), w, client)
			server.Stop()
			if _, err := stream.Recv(); err == nil || err == io.EOF || status.Code(err) == codes.OK {
				t.Errorf("a call whose server died ended with %v", err)
			}
		})
	}
}

// TestPickFirstUnary is the case of that name with a server that can be recognised by its answers. Of two servers behind the router it
// would see both: requests are balanced one by one, whatever the client does.
func TestPickFirstUnary(t *testing.T) {
	for _, r := range roads {
		t.Run(r.name, func(t *testing.T) {
			_, client, _ := serve(t, r, 1<<20)
			interop.DoPickFirstUnary(t.Context(), client)
		})
	}
}

// TestLargeMessages: 20 MiB each way in one message.
func TestLargeMessages(t *testing.T) {
	const size = 20 << 20
	for _, r := range roads {
		t.Run(r.name, func(t *testing.T) {
			_, client, _ := serve(t, r, size+1<<20)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			resp, err := client.UnaryCall(ctx, &testgrpc.SimpleRequest{ResponseSize: size, Payload: interop.ClientNewPayload(testgrpc.PayloadType_COMPRESSABLE, size)})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(resp.GetPayload().GetBody()); n != size {
				t.Errorf("%d bytes came back", n)
			}
		})
	}
}

// TestMetadata: much of it, repeated names in order, binary values with every byte, and more than a frame's worth.
func TestMetadata(t *testing.T) {
	bytes := make([]byte, 256)
	for i := range bytes {
		bytes[i] = byte(i)
	}
	sent := metadata.MD{"x-grpc-test-echo-initial": {strings.Repeat("i", 20_000)}, "x-grpc-test-echo-trailing-bin": {string(bytes)}}
	for _, r := range roads {
		t.Run(r.name, func(t *testing.T) {
			_, client, _ := serve(t, r, 1<<20)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var header, trailer metadata.MD
			_, err := client.UnaryCall(metadata.NewOutgoingContext(ctx, sent), &testgrpc.SimpleRequest{}, grpc.Header(&header), grpc.Trailer(&trailer))
			if err != nil {
				t.Fatal(err)
			}
			for name, got := range map[string][]string{
				"x-grpc-test-echo-initial": header["x-grpc-test-echo-initial"], "x-grpc-test-echo-trailing-bin": trailer["x-grpc-test-echo-trailing-bin"],
			} {
				if len(got) != 1 || got[0] != sent[name][0] {
					t.Errorf("%s: %d values came back", name, len(got))
				}
			}
		})
	}
}
