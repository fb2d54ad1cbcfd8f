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

// Format is what the lines of the log look like.
type Format uint8

// The formats.
const (
	JSON    Format = iota // one JSON object per line
	Console               // for people: the time of day, the level, the message, and the fields as JSON
)

// New returns a log that writes lines to w.
func New(w io.Writer, level zapcore.LevelEnabler, format Format) *zap.Logger {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.TimeEncoderOfLayout(timeLayout)
	encoding.EncodeDuration = zapcore.StringDurationEncoder
	encode := zapcore.NewJSONEncoder
	if format == Console {
		encoding.EncodeTime, encoding.EncodeLevel = zapcore.TimeEncoderOfLayout("15:04:05.000"), zapcore.CapitalLevelEncoder
		encoding.ConsoleSeparator = "  "
		encode = zapcore.NewConsoleEncoder
	}
	return zap.New(zapcore.NewCore(encode(encoding), zapcore.Lock(zapcore.AddSync(w)), level))
}
