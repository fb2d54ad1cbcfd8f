package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"turnout/internal/accesslog"
	"turnout/internal/server"
	"turnout/proxy"
	"turnout/tlsmux"
)

// logTime is how the log writes times.
const logTime = "2006-01-02T15:04:05.000000Z07:00"

// newLogger writes one JSON object per line to w.
func newLogger(w io.Writer, level zapcore.LevelEnabler) *zap.Logger {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.TimeEncoderOfLayout(logTime)
	encoding.EncodeDuration = zapcore.StringDurationEncoder
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(encoding), zapcore.Lock(zapcore.AddSync(w)), level))
}

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

// logOptions are where lines about requests go.
type logOptions struct {
	access    string // off, stdout or a file name
	syslog    string // address, "" = none
	facility  string
	level     string // least important level that goes to syslog
	maxLength int    // bytes of one message
	encoding  string // of messages: httplog or json
	format    string // of messages in httplog, "" = that of HAProxy's option httplog
}

func logSettings(o *options) []setting {
	l := &o.logs
	return []setting{
		{flag: "access-log", def: "off", value: "off|stdout|FILE", set: into(&l.access, parseText),
			help: "where one line per request goes"},
		{flag: "syslog-address", env: "ROUTER_SYSLOG_ADDRESS", value: "ADDRESS", set: into(&l.syslog, parseSyslogAddress),
			help: "where one message per request goes, besides --access-log: HOST[:PORT], the path of a socket, or stdout"},
		{flag: "log-facility", env: "ROUTER_LOG_FACILITY", def: "local1", value: "NAME", set: into(&l.facility, parseFacility),
			help: "facility of those messages"},
		{flag: "syslog-level", env: "ROUTER_LOG_LEVEL", def: "warning", value: "LEVEL",
			set:  words(&l.level, "emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"),
			help: "least important level that goes there; requests are info, so only info and debug send any"},
		{flag: "log-max-length", env: "ROUTER_LOG_MAX_LENGTH", def: "1024", value: "BYTES", set: into(&l.maxLength, parseMessageLength),
			help: "bytes of one message, beyond which it is cut"},
		{flag: "syslog-encoding", env: "ROUTER_SYSLOG_ENCODING", def: "httplog", value: "httplog|json", set: words(&l.encoding, "httplog", "json"),
			help: "what messages look like: HAProxy's lines, or the JSON of --access-log"},
		{flag: "syslog-format", env: "ROUTER_SYSLOG_FORMAT", value: "FORMAT", set: into(&l.format, parseLogFormat),
			help: "log-format of HAProxy for messages about requests, instead of that of its option httplog"},
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
	s, err := unquote(s)
	if err == nil {
		_, _, err = accesslog.NewFormat(accesslog.FormatConfig{Format: s})
	}
	return s, err
}

// doubts says what of the format cannot be done.
func (l *logOptions) doubts(captures *proxy.Captures) []string {
	if l.format == "" {
		return nil
	}
	const name = "--syslog-format (ROUTER_SYSLOG_FORMAT)"
	if l.encoding == "json" {
		return []string{name + " has no effect: messages are JSON"}
	}
	_, doubts, _ := accesslog.NewFormat(accesslog.FormatConfig{Format: l.format, Captures: captures}) // parseLogFormat has seen the error
	for i := range doubts {
		doubts[i] = name + ": " + doubts[i]
	}
	return doubts
}

// logOutlet is what lines need besides the options.
type logOutlet struct {
	stdout   io.Writer
	log      *zap.Logger
	captures *proxy.Captures // nil = nothing is captured
	open     func() (plain, secure int64)
}

// open starts the access log, nil when lines go nowhere; closing is always allowed.
func (l *logOptions) open(out logOutlet) (*accesslog.Log, func(), error) {
	var files []io.Closer
	closeFiles := func() {
		for _, f := range files {
			if err := f.Close(); err != nil {
				out.log.Error("cannot close access log", zap.Error(err))
			}
		}
	}
	cfg := accesslog.Config{OnError: func(err error) { out.log.Error(err.Error()) }}
	var lines everywhere
	out.stdout = &wholeLines{w: out.stdout}
	onStdout := l.access == "stdout"
	if l.syslog != "" && (l.level == "info" || l.level == "debug") {
		if l.syslog == "stdout" && l.encoding == "json" {
			onStdout = true
		} else {
			messages, err := l.messages(out, &cfg)
			if err != nil {
				return nil, nil, err
			}
			files = append(files, messages)
			if l.encoding == "json" {
				lines = append(lines, messages)
			} else {
				cfg.Messages = messages
			}
		}
	}
	if onStdout {
		lines = append(lines, out.stdout)
	}
	if l.access != "off" && l.access != "" && l.access != "stdout" {
		f, err := os.OpenFile(l.access, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot open access log: %w", err)
		}
		lines, files = append(lines, &wholeLines{w: f}), append(files, f)
	}
	if len(lines) > 0 {
		cfg.Writer = lines
	}
	if cfg.Writer == nil && cfg.Messages == nil {
		return nil, closeFiles, nil
	}
	a, err := accesslog.New(cfg)
	if err != nil {
		closeFiles()
		return nil, nil, err
	}
	return a, func() {
		closed := make(chan struct{})
		go func() { a.Close(); close(closed) }()
		if !within(logPatience, closed) {
			out.log.Warn("the end of the access log is lost: nobody reads it")
			return
		}
		closeFiles()
	}, nil
}

// wholeLines writes lines. A disk that is full takes a part of one; what is written after that begins on a line of its own.
type wholeLines struct {
	w    io.Writer
	torn bool // the last line is not whole
}

// Write implements io.Writer.
func (l *wholeLines) Write(p []byte) (int, error) {
	if l.torn {
		if _, err := io.WriteString(l.w, "\n"); err != nil {
			return 0, err
		}
		l.torn = false
	}
	n, err := l.w.Write(p)
	if n > 0 {
		l.torn = p[n-1] != '\n'
	}
	return n, err
}

// messages makes the sender of messages, and their format unless they are JSON. The name of the process is that of the
// HAProxy router, because receivers filter by it.
func (l *logOptions) messages(out logOutlet, cfg *accesslog.Config) (*accesslog.Syslog, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	c := accesslog.SyslogConfig{Address: l.syslog, Facility: l.facility, MaxLength: l.maxLength, Host: host, Tag: fmt.Sprintf("haproxy[%d]", os.Getpid())}
	if l.encoding == "json" {
		c.Tag = fmt.Sprintf("turnout[%d]", os.Getpid())
		return accesslog.NewSyslog(c)
	}
	if l.syslog == "stdout" {
		c.Stream = out.stdout
	}
	cfg.Format, _, err = accesslog.NewFormat(accesslog.FormatConfig{
		Format: l.format, Captures: out.captures, PID: os.Getpid(), Host: host, Connections: out.open, CipherName: tlsmux.SuiteName,
	})
	if err != nil {
		return nil, err
	}
	return accesslog.NewSyslog(c)
}

// everywhere writes to each writer, also after one of them failed.
type everywhere []io.Writer

// Write implements io.Writer. The error is that of all writers that failed.
func (e everywhere) Write(p []byte) (int, error) {
	var failed []error
	for _, w := range e {
		if _, err := w.Write(p); err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return 0, errors.Join(failed...)
	}
	return len(p), nil
}
