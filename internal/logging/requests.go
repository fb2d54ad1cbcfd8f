package logging

import (
	"fmt"
	"io"
	"os"

	"go.uber.org/zap"

	"turnout/internal/accesslog"
	"turnout/internal/crew"
	"turnout/proxy"
	"turnout/tlsmux"
)

// RequestsConfig says where lines about requests go. Stdout and Log are required.
type RequestsConfig struct {
	Access string // "" or off, stdout or a file name

	Filter accesslog.Filter // which requests lines are about
	Help   string           // see accesslog.Config

	Syslog    string // address, "" = none
	Facility  string
	Level     string // least important level that goes to syslog
	MaxLength int    // bytes of one message
	Encoding  string // of messages: httplog or json
	Format    string // of messages in httplog; "" = that of HAProxy's option httplog

	Stdout    io.Writer
	Log       *zap.Logger
	Captures  *proxy.Captures              // nil = nothing is captured
	Connected func() (plain, secure int64) // how many clients are connected to each port; nil = the format does not ask
}

// Same reports that lines about the same requests, in the same form, go to the same places by c and other.
func (c *RequestsConfig) Same(other *RequestsConfig) bool {
	return c.Access == other.Access && c.Filter.Same(&other.Filter) && c.Help == other.Help && c.Syslog == other.Syslog && c.Facility == other.Facility &&
		c.Level == other.Level && c.MaxLength == other.MaxLength && c.Encoding == other.Encoding && c.Format == other.Format
}

// OpenRequests starts the access log, nil when lines go nowhere. What it returns besides ends it, and is always allowed.
func OpenRequests(c RequestsConfig) (*accesslog.Log, func(), error) {
	var files []io.Closer
	closeFiles := func() {
		for _, f := range files {
			if err := f.Close(); err != nil {
				c.Log.Error("cannot close access log", zap.Error(err))
			}
		}
	}
	cfg := accesslog.Config{Filter: c.Filter, Help: c.Help, CipherName: tlsmux.SuiteName, OnError: func(err error) { c.Log.Error(err.Error()) }}
	var lines everywhere
	c.Stdout = &wholeLines{w: c.Stdout}
	onStdout := c.Access == "stdout"
	if c.Syslog != "" && (c.Level == "info" || c.Level == "debug") {
		if c.Syslog == "stdout" && c.Encoding == "json" {
			onStdout = true
		} else {
			messages, err := messages(&c, &cfg)
			if err != nil {
				return nil, nil, err
			}
			files = append(files, messages)
			if c.Encoding == "json" {
				lines = append(lines, messages)
			} else {
				cfg.Messages = messages
			}
		}
	}
	if onStdout {
		lines = append(lines, c.Stdout)
	}
	if c.Access != "off" && c.Access != "" && c.Access != "stdout" {
		f, err := os.OpenFile(c.Access, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
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
		if !crew.Within(Patience, closed) {
			c.Log.Warn("the end of the access log is lost: nobody reads it")
			return
		}
		closeFiles()
	}, nil
}

// messages makes the sender of messages, and their format unless they are JSON. The name of the process is that of the
// HAProxy router, because receivers filter by it.
func messages(l *RequestsConfig, cfg *accesslog.Config) (*accesslog.Syslog, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	s := accesslog.SyslogConfig{Address: l.Syslog, Facility: l.Facility, MaxLength: l.MaxLength, Host: host, Tag: fmt.Sprintf("haproxy[%d]", os.Getpid())}
	if l.Encoding == "json" {
		s.Tag = fmt.Sprintf("turnout[%d]", os.Getpid())
		return accesslog.NewSyslog(s)
	}
	if l.Syslog == "stdout" {
		s.Stream = l.Stdout
	}
	cfg.Format, _, err = accesslog.NewFormat(accesslog.FormatConfig{
		Format: l.Format, Captures: l.Captures, PID: os.Getpid(), Host: host, Connections: l.Connected, CipherName: tlsmux.SuiteName,
	})
	if err != nil {
		return nil, err
	}
	return accesslog.NewSyslog(s)
}

// Doubts says what of Format cannot be done.
func (c *RequestsConfig) Doubts(captures *proxy.Captures) []string {
	if c.Format == "" {
		return nil
	}
	const name = "--syslog-format (ROUTER_SYSLOG_FORMAT)"
	if c.Encoding == "json" {
		return []string{name + " has no effect: messages are JSON"}
	}
	_, doubts, _ := accesslog.NewFormat(accesslog.FormatConfig{Format: c.Format, Captures: captures}) // accesslog.CheckFormat has seen the error
	for i := range doubts {
		doubts[i] = name + ": " + doubts[i]
	}
	return doubts
}
