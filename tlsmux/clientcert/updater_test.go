package clientcert

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"turnout/internal/target"
	"turnout/internal/testkit/testcert"
)

// points of distribution that a test serves.
type web struct {
	mu    sync.Mutex
	pages map[string][]byte
	asked []string
}

func (w *web) put(address string, page []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pages[address] = page
}

func (w *web) get(_ context.Context, address string) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, address)
	if page, ok := w.pages[address]; ok {
		return page, nil
	}
	return nil, errors.New("not found")
}

// take returns what was asked for since the last time.
func (w *web) take() (asked []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked, w.asked = w.asked, nil
	return asked
}

// rig is an updater in virtual time.
type rig struct {
	web
	updater *Updater
	trust   *Trust
	ended   []error // outcomes of updates
}

func newRig(t *testing.T, b *Bundle, pages map[string][]byte) *rig {
	t.Helper()
	r := &rig{web: web{pages: pages}}
	var err error
	r.updater, err = NewUpdater(b, UpdaterConfig{
		Fetch:   r.get,
		Changed: func(trust *Trust) { r.mu.Lock(); r.trust = trust; r.mu.Unlock() },
		Outcome: func(err error) { r.mu.Lock(); r.ended = append(r.ended, err); r.mu.Unlock() },
	})
	must(t, err)
	return r
}

// start runs the updater until the test ends.
func (r *rig) start(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); r.updater.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	synctest.Wait()
}

// judged is what becomes of a client now.
func (r *rig) judged(t *testing.T, want error, sent ...*pair) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	trust := r.trust
	r.mu.Unlock()
	if err := judge(t, trust, sent...); !errors.Is(err, want) {
		t.Errorf("%v: %v, want %v", time.Now(), err, want)
	}
}

func (r *rig) wasAsked(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := r.take(); !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
}

// outcomes fails unless these updates, and no others, have ended since the last call.
func (r *rig) outcomes(t *testing.T, failed ...bool) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.EqualFunc(r.ended, failed, func(err error, failed bool) bool { return (err != nil) == failed }) {
		t.Errorf("%v: outcomes %v, want failures to be %v", time.Now(), r.ended, failed)
	}
	r.ended = nil
}

const (
	urlA, urlB, urlC = "http://a.test/crl", "http://b.test/crl", "http://c.test/crl"
)

// TestUpdater: nothing is trusted before the first success; expired lists and errors lead to the next address; the lists
// are fetched again when the first of them ends, and only what has ended.
func TestUpdater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := issue(t, nil, "root", points(urlA, urlB))
		other := issue(t, nil, "other", points(urlC))
		leaf, revoked := issue(t, root, "leaf"), issue(t, root, "revoked")
		begin := time.Now()
		until := func(d time.Duration) func(*x509.RevocationList) {
			return func(l *x509.RevocationList) { l.ThisUpdate, l.NextUpdate = time.Now().Add(-time.Second), begin.Add(d) }
		}
		r := newRig(t, bundle(t, root, other), map[string][]byte{
			urlB: pemOf("X509 CRL", list(t, root, until(2*time.Hour), revoked)),
		})
		r.judged(t, ErrNoList, leaf)
		r.start(t)
		r.wasAsked(t, urlA, urlB, urlC)
		r.judged(t, ErrNoList, leaf) // all or nothing: the other testcert.Authority's list is missing
		r.outcomes(t, true)

		<-time.After(5*time.Minute - time.Second) // virtual
		r.wasAsked(t)
		r.put(urlC, list(t, other, until(24*time.Hour)))
		<-time.After(time.Second) // virtual
		r.wasAsked(t, urlA, urlB, urlC)
		r.judged(t, nil, leaf)
		r.judged(t, ErrRevoked, revoked)
		r.outcomes(t, false)

		// At the end of the first list it alone is fetched: A has an expired one, so from B.
		r.put(urlA, list(t, root, until(6*time.Minute)))
		r.put(urlB, list(t, root, func(l *x509.RevocationList) {
			l.ThisUpdate, l.NextUpdate = begin.Add(90*time.Minute), begin.Add(4*time.Hour)
		}, leaf, revoked))
		<-time.After(time.Until(begin.Add(2*time.Hour - time.Second))) // virtual
		r.wasAsked(t)
		<-time.After(time.Second) // virtual
		r.wasAsked(t, urlA, urlB)
		r.judged(t, ErrRevoked, leaf)
		r.outcomes(t, false)

		// Nothing new can be had: what is there stays, and after its end everybody is refused.
		fresh := issue(t, root, "fresh")
		delete(r.pages, urlB)
		r.judged(t, nil, fresh)
		<-time.After(time.Until(begin.Add(4 * time.Hour))) // virtual
		r.wasAsked(t, urlA, urlB)
		<-time.After(time.Second) // virtual
		r.judged(t, ErrListExpired, fresh)
		r.outcomes(t, true)
		r.put(urlA, list(t, root, func(l *x509.RevocationList) { l.ThisUpdate, l.NextUpdate = time.Now(), begin.Add(9*time.Hour) }))
		<-time.After(5 * time.Minute) // virtual
		r.wasAsked(t, urlA)
		r.judged(t, nil, fresh)
		r.outcomes(t, false)
	})
}

// TestUpdaterFollowsTheBundle: another bundle counts at once, with the lists that are there; what it lacks is fetched.
func TestUpdaterFollowsTheBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, other, silent := issue(t, nil, "root", points(urlA)), issue(t, nil, "other", points(urlB)), issue(t, nil, "silent")
		ofRoot, ofOther, ofSilent := issue(t, root, "leaf"), issue(t, other, "leaf"), issue(t, silent, "leaf")
		r := newRig(t, bundle(t, silent), map[string][]byte{urlA: list(t, root, nil)})
		r.judged(t, nil, ofSilent) // no list is named, none is needed
		r.start(t)
		r.wasAsked(t)

		r.updater.SetBundle(bundle(t, root, silent))
		r.wasAsked(t, urlA)
		r.judged(t, nil, ofRoot)
		r.judged(t, ErrNoList, ofSilent)

		r.updater.SetBundle(bundle(t, root, other))
		r.wasAsked(t, urlB) // the root's is still good
		r.judged(t, nil, ofRoot)
		r.judged(t, ErrNoList, ofOther)
		r.put(urlB, list(t, other, nil))
		r.updater.SetBundle(bundle(t, other)) // the root is trusted no more, at once
		r.wasAsked(t, urlB)
		r.judged(t, nil, ofOther)
		if judge(t, r.trust, ofRoot) == nil {
			t.Error("an testcert.Authority that was taken away is trusted")
		}
	})
}

// TestUpdaterDoesNotWaitForAnOldBundle: a fetch that takes long is given up for a new bundle.
func TestUpdaterDoesNotWaitForAnOldBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, other := issue(t, nil, "root", points(urlA)), issue(t, nil, "other")
		r := newRig(t, bundle(t, root), nil)
		r.updater.cfg.Fetch = func(ctx context.Context, _ string) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }
		r.start(t)
		r.updater.SetBundle(bundle(t, other))
		r.judged(t, nil, issue(t, other, "leaf"))
		r.outcomes(t, false) // of the new one
	})
}

func TestUpdaterChecksSignatures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := issue(t, nil, "root", points(urlA, urlB))
		r := newRig(t, bundle(t, root), map[string][]byte{urlA: list(t, issue(t, nil, "root"), nil), urlB: list(t, root, nil)})
		r.start(t)
		r.wasAsked(t, urlA, urlB)
		r.judged(t, nil, issue(t, root, "leaf"))
	})
}

// TestOneFetchForSeveral: authorities of one issuer name the same list.
func TestOneFetchForSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := issue(t, nil, "root")
		one, two := issue(t, root, "one", testcert.Authority, points(urlA)), issue(t, root, "two", testcert.Authority, points(urlA))
		r := newRig(t, bundle(t, root, one, two), map[string][]byte{urlA: list(t, root, nil)})
		r.start(t)
		r.wasAsked(t, urlA)
	})
}

func TestNewUpdaterRefuses(t *testing.T) {
	b := bundle(t, issue(t, nil, "root"))
	for _, cfg := range []UpdaterConfig{{}, {Fetch: new(web).get}, {Changed: func(*Trust) {}}} {
		if _, err := NewUpdater(b, cfg); err == nil {
			t.Error("no error")
		}
	}
}

func TestDownloader(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/crl":
			_, _ = io.WriteString(w, "a list")
		case "/moved":
			http.Redirect(w, r, "/crl", http.StatusFound)
		case "/secure":
			http.Redirect(w, r, "https://secure.test/crl", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/large":
			_, _ = w.Write(make([]byte, 1001))
		case "/exact":
			_, _ = w.Write(make([]byte, 1000))
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	d := newDownloader("", "", nil)
	d.limit = 1000
	if data, err := d.fetch(t.Context(), server.URL+"/exact"); len(data) != 1000 || err != nil {
		t.Errorf("as long as allowed: %d bytes, %v", len(data), err)
	}
	for _, c := range []struct{ address, want string }{
		{server.URL + "/crl", ""}, {server.URL + "/moved", ""},
		{server.URL + "/secure", "redirected"}, {server.URL + "/round", "redirected"}, {server.URL + "/none", "404"}, {server.URL + "/large", "more than"},
		{"https://127.0.0.1/crl", "only http"}, {"ldap://127.0.0.1/cn=crl", "only http"}, {"file:///etc/passwd", "only http"}, {"http://[", "missing"},
	} {
		got, err := d.fetch(t.Context(), c.address)
		switch {
		case c.want == "" && (err != nil || string(got) != "a list"):
			t.Errorf("%s: %q %v", c.address, got, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.address, err, c.want)
		}
	}
}

// TestDownloadsAreJudged checks that neither the URL of a list nor a redirection leads to an
// address that is refused for endpoints of tenants.
func TestDownloadsAreJudged(t *testing.T) {
	var admin, lists *httptest.Server
	admin = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the admin port was read") }))
	defer admin.Close()
	lists = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, admin.URL, http.StatusFound)
		}
		_, _ = io.WriteString(w, "a list")
	}))
	defer lists.Close()
	var guard target.Guard
	guard.Set(target.NewPolicy(true, target.NewOwn([]netip.AddrPort{netip.MustParseAddrPort(admin.Listener.Addr().String())}, nil)))
	d := newDownloader("", "", &guard)
	for address, want := range map[string]string{
		lists.URL: "", lists.URL + "/moved": "the router itself", admin.URL: "the router itself", "http://169.254.169.254/": "link-local",
	} {
		_, err := d.fetch(t.Context(), address)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
	guard.Set(nil) // the administrator chooses the proxy
	if data, err := newDownloader(lists.URL, "", &guard).fetch(t.Context(), "http://crl.test/"); string(data) != "a list" {
		t.Error(err)
	}
}

func TestDownloadTakesNoLongerThanItMay(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	d := newDownloader("", "", nil)
	d.time = time.Millisecond
	if _, err := d.fetch(t.Context(), server.URL); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestDownloadThroughAProxy(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "proxied ", r.URL) }))
	defer proxy.Close()
	got, err := Downloader(proxy.URL, "direct.test", nil)(t.Context(), "http://crl.test/list")
	if err != nil || string(got) != "proxied http://crl.test/list" {
		t.Errorf("%q %v", got, err)
	}
	d := newDownloader(proxy.URL, "direct.test,.corp.test", nil)
	for address, proxied := range map[string]bool{"http://crl.test": true, "http://direct.test": false, "http://a.corp.test": false, "http://127.0.0.1": false} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		must(t, err)
		if u, err := d.client.Transport.(*http.Transport).Proxy(r); (u != nil) != proxied || err != nil {
			t.Errorf("%s: through %v, %v", address, u, err)
		}
	}
}
