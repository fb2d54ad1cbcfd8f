// Package admit decides which routes are served: it names their hosts, checks hosts
// against domains and name rules, settles which route holds a host when several claim
// it, and checks TLS settings. It does no I/O and knows no clock but the one given.
//
// Who holds a host depends on the set of routes alone, never on the order in which
// they became known: the oldest route wins, and what an older route gives up goes to
// the next one at once.
package admit

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The reasons of a rejection, as they stand in the status of a route.
const (
	ReasonNotAdmitted       = "RouteNotAdmitted"
	ReasonNoHost            = "NoHostValue"
	ReasonInvalidHost       = "InvalidHost"
	ReasonClaimed           = "HostAlreadyClaimed"
	ReasonInvalid           = "ExtendedValidationFailed"
	ReasonHeaderActions     = "InvalidHeaderActions"
	ReasonExternalInvalid   = "ExternalCertificateValidationFailed"
	ReasonExternalGetFailed = "ExternalCertificateGetFailed"
)

// Options is how routes are admitted. The zero value admits every valid host without
// wildcards, one namespace per host.
type Options struct {
	Domain           string   // appended to spec.subdomain of routes without host; "" = none
	HostTemplate     string   // host with ${name} and ${namespace} for routes without host; "" = none
	OverrideHostname bool     // the template applies to all routes
	OverrideDomains  []string // the template applies to hosts in these domains
	AllowedDomains   []string // hosts must be in one of these; empty = all are allowed
	DeniedDomains    []string // hosts must not be in one of these; wins over AllowedDomains
	AllowWildcard    bool     // wildcardPolicy Subdomain is admitted
	DisableOwnership bool     // routes of different namespaces may share a host
}

// Verdict is whether a route is admitted. The zero value means it is not, without a
// reason yet.
type Verdict struct {
	Admitted  bool
	LongChain bool // not admitted because the certificate chain is longer than keypair.MaxChain

	Reason  string // one of the reasons; "" when admitted without reserve
	Message string // for people; "" when admitted without reserve
}

func rejected(reason, message string) Verdict { return Verdict{Reason: reason, Message: message} }

// Host returns the host a route has, "" if none is known.
func (o *Options) Host(namespace, name, host, subdomain string) string {
	if host == "" && subdomain != "" && o.Domain != "" {
		host = subdomain + "." + o.Domain
	}
	if o.HostTemplate == "" {
		return host
	}
	if host != "" && !o.OverrideHostname && !inDomains(host, o.OverrideDomains) {
		return host
	}
	known := true
	expanded := os.Expand(o.HostTemplate, func(key string) string {
		switch key {
		case "name":
			return name
		case "namespace":
			return namespace
		}
		known = false
		return ""
	})
	if !known {
		return host
	}
	return strings.Trim(expanded, `"'`)
}

// Check judges a host and wildcard policy by themselves: name rules, domains, policy. A host that is none is said to be that, whatever
// else is wrong.
func (o *Options) Check(host, wildcardPolicy string) Verdict {
	if v := CheckHost(host); !v.Admitted {
		return v
	}
	if v := o.checkDomain(host); !v.Admitted {
		return v
	}
	switch {
	case wildcardPolicy == "None":
	case wildcardPolicy == "Subdomain" && o.AllowWildcard:
	case wildcardPolicy == "Subdomain":
		return rejected(ReasonNotAdmitted, "wildcard routes are not allowed")
	default:
		return rejected(ReasonNotAdmitted, "unknown wildcard policy "+wildcardPolicy)
	}
	return Verdict{Admitted: true}
}

// CheckAny judges a claim to every host that nobody else claims.
func (o *Options) CheckAny() Verdict {
	if len(o.AllowedDomains) > 0 {
		return rejected(ReasonNotAdmitted, "a rule without a host is for all domains, and only some are allowed")
	}
	return Verdict{Admitted: true}
}

func (o *Options) checkDomain(host string) Verdict {
	switch {
	case inDomains(host, o.DeniedDomains):
		return rejected(ReasonNotAdmitted, "host in list of denied domains")
	case len(o.AllowedDomains) > 0 && !inDomains(host, o.AllowedDomains):
		return rejected(ReasonNotAdmitted, "host not in the allowed list of domains")
	}
	return Verdict{Admitted: true}
}

// CheckHost judges whether a host is a lower-case DNS name (RFC 1123 section 2.1).
func CheckHost(host string) Verdict {
	if host == "" {
		return rejected(ReasonNoHost, "no host value was defined for the route")
	}
	path := field.NewPath("spec", "host")
	var errs []string
	if len(validation.IsDNS1123Subdomain(host)) > 0 {
		errs = append(errs, field.Invalid(path, host, "host must conform to DNS 952 subdomain conventions").Error())
	}
	for label := range strings.SplitSeq(host, ".") {
		for _, text := range validation.IsDNS1123Label(label) {
			errs = append(errs, field.Invalid(path, host, text).Error())
		}
	}
	if len(errs) > 0 {
		return rejected(ReasonInvalidHost, fmt.Sprintf("host name validation errors: %s", strings.Join(errs, ", ")))
	}
	return Verdict{Admitted: true}
}

// inDomains reports whether host is one of the domains or below one of them.
func inDomains(host string, domains []string) bool {
	for _, d := range domains {
		if host == d || len(host) > len(d) && strings.HasSuffix(host, d) && host[len(host)-len(d)-1] == '.' && host[0] != '.' {
			return true
		}
	}
	return false
}
