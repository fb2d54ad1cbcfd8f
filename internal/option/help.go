package option

import (
	"fmt"
	"io"
)

// Help prints what the options of a table are.
func Help(w io.Writer, table []Option) {
	for _, s := range table {
		line := "  --" + s.Flag
		if s.Short != "" {
			line = "  -" + s.Short + ", --" + s.Flag
		}
		if s.Value != "" {
			line += " " + s.Value
		}
		fmt.Fprintln(w, line)
		text := s.Help
		if s.Def != "" {
			text += fmt.Sprintf(" (default %s)", s.Def)
		}
		if s.Env != "" {
			text += fmt.Sprintf(" [%s]", s.Env)
		}
		fmt.Fprintln(w, "        "+text)
	}
}
