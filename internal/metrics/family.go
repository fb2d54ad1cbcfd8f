package metrics

import "github.com/prometheus/client_golang/prometheus"

// family is one metric, declared in one place: its name, type, help text and labels, and how its values are read from a
// source S.
type family[S any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(s S, send send)
}

// send sends one series of a family. The values of labels stand in the order in which the family declares them.
type send func(value float64, labels ...string)

// counter is a family of which read sends every series.
func counter[S any](name, help string, read func(S, send), labels ...string) family[S] {
	return family[S]{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue, read}
}

// gauge is the same of a value that may fall.
func gauge[S any](name, help string, read func(S, send), labels ...string) family[S] {
	return family[S]{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue, read}
}

// number is read for a family with one series, without labels.
func number[S any, N int | int64 | uint64 | float64](value func(S) N) func(S, send) {
	return func(s S, send send) { send(float64(value(s))) }
}

// each is read for a family with one label, which has a value for each number below n.
func each[S any, I ~int | ~uint8](n I, label func(I) string, value func(S, I) float64) func(S, send) {
	return func(s S, send send) {
		for i := I(0); i < n; i++ {
			send(value(s, i), label(i))
		}
	}
}

// families are read from one source.
type families[S any] []family[S]

// describe passes on what is the same for all series.
func (f families[S]) describe(each func(*prometheus.Desc, prometheus.ValueType)) {
	for i := range f {
		each(f[i].desc, f[i].kind)
	}
}

// collect sends every series that s has.
func (f families[S]) collect(out chan<- prometheus.Metric, s S) {
	for i := range f {
		f[i].read(s, func(value float64, labels ...string) {
			series, err := prometheus.NewConstMetric(f[i].desc, f[i].kind, value, labels...)
			if err != nil { // a label that is not UTF-8
				series = prometheus.NewInvalidMetric(f[i].desc, err)
			}
			out <- series
		})
	}
}

// flag is 1 for true.
func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
