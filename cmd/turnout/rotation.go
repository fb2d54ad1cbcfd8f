package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"path/filepath"

	"go.uber.org/zap"

	"turnout/internal/filewatch"
	"turnout/tlsmux"
)

// rotation follows the file or folder of the default certificate.
type rotation struct {
	source  tlsmux.DefaultCertificate
	watcher *filewatch.Watcher // nil = the certificate comes from no file
	current *tls.Certificate
	log     *zap.Logger
}

// newRotation loads the default certificate.
func newRotation(source tlsmux.DefaultCertificate, log *zap.Logger) (*rotation, error) {
	r := &rotation{source: source, log: log}
	dir := source.Dir
	if source.Path != "" {
		dir = filepath.Dir(source.Path)
	}
	var err error
	if dir != "" && source.Content == "" {
		if r.watcher, err = filewatch.New(filewatch.Config{Dir: dir}); err != nil {
			return nil, err
		}
	}
	r.current, err = tlsmux.LoadDefaultCertificate(source)
	return r, err
}

// run gives each new certificate to swap, which returns when it is served, until ctx is
// done. One that cannot be used is
// logged, and the one before stays.
func (r *rotation) run(ctx context.Context, swap func(*tls.Certificate)) {
	if r.watcher == nil {
		return
	}
	failed := ""
	r.watcher.Run(ctx, func() {
		next, err := tlsmux.LoadDefaultCertificate(r.source)
		if err != nil {
			if err.Error() != failed { // the folder is looked at from time to time
				failed = err.Error()
				r.log.Error("default certificate stays as it was", zap.Error(err))
			}
			return
		}
		failed = ""
		if sameCertificate(r.current, next) {
			return
		}
		r.current = next
		swap(next)
		r.log.Info("default certificate changed", zap.Strings("names", next.Leaf.DNSNames), zap.Time("expires", next.Leaf.NotAfter))
	})
}

func sameCertificate(a, b *tls.Certificate) bool {
	if len(a.Certificate) != len(b.Certificate) {
		return false
	}
	for i := range a.Certificate {
		if !bytes.Equal(a.Certificate[i], b.Certificate[i]) {
			return false
		}
	}
	return true
}
