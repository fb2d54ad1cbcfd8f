//go:build !linux

package reactor

import "time"

// waitClock is one that does not tell: nothing beats, and nobody rests.
type waitClock struct{}

func (*waitClock) open() bool                { return false }
func (*waitClock) read() (ran, waited int64) { return 0, 0 }
func (*waitClock) close()                    {}

func processor() int32 { return 0 }

func bindTo(int32) {}

func rest(time.Duration) {}
