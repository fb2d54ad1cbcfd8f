package metrics

import (
	"encoding/hex"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"turnout/internal/traffic"
)

// distribution is a family of histograms, each both with the classic buckets and as a native histogram.
type distribution[S any] struct {
	desc *prometheus.Desc
	read func(s S, send func(h *traffic.Histogram, labels ...string))
}

// histogram is a family of distributions of seconds.
func histogram[S any](name, help string, read func(s S, send func(h *traffic.Histogram, labels ...string)), labels ...string) distribution[S] {
	return distribution[S]{prometheus.NewDesc(name, help, labels, nil), read}
}

// distributions are read from one source.
type distributions[S any] []distribution[S]

// collect sends every histogram that s has; nil is none.
func (d distributions[S]) collect(out chan<- prometheus.Metric, s S) {
	for i := range d {
		d[i].read(s, func(h *traffic.Histogram, labels ...string) {
			if h != nil {
				out <- &observed{d[i].desc, h, prometheus.MakeLabelPairs(d[i].desc, labels)}
			}
		})
	}
}

// summary is a family of sums of seconds with how many they are of.
type summary[S any] struct {
	desc *prometheus.Desc
	read func(s S) (count uint64, sum time.Duration)
}

// summaries are read from one source.
type summaries[S any] []summary[S]

func (m summaries[S]) collect(out chan<- prometheus.Metric, s S) {
	for i := range m {
		n, sum := m[i].read(s)
		out <- prometheus.MustNewConstSummary(m[i].desc, n, sum.Seconds(), nil)
	}
}

// observed is one histogram as Prometheus takes it. It implements prometheus.Metric.
type observed struct {
	desc   *prometheus.Desc
	h      *traffic.Histogram
	labels []*dto.LabelPair
}

// Desc implements prometheus.Metric.
func (o *observed) Desc() *prometheus.Desc { return o.desc }

// Write implements prometheus.Metric.
func (o *observed) Write(to *dto.Metric) error {
	out := &dto.Histogram{SampleCount: proto.Uint64(o.h.Count()), SampleSum: proto.Float64(o.h.Sum.Seconds())}
	sum := uint64(0)
	for i, bound := range traffic.Bounds() {
		sum += o.h.Counts[i]
		out.Bucket = append(out.Bucket, &dto.Bucket{UpperBound: proto.Float64(bound), CumulativeCount: proto.Uint64(sum), Exemplar: exemplar(&o.h.Exemplars[i])})
	}
	for i := range o.h.Exemplars {
		if x := exemplar(&o.h.Exemplars[i]); x != nil {
			out.Exemplars = append(out.Exemplars, x)
		}
	}
	o.native(out)
	to.Label, to.Histogram = o.labels, out
	return nil
}

// native adds the fine buckets: spans of those that are not empty, each with the difference to the one before.
func (o *observed) native(out *dto.Histogram) {
	out.Schema, out.ZeroThreshold, out.ZeroCount = proto.Int32(traffic.Schema), proto.Float64(0), proto.Uint64(0)
	next, before := int32(0), int64(0) // the index behind the last bucket that was added, and its count
	for i, n := range o.h.Fine {
		if n == 0 {
			continue
		}
		index := int32(i + traffic.LeastFine)
		if last := len(out.PositiveSpan) - 1; last >= 0 && index == next {
			*out.PositiveSpan[last].Length++
		} else {
			out.PositiveSpan = append(out.PositiveSpan, &dto.BucketSpan{Offset: proto.Int32(index - next), Length: proto.Uint32(1)})
		}
		out.PositiveDelta = append(out.PositiveDelta, int64(n)-before)
		next, before = index+1, int64(n)
	}
	if len(out.PositiveSpan) == 0 { // what says that it is a native histogram
		out.PositiveSpan = []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(0)}}
	}
}

// exemplar is nil for none.
func exemplar(x *traffic.Exemplar) *dto.Exemplar {
	if x.At.IsZero() {
		return nil
	}
	return &dto.Exemplar{
		Label: []*dto.LabelPair{
			{Name: proto.String("span_id"), Value: proto.String(hex.EncodeToString(x.Span[:]))},
			{Name: proto.String("trace_id"), Value: proto.String(hex.EncodeToString(x.Trace[:]))},
		},
		Value: proto.Float64(x.Took.Seconds()), Timestamp: timestamppb.New(x.At.Truncate(time.Millisecond)),
	}
}
