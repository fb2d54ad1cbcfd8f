package admin

import (
	"io"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
)

// debugPrefix is where profiles are. Their index is the path itself.
const debugPrefix = "/debug/pprof/"

// logLevelPath is where the level of the log is read and set.
const logLevelPath = "/debug/log-level"

// How many profiles and dumps are under way at a time, in all and for one source, and how long one may take in seconds. They slow the process.
const (
	mostProfiles, profileShare = 2, 1
	longestProfile             = 30
)

// profile answers for a path behind debugPrefix. The command line is none of them: it may have a password in it.
func (s *Server) profile(name string) http.HandlerFunc {
	var handler http.HandlerFunc
	switch name {
	case "":
		handler = pprof.Index
	case "profile":
		handler = pprof.Profile
	case "trace":
		handler = pprof.Trace
	case "symbol":
		handler = pprof.Symbol
	case "allocs", "block", "goroutine", "heap", "mutex", "threadcreate":
		handler = pprof.Handler(name).ServeHTTP
	default:
		return nil
	}
	return s.bounded(s.profiles, func(w http.ResponseWriter, r *http.Request) {
		if text := r.URL.Query().Get("seconds"); text != "" {
			if n, err := strconv.ParseFloat(text, 64); err != nil || !(n >= 0 && n <= longestProfile) {
				say(w, http.StatusBadRequest, "seconds is not a number from 0 to "+strconv.Itoa(longestProfile)+"\n")
				return
			}
		}
		// The index is a page with a style of its own.
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		handler(w, r)
	})
}

// mostWord is more than a word for a level has, in bytes.
const mostWord = 64

// logLevel gives the level of the log, and sets it by PUT.
func (s *Server) logLevel(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut {
		say(w, http.StatusOK, s.cfg.LogLevel.Word()+"\n")
		return
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostWord))
	if err == nil {
		err = s.cfg.LogLevel.SetWord(strings.TrimSpace(string(text)))
	}
	if err != nil {
		say(w, http.StatusBadRequest, "cannot set the log level: "+err.Error()+"\n")
		return
	}
	say(w, http.StatusOK, s.cfg.LogLevel.Word()+"\n")
}
