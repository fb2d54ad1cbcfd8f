package balancer

import (
	"strconv"

	"turnout/internal/target"
	"turnout/internal/wire/protocol"
)

// Target is one server of a route as the configuration wants it.
type Target struct {
	ID       string            // server identity, see ServerID; unique in a pool
	Addr     target.Addr       // where to connect
	Weight   int               // 0..256, see Weights; 0 = only by a valid sticky cookie
	Protocol protocol.Protocol // without TLS by prior knowledge; with TLS.ALPN the endpoint selects instead
	TLS      *TLS              // nil = plain
	NoCheck  bool              // never health checked (placeholder of an idled service)
	Pod      string            // name of the pod, "" = not a pod
	Service  string            // name of the service
}

// key returns the identity of the endpoint of t for a namespace.
func (t *Target) key(namespace string) endpointKey {
	k := endpointKey{addr: t.Addr.AddrPort(), protocol: t.Protocol, namespace: namespace}
	if t.TLS != nil {
		k.tls, k.secure = t.TLS.Key, true
	}
	return k
}

// ServerID returns the identity of a server, from which its sticky cookie value is
// derived: "pod:POD:SERVICE:PORT:IP:NUMBER", or "ept:SERVICE:PORT:IP:NUMBER" when
// pod is empty. port is the name of the endpoint port, ip is its address as it
// is written, not bracketed.
func ServerID(pod, service, port, ip string, number uint16) string {
	tail := service + ":" + port + ":" + ip + ":" + strconv.Itoa(int(number))
	if pod == "" {
		return "ept:" + tail
	}
	return "pod:" + pod + ":" + tail
}
