// Package togateway is the command turnout convert: Routes and Ingresses in, objects of the Gateway API out, and what of them has no equal there.
package togateway

import (
	"errors"
	"strings"

	"turnout/controller/gateway/convert"
	"turnout/controller/source"
	"turnout/internal/option"
)

// Group is what the help lists the options under.
const Group = "Conversion"

// Options are those of the command. Table binds them.
type Options struct {
	convert convert.Options
	class   string // of the Ingresses that are converted; "" = all
	output  string // yaml or json
	report  string // the file that gets the report; "" = standard error
	strict  bool
	quiet   bool

	Warnings []string // about flags, variables and the IngressController
}

// Table binds o.
func (o *Options) Table() []option.Option {
	c := &o.convert
	return []option.Option{
		{Flag: "output", Short: "o", Def: "yaml", Value: "FORMAT", Set: option.Words(&o.output, "yaml", "json"), Help: "yaml or json"},
		{Flag: "report", Value: "FILE", Set: option.Into(&o.report, option.ParseText), Help: "write there what has no equal, and not to standard error; as JSON if its name ends with .json"},
		{Flag: "strict", IsBool: true, Set: option.Into(&o.strict, option.ParseBool), Help: "fail if something has no equal"},
		{Flag: "quiet", Short: "q", IsBool: true, Set: option.Into(&o.quiet, option.ParseBool), Help: "say only what differs, has no equal or is left out"},
		{Flag: "gateway", Group: Group, Def: "turnout/turnout", Value: "NAMESPACE/NAME", Set: option.Into(&c.Gateway, parseKey), Help: "the Gateway that is made"},
		{Flag: "class", Group: Group, Value: "NAME", Set: option.Into(&c.Class, option.ParseDNSName), Help: "its GatewayClass; the default is turnout, which is printed too"},
		{Flag: "http-listener", Group: Group, Def: "80", Value: "PORT", Set: option.Into(&c.Plain, option.ParsePort), Help: "port of its listener without TLS"},
		{Flag: "https-listener", Group: Group, Def: "443", Value: "PORT", Set: option.Into(&c.Secure, option.ParsePort), Help: "port of its listeners with TLS"},
		{Flag: "listener-certificate", Group: Group, Value: "NAMESPACE/NAME", Set: option.Into(&c.Certificate, parseKey),
			Help: "the Secret with the certificate for hosts without one; the default is " + convert.DefaultCertificate + " in the namespace of the Gateway"},
		{Flag: "ingress-class", Group: Group, Value: "NAME", Set: option.Into(&o.class, option.ParseDNSName), Help: "convert the Ingresses of this class only; the default is all"},
		{Flag: "experimental", Group: Group, IsBool: true, Set: option.Into(&c.Experimental, option.ParseBool), Help: "use fields of the experimental channel: session persistence"},
		{Flag: "unguarded", Group: Group, IsBool: true, Set: option.Into(&c.Unguarded, option.ParseBool), Help: "convert objects, too, that keep clients out: what is made is for everybody"},
	}
}

func parseKey(s string) (source.Key, error) {
	namespace, name, ok := strings.Cut(s, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return source.Key{}, errors.New("allowed: NAMESPACE/NAME")
	}
	return source.Key{Namespace: namespace, Name: name}, nil
}
