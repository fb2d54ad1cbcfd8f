// Package follow keeps what the router was given in files up to date while somebody rotates them: the default certificate, the
// authorities of pods, the secrets of session tickets, what client certificates are judged by. What cannot be used is logged,
// once, and what was there before stays in use.
package follow

import (
	"go.uber.org/zap"

	"turnout/internal/problem"
)

// keeper logs why what there was stays in use, and has the list of problems say so as long as it is so.
type keeper struct {
	log      *zap.Logger
	problems *problem.List // nil = nobody asks
	file     string        // or folder
	text     string
	failed   string // logged last; "" = nothing has failed since the last success
}

// keep logs err, unless it is the one that was logged last: folders are looked at from time to time. It reports whether err is nil.
func (k *keeper) keep(err error) (ok bool) {
	switch {
	case err == nil:
		k.failed = ""
		k.problems.Set("file/" + k.text)
	case err.Error() != k.failed:
		k.failed = err.Error()
		k.problems.Set("file/"+k.text, problem.Problem{Kind: problem.File, File: k.file, Text: k.text + ": " + k.failed})
		k.log.Error(k.text, zap.Error(err))
	}
	return err == nil
}
