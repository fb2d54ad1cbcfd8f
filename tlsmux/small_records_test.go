package tlsmux

import (
	"errors"
	"runtime"
	"testing"

	"turnout/internal/reactor"
)

// TestSmallRecordsCostLittle: records of one byte, many at once or cut anywhere, are garbage of no more than some bytes for each
// that came: crypto/tls makes a reader for each record, and nothing else may be made.
func TestSmallRecordsCostLittle(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		for name, tc := range map[string]struct{ piece, most int }{"many at once": {1 << 14, 64}, "cut": {16, 256}} {
			t.Run(name, func(t *testing.T) {
				e := newEnds(t, version)
				one, plain := []byte("x"), make([]byte, 32<<10)
				const records = 5000
				for range records {
					must(t, e.client.Write(one))
				}
				wire, got := e.fromClient.take(), 0
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for len(wire) > 0 {
					n := min(tc.piece, len(wire))
					e.server.Feed(wire[:n])
					wire = wire[n:]
					for {
						n, err := e.server.Read(plain)
						if got += n; errors.Is(err, reactor.ErrAgain) {
							break
						}
						must(t, err)
					}
				}
				runtime.ReadMemStats(&after)
				each := int(after.TotalAlloc-before.TotalAlloc) / records
				t.Logf("%d bytes for each record", each)
				if got != records || each > tc.most && !raceDetector {
					t.Errorf("%d of %d came, %d bytes for each; want at most %d", got, records, each, tc.most)
				}
			})
		}
	})
}
