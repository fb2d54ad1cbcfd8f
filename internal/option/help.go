package option

import (
	"fmt"
	"io"
)

// Help prints what the options of a table are, under the names of their groups.
func Help(w io.Writer, table []Option) {
	group := ""
	for _, s := range table {
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(w, "\n%s:\n\n", group)
		}
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
