package main

import (
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
)

// TestClientCertificatesOfTools: what curl and openssl make of it.
func TestClientCertificatesOfTools(t *testing.T) {
	ca, foreignCA := issue(t, nil, "CN=clients"), issue(t, nil, "CN=strangers")
	dir := t.TempDir()
	files := func(name string, p *identityPair) (cert, key string) {
		return write(t, dir, name+".crt", []byte(p.pem)), write(t, dir, name+".key", []byte(keyPEM(t, p.Key)))
	}
	okCert, okKey := files("ok", issue(t, ca, "C=US CN=ok"))
	badCert, badKey := files("bad", issue(t, foreignCA, "CN=ok"))
	p := startRouter(t, []string{"ROUTER_MUTUAL_TLS_AUTH=required", "ROUTER_MUTUAL_TLS_AUTH_CA=" + write(t, dir, "ca.pem", []byte(ca.pem))}, "run", "--manifests", echoSite(t))
	_, port, _ := net.SplitHostPort(p.https)
	curl := []string{"curl", "-sSk", "--max-time", "20", "--resolve", "one.test:" + port + ":127.0.0.1", "https://one.test:" + port + "/"}
	s := []string{"openssl", "s_client", "-connect", p.https, "-servername", "one.test", "-quiet", "-no_ign_eof"}
	for _, c := range []struct {
		command []string
		in      string
		want    string
	}{
		{append(curl[:len(curl):len(curl)], "--cert", okCert, "--key", okKey), "", "X-Ssl-Client-Dn: /C=US/CN=ok"},
		{append(curl[:len(curl):len(curl)], "--cert", okCert, "--key", okKey, "--http1.1"), "", "X-Ssl-Client-Dn: /C=US/CN=ok"},
		{append(curl[:len(curl):len(curl)], "--cert", badCert, "--key", badKey), "", "bad certificate"},
		{curl, "", "certificate required"},
		{append(curl[:len(curl):len(curl)], "--tls-max", "1.2"), "", "handshake failure"},
		{append(s[:len(s):len(s)], "-cert", okCert, "-key", okKey), "GET / HTTP/1.0\r\nHost: one.test\r\n\r\n", "x-ssl-client-dn: /c=us/cn=ok"},
		{append(s[:len(s):len(s)], "-cert", badCert, "-key", badKey, "-tls1_2"), "", "alert bad certificate"},
		{append(s[:len(s):len(s)], "-cert", badCert, "-key", badKey, "-tls1_3"), "\n", "alert bad certificate"},
	} {
		if _, err := exec.LookPath(c.command[0]); err != nil {
			t.Skipf("needs %s, which .ci/run installs", c.command[0])
		}
		cmd := exec.CommandContext(t.Context(), c.command[0], c.command[1:]...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(in, c.in) // it may have ended already
		_ = cmd.Wait()                  // what it says counts
		if !strings.Contains(strings.ToLower(out.String()), strings.ToLower(c.want)) {
			t.Errorf("%v:\n%s\nwant %q", c.command, out.String(), c.want)
		}
	}
}
