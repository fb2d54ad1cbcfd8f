package kubelet

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// hostname is what gethostname returns to the pod's programs; "" on the host's network.
func (p *pod) hostname(object *v1.Pod) string {
	if object.Spec.HostNetwork {
		return ""
	}
	name := object.Spec.Hostname
	if name == "" {
		name = object.Name
	}
	// The kernel takes 63 octets; a name does not end in a hyphen or a dot.
	return strings.TrimRight(name[:min(len(name), 63)], "-.")
}

// writeNames writes the files that resolve names in the pod.
func (p *pod) writeNames(object *v1.Pod) error {
	name := p.hostname(object)
	var hosts strings.Builder
	hosts.WriteString("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	if name != "" {
		full := name
		if object.Spec.Subdomain != "" {
			full = fmt.Sprintf("%s.%s.%s.svc.%s\t%s", name, object.Spec.Subdomain, object.Namespace, p.kubelet.config.Domain, name)
		}
		for _, ip := range p.network.IPs {
			fmt.Fprintf(&hosts, "%s\t%s\n", ip, full)
		}
	}
	for _, alias := range object.Spec.HostAliases {
		fmt.Fprintf(&hosts, "%s\t%s\n", alias.IP, strings.Join(alias.Hostnames, "\t"))
	}
	resolve, err := p.resolver(object)
	if err != nil {
		return err
	}
	return errors.Join(
		writeFile(filepath.Join(p.dir, "hosts"), hosts.String()),
		writeFile(filepath.Join(p.dir, "resolv.conf"), resolve),
		writeFile(filepath.Join(p.dir, "hostname"), name+"\n"),
	)
}

func writeFile(path, text string) error { return os.WriteFile(path, []byte(text), 0o644) }

// resolver is the text of resolv.conf for the pod's dnsPolicy.
func (p *pod) resolver(object *v1.Pod) (string, error) {
	var (
		servers []netip.Addr
		search  []string
		options []string
		text    strings.Builder
	)
	policy := object.Spec.DNSPolicy
	if policy == v1.DNSClusterFirst && object.Spec.HostNetwork {
		policy = v1.DNSDefault
	}
	switch policy {
	case v1.DNSDefault:
		host, err := os.ReadFile("/etc/resolv.conf")
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		text.Write(host)
	case v1.DNSNone:
	default:
		domain := p.kubelet.config.Domain
		servers = p.kubelet.config.DNS
		search = []string{object.Namespace + ".svc." + domain, "svc." + domain, domain}
		options = []string{"ndots:5"}
	}
	if own := object.Spec.DNSConfig; own != nil {
		for _, s := range own.Nameservers {
			address, err := netip.ParseAddr(s)
			if err != nil {
				return "", err
			}
			servers = append(servers, address)
		}
		search = append(search, own.Searches...)
		for _, o := range own.Options {
			option := o.Name
			if o.Value != nil {
				option += ":" + *o.Value
			}
			options = append(options, option)
		}
	}
	for _, s := range servers {
		fmt.Fprintf(&text, "nameserver %s\n", s)
	}
	if len(search) > 0 {
		fmt.Fprintf(&text, "search %s\n", strings.Join(search, " "))
	}
	if len(options) > 0 {
		fmt.Fprintf(&text, "options %s\n", strings.Join(options, " "))
	}
	return text.String(), nil
}
