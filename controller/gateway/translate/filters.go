package translate

import (
	"fmt"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/routing"
	"turnout/routing/cors"
	"turnout/routing/redirect"
	"turnout/routing/rewrite"
)

type (
	rewriteRule  = rewrite.Rule
	redirectRule = redirect.Rule
	corsRule     = cors.Rule
	retrySpec    = routing.RetrySpec
)

// View is what a filter needs to know of the match and the listener that it works for.
type View struct {
	Path   routing.PathMatch // what ReplacePrefixMatch replaces
	Port   int               // of the listener, as written in the Gateway
	Secure bool              // the listener has TLS
}

// Rewrite compiles a URL rewrite.
func (c *Compiler) Rewrite(f *gatewayv1.HTTPURLRewriteFilter, v View) (*rewrite.Rule, *Error) {
	u, wrong := url(f.Hostname, f.Path, v.Path)
	if wrong != nil {
		return nil, wrong
	}
	made, err := c.rewrites.Of(fmt.Sprintf("%#v", u), func() (*rewrite.Rule, error) { return rewrite.New(u) })
	if err != nil {
		return nil, unsupportedf("URL rewrite: %v", err)
	}
	return made, nil
}

// url is the part that rewrites and redirects have in common.
func url(host *gatewayv1.PreciseHostname, p *gatewayv1.HTTPPathModifier, match routing.PathMatch) (rewrite.URL, *Error) {
	u := rewrite.URL{Host: string(value(host, ""))}
	if p == nil {
		return u, nil
	}
	switch p.Type {
	case gatewayv1.FullPathHTTPPathModifier:
		u.Kind, u.Path = rewrite.ReplacePath, rooted(value(p.ReplaceFullPath, ""))
	case gatewayv1.PrefixMatchHTTPPathModifier:
		if match.Kind != routing.PathPrefix {
			return u, unsupportedf("ReplacePrefixMatch needs a match of type PathPrefix")
		}
		u.Kind, u.Prefix, u.Path = rewrite.ReplacePrefix, match.Value, rooted(value(p.ReplacePrefixMatch, ""))
	default:
		return u, unsupportedf("path modifier %q is unknown", p.Type)
	}
	return u, nil
}

// rooted is a path with the slash that the API lets people leave out.
func rooted(path string) string {
	if path != "" && path[0] != '/' {
		return "/" + path
	}
	return path
}

// Redirect compiles a redirect. Its port is the one it says; else the usual one of the scheme it says; else that of the listener.
func (c *Compiler) Redirect(f *gatewayv1.HTTPRequestRedirectFilter, v View) (*redirect.Rule, *Error) {
	u, wrong := url(f.Hostname, f.Path, v.Path)
	if wrong != nil {
		return nil, wrong
	}
	to := redirect.Target{Scheme: value(f.Scheme, ""), URL: u, Port: int(value(f.Port, 0)), Status: value(f.StatusCode, 0)}
	if f.Port == nil && to.Scheme == "" {
		to.Port = v.Port
	}
	made, err := c.redirects.Of(fmt.Sprintf("%#v", to), func() (*redirect.Rule, error) { return redirect.New(to) })
	if err != nil {
		return nil, unsupportedf("redirect: %v", err)
	}
	return made, nil
}

// CORS compiles a CORS filter.
func (c *Compiler) CORS(f *gatewayv1.HTTPCORSFilter) (*cors.Rule, *Error) {
	config := cors.Config{Credentials: value(f.AllowCredentials, false), MaxAge: int(f.MaxAge)}
	for _, v := range f.AllowOrigins {
		config.Origins = append(config.Origins, string(v))
	}
	for _, v := range f.AllowMethods {
		config.Methods = append(config.Methods, string(v))
	}
	for _, v := range f.AllowHeaders {
		config.Headers = append(config.Headers, string(v))
	}
	for _, v := range f.ExposeHeaders {
		config.Expose = append(config.Expose, string(v))
	}
	made, err := c.cors.Of(fmt.Sprintf("%#v", config), func() (*cors.Rule, error) { return cors.New(config) })
	if err != nil {
		return nil, unsupportedf("CORS: %v", err)
	}
	return made, nil
}
