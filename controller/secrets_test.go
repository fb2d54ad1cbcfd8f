package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"

	"turnout/balancer"
	"turnout/controller/source"
	"turnout/routing"
)

// vault is a source.Secrets that answers nothing by itself.
type vault struct {
	mu      sync.Mutex
	watched map[source.Key]bool
	log     []string
	wrong   []string
}

func (v *vault) Watch(key source.Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.watched == nil {
		v.watched = make(map[source.Key]bool)
	}
	if v.watched[key] {
		v.wrong = append(v.wrong, "watched twice: "+key.String())
	}
	v.watched[key] = true
	v.log = append(v.log, "+"+key.Name)
}

func (v *vault) Again(key source.Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.log = append(v.log, "again "+key.Name)
}

func (v *vault) Forget(key source.Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.watched[key] {
		v.wrong = append(v.wrong, "forgotten without being watched: "+key.String())
	}
	delete(v.watched, key)
	v.log = append(v.log, "-"+key.Name)
}

// taken returns what was asked since the last call, such as "+a -b".
func (v *vault) taken() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := strings.Join(append(v.log, v.wrong...), " ")
	v.log = nil
	return out
}

// safe is a rig with secrets on demand.
func safe(t *testing.T, o Options) (*rig, *vault) {
	v := new(vault)
	return newRig(t, o, func(c *Config) { c.Secrets = v }), v
}

// referring makes a route refer to a secret, "" for none.
func referring(name string) func(*routev1.Route) {
	return func(o *routev1.Route) {
		o.Spec.TLS = &routev1.TLSConfig{Termination: "edge"}
		if name != "" {
			o.Spec.TLS.ExternalCertificate = &routev1.LocalObjectReference{Name: name}
		}
	}
}

// leaf returns the common name of the certificate of a host, "" for the default one.
func (r *rig) leaf(host string) string {
	if c := r.store.Load().SNI(host).Certificate; c != nil {
		return c.Leaf.Subject.CommonName
	}
	return ""
}

func failed(name string, err error) source.Event {
	e := gone(source.Secret, name)
	e.Err = err
	return e
}

var errDenied = &source.DeniedError{Verbs: []string{"get", "watch", "list"}}

const (
	deniedWords = "[spec.tls.externalCertificate: Forbidden: router serviceaccount does not have permission to get this secret, " +
		"spec.tls.externalCertificate: Forbidden: router serviceaccount does not have permission to watch this secret, " +
		"spec.tls.externalCertificate: Forbidden: router serviceaccount does not have permission to list this secret]"
	missingWords = `spec.tls.externalCertificate: Not found: "secrets \"c\" not found"`
	opaqueWords  = `spec.tls.externalCertificate: Invalid value: "c": secret of type "kubernetes.io/tls" required`
	rejectedBy   = "False ExternalCertificateValidationFailed: "
)

// TestExternalRows: what a route with and without a reference becomes with
// what is known about the secret. Differences: a route the reference router admits and
// then marks as ExternalCertificateSecretUpdated, Deleted or Recreated, so that it looks
// again, simply is what its secret makes it. Asking for a secret cannot
// fail.
func TestExternalRows(t *testing.T) {
	cert, key := keyPair(t, "c.test")
	other, otherKey := keyPair(t, "d.test")
	good := aSecret("c", corev1.SecretTypeTLS, cert, key)
	opaque := aSecret("c", corev1.SecretTypeOpaque, cert, key)
	denied, missing := failed("c", errDenied), gone(source.Secret, "c")
	route := func(name string) source.Event { return aRoute("e", "h.test", 0, referring(name)) }
	for _, c := range []struct {
		id        string
		steps     []source.Event // each handled by itself
		condition string
		leaf      string // of what is served
		asked     string // of the secrets
	}{
		{"add, denied: rejected", []source.Event{route("c"), denied}, rejectedBy + deniedWords, "", "+c"},
		{"add, secret missing: rejected", []source.Event{route("c"), missing}, rejectedBy + missingWords, "", "+c"},
		{"add, secret type Opaque: rejected", []source.Event{route("c"), opaque}, rejectedBy + opaqueWords, "", "+c"},
		{"add without reference: forwarded unchanged", []source.Event{route("")}, "True", "default", ""},
		{"modify, reference added, before none, denied / missing / wrong type: rejected [ValidationFailed] denied", []source.Event{route(""), route("c"), denied}, rejectedBy + deniedWords, "", "+c"},
		{"modify, reference added, before none, denied / missing / wrong type: rejected [ValidationFailed] missing", []source.Event{route(""), route("c"), missing}, rejectedBy + missingWords, "", "+c"},
		{"modify, reference added, before none, denied / missing / wrong type: rejected [ValidationFailed] opaque", []source.Event{route(""), route("c"), opaque}, rejectedBy + opaqueWords, "", "+c"},
		{"modify, reference added, before none, ok: forwarded, registered", []source.Event{route(""), route("c"), good}, "True", "c.test", "+c"},
		{"modify, reference added, before none, ok: forwarded, registered until it is known", []source.Event{route(""), route("c")}, "True", "default", "+c"},
		{"modify, same reference, before registered, denied / missing / wrong type: rejected [ValidationFailed] denied", []source.Event{route("c"), good, route("c"), denied}, rejectedBy + deniedWords, "", "+c"},
		{"modify, same reference, before registered, denied / missing / wrong type: rejected [ValidationFailed] missing", []source.Event{route("c"), good, route("c"), missing}, rejectedBy + missingWords, "", "+c"},
		{"modify, same reference, before registered, denied / missing / wrong type: rejected [ValidationFailed] opaque", []source.Event{route("c"), good, route("c"), opaque}, rejectedBy + opaqueWords, "", "+c"},
		{"modify, same reference, before registered, ok: forwarded with current data", []source.Event{route("c"), good, route("c"), aSecret("c", corev1.SecretTypeTLS, other, otherKey)}, "True", "d.test", "+c"},
		{"modify, other reference, before registered, denied: old monitor removed, rejected", []source.Event{route("b"), aSecret("b", corev1.SecretTypeTLS, other, otherKey), route("c"), denied}, rejectedBy + deniedWords, "", "+b +c -b"},
		{"modify, other reference, before registered, ok: re-registered, forwarded", []source.Event{route("b"), aSecret("b", corev1.SecretTypeTLS, other, otherKey), route("c"), good}, "True", "c.test", "+b +c -b"},
		{"modify, other reference, before registered, ok: re-registered, forwarded until it is known", []source.Event{route("b"), aSecret("b", corev1.SecretTypeTLS, other, otherKey), route("c")}, "True", "d.test", "+b +c -b"},
		{"modify, reference removed, before registered: unregistered, forwarded", []source.Event{route("c"), good, route("")}, "True", "default", "+c -c"},
		{"modify, none before and after: forwarded", []source.Event{route(""), route("")}, "True", "default", ""},
		{"delete, before registered: unregistered, forwarded", []source.Event{route("c"), good, gone(source.Route, "e")}, "no route", "", "+c -c"},
		{"delete, before not registered: forwarded", []source.Event{route(""), gone(source.Route, "e")}, "no route", "", ""},
		{"secret deleted, before registered: rejection [ExternalCertificateSecretDeleted]", []source.Event{route("c"), good, missing}, rejectedBy + missingWords, "", "+c"},
		{"secret re-created after deletion, before registered: rejection [ExternalCertificateSecretRecreated], then re-evaluation", []source.Event{route("c"), good, missing, good}, "True", "c.test", "+c"},
		{"secret created first time: nothing", []source.Event{route("c"), missing, good}, "True", "c.test", "+c"},
		{"failure at first", []source.Event{route("c"), failed("c", errors.New("cannot read: x"))}, "False ExternalCertificateGetFailed: cannot read: x", "", "+c"},
		{"failure later", []source.Event{route("c"), good, failed("c", errors.New("cannot read: x"))},
			`True ExternalCertificateGetFailed: the last good certificate of secret "c" is served: cannot read: x`, "c.test", "+c"},
		{"failure after it was gone", []source.Event{route("c"), good, missing, failed("c", errors.New("x"))}, "False ExternalCertificateGetFailed: x", "", "+c"},
		{"empty at first", []source.Event{route("c"), aSecret("c", corev1.SecretTypeTLS, "", "")}, rejectedBy + `secret "c": it holds no certificate`, "", "+c"},
		{"empty later", []source.Event{route("c"), good, aSecret("c", corev1.SecretTypeTLS, "", "")},
			`True ExternalCertificateValidationFailed: the last good certificate of secret "c" is served: secret "c": it holds no certificate`, "c.test", "+c"},
		{"torn, with another change of the route", []source.Event{route("c"), good, aSecret("c", corev1.SecretTypeTLS, cert, otherKey),
			aRoute("e", "h.test", 0, referring("c"), func(o *routev1.Route) { o.Spec.TLS.InsecureEdgeTerminationPolicy = "Redirect" })},
			`True ExternalCertificateValidationFailed: the last good certificate of secret "c" is served: ` +
				`spec.tls.key: Invalid value: "redacted key data": tls: private key does not match public key`, "c.test", "+c"},
		{"torn after another secret", []source.Event{route("b"), aSecret("b", corev1.SecretTypeTLS, other, otherKey), route("c"),
			aSecret("c", corev1.SecretTypeTLS, cert, otherKey)},
			rejectedBy + `spec.tls.key: Invalid value: "redacted key data": tls: private key does not match public key`, "", "+b +c -b"},
		{"host that cannot be", []source.Event{aRoute("e", "A", 0, referring("c"))}, "", "", ""},
		{"another route has the host", []source.Event{aRoute("a", "h.test", -1), route("c")},
			"False HostAlreadyClaimed: route a already exposes h.test and is older", "default", "+c"},
		{"promotion has no gap", []source.Event{aRoute("a", "h.test", -1), route("c"), good, gone(source.Route, "a")}, "True", "c.test", "+c"},
		{"made again at once", []source.Event{route("c"), good, aRoute("e", "h.test", 0, referring("c"), func(o *routev1.Route) { o.UID = "new" })}, "True", "c.test", "+c"},
	} {
		r, v := safe(t, Options{})
		r.do() // the first table waits for secrets, this is about later ones
		for _, e := range c.steps {
			r.do(e)
		}
		if got := r.condition("e"); got != c.condition && c.condition != "" {
			t.Errorf("%s: condition %q, want %q", c.id, got, c.condition)
		}
		leaf := r.leaf("h.test")
		if leaf == "" && r.store.Load().Len() > 0 {
			leaf = "default"
		}
		if leaf != c.leaf {
			t.Errorf("%s: certificate %q, want %q", c.id, leaf, c.leaf)
		}
		if got := v.taken(); got != c.asked {
			t.Errorf("%s: secrets asked for: %q, want %q", c.id, got, c.asked)
		}
	}
}

// TestWaitingRoute is a route from its first event until its secret comes.
func TestWaitingRoute(t *testing.T) {
	cert, key := keyPair(t, "c.test")
	reports, v := new(reporter), new(vault)
	r := newRig(t, Options{}, func(c *Config) { c.Secrets, c.Status = v, reports })
	r.do()
	r.do(aRoute("e", "h.test", 0, referring("c")))
	if route, ok := r.c.Route("ns", "e"); !ok || len(route.Status.Ingress) != 0 {
		t.Errorf("shown with status %+v before it is decided", route)
	}
	if _, rejected := r.c.Counts(); rejected != 0 || r.store.Load().Len() != 0 {
		t.Errorf("%d rejected, %d served before it is decided", rejected, r.store.Load().Len())
	}
	if got := reports.taken(); got != "observe e" {
		t.Errorf("reported %q before it is decided", got)
	}
	r.do(aSecret("c", corev1.SecretTypeTLS, cert, key))
	r.wantCondition("e", "True")
	if got := reports.taken(); got != "report e True" {
		t.Errorf("reported %q", got)
	}
	// Where it is served it goes on until the next secret is known, with its endpoints
	// followed; elsewhere it does not.
	r.do(aRoute("e", "h.test", 0, referring("d")))
	r.do(aSlice("s-1", "s", "10.0.0.7"))
	if got := r.leaf("h.test") + " " + r.servers("e"); got != "c.test 10.0.0.7:8080" {
		t.Errorf("while the next secret is not known: %q", got)
	}
	r.do(aRoute("e", "h2.test", 0, referring("d")))
	if n := r.store.Load().Len(); n != 0 {
		t.Errorf("%d routes while another host waits for a secret", n)
	}
	r.do(aSecret("d", corev1.SecretTypeTLS, cert, key))
	if got := r.leaf("h2.test") + " " + r.servers("e"); got != "c.test 10.0.0.7:8080" {
		t.Errorf("after the next secret: %q", got)
	}
}

// elapse lets virtual time pass, inside of synctest.Test.
func elapse(d time.Duration) { <-time.NewTimer(d).C }

// TestSecretThatDoesNotCome is in virtual time.
func TestSecretThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := new(vault)
		store := routing.NewStore()
		c, err := New(Config{Store: store, Routing: routing.Options{Registry: balancer.NewRegistry()}, Secrets: v})
		if err != nil {
			t.Fatal(err)
		}
		sink := c.Sink("test")
		begin := time.Now()
		runFor(t, c, 24*time.Hour)
		sink.Event(aRoute("e", "h.test", 0, referring("c")))
		sink.Event(aRoute("p", "p.test", 0))
		sink.Synced()
		<-c.Ready()
		if took := time.Since(begin); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("the first table came after %v", took)
		}
		r := &rig{TB: t, c: c, store: store}
		r.wantCondition("e", `False ExternalCertificateGetFailed: secret "c" could not be read yet`)
		r.wantCondition("p", "True")
		cert, key := keyPair(t, "c.test")
		sink.Event(aSecret("c", corev1.SecretTypeTLS, cert, key))
		synctest.Wait()
		r.wantCondition("e", "True")
		// A route that is served waits as long as it takes.
		sink.Event(aRoute("e", "h.test", 0, referring("d")))
		elapse(time.Hour)
		r.wantCondition("e", "True")
		if got := r.leaf("h.test"); got != "c.test" {
			t.Errorf("certificate %q", got)
		}
		// A route that is not served is reported.
		sink.Event(aRoute("n", "n.test", 0, referring("f")))
		elapse(9 * time.Second)
		r.wantNoCondition("n")
		elapse(2 * time.Second)
		r.wantCondition("n", `False ExternalCertificateGetFailed: secret "f" could not be read yet`)
	})
}

// wantNoCondition fails unless a route is shown without status.
func (r *rig) wantNoCondition(name string) {
	r.Helper()
	if route, ok := r.c.Route("ns", name); !ok || len(route.Status.Ingress) != 0 {
		r.Errorf("%s: shown as %+v", name, route)
	}
}

// TestFirstTableWaitsForSecrets looks that Ready comes with the last secret.
func TestFirstTableWaitsForSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := new(vault)
		store := routing.NewStore()
		c, err := New(Config{Store: store, Routing: routing.Options{Registry: balancer.NewRegistry()}, Secrets: v})
		if err != nil {
			t.Fatal(err)
		}
		sink := c.Sink("test")
		ctx := runFor(t, c, time.Hour)
		cert, key := keyPair(t, "c.test")
		for i := range 3 {
			sink.Event(aRoute(fmt.Sprint("e", i), fmt.Sprintf("h%d.test", i), 0, referring(fmt.Sprint("c", i))))
		}
		sink.Synced()
		begin := time.Now()
		for i := range 3 {
			synctest.Wait()
			if store.Load().Generation() != 0 {
				t.Fatalf("a table is published before secret %d", i)
			}
			elapse(time.Second)
			sink.Event(aSecret(fmt.Sprint("c", i), corev1.SecretTypeTLS, cert, key))
		}
		if err := c.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		<-c.Ready()
		if store.Load().Len() != 3 || time.Since(begin) > 4*time.Second {
			t.Errorf("%d routes after %v", store.Load().Len(), time.Since(begin))
		}
		for _, name := range []string{"+c0", "+c1", "+c2"} {
			if !slices.Contains(v.log, name) {
				t.Errorf("secrets asked for: %q", v.log)
			}
		}
	})
}

func TestSkippedValidationStillNeedsAPair(t *testing.T) {
	cert, key := keyPair(t, "c.test")
	_, other := keyPair(t, "d.test")
	r, _ := safe(t, Options{SkipExtendedValidation: true})
	r.do()
	r.do(aRoute("e", "h.test", 0, referring("c")), aSecret("c", corev1.SecretTypeTLS, cert, key))
	r.do(aSecret("c", corev1.SecretTypeTLS, cert, key))
	r.do(aSecret("c", corev1.SecretTypeTLS, cert, other))
	r.wantCondition("e", `True ExternalCertificateValidationFailed: the last good certificate of secret "c" is served: `+
		`secret "c": tls: private key does not match public key`)
	if got := r.leaf("h.test"); got != "c.test" {
		t.Errorf("certificate %q", got)
	}
}

// TestChangedRouteAsksAgain: a route that has changed is a reason to ask again for a secret that cannot be had, and nothing else is.
func TestChangedRouteAsksAgain(t *testing.T) {
	v := &vault{}
	r := newRig(t, Options{}, func(c *Config) { c.Secrets = v })
	external := func(name, host, path string) source.Event {
		return aRoute(name, host, 0, func(o *routev1.Route) {
			o.Spec.Path = path
			o.Spec.TLS = &routev1.TLSConfig{Termination: routev1.TLSTerminationEdge, ExternalCertificate: &routev1.LocalObjectReference{Name: "cert"}}
		})
	}
	expect := func(what, want string) {
		t.Helper()
		if got := v.taken(); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	r.do(external("a", "a.test", ""))
	expect("asked", "+cert")
	r.do(external("a", "a.test", "/x"))
	expect("changed before there is an answer", "")
	denied := source.Event{Kind: source.Secret, Key: source.Key{Namespace: "ns", Name: "cert"}, Err: &source.DeniedError{Verbs: []string{"get"}}}
	r.do(denied)
	r.do(denied)
	expect("denied", "")
	r.do(external("a", "a.test", "/x"))
	expect("reported again as it is", "")
	r.do(external("a", "a.test", "/y"))
	expect("changed", "again cert")
	r.do(external("b", "b.test", ""))
	expect("another route", "again cert")
	r.do(gone(source.Route, "b"))
	expect("gone", "")
}
