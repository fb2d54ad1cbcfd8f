package routing

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/wire/field"
	"turnout/routing/cors"
	"turnout/routing/header"
	"turnout/routing/redirect"
	"turnout/routing/rewrite"
)

// altered sets a field that is not a struct to another value. It fails for a type that it does not know:
// say here how a value of it is made.
func altered(t *testing.T, name string, v reflect.Value, c *CertificateSpec) {
	t.Helper()
	switch at := v.Addr().Interface().(type) {
	case **CertificateSpec:
		*at = c
		return
	case **AllowList:
		*at = NewAllowList([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
		return
	case **header.Actions:
		*at = new(header.Actions)
		return
	case **rewrite.Rule:
		*at = new(rewrite.Rule)
		return
	case **redirect.Rule:
		*at = new(redirect.Rule)
		return
	case **cors.Rule:
		*at = new(cors.Rule)
		return
	case **RetrySpec:
		*at = new(RetrySpec)
		return
	case *balancer.HTTPCheck:
		*at = balancer.NewHTTPCheck(balancer.Request{Path: "/", Least: 200, Most: 299})
		return
	case *field.CarriedName:
		*at, _ = field.NewCarriedName("x-session")
		return
	case *[]balancer.Target:
		*at = []balancer.Target{{ID: "another", Addr: testaddr.Parse("10.9.9.9:80"), Weight: 1}}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint8, reflect.Uint16:
		v.SetUint(v.Uint() + 1)
	default:
		t.Fatalf("%s: say how another %s is made", name, v.Type())
	}
}

// eachField calls yield with the index of each field of a type, those of structs in it instead of the struct itself.
func eachField(of reflect.Type, name string, index []int, yield func(name string, index []int)) {
	for i := range of.NumField() {
		f, path := of.Field(i), append(append([]int(nil), index...), i)
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[balancer.HTTPCheck]() && f.Type != reflect.TypeFor[field.CarriedName]() {
			eachField(f.Type, name+f.Name+".", path, yield)
			continue
		}
		yield(name+f.Name, path)
	}
}

// TestEachFieldIsCompared changes one field of a RouteSpec after the other. Each must make another route or another pool of it,
// and the published table must serve the change, however it is made.
func TestEachFieldIsCompared(t *testing.T) {
	first, other := newCertificate(t, "one"), newCertificate(t, "two")
	base := route("1", "a.test", "/p", edge, with(first))
	base.Check, base.Targets = time.Second, append(base.Targets, balancer.Target{ID: "second", Addr: testaddr.Parse("10.0.0.2:80"), Weight: 1})
	fields := 0
	eachField(reflect.TypeFor[RouteSpec](), "", nil, func(name string, index []int) {
		fields++
		spec := base
		altered(t, name, reflect.ValueOf(&spec).Elem().FieldByIndex(index), other)
		if reflect.DeepEqual(spec, base) {
			t.Fatalf("%s has not changed", name)
		}
		pool := spec.Pool() != base.Pool() || name == "Targets"
		rule, before := spec.Rule(), base.Rule()
		if same := rule.SameRoute(&before); same != pool && name != "RouteKey.Namespace" {
			t.Errorf("%s: same route %t, same pool %t", name, same, !pool)
		}
		for how, next := range map[string]func(*Table) (*Table, []Rejection){
			"Apply":   func(before *Table) (*Table, []Rejection) { return before.Apply([]RouteSpec{spec}, nil) },
			"Compile": func(before *Table) (*Table, []Rejection) { return Compile(before.options, before, []RouteSpec{spec}) },
		} {
			store := NewStore()
			store.Publish(compile(t, base))
			table, rejections := next(store.Load())
			store.Publish(table)
			if len(rejections) > 0 || !serves(t, store.Load(), &spec, name, index) {
				t.Errorf("%s, %s: the published table does not serve the change: %v", name, how, rejections)
			}
		}
	})
	if fields < 30 {
		t.Errorf("only %d fields were changed", fields)
	}
}

// serves reports whether a table has in its field of a name what spec has there.
func serves(t *testing.T, table *Table, spec *RouteSpec, name string, index []int) bool {
	t.Helper()
	r := table.Route(spec.RouteKey)
	if r == nil {
		return false
	}
	switch name {
	case "Certificate":
		return r.Certificate().Leaf.Subject.CommonName == "two"
	case "Targets":
		return r.Pool().Len() == 1 && r.Pool().Servers()[0].ID() == "another"
	}
	want := reflect.ValueOf(spec).Elem().FieldByIndex(index)
	top := reflect.TypeFor[RouteSpec]().Field(index[0]).Name
	inRoute := map[string]string{"RouteKey": "key", "CookieName": "cookie"}[top]
	if inRoute == "" {
		inRoute = strings.ToLower(top[:1]) + top[1:]
	}
	if got := reflect.ValueOf(r).Elem().FieldByName(inRoute); got.IsValid() {
		if got.Kind() == reflect.Pointer && top == "Policy" {
			got = got.Elem()
		}
		if len(index) > 1 {
			got = got.FieldByIndex(index[1:])
		}
		return got.Equal(want)
	}
	inPool := map[string]string{"Balance": "Algorithm"}[top]
	if inPool == "" {
		inPool = top
	}
	return reflect.ValueOf(r.Pool().Config()).FieldByName(inPool).Equal(want)
}

// TestEachTextOfACertificateIsCompared: what was read of it says nothing that the texts do not.
func TestEachTextOfACertificateIsCompared(t *testing.T) {
	base := CertificateSpec{Certificate: "c", Key: "k", CA: "a"}
	eachField(reflect.TypeFor[CertificateSpec](), "", nil, func(name string, index []int) {
		spec := base
		if name == "Leaf" {
			return
		}
		altered(t, name, reflect.ValueOf(&spec).Elem().FieldByIndex(index), nil)
		if spec.Equal(&base) || spec.sum() == base.sum() {
			t.Errorf("%s makes no other certificate", name)
		}
	})
	if same := base; !same.Equal(&base) || base.Equal(nil) {
		t.Error("a certificate does not equal itself, or equals none")
	}
}
