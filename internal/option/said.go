package option

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Said is what a source below flags and environment, such as an object of a cluster, says about an option.
type Said struct {
	Flag    string   // the option
	Value   string   // as the flag has it; for Content what people are shown
	Content []byte   // what is in the file that the option names, or a text that is not to be shown; nil = Value is all
	From    string   // where it says so, for people
	Unless  []string // flags of options that say the same in another way: one that is given, there or in the environment, wins
}

// Origin is which value an option has, and why.
type Origin struct {
	Flag  string `json:"flag"`            // without dashes
	Env   string `json:"env,omitempty"`   // its variable
	Value string `json:"value"`           // "" = what the program does without any
	From  string `json:"from"`            // flag, environment, default, or Said.From
	Group string `json:"group,omitempty"` // of the option
}

// Values of Origin.From.
const (
	FromFlag        = "flag"
	FromEnvironment = "environment"
	FromDefault     = "default"
)

// given reports an option that is set by flag or environment.
func (o *Origin) given() bool { return o.From == FromFlag || o.From == FromEnvironment }

// hidden stands for a value that is not shown.
const hidden = "(not shown)"

// origin is that of an option without what others say. ignored: its variable has a value that it does not take.
func (o *Option) origin(given map[string]string, env Environment, ignored bool) Origin {
	from := Origin{Flag: o.Flag, Env: o.Env, Group: o.Group, Value: o.Def, From: FromDefault}
	if v, ok := given[o.Flag]; ok {
		from.Value, from.From = strings.ReplaceAll(v, repeated, ", "), FromFlag
	} else if o.Env != "" && env.Get(o.Env) != "" && !ignored {
		from.Value, from.From = env.Get(o.Env), FromEnvironment
	}
	from.Value = o.shown(from.Value)
	return from
}

// shown is a value of the option for people: nothing of one that is secret, and of a URL not who asks with which password.
func (o *Option) shown(value string) string {
	if value == "" {
		return ""
	}
	if o.Secret {
		return hidden
	}
	if strings.Contains(value, "://") {
		return userinfo.ReplaceAllString(value, "://xxxxx@")
	}
	return bareUserinfo.ReplaceAllString(value, "xxxxx@")
}

// The userinfo of a URL (RFC 3986, section 3.2.1) and, with whatever a password has that a URL cannot, of one without its scheme, as the
// environment may have proxies.
var (
	userinfo     = regexp.MustCompile(`://[^\s/]*@`)
	bareUserinfo = regexp.MustCompile(`^[^\s:/@]*:\S*@`)
)

// applySaid sets an option to what is said of it.
func (o *Option) applySaid(said []Said, given map[string]string, env Environment, table []Option, from Origin) (Origin, error) {
	for i := len(said) - 1; i >= 0; i-- {
		s := &said[i]
		if s.Flag != o.Flag || slices.ContainsFunc(s.Unless, func(flag string) bool { return isGiven(flag, given, env, table) }) {
			continue
		}
		shown := s.Value
		if s.Content == nil {
			shown = o.shown(s.Value)
		}
		if err := o.setSaid(s); err != nil {
			return from, fmt.Errorf("%.200q is not valid; %w", shown, err)
		}
		from.Value, from.From = shown, s.From
		break
	}
	return from, nil
}

func (o *Option) setSaid(s *Said) error {
	if o.SetSaid != nil {
		return o.SetSaid(s)
	}
	return o.Set(s.Value)
}

// isGiven reports an option that is set by flag or environment.
func isGiven(flag string, given map[string]string, env Environment, table []Option) bool {
	if _, ok := given[flag]; ok {
		return true
	}
	i := slices.IndexFunc(table, func(o Option) bool { return o.Flag == flag })
	return i >= 0 && table[i].Env != "" && env.Get(table[i].Env) != ""
}

// Refused is something said that cannot be used, and why.
type Refused struct {
	Said
	Err error
}

// Sift returns what of said can be used together, each by itself taken in if try, which is given all up to there, succeeds with it: what
// cannot be used costs nothing else.
func Sift(said []Said, try func([]Said) error) (used []Said, refused []Refused) {
	if try(said) == nil {
		return said, nil
	}
	for _, s := range said {
		if err := try(append(slices.Clip(used), s)); err != nil {
			refused = append(refused, Refused{s, err})
			continue
		}
		used = append(used, s)
	}
	return used, refused
}

// Decided says for people what decided about options, by their flags with dashes: of those alone that were set.
func Decided(all []Origin) map[string]string {
	by := make(map[string]string)
	for _, o := range all {
		switch o.From {
		case FromDefault, FromFlag:
		case FromEnvironment:
			by["--"+o.Flag] = "--" + o.Flag + " (" + o.Env + ")"
		default:
			by["--"+o.Flag] = o.From
		}
	}
	return by
}
