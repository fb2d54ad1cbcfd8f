package follow

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"path/filepath"
	"slices"

	"go.uber.org/zap"

	"turnout/internal/filewatch"
	"turnout/internal/problem"
	"turnout/tlsmux"
)

// Certificate follows the file or folder of the default certificate. Its methods are for one goroutine.
type Certificate struct {
	source  tlsmux.DefaultCertificate
	watcher *filewatch.Watcher // nil = the certificate comes from no file
	current *tls.Certificate
	log     *zap.Logger

	problems *problem.List
}

// NewCertificate loads the default certificate. problems may be nil.
func NewCertificate(source tlsmux.DefaultCertificate, log *zap.Logger, problems *problem.List) (*Certificate, error) {
	c := &Certificate{source: source, log: log, problems: problems}
	dir := source.Dir
	if source.Path != "" {
		dir = filepath.Dir(source.Path)
	}
	var err error
	if dir != "" && source.Content == "" {
		if c.watcher, err = filewatch.New(filewatch.Config{Dir: dir}); err != nil {
			return nil, err
		}
	}
	c.current, err = tlsmux.LoadDefaultCertificate(source)
	return c, err
}

// Current is the certificate as it was loaded last.
func (c *Certificate) Current() *tls.Certificate { return c.current }

// Run gives each new certificate to swap, which returns when it is served, until ctx is done.
func (c *Certificate) Run(ctx context.Context, swap func(*tls.Certificate)) {
	if c.watcher == nil {
		<-ctx.Done()
		return
	}
	k := keeper{log: c.log, problems: c.problems, file: cmp.Or(c.source.Path, c.source.Dir), text: "default certificate stays as it was"}
	c.watcher.Run(ctx, func() {
		next, err := tlsmux.LoadDefaultCertificate(c.source)
		if !k.keep(err) || slices.EqualFunc(c.current.Certificate, next.Certificate, bytes.Equal) {
			return
		}
		c.current = next
		swap(next)
		c.log.Info("default certificate changed", zap.Strings("names", next.Leaf.DNSNames), zap.Time("expires", next.Leaf.NotAfter))
	})
	<-ctx.Done()
}
