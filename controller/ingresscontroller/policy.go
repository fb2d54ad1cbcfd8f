package ingresscontroller

import (
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/source"
)

// identity is the name of the router and its domain.
func (t *translation) identity() {
	name, domain := t.o.Name, t.o.Status.Domain
	t.set("name", name, "metadata.name")
	if domain != "" {
		t.set("router-domain", domain, "status.domain")
		t.set("router-canonical-hostname", "router-"+name+"."+domain, "status.domain")
	}
}

func (t *translation) selectors() {
	for _, s := range []struct {
		field, flag string
		selector    *metav1.LabelSelector
		unless      []string
	}{
		{"spec.namespaceSelector", "namespace-labels", t.o.Spec.NamespaceSelector, []string{"project-labels"}},
		{"spec.routeSelector", "labels", t.o.Spec.RouteSelector, nil},
	} {
		if s.selector == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(s.selector)
		if err != nil {
			t.invalid(s.field, metav1.FormatLabelSelector(s.selector), err.Error())
			continue
		}
		if text := selector.String(); text != "" {
			t.set(s.flag, text, s.field, s.unless...)
		}
	}
}

func (t *translation) admission() {
	policy := t.o.Spec.RouteAdmission
	if policy == nil {
		return
	}
	t.word("spec.routeAdmission.namespaceOwnership", "disable-namespace-ownership-check", string(policy.NamespaceOwnership), map[string]string{
		string(operatorv1.StrictNamespaceOwnershipCheck): "false", string(operatorv1.InterNamespaceAllowedOwnershipCheck): "true",
	})
	t.word("spec.routeAdmission.wildcardPolicy", "allow-wildcard-routes", string(policy.WildcardPolicy), map[string]string{
		string(operatorv1.WildcardPolicyDisallowed): "false", string(operatorv1.WildcardPolicyAllowed): "true",
	})
}

// publishing is where the router listens, and whether another proxy stands before it. What the operator has decided counts before what it
// was asked for.
func (t *translation) publishing() {
	strategy, from := t.o.Spec.EndpointPublishingStrategy, "spec"
	if strategy == nil {
		strategy, from = t.o.Status.EndpointPublishingStrategy, "status"
	}
	if strategy == nil {
		return
	}
	from += ".endpointPublishingStrategy."
	protocol := func(part string, p operatorv1.IngressControllerProtocol) {
		t.word(from+part+".protocol", "use-proxy-protocol", string(p), map[string]string{
			string(operatorv1.TCPProtocol): "false", string(operatorv1.ProxyProtocol): "true",
		})
	}
	switch {
	case strategy.Type == operatorv1.HostNetworkStrategyType && strategy.HostNetwork != nil:
		protocol("hostNetwork", strategy.HostNetwork.Protocol)
		t.hostPorts(from+"hostNetwork", strategy.HostNetwork)
	case strategy.Type == operatorv1.NodePortServiceStrategyType && strategy.NodePort != nil:
		protocol("nodePort", strategy.NodePort.Protocol)
	case strategy.Type == operatorv1.PrivateStrategyType && strategy.Private != nil:
		protocol("private", strategy.Private.Protocol)
	case strategy.Type == operatorv1.LoadBalancerServiceStrategyType && strategy.LoadBalancer != nil:
		t.loadBalancer(from+"loadBalancer.providerParameters", strategy.LoadBalancer.ProviderParameters)
	}
}

// hostPorts are the ports of host network.
func (t *translation) hostPorts(field string, host *operatorv1.HostNetworkStrategy) {
	ports := []struct {
		field, flag string
		port, def   int32
	}{
		{"httpPort", "service-http-port", host.HTTPPort, 80}, {"httpsPort", "service-https-port", host.HTTPSPort, 443}, {"statsPort", "stats-port", host.StatsPort, 1936},
	}
	seen := map[int32]bool{}
	for i := range ports {
		p := &ports[i]
		if p.port == 0 {
			p.port = p.def
		}
		if p.port < 1 || p.port > 65535 || seen[p.port] {
			t.invalid(field+"."+p.field, p.port, "allowed: a port from 1 to 65535, each of the three another; none of them has an effect")
			return
		}
		seen[p.port] = true
	}
	for _, p := range ports {
		t.set(p.flag, strconv.Itoa(int(p.port)), field+"."+p.field)
	}
}

// awsIdleTunnel is what the operator makes of a missing tunnelTimeout behind a network load balancer of AWS, which forgets connections that
// are silent for 350 s.
const awsIdleTunnel = "349s"

// loadBalancer is what follows for the router from a load balancer of a cloud: whether it sends PROXY headers.
func (t *translation) loadBalancer(field string, p *operatorv1.ProviderLoadBalancerParameters) {
	switch {
	case p == nil:
	case p.Type == operatorv1.AWSLoadBalancerProvider && (p.AWS == nil || p.AWS.Type != operatorv1.AWSNetworkLoadBalancer):
		t.set("use-proxy-protocol", "true", field+".aws.type")
	case p.Type == operatorv1.AWSLoadBalancerProvider:
		t.set("default-tunnel-timeout", awsIdleTunnel, field+".aws.type")
	case p.Type == operatorv1.IBMLoadBalancerProvider && p.IBM != nil && p.IBM.Protocol == operatorv1.ProxyProtocol:
		t.set("use-proxy-protocol", "true", field+".ibm.protocol")
	}
}

// Groups of key exchange, as the operator names them: those of the profiles that have a name, and of a custom one without its own.
const (
	profileGroups = "X25519MLKEM768:X25519:secp256r1:secp384r1"
	customGroups  = profileGroups + ":secp521r1"
)

// tls is what TLS towards clients is like: the profile of the IngressController, else that of the API server, else Intermediate.
func (t *translation) tls() {
	profile, field := t.o.Spec.TLSSecurityProfile, "spec.tlsSecurityProfile"
	if profile == nil {
		var api configv1.APIServer
		if t.other(apiServer, &api) && api.Spec.TLSSecurityProfile != nil {
			profile, field = api.Spec.TLSSecurityProfile, "spec.tlsSecurityProfile of the API server"
		} else {
			profile, field = &configv1.TLSSecurityProfile{Type: configv1.TLSProfileIntermediateType}, "spec.tlsSecurityProfile, which is not given"
		}
	}
	spec, groups := configv1.TLSProfiles[profile.Type], profileGroups
	switch {
	case profile.Type == configv1.TLSProfileCustomType && profile.Custom != nil:
		spec, groups = &profile.Custom.TLSProfileSpec, customGroups
		if own := t.o.newer.Spec.TLSSecurityProfile.Custom.Groups; len(own) > 0 && profile == t.o.Spec.TLSSecurityProfile {
			groups = strings.Join(own, ":")
		}
	case profile.Type == "":
		spec = configv1.TLSProfiles[configv1.TLSProfileIntermediateType]
	case spec == nil:
		t.invalid(field, profile.Type, "it is no profile, or a custom one that says nothing")
		spec = configv1.TLSProfiles[configv1.TLSProfileIntermediateType]
	}
	version, ok := map[configv1.TLSProtocolVersion]string{
		configv1.VersionTLS10: "TLSv1.1", configv1.VersionTLS11: "TLSv1.1", configv1.VersionTLS12: "TLSv1.2", configv1.VersionTLS13: "TLSv1.3",
	}[spec.MinTLSVersion]
	if !ok {
		t.invalid(field+".minTLSVersion", spec.MinTLSVersion, "it is no version of TLS")
		version = "TLSv1.2"
	}
	t.set("ssl-min-version", version, field)
	older := slices.DeleteFunc(slices.Clone(spec.Ciphers), isSuite13)
	if len(older) > 0 {
		t.set("ciphers", strings.Join(older, ":"), field)
	}
	if newest := slices.DeleteFunc(slices.Clone(spec.Ciphers), func(name string) bool { return !isSuite13(name) }); len(newest) > 0 {
		t.set("ciphersuites", strings.Join(newest, ":"), field)
	}
	t.set("curves", groups, field)
}

// isSuite13 reports a cipher suite of TLS 1.3.
func isSuite13(name string) bool { return strings.HasPrefix(name, "TLS_") }

// clientTLS is what clients have to show. Where their authorities cannot be had, nobody is trusted, instead of everybody.
func (t *translation) clientTLS() {
	c := &t.o.Spec.ClientTLS
	t.word("spec.clientTLS.clientCertificatePolicy", "mutual-tls-auth", string(c.ClientCertificatePolicy), map[string]string{
		string(operatorv1.ClientCertificatePolicyOptional): "optional", string(operatorv1.ClientCertificatePolicyRequired): "required",
	})
	if c.ClientCA.Name == "" {
		return
	}
	ref := Ref{source.ConfigMap, source.Key{Namespace: configNamespace, Name: c.ClientCA.Name}}
	const field = "spec.clientTLS.clientCA"
	var of corev1.ConfigMap
	bundle, ok := "", t.referred(ref, field, &of)
	if ok {
		if bundle, ok = of.Data[caBundle]; !ok {
			t.invalid(field, ref.Key, "the ConfigMap has no key "+caBundle)
		}
	}
	t.content("mutual-tls-auth-ca", "ConfigMap "+ref.Key.String()+", "+caBundle, []byte(bundle), field)
	if len(c.AllowedSubjectPatterns) > 0 {
		t.set("mutual-tls-auth-filter", "(?:"+strings.Join(c.AllowedSubjectPatterns, "|")+")", "spec.clientTLS.allowedSubjectPatterns")
	}
}

// caBundle is the key of the authorities of clients.
const caBundle = "ca-bundle.pem"

// defaultCertificate is the certificate of hosts without their own.
func (t *translation) defaultCertificate() {
	name := t.o.Spec.DefaultCertificate
	if name == nil || name.Name == "" {
		return
	}
	ref := Ref{source.Secret, source.Key{Namespace: routerNamespace, Name: name.Name}}
	const field = "spec.defaultCertificate"
	var of corev1.Secret
	if !t.referred(ref, field, &of) {
		return
	}
	certificate, key := of.Data[corev1.TLSCertKey], of.Data[corev1.TLSPrivateKeyKey]
	if len(certificate) == 0 || len(key) == 0 {
		t.invalid(field, ref.Key, "the Secret has no tls.crt or no tls.key")
		return
	}
	pem := append(append(slices.Clone(certificate), '\n'), key...)
	t.content("default-certificate", "Secret "+ref.Key.String(), pem, field, "default-certificate-path", "default-certificate-dir")
}
