package site

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// stop is what a step that cannot be done panics with.
type stop struct {
	err  error // nil = what is wrong has been said
	code int   // exit code of the run
}

// Check ends the run, or what Try runs, with err, unless that is nil.
func Check(err error) {
	if err != nil {
		panic(stop{err, 1})
	}
}

// Checkf is Check that says what could not be done: format and args, and err behind them.
func Checkf(err error, format string, args ...any) {
	if err != nil {
		Stopf(format+": %w", append(args, err)...)
	}
}

// Stopf ends the run, or what Try runs, with an error that fmt.Errorf makes.
func Stopf(format string, args ...any) { panic(stop{fmt.Errorf(format, args...), 1}) }

// Must returns v, or ends the run as Check does.
func Must[V any](v V, err error) V {
	Check(err)
	return v
}

// Refuse ends the run with exit code 2: the command line or the machine is not what the scenario needs.
func Refuse(err error) {
	if err != nil {
		panic(stop{err, 2})
	}
}

// Catch is deferred by a function whose steps end it by Check, and makes what ended it its error.
func Catch(err *error) {
	switch e := recover().(type) {
	case nil:
	case stop:
		*err = e.err
	default:
		panic(e)
	}
}

// Try runs f and returns what ended it, nil if nothing did. Every goroutine whose steps end by Check runs them in it.
func Try(f func()) (err error) {
	defer Catch(&err)
	f()
	return nil
}

// Together calls f with 0 to n-1, so many of them at the same time, and ends with what ended any of them. Nothing is begun after that
// by the goroutine that it happened to.
func Together(n, atOnce int, f func(i int)) {
	var next atomic.Int64
	var running sync.WaitGroup
	errs := make([]error, atOnce)
	for w := range errs {
		running.Go(func() {
			errs[w] = Try(func() {
				for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
					f(int(i))
				}
			})
		})
	}
	running.Wait()
	Check(errors.Join(errs...))
}
