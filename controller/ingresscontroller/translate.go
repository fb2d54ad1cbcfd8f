package ingresscontroller

import (
	"fmt"
	"math"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// translation is one Translate.
type translation struct {
	o      *decoded
	others map[Ref]Referred
	out    Outcome
}

// Translate says what an IngressController means.
func Translate(in Input) Outcome {
	if in.Object == nil {
		return Outcome{}
	}
	t := &translation{others: in.Others}
	t.o, t.out.Findings = decode(in.Object.Object)
	t.identity()
	t.selectors()
	t.admission()
	t.publishing()
	t.tls()
	t.clientTLS()
	t.defaultCertificate()
	t.logging()
	t.headers()
	t.answers()
	t.tuning()
	t.overrides()
	return t.out
}

// set says that a field decides about an option.
func (t *translation) set(flag, value, field string, unless ...string) {
	t.out.Settings = append(t.out.Settings, Setting{Flag: flag, Value: value, Field: field, Unless: unless})
}

// content is set for what is in a file.
func (t *translation) content(flag, shown string, content []byte, field string, unless ...string) {
	t.out.Settings = append(t.out.Settings, Setting{Flag: flag, Value: shown, Content: content, Field: field, Unless: unless})
}

// invalid says that a field cannot be used.
func (t *translation) invalid(field string, value any, why string) {
	text := fmt.Sprintf("%.200q cannot be used: %s", fmt.Sprint(value), why)
	t.out.Findings = append(t.out.Findings, Finding{Field: field, Text: text})
}

// foreign says that the router has nothing that a field could mean.
func (t *translation) foreign(field, text string) {
	t.out.Findings = append(t.out.Findings, Finding{Field: field, Text: text, Foreign: true})
}

// word sets an option to what a value stands for; "" = it is not given.
func (t *translation) word(field, flag, value string, means map[string]string) {
	if value == "" {
		return
	}
	if meaning, ok := means[value]; ok {
		t.set(flag, meaning, field)
		return
	}
	t.invalid(field, value, "it is none of the values that there are")
}

// longest is what times are cut to, that of the HAProxy router: 2147483647 ms.
const longest = math.MaxInt32 * time.Millisecond

// timespec is d as the options have times, in the largest unit in which it is a whole number; what is shorter than a microsecond is cut.
func timespec(d time.Duration) string {
	d = min(d, longest)
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if d%unit.of == 0 {
			return strconv.FormatInt(int64(d/unit.of), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(d/time.Microsecond), 10) + "us"
}

// duration sets an option to a time; nil and 0 are not given, what is below least cannot be used.
func (t *translation) duration(field, flag string, d *metav1.Duration, least time.Duration) {
	switch {
	case d == nil || d.Duration == 0:
	case d.Duration < least:
		t.invalid(field, d.Duration, "allowed: "+least.String()+" or more")
	default:
		t.set(flag, timespec(d.Duration), field)
	}
}
