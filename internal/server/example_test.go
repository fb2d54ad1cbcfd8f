package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"turnout/balancer"
	"turnout/internal/server"
	"turnout/internal/testkit/testaddr"
	"turnout/routing"
)

// A router with one route, before a backend.
func Example() {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello from %s", r.Host)
	}))
	defer backend.Close()

	router, err := server.New(server.Config{HTTPAddr: "127.0.0.1:0", Loops: 1})
	if err != nil {
		panic(err)
	}
	if err := router.Listen(); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- router.Run(ctx) }()

	table, rejected := routing.Compile(routing.Options{Registry: router.Registry()}, router.Store().Load(), []routing.RouteSpec{{
		RouteKey: routing.RouteKey{Namespace: "shop", Name: "front", UID: "1"}, Host: "shop.example.com",
		Policy:  routing.Policy{ServerTimeout: 30 * time.Second, TunnelTimeout: time.Hour, ConnectTimeout: 5 * time.Second},
		Targets: []balancer.Target{{ID: "backend", Addr: testaddr.Parse(backend.Listener.Addr().String()), Weight: 1}},
	}})
	if len(rejected) > 0 {
		panic(rejected)
	}
	router.Store().Publish(table)

	request, err := http.NewRequest(http.MethodGet, "http://"+router.HTTP().String()+"/", http.NoBody)
	if err != nil {
		panic(err)
	}
	request.Host, request.Close = "shop.example.com", true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.Status, string(page))
	answer.Body.Close()

	stop()
	fmt.Println("ended:", <-ended)
	// Output:
	// 200 OK hello from shop.example.com
	// ended: <nil>
}
