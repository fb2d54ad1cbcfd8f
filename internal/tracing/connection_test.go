package tracing_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"turnout/internal/testkit/testcert"
	"turnout/internal/testkit/testotlp"
	"turnout/internal/tracing"
)

// protocols are all ways to speak to a collector.
func protocols(c *testotlp.Collector) map[string]tracing.Config {
	return map[string]tracing.Config{
		"grpc":          {Protocol: tracing.GRPC, Endpoint: c.GRPC},
		"http/protobuf": {Protocol: tracing.HTTPProtobuf, Endpoint: c.HTTP + "/v1/traces"},
		"http/json":     {Protocol: tracing.HTTPJSON, Endpoint: c.HTTP + "/v1/traces"},
	}
}

// authority makes an authority and the file with its certificate.
func authority(t *testing.T) (ca *testcert.Pair, file string) {
	t.Helper()
	form := &x509.Certificate{}
	testcert.Authority(form)
	ca, file = testcert.Sign(t, form, nil), filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, []byte(ca.PEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	return ca, file
}

// TestExportByTLS: a collector with an https URL is spoken to by TLS if its certificate comes from the authority that the environment names,
// and gets nothing if it comes from another.
func TestExportByTLS(t *testing.T) {
	quick(t)
	ca, file := authority(t)
	_, other := authority(t)
	leaf := testcert.Sign(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, ca)
	c := testotlp.StartTLS(t, &tls.Config{Certificates: []tls.Certificate{leaf.TLS()}, NextProtos: []string{"h2"}})
	n := 0
	for name, cfg := range protocols(c) {
		t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", file)
		e, _ := start(t, cfg)
		record(t, e.Open(), nil)
		n++
		c.Wait(t, n)
		if err := e.Close(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := e.Stats(); got != (tracing.Stats{Exported: 1}) {
			t.Errorf("%s: counted %+v", name, got)
		}
		t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", other)
		why := "signed by unknown authority"
		if cfg.Protocol == tracing.GRPC { // it tries again until then, and need not have got so far
			t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "300")
			why = "cannot export spans"
		}
		e, notes := start(t, cfg)
		record(t, e.Open(), nil)
		if err := <-notes; err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s, another authority: notified of %v", name, err)
		}
		if got := e.Stats(); got != (tracing.Stats{Failed: 1}) {
			t.Errorf("%s, another authority: counted %+v", name, got)
		}
		t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "")
	}
}

// TestExportWithHeaders: the fields that the environment names are in each export, decoded, and those for traces are there instead of the others.
func TestExportWithHeaders(t *testing.T) {
	quick(t)
	c := testotlp.Start(t)
	n := 0
	for name, cfg := range protocols(c) {
		for variable, value := range map[string]string{
			"OTEL_EXPORTER_OTLP_HEADERS":        "Authorization=Bearer%20let-me-in,X-Tenant=shop",
			"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "X-Tenant=traces",
		} {
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "")
			t.Setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "")
			t.Setenv(variable, value)
			e, _ := start(t, cfg)
			record(t, e.Open(), nil)
			n++
			c.Wait(t, n)
			got, want := "Authorization="+c.Field("authorization")+",X-Tenant="+c.Field("x-tenant"), strings.ReplaceAll(value, "%20", " ")
			if !strings.HasPrefix(value, "Auth") {
				want = "Authorization=," + want
			}
			if got != want {
				t.Errorf("%s, %s=%s: the collector got %s", name, variable, value, got)
			}
		}
	}
}

// TestExportWithClientCertificate: a collector that wants to know who comes gets the certificate that the environment names, and takes nothing from
// those without one.
func TestExportWithClientCertificate(t *testing.T) {
	quick(t)
	ca, file := authority(t)
	leaf := testcert.Sign(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, ca)
	own := testcert.Sign(t, &x509.Certificate{DNSNames: []string{"router.test"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, ca)
	known := x509.NewCertPool()
	known.AppendCertsFromPEM([]byte(ca.PEM()))
	c := testotlp.StartTLS(t, &tls.Config{Certificates: []tls.Certificate{leaf.TLS()}, NextProtos: []string{"h2"}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known})
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if err := errors.Join(os.WriteFile(certificate, []byte(own.PEM()), 0o600), os.WriteFile(key, []byte(own.KeyPEM(t)), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", file)
	n := 0
	for name, cfg := range protocols(c) {
		for _, with := range []bool{true, false} {
			t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "")
			t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_KEY", "")
			t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "300")
			want := tracing.Stats{Failed: 1}
			if with {
				t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", certificate)
				t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_KEY", key)
				t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "")
				want = tracing.Stats{Exported: 1}
			}
			e, notes := start(t, cfg)
			record(t, e.Open(), nil)
			if with {
				n++
				c.Wait(t, n)
			} else if err := <-notes; err == nil {
				t.Errorf("%s without a certificate: no error", name)
			}
			if err := e.Close(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if got := e.Stats(); got != want {
				t.Errorf("%s, with a certificate %v: counted %+v", name, with, got)
			}
		}
	}
}

// TestExportCompressed: exports are compressed if the environment says so, and only then.
func TestExportCompressed(t *testing.T) {
	quick(t)
	c := testotlp.Start(t)
	n := 0
	for name, cfg := range protocols(c) {
		for _, encoding := range []string{"gzip", ""} {
			t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", encoding)
			e, _ := start(t, cfg)
			record(t, e.Open(), nil)
			n++
			c.Wait(t, n)
			if got := c.Encoding(); got != encoding {
				t.Errorf("%s, compression %q: the collector got %q", name, encoding, got)
			}
		}
	}
}
