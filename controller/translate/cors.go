package translate

import (
	"fmt"
	"slices"
	"strconv"

	"turnout/internal/wire/field"
	"turnout/routing"
	"turnout/routing/cors"
)

// The annotations about pages of other origins. The first one switches the others on.
const (
	annotationOrigins     = "turnout.router/cors-allow-origin"
	annotationMethods     = "turnout.router/cors-allow-methods"
	annotationHeaders     = "turnout.router/cors-allow-headers"
	annotationExpose      = "turnout.router/cors-expose-headers"
	annotationCredentials = "turnout.router/cors-allow-credentials"
	annotationMaxAge      = "turnout.router/cors-max-age"
)

// corsKeys are all of them.
var corsKeys = []string{annotationOrigins, annotationMethods, annotationHeaders, annotationExpose, annotationCredentials, annotationMaxAge}

// cors adds what pages of other origins may do to p. Somebody who names origins wants no others: if none of them can be used, none is let in.
func (a *annotations) cors(c *compiled, p *routing.Policy) {
	if a.values[annotationOrigins] == "" {
		a.without(annotationOrigins, corsKeys...)
		return
	}
	config := a.corsConfig()
	p.CORS = c.cors.of(fmt.Sprintf("%#v", config), func() (*cors.Rule, error) { return cors.New(config) })
}

// CORS returns what the annotations of a route that has a CORS rule say.
func CORS(all map[string]string) cors.Config {
	a := annotations{values: all}
	return a.corsConfig()
}

func (a *annotations) corsConfig() cors.Config {
	config := cors.Config{
		Origins: a.words(annotationOrigins, "an origin, such as https://a.example or https://*.a.example, or *", func(s string) bool {
			_, err := cors.New(cors.Config{Origins: []string{s}})
			return err == nil
		}),
		Methods: a.words(annotationMethods, "a method", field.IsToken),
		Headers: a.words(annotationHeaders, "the name of a header", field.IsToken),
		Expose:  a.words(annotationExpose, "the name of a header", field.IsToken),
	}
	if len(config.Origins) == 0 {
		a.notes = append(a.notes, fmt.Sprintf("annotation %s: no valid entry; pages of other origins may read nothing", annotationOrigins))
	}
	if config.Credentials = a.bool(annotationCredentials); config.Credentials && slices.Contains(config.Origins, "*") {
		config.Credentials = false
		a.notes = append(a.notes, fmt.Sprintf("annotation %s: has no effect with the origin *, as every page there is could act for those who are logged in; name the origins", annotationCredentials))
	}
	config.MaxAge = a.number(annotationMaxAge, 1, maxMaxAge, "a number of seconds", 0, strconv.Itoa(cors.DefaultMaxAge))
	return config
}

// maxMaxAge is the longest time, in seconds, for which a browser may be allowed to remember an answer: a day, which none of them exceeds.
const maxMaxAge = 86400
