// Package deps exists only while the rooms are being built: it holds the module requirements.
package deps

import (
	_ "github.com/fsnotify/fsnotify"
	_ "github.com/openshift/api/route/v1"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/prometheus/common/expfmt"
	_ "github.com/valyala/fasthttp"
	_ "go.uber.org/zap"
	_ "golang.org/x/net/http2"
	_ "golang.org/x/sys/unix"
	_ "k8s.io/api/discovery/v1"
	_ "k8s.io/client-go/kubernetes"
	_ "sigs.k8s.io/yaml"
	_ "github.com/google/go-cmp/cmp"
	_ "golang.org/x/time/rate"
)
