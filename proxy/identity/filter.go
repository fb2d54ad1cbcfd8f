package identity

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"

	"turnout/internal/expression"
)

// foreign are constructs of PCRE that Go's regular expressions do not have, by how what the compiler complains about begins.
var foreign = []struct{ begins, name string }{
	{"(?=", "look-ahead"}, {"(?!", "negative look-ahead"}, {"(?<=", "look-behind"}, {"(?<!", "negative look-behind"},
	{"(?>", "an atomic group"}, {"(?|", "a branch reset group"}, {"(?(", "a condition"}, {"(?#", "a comment"},
	{"(?R", "recursion"}, {"(?&", "a subroutine call"}, {"(?'", "a group named in quotes"},
	{`\K`, "a reset of the match"}, {`\G`, "the start of the match"}, {`\Z`, `the end but for a line break, which is \z here`},
	{`\R`, "a line break"}, {`\h`, "a blank"}, {`\H`, "no blank"}, {`\X`, "a grapheme"}, {`\e`, "the escape character"},
	{`\g`, "a back-reference"}, {`\k`, "a back-reference"}, {"(?x", "the extended syntax"},
}

// ParseFilter reads the regular expression of Rules.Filter, within the limits of
// expression.Operator. It ignores white space around the expression. "" is no filter; the result is
// nil. The error names a construct that Go's regular expressions do not support.
func ParseFilter(text string) (*expression.Expression, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	filter, err := expression.New(text, expression.Somewhere, expression.Operator())
	var bad *syntax.Error
	if !errors.As(err, &bad) {
		return filter, err
	}
	what := bad.Code.String()
	for _, f := range foreign {
		if strings.HasPrefix(bad.Expr, f.begins) {
			what = f.name + " of PCRE"
		}
	}
	switch {
	case len(bad.Expr) == 2 && bad.Expr[0] == '\\' && bad.Expr[1] >= '1' && bad.Expr[1] <= '9':
		what = "a back-reference of PCRE"
	case bad.Code == syntax.ErrInvalidRepeatOp && strings.HasSuffix(bad.Expr, "+"):
		what = "a possessive repetition of PCRE"
	}
	return nil, fmt.Errorf("%q: %s; allowed: a regular expression as Go has them (RE2)", bad.Expr, what)
}
