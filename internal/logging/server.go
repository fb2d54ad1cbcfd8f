package logging

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"turnout/internal/server"
	"turnout/internal/terminal"
)

// Server writes what the request path logs.
func Server(log *zap.Logger) server.Logger {
	levels := map[server.Level]zapcore.Level{server.Info: zapcore.InfoLevel, server.Warning: zapcore.WarnLevel, server.Error: zapcore.ErrorLevel}
	return func(level server.Level, text string, fields ...server.Field) {
		if entry := log.Check(levels[level], text); entry != nil {
			all := make([]zap.Field, len(fields))
			for i, f := range fields {
				all[i] = zap.Any(f.Key, f.Value)
			}
			entry.Write(all...)
		}
	}
}

// FormatOf is what lines look like that go to w, by a word: json, console, or auto, which is console on a terminal.
func FormatOf(word string, w io.Writer) Format {
	if word == "console" || word == "auto" && terminal.Is(w) {
		return Console
	}
	return JSON
}
