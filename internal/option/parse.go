package option

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"turnout/internal/nearest"
)

// Ignored is a flag that is accepted and does nothing.
type Ignored struct {
	Name   string
	IsBool bool // may stand without a value
}

// Parse puts the defaults of a table, env and args together and sets the options. defaults are pairs of a flag and what counts in the
// place of its default. given has the flags of args, those of ignored too, with their values; warnings are about values of the
// environment that were ignored. The error is a UsageError or flag.ErrHelp.
func Parse(table []Option, ignored []Ignored, args []string, env Environment, defaults ...string) (given map[string]string, warnings []string, err error) {
	p, err := ParseSaid(table, ignored, args, env, nil, defaults...)
	return p.Given, p.Warnings, err
}

// Parsed is what ParseSaid has found.
type Parsed struct {
	Given    map[string]string // as Parse has it
	Warnings []string          // as Parse has them
	Origins  []Origin          // of all options, in the order of the table
}

// ParseSaid is Parse with what said says of options that neither flags nor the environment set; of two for one option the last counts. A value of
// said that an option does not take is an error.
func ParseSaid(table []Option, ignored []Ignored, args []string, env Environment, said []Said, defaults ...string) (p Parsed, err error) {
	if p.Given, err = parseFlags(table, ignored, args); err != nil {
		return Parsed{}, err
	}
	for i := 0; i+1 < len(defaults); i += 2 {
		for j := range table {
			if table[j].Flag == defaults[i] {
				table[j].Def = defaults[i+1]
			}
		}
	}
	for i := range table {
		o := &table[i]
		warning, err := o.apply(p.Given, env)
		origin := o.origin(p.Given, env, warning != "")
		if err == nil && !origin.given() {
			origin, err = o.applySaid(said, p.Given, env, table, origin)
		}
		if err != nil {
			return Parsed{}, err
		}
		if warning != "" {
			p.Warnings = append(p.Warnings, warning)
		}
		p.Origins = append(p.Origins, origin)
	}
	return p, nil
}

// apply sets one option from where its value comes from.
func (o *Option) apply(given map[string]string, env Environment) (warning string, err error) {
	if o.Def != "" {
		if err := o.Set(o.Def); err != nil {
			return "", fmt.Errorf("BUG: default of --%s: %w", o.Flag, err)
		}
	}
	if v, ok := given[o.Flag]; ok {
		values := []string{v}
		if o.Repeats {
			values = strings.Split(v, repeated)
		}
		for _, v := range values {
			if err := o.Set(v); err != nil {
				return "", Usagef("--%s %q is not valid; %v", o.Flag, o.shown(v), err)
			}
		}
		return "", nil
	}
	v := ""
	if o.Env != "" {
		v = env.Get(o.Env)
	}
	if v == "" {
		return "", nil
	}
	if err := o.Set(v); err != nil {
		if o.EnvStops {
			return "", Usagef("%s=%q is not valid; %v", o.Env, o.shown(v), err)
		}
		return fmt.Sprintf("%s=%q is ignored; %v", o.Env, o.shown(v), err), nil
	}
	return "", nil
}

// repeated is between the values of a flag that was given several times. No argument of a program has it.
const repeated = "\x00"

// Split divides the flags of args, as SplitPaths gives them, into those of a table and others.
func Split(table []Option, args []string) (own, others []string) {
	takesValue := map[string]bool{}
	for _, s := range table {
		takesValue[s.Flag] = !s.IsBool
		if s.Short != "" {
			takesValue[s.Short] = !s.IsBool
		}
	}
	for i := 0; i < len(args); i++ {
		name, _, whole := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		value, mine := takesValue[name]
		switch {
		case !mine || args[i][0] != '-':
			others = append(others, args[i])
		case value && !whole && i+1 < len(args):
			own = append(own, args[i], args[i+1])
			i++
		default:
			own = append(own, args[i])
		}
	}
	return own, others
}

// parseFlags reads args without judging any value.
func parseFlags(table []Option, ignored []Ignored, args []string) (map[string]string, error) {
	given := map[string]string{}
	set := flag.NewFlagSet("turnout", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	for _, s := range table {
		store := func(v string) error {
			if before, again := given[s.Flag]; again && s.Repeats {
				v = before + repeated + v
			}
			given[s.Flag] = v
			return nil
		}
		define := set.Func
		if s.IsBool {
			define = set.BoolFunc
		}
		define(s.Flag, s.Help, store)
		if s.Short != "" {
			define(s.Short, s.Help, store)
		}
	}
	for _, f := range ignored {
		store := func(string) error { given[f.Name] = ""; return nil }
		if f.IsBool {
			set.BoolFunc(f.Name, "", store)
		} else {
			set.Func(f.Name, "", store)
		}
	}
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		text := err.Error()
		if name, unknown := strings.CutPrefix(text, "flag provided but not defined: -"); unknown {
			text = "unknown flag --" + name + nearest.DidYouMean("--", name, names(table))
		}
		text = strings.Replace(text, "flag needs an argument: -", "no value given for --", 1)
		return nil, Usagef("%s; see turnout help", text)
	}
	if set.NArg() > 0 {
		return nil, Usagef("unexpected argument %q; see turnout help", set.Arg(0))
	}
	return given, nil
}

// names are the flags of a table.
func names(table []Option) []string {
	all := make([]string, len(table))
	for i := range table {
		all[i] = table[i].Flag
	}
	return all
}

// SplitPaths takes the paths from the end of args: everything after the last flag
// and its value.
func SplitPaths(table []Option, args []string) (flags, paths []string) {
	takesValue := map[string]bool{}
	for _, s := range table {
		takesValue["-"+s.Flag], takesValue["--"+s.Flag] = !s.IsBool, !s.IsBool
		if s.Short != "" {
			takesValue["-"+s.Short], takesValue["--"+s.Short] = !s.IsBool, !s.IsBool
		}
	}
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case len(a) > 1 && a[0] == '-':
			flags = append(flags, a)
			if takesValue[a] && i+1 < len(args) {
				i++
				flags = append(flags, args[i])
			}
		default:
			paths = append(paths, a)
		}
	}
	return flags, paths
}
