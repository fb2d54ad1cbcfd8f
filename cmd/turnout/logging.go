package main

import (
	"errors"
	"io"
	"strconv"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"turnout/internal/accesslog"
	"turnout/internal/logging"
	"turnout/internal/option"
	"turnout/internal/server"
	"turnout/internal/terminal"
	"turnout/proxy"
)

// serverLog writes what the request path logs.
func serverLog(log *zap.Logger) server.Logger {
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

// formatOf is what lines look like that go to w.
func (o *options) formatOf(w io.Writer) logging.Format {
	if o.logFormat == "console" || o.logFormat == "auto" && terminal.Is(w) {
		return logging.Console
	}
	return logging.JSON
}

func logSettings(o *options) []option.Option {
	l := &o.logs
	return []option.Option{
		{Flag: "access-log", Def: "off", Value: "off|stdout|FILE", Set: option.Into(&l.Access, option.ParseText),
			Help: "where one line per request goes"},
		{Flag: "access-log-help", Value: "URL", Set: option.Into(&l.Help, accesslog.ParseHelp),
			Help: "page that explains reasons, such as a copy of docs/troubleshooting.md: JSON lines of requests that failed have a link to their reason there"},
		{Flag: "access-log-status", Value: "LIST", Set: option.Into(&l.Filter.Statuses, accesslog.ParseStatuses),
			Help: "log requests with these statuses, such as 5xx,404,500-504; 0 = no answer"},
		{Flag: "access-log-slow", Value: "TIME", Set: option.Into(&l.Filter.Slow, option.ParseTimespec),
			Help: "log requests that took as long"},
		{Flag: "access-log-sample", Value: "SHARE", Set: option.Into(&l.Filter.Sample, accesslog.ParseSample),
			Help: "log this share, 0 to 1, of the requests that neither --access-log-status nor --access-log-slow names; without it, none of them when one of the two is given, else all"},
		{Flag: "syslog-address", Env: "ROUTER_SYSLOG_ADDRESS", Value: "ADDRESS", Set: option.Into(&l.Syslog, parseSyslogAddress),
			Help: "where one message per request goes, besides --access-log: HOST[:PORT], the path of a socket, or stdout"},
		{Flag: "log-facility", Env: "ROUTER_LOG_FACILITY", Def: "local1", Value: "NAME", Set: option.Into(&l.Facility, parseFacility),
			Help: "facility of those messages"},
		{Flag: "syslog-level", Env: "ROUTER_LOG_LEVEL", Def: "warning", Value: "LEVEL",
			Set:  option.Words(&l.Level, "emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"),
			Help: "least important level that goes there; requests are info, so only info and debug send any"},
		{Flag: "log-max-length", Env: "ROUTER_LOG_MAX_LENGTH", Def: "1024", Value: "BYTES", Set: option.Into(&l.MaxLength, parseMessageLength),
			Help: "bytes of one message, beyond which it is cut"},
		{Flag: "syslog-encoding", Env: "ROUTER_SYSLOG_ENCODING", Def: "httplog", Value: "httplog|json", Set: option.Words(&l.Encoding, "httplog", "json"),
			Help: "what messages look like: HAProxy's lines, or the JSON of --access-log"},
		{Flag: "syslog-format", Env: "ROUTER_SYSLOG_FORMAT", Value: "FORMAT", Set: option.Into(&l.Format, parseLogFormat),
			Help: "log-format of HAProxy for messages about requests, instead of that of its option httplog"},
	}
}

func parseSyslogAddress(s string) (string, error) {
	if s == "" || s == "stdout" {
		return s, nil
	}
	_, _, err := accesslog.ParseSyslogAddress(s)
	return s, err
}

func parseFacility(s string) (string, error) { return s, accesslog.ParseFacility(s) }

// parseMessageLength reads the bytes of a datagram.
func parseMessageLength(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n < 80 {
		return 0, errors.New("allowed: a number of bytes from 80 to 65535")
	}
	return int(n), nil
}

// parseLogFormat reads a format, which an operator delivers in double quotes.
func parseLogFormat(s string) (string, error) {
	s, err := option.Unquote(s)
	if err == nil {
		_, _, err = accesslog.NewFormat(accesslog.FormatConfig{Format: s})
	}
	return s, err
}

// formatDoubts says what of the format of messages cannot be done.
func formatDoubts(l *logging.RequestsConfig, captures *proxy.Captures) []string {
	if l.Format == "" {
		return nil
	}
	const name = "--syslog-format (ROUTER_SYSLOG_FORMAT)"
	if l.Encoding == "json" {
		return []string{name + " has no effect: messages are JSON"}
	}
	_, doubts, _ := accesslog.NewFormat(accesslog.FormatConfig{Format: l.Format, Captures: captures}) // parseLogFormat has seen the error
	for i := range doubts {
		doubts[i] = name + ": " + doubts[i]
	}
	return doubts
}
