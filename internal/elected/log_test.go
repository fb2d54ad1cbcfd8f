package elected

import (
	"go.uber.org/zap/zapcore"
)

// addresses is a log of which the admin port is read.
type addresses struct {
	zapcore.Core
	found chan string
}

func (a *addresses) core(inner zapcore.Core) zapcore.Core {
	a.Core = inner
	return a
}

// Check implements zapcore.Core.
func (a *addresses) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return c.AddCore(e, a)
}

// Write implements zapcore.Core.
func (a *addresses) Write(e zapcore.Entry, fields []zapcore.Field) error {
	for _, f := range fields {
		if e.Message == "listening" && f.Key == "admin" {
			encoder := zapcore.NewMapObjectEncoder()
			f.AddTo(encoder)
			a.found <- encoder.Fields["admin"].(string)
		}
	}
	return nil
}
