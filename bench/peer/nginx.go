package peer

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
)

// nginxForm takes the folder, the listener's address, the upstream's and the parameters of the listener.
const nginxForm = `daemon off;
master_process off;
worker_processes 1;
pid %[1]s/nginx.pid;
error_log stderr warn;
events {
  worker_connections 4096;
}
http {
  access_log off;
  client_body_temp_path %[1]s/client;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  keepalive_requests 1000000000;
  upstream site {
    server %[3]s;
    keepalive 64;
    keepalive_requests 1000000000;
    keepalive_time 1d;
  }
  server {
    listen %[2]s ssl;
    ssl_certificate %[1]s/site.pem;
    ssl_certificate_key %[1]s/site.pem;
    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
    ssl_ecdh_curve X25519;
    location / {
      proxy_pass http://site;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
  }
}
`

// nginxConfig writes the configuration that serves s on listen into dir and returns its path. Sessions are resumed by
// tickets, as nginx does it unless told otherwise; upstream connections are pooled, which it must be told.
func nginxConfig(dir string, s *layout, listen netip.AddrPort) (string, error) {
	path := filepath.Join(dir, "nginx.conf")
	err := errors.Join(
		os.WriteFile(filepath.Join(dir, "site.pem"), []byte(s.pem.Certificate+s.pem.Key), 0o600),
		os.WriteFile(path, fmt.Appendf(nil, nginxForm, dir, listen, s.upstreams[0]), 0o600),
	)
	if err != nil {
		return "", fmt.Errorf("cannot write nginx's configuration: %w", err)
	}
	return path, nil
}

// findNginx also looks where Debian puts it, which is not in everybody's PATH.
func findNginx() (string, error) {
	path, err := exec.LookPath("nginx")
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/nginx")
	}
	if err != nil {
		return "", fmt.Errorf("cannot find nginx, install Debian's nginx-light: %w", err)
	}
	return path, nil
}
