package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestMeasure(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	l, err := measure(t.Context(), server.URL, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if l.p50 <= 0 || l.p50 > l.p99 || l.p99 > l.max || asked.Load() == 0 {
		t.Errorf("%+v after %d requests", l, asked.Load())
	}
}

func TestMeasureFails(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	if _, err := measure(t.Context(), server.URL, time.Second); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("an answer that is none was measured: %v", err)
	}
}

func TestLargeAnswer(t *testing.T) {
	w := httptest.NewRecorder()
	newHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/large", nil))
	if w.Body.Len() != largeBody {
		t.Errorf("%d bytes", w.Body.Len())
	}
}
