package accesslog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"turnout/proxy"
)

// Filter says which records are written. Of those that neither Statuses nor Slow names, a share is written too. The zero value writes all.
type Filter struct {
	Statuses *Statuses     // these are written; nil = none because of its status
	Slow     time.Duration // who took at least as long is written, tunnels left out; 0 = none because of its time
	// Sample is the share of the others that is written, from 0 to 1; below 0 none. 0 is none where Statuses or Slow says what to write, else all.
	Sample float64
}

func (f *Filter) check() error {
	if f.Slow < 0 || f.Sample > 1 {
		return fmt.Errorf("cannot make an access log: negative slowness (%v) or a share above 1 (%v)", f.Slow, f.Sample)
	}
	return nil
}

// keeps reports whether a record is written.
func (f *Filter) keeps(r *proxy.Record) bool {
	switch {
	case f.Sample == 1 || f.names(r):
		return true
	case f.Sample == 0:
		return f.Statuses == nil && f.Slow == 0
	}
	return rand.Float64() < f.Sample
}

// names reports whether a record is written for what it is.
func (f *Filter) names(r *proxy.Record) bool {
	return f.Statuses != nil && f.Statuses.has(r.Status) || f.Slow > 0 && !r.Tunnel && r.Total >= f.Slow
}

// sampled reports whether a record that is written stands for others that are not.
func (f *Filter) sampled(r *proxy.Record) bool { return f.Sample > 0 && f.Sample < 1 && !f.names(r) }

// Statuses is a set of statuses. The zero value is empty.
type Statuses struct{ bits [1000/64 + 1]uint64 }

func (s *Statuses) has(status int) bool {
	return status >= 0 && status < 1000 && s.bits[status/64]&(1<<(status%64)) != 0
}

// ParseStatuses reads statuses (404), ranges (500-504) and classes (5xx), separated by commas; 0 is that of who got no answer. No text is no set.
func ParseStatuses(text string) (*Statuses, error) {
	if text == "" {
		return nil, nil
	}
	s := new(Statuses)
	for _, word := range strings.Split(text, ",") {
		first, last, err := statusRange(strings.TrimSpace(word))
		if err != nil {
			return nil, err
		}
		for status := first; status <= last; status++ {
			s.bits[status/64] |= 1 << (status % 64)
		}
	}
	return s, nil
}

var errStatuses = errors.New("allowed: statuses (404), ranges (500-504) and classes (5xx), separated by commas; 0 = no answer")

func statusRange(word string) (first, last int, err error) {
	if class, ok := strings.CutSuffix(word, "xx"); ok && len(class) == 1 && class[0] >= '1' && class[0] <= '9' {
		first = int(class[0]-'0') * 100
		return first, first + 99, nil
	}
	from, to, isRange := strings.Cut(word, "-")
	if !isRange {
		to = from
	}
	first, err = strconv.Atoi(from)
	if err == nil {
		last, err = strconv.Atoi(to)
	}
	if err != nil || first < 0 || last > 999 || first > last {
		return 0, 0, errStatuses
	}
	return first, last, nil
}

// ParseSample reads the share of Filter.Sample: a number from 0 to 1.
func ParseSample(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	share, err := strconv.ParseFloat(text, 64)
	if err != nil || !(share >= 0 && share <= 1) {
		return 0, errors.New("allowed: a number from 0 to 1")
	}
	if share == 0 {
		return -1, nil
	}
	return share, nil
}

// Same reports that f and other keep the same requests.
func (f *Filter) Same(other *Filter) bool {
	if (f.Statuses == nil) != (other.Statuses == nil) || f.Statuses != nil && *f.Statuses != *other.Statuses {
		return false
	}
	return f.Slow == other.Slow && f.Sample == other.Sample
}
