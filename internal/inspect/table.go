package inspect

import "turnout/internal/option"

// Table are the options of the command of a name, bound to c, but for those that say which router is asked.
func (c *Command) Table(name string) []option.Option {
	all := []option.Option{{Flag: "output", Short: "o", Def: "text", Value: "FORMAT", Set: option.Words(&c.Output, "text", "json"), Help: "text or json"}}
	order := func(def string) option.Option {
		return option.Option{Flag: "order", Def: def, Value: "ORDER", Set: option.Words(&c.Search.Order, "name", "rate", "requests", "errors", "sessions"),
			Help: "name, rate, requests, errors or sessions"}
	}
	switch name {
	case "routes":
		return append(all, order("name"), option.Option{Flag: "limit", Def: "0", Value: "N", Set: option.Into(&c.Limit, ParseLimit), Help: "routes at most; 0 means all"})
	case "problems":
		return append(all,
			option.Option{Flag: "kind", Value: "KIND,...", Set: option.Into(&c.Filter.Kinds, ParseKinds), Help: "only problems of these kinds: rejected, note, certificate, file, source, down, ejected"},
			option.Option{Flag: "namespace", Short: "n", Value: "NAME,...", Set: option.List(&c.Filter.Namespaces), Help: "only problems of routes in these namespaces"})
	case "top":
		return append(all, order("rate"),
			option.Option{Flag: "once", IsBool: true, Set: option.Into(&c.Once, option.ParseBool), Help: "look once, for scripts: with -o json too"},
			option.Option{Flag: "interval", Def: "2s", Value: "TIME", Set: option.Into(&c.Interval, option.ParseTimespec), Help: "between two looks"})
	}
	return all
}
