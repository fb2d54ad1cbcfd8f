package main

import (
	"context"

	"go.uber.org/zap"

	"turnout/internal/tracing"
	"turnout/proxy"
)

// startTracing starts to export, if requests are traced; both results are nil otherwise.
func startTracing(t *tracing.Options, log *zap.Logger) (*tracing.Exporter, *proxy.Tracing, error) {
	return t.Start(version(), func(collector string, err error) {
		if err != nil {
			log.Warn("traces: "+err.Error(), zap.String("collector", collector))
			return
		}
		log.Info("traces are exported again", zap.String("collector", collector))
	})
}

// stopTracing exports what is left, for a moment; e may be nil.
func stopTracing(e *tracing.Exporter, log *zap.Logger) {
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	if err := e.Close(ctx); err != nil {
		log.Warn("traces: " + err.Error())
	}
}
