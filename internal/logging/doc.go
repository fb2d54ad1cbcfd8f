// Package logging is where lines go: those of the process's log, through a queue that nobody waits for, at a level that can change
// while the process runs, and those about requests, to files, the standard output and syslog.
package logging

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// timeLayout is how the log writes times.
const timeLayout = "2006-01-02T15:04:05.000000Z07:00"

// New returns a log that writes one JSON object per line to w.
func New(w io.Writer, level zapcore.LevelEnabler) *zap.Logger {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.TimeEncoderOfLayout(timeLayout)
	encoding.EncodeDuration = zapcore.StringDurationEncoder
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(encoding), zapcore.Lock(zapcore.AddSync(w)), level))
}
