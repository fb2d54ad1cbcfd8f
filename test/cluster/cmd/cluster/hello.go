package main

import (
	"fmt"
	"net/http"
	"os"
)

// helloCommand makes this program what pods of the image "hello" run.
const helloCommand = "hello"

// hello answers every request at port 8080 with the name of the pod, who asked and for what.
func hello() error {
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("cannot read the name of the pod: %w", err)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s says hello to %s, who asked for %s%s\n", name, r.RemoteAddr, r.Host, r.URL.RequestURI())
	})
	if err := http.ListenAndServe(":8080", handler); err != nil {
		return fmt.Errorf("cannot serve: %w", err)
	}
	return nil
}
