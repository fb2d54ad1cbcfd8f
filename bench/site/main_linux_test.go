package site

import (
	"context"
	"errors"
	"syscall"
	"testing"
)

func TestMainsExitCode(t *testing.T) {
	for name, x := range map[string]struct {
		passed bool
		err    error
		code   int
	}{
		"passed": {true, nil, 0}, "not passed": {false, nil, 1}, "failed": {true, errors.New("a reason"), 1},
	} {
		if code := Main("test", func(context.Context) (bool, error) { return x.passed, x.err }); code != x.code {
			t.Errorf("%s: exit code %d, want %d", name, code, x.code)
		}
	}
}

func TestMainIsToldToEnd(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		code := Main("test", func(ctx context.Context) (bool, error) {
			if err := syscall.Kill(syscall.Getpid(), s); err != nil {
				return false, err
			}
			<-ctx.Done()
			return true, nil
		})
		if code != 0 {
			t.Errorf("%v: exit code %d", s, code)
		}
	}
}
