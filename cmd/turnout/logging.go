package main

import (
	"fmt"
	"io"
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"turnout/internal/accesslog"
)

// newLogger writes one JSON object per line to w.
func newLogger(w io.Writer, level zapcore.Level) *zap.Logger {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000000Z07:00")
	encoding.EncodeDuration = zapcore.StringDurationEncoder
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(encoding), zapcore.Lock(zapcore.AddSync(w)), level))
}

// openAccessLog starts the access log that where names: off, stdout, or a file
// that is appended to. The log is nil when it is off; closing is always allowed.
func openAccessLog(where string, stdout io.Writer, log *zap.Logger) (*accesslog.Log, func(), error) {
	var w io.Writer
	closeFile := func() {}
	switch where {
	case "off", "":
		return nil, closeFile, nil
	case "stdout":
		w = stdout
	default:
		f, err := os.OpenFile(where, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot open access log: %w", err)
		}
		w = f
		closeFile = func() {
			if err := f.Close(); err != nil {
				log.Error("cannot close access log", zap.Error(err))
			}
		}
	}
	l, err := accesslog.New(accesslog.Config{Writer: w, OnError: func(err error) { log.Error(err.Error()) }})
	if err != nil {
		closeFile()
		return nil, nil, err
	}
	return l, func() { l.Close(); closeFile() }, nil
}
