package accesslog

import (
	"bytes"
	"crypto/tls"
	"strconv"
	"strings"
	"time"

	"turnout/proxy"
)

// putter is the function of a variable that looks at the record alone.
func putter(style style, put func(p *piece, b []byte, r *proxy.Record) []byte) variable {
	return variable{style: style, put: func(_ *Format, p *piece, b []byte, r *proxy.Record) []byte { return put(p, b, r) }}
}

func number(of func(r *proxy.Record) int64) variable {
	return putter(styleNumber, func(_ *piece, b []byte, r *proxy.Record) []byte { return strconv.AppendInt(b, of(r), 10) })
}

func text(of func(r *proxy.Record) string) variable {
	return putter(styleText, func(_ *piece, b []byte, r *proxy.Record) []byte { return appendPlain(b, of(r), "") })
}

func uri(of func(r *proxy.Record, b []byte) []byte) variable {
	return putter(styleText, func(_ *piece, b []byte, r *proxy.Record) []byte {
		if len(r.Method) == 0 {
			return append(b, "<BADREQ>"...)
		}
		return of(r, b)
	})
}

// ofRequest is a variable that is nothing where there was no request.
func ofRequest(v variable) variable {
	return variable{style: v.style, put: func(f *Format, p *piece, b []byte, r *proxy.Record) []byte {
		if len(r.Method) == 0 {
			return b
		}
		return v.put(f, p, b, r)
	}}
}

func date(layout string, zone *time.Location) variable {
	return putter(styleNumber, func(_ *piece, b []byte, r *proxy.Record) []byte { return r.Start.In(zone).AppendFormat(b, layout) })
}

func process(put func(f *Format, p *piece, b []byte) []byte) variable {
	return variable{style: styleNumber, put: func(f *Format, p *piece, b []byte, _ *proxy.Record) []byte { return put(f, p, b) }}
}

// Layouts of dates.
const (
	dateMillis = "02/Jan/2006:15:04:05.000"
	dateZone   = "02/Jan/2006:15:04:05 -0700"
)

// Variables that have several names.
var (
	clientIP   = putter(styleText, func(p *piece, b []byte, r *proxy.Record) []byte { return p.IP(b, r.Client.Addr()) })
	clientPort = putter(styleNumber, func(p *piece, b []byte, r *proxy.Record) []byte { return p.Number(b, uint64(r.Client.Port()), 4) })
	localIP    = putter(styleText, func(p *piece, b []byte, r *proxy.Record) []byte { return p.IP(b, r.Local.Addr()) })
	localPort  = putter(styleNumber, func(p *piece, b []byte, r *proxy.Record) []byte { return p.Number(b, uint64(r.Local.Port()), 4) })
	seconds    = putter(styleNumber, func(p *piece, b []byte, r *proxy.Record) []byte { return p.Number(b, uint64(r.Start.Unix()), 4) })
	processID  = process(func(f *Format, p *piece, b []byte) []byte { return p.Number(b, uint64(f.cfg.PID), 4) })
	machine    = variable{put: func(f *Format, _ *piece, b []byte, _ *proxy.Record) []byte { return appendPlain(b, f.cfg.Host, "") }}
	counter    = process(func(f *Format, p *piece, b []byte) []byte { return p.Number(b, f.records, 4) })
	uniqueID   = putter(styleText, func(p *piece, b []byte, r *proxy.Record) []byte { return p.appendValue(b, r.UniqueID) })
	frontend   = text(func(r *proxy.Record) string { return r.Frontend })
	backend    = putter(styleText, func(_ *piece, b []byte, r *proxy.Record) []byte { return appendBackend(b, r) })
	server     = text(serverName)
	method     = uri(func(r *proxy.Record, b []byte) []byte { return appendPlain(b, r.Method, encodeURI) })
	path       = uri(func(r *proxy.Record, b []byte) []byte { return appendPlain(b, pathOf(r.Target), encodeURI) })
	version    = uri(func(r *proxy.Record, b []byte) []byte { return appendVersion(b, r) })
	status     = number(statusOf)
	none       = number(func(*proxy.Record) int64 { return 0 })
	active     = number(func(r *proxy.Record) int64 { return millis(r.Total) })
	head       = number(headTime)
	started    = date(dateMillis, time.Local)
	startedGMT = date(dateZone, time.UTC)
	startedOwn = date(dateZone, time.Local)
	cipher     = variable{put: func(f *Format, _ *piece, b []byte, r *proxy.Record) []byte {
		if r.CipherSuite == 0 || f.cfg.CipherName == nil {
			return b
		}
		return appendPlain(b, f.cfg.CipherName(r.CipherSuite), "")
	}}
	tlsVersion = text(func(r *proxy.Record) string {
		if r.TLSVersion == 0 {
			return ""
		}
		return strings.Replace(tls.VersionName(r.TLSVersion), "TLS 1.", "TLSv1.", 1)
	})
)

// variables are those written %NAME.
var variables = map[string]variable{
	"ci": clientIP, "cp": clientPort, "fi": localIP, "fp": localPort,
	"t": started, "tr": started, "T": startedGMT, "trg": startedGMT, "Tl": startedOwn, "trl": startedOwn, "Ts": seconds,
	"ms": putter(styleNumber, func(p *piece, b []byte, r *proxy.Record) []byte {
		return p.Millis(b, uint64(r.Start.Nanosecond()/1e6))
	}),
	"H": machine, "pid": processID, "rt": counter, "lc": counter, "ID": uniqueID,
	"f": frontend, "ft": text(transport), "b": backend, "s": server,
	"si": putter(styleText, func(p *piece, b []byte, r *proxy.Record) []byte { return p.IP(b, r.Endpoint.Addr()) }),
	"sp": putter(styleNumber, func(p *piece, b []byte, r *proxy.Record) []byte {
		if !r.Endpoint.IsValid() {
			return b
		}
		return p.Number(b, uint64(r.Endpoint.Port()), 4)
	}),
	"sslv": tlsVersion, "sslc": cipher,

	"TR": head, "Tq": head, "Ta": active, "Tt": active, "Tu": active,
	"Tw": number(queueTime),
	"Tc": number(func(r *proxy.Record) int64 { return millis(r.Connect) }),
	"Tr": number(func(r *proxy.Record) int64 { return millis(r.Response) }),
	"Td": number(dataTime),

	"ST": status,
	"B":  number(func(r *proxy.Record) int64 { return int64(r.HeadOut + r.BytesOut) }),
	"U":  number(func(r *proxy.Record) int64 { return int64(r.HeadIn + r.BytesIn) }),
	"ts": text(termination), "tsc": text(func(r *proxy.Record) string { return termination(r) + stickiness(r) }),
	"rc": number(func(r *proxy.Record) int64 { return int64(r.Retries) }), "sq": none, "bq": none,
	"ac": process(func(f *Format, _ *piece, b []byte) []byte { return strconv.AppendInt(b, f.open[0]+f.open[1], 10) }),
	"fc": {style: styleNumber, put: func(f *Format, _ *piece, b []byte, r *proxy.Record) []byte {
		n := f.open[0]
		if r.Secure {
			n = f.open[1]
		}
		return strconv.AppendInt(b, n, 10)
	}},
	"bc": number(func(r *proxy.Record) int64 {
		if r.Pool == nil {
			return 0
		}
		return r.Pool.InFlight()
	}),
	"sc": number(func(r *proxy.Record) int64 {
		if r.Via == nil {
			return 0
		}
		return r.Via.InFlight()
	}),

	"HM": method, "HPO": path, "HV": version,
	"HP": uri(func(r *proxy.Record, b []byte) []byte {
		before, _, _ := bytes.Cut(r.Target, []byte{'?'})
		return appendURI(b, r, before)
	}),
	"HQ": {style: styleQuery, put: uri(func(r *proxy.Record, b []byte) []byte {
		if i := bytes.IndexByte(r.Target, '?'); i >= 0 {
			return appendPlain(b, r.Target[i:], encodeURI)
		}
		return b
	}).put},
	"HU": uri(func(r *proxy.Record, b []byte) []byte { return appendURI(b, r, r.Target) }),
	"r": uri(func(r *proxy.Record, b []byte) []byte {
		b = append(appendPlain(b, r.Method, encodeURI), ' ')
		return appendVersion(append(appendURI(b, r, r.Target), ' '), r)
	}),
	"CC":  putter(styleText, func(p *piece, b []byte, r *proxy.Record) []byte { return p.appendValue(b, cookieOf(r, 0)) }),
	"CS":  putter(styleText, func(p *piece, b []byte, r *proxy.Record) []byte { return p.appendValue(b, cookieOf(r, 1)) }),
	"hr":  putter(styleList, func(p *piece, b []byte, r *proxy.Record) []byte { return p.braces(b, requestHeaders(r)) }),
	"hs":  putter(styleList, func(p *piece, b []byte, r *proxy.Record) []byte { return p.braces(b, responseHeaders(r)) }),
	"hrl": putter(styleList, func(p *piece, b []byte, r *proxy.Record) []byte { return p.list(b, requestHeaders(r)) }),
	"hsl": putter(styleList, func(p *piece, b []byte, r *proxy.Record) []byte { return p.list(b, responseHeaders(r)) }),
}

// samples are those written %[NAME] without an argument.
var samples = map[string]variable{
	"src": clientIP, "src_port": clientPort, "dst": localIP, "dst_port": localPort, "date": seconds, "pid": processID, "hostname": machine,
	"method": ofRequest(method), "capture.req.method": ofRequest(method), "path": ofRequest(path), "url": ofRequest(variables["HU"]), "unique-id": uniqueID,
	"query": ofRequest(uri(func(r *proxy.Record, b []byte) []byte {
		_, query, _ := bytes.Cut(r.Target, []byte{'?'})
		return appendPlain(b, query, encodeURI)
	})),
	"capture.req.uri": ofRequest(uri(func(r *proxy.Record, b []byte) []byte {
		if i := bytes.IndexByte(r.Target, '?'); i >= 0 {
			return appendPlain(appendPlain(b, pathOf(r.Target), encodeURI), r.Target[i:], encodeURI)
		}
		return appendPlain(b, pathOf(r.Target), encodeURI)
	})),
	"capture.req.ver": ofRequest(uri(func(r *proxy.Record, b []byte) []byte {
		return strconv.AppendInt(append(b, "HTTP/1."...), int64(r.Minor), 10) // also over HTTP/2
	})),
	"status": status, "fe_name": frontend, "be_name": ofRequest(backend), "srv_name": server,
	"ssl_fc":          number(func(r *proxy.Record) int64 { return int64(min(r.TLSVersion, 1)) }),
	"ssl_fc_protocol": tlsVersion, "ssl_fc_cipher": cipher,
	"ssl_fc_sni": text(func(r *proxy.Record) string { return r.ServerName }),
	"rand":       {style: styleNumber, put: putRandom}, "uuid": {put: putUUID},
}
