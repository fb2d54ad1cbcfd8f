package logging

import (
	"turnout/internal/accesslog"
	"turnout/internal/option"
)

// Table are the options, bound to c.
func (c *RequestsConfig) Table() []option.Option {
	return []option.Option{
		{Flag: "access-log", Def: "off", Value: "off|stdout|FILE", Set: option.Into(&c.Access, option.ParseText),
			Help: "where one line per request goes"},
		{Flag: "access-log-help", Value: "URL", Set: option.Into(&c.Help, accesslog.ParseHelp),
			Help: "page that explains reasons, such as a copy of docs/troubleshooting.md: JSON lines of requests that failed have a link to their reason there"},
		{Flag: "access-log-status", Value: "LIST", Set: option.Into(&c.Filter.Statuses, accesslog.ParseStatuses),
			Help: "log requests with these statuses, such as 5xx,404,500-504; 0 = no answer"},
		{Flag: "access-log-slow", Value: "TIME", Set: option.Into(&c.Filter.Slow, option.ParseTimespec),
			Help: "log requests that took as long"},
		{Flag: "access-log-sample", Value: "SHARE", Set: option.Into(&c.Filter.Sample, accesslog.ParseSample),
			Help: "log this share, 0 to 1, of the requests that neither --access-log-status nor --access-log-slow names; without it, none of them when one of the two is given, else all"},
		{Flag: "syslog-address", Env: "ROUTER_SYSLOG_ADDRESS", Value: "ADDRESS", Set: option.Into(&c.Syslog, option.Checked(accesslog.CheckDestination)),
			Help: "where one message per request goes, besides --access-log: HOST[:PORT], the path of a socket, or stdout"},
		{Flag: "log-facility", Env: "ROUTER_LOG_FACILITY", Def: "local1", Value: "NAME", Set: option.Into(&c.Facility, option.Checked(accesslog.ParseFacility)),
			Help: "facility of those messages"},
		{Flag: "syslog-level", Env: "ROUTER_LOG_LEVEL", Def: "warning", Value: "LEVEL",
			Set:  option.Words(&c.Level, "emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"),
			Help: "least important level that goes there; requests are info, so only info and debug send any"},
		{Flag: "log-max-length", Env: "ROUTER_LOG_MAX_LENGTH", Def: "1024", Value: "BYTES", Set: option.Into(&c.MaxLength, accesslog.ParseMessageLength),
			Help: "bytes of one message, beyond which it is cut"},
		{Flag: "syslog-encoding", Env: "ROUTER_SYSLOG_ENCODING", Def: "httplog", Value: "httplog|json", Set: option.Words(&c.Encoding, "httplog", "json"),
			Help: "what messages look like: HAProxy's lines, or the JSON of --access-log"},
		{Flag: "syslog-format", Env: "ROUTER_SYSLOG_FORMAT", Value: "FORMAT", Set: option.Into(&c.Format, option.Quoted(accesslog.CheckFormat)),
			Help: "log-format of HAProxy for messages about requests, instead of that of its option httplog"},
	}
}
