package zones

import (
	"fmt"
	"time"

	"turnout/internal/dns/zone"
)

// Last is what is known of an earlier zone with the origin of z: its serial, and whether it was the same but for that.
type Last func(z *zone.Zone) (serial uint32, known, same bool)

// Set makes zones of shards, and says which cannot be. A zone that is in before and has not changed is the same object; one that has changed
// gets a later serial. last is asked about zones that are not in before; nil: nothing is known of them.
func Set(shards []Shard, before *zone.Set, last Last, now time.Time) (*zone.Set, []LeftOut, error) {
	var all []*zone.Zone
	var left []LeftOut
	for i := range shards {
		z, err := zone.New(shards[i].Spec)
		if err != nil {
			left = append(left, LeftOut{Router: shards[i].Router, Why: err.Error()})
			continue
		}
		all = append(all, withSerial(z, before, last, now))
	}
	set, err := zone.NewSet(all...)
	if err != nil {
		return nil, nil, fmt.Errorf("BUG: %w", err)
	}
	return set, left, nil
}

// withSerial returns a zone with the serial that follows from what was.
func withSerial(z *zone.Zone, before *zone.Set, last Last, now time.Time) *zone.Zone {
	if before != nil {
		if old := before.Zone(z.Origin()); old != nil {
			if old.Same(z) {
				return old
			}
			return z.WithSerial(zone.NextSerial(old.Serial(), now))
		}
	}
	if last != nil {
		switch serial, known, same := last(z); {
		case same:
			return z.WithSerial(serial)
		case known:
			return z.WithSerial(zone.NextSerial(serial, now))
		}
	}
	return z.WithSerial(zone.FirstSerial(now))
}
