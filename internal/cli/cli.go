// Package cli prints the help of a program's commands and makes completion for shells, both from the tables by which their flags are
// read.
package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"turnout/internal/nearest"
	"turnout/internal/option"
)

// Program is a program with commands.
type Program struct {
	Name     string // as it is called
	About    string // a sentence
	Notes    string // what the help of every command with flags ends with; whole lines
	Commands []Command
}

// Command is one command of a program.
type Command struct {
	Name  string
	Args  string // what it takes besides flags, such as "FILE..."; "" = nothing
	About string // one line
	Notes string // what its help says besides; whole lines, or nothing
	Words []string
	Paths bool            // Args are files and folders; otherwise they are one of Words
	Table []option.Option // the flags that are of use
}

// Command returns the command with a name. The error says which there are.
func (p *Program) Command(name string) (*Command, error) {
	at := slices.IndexFunc(p.Commands, func(c Command) bool { return c.Name == name })
	if at < 0 {
		names := p.names()
		list := ""
		for i, n := range names {
			if i > 0 {
				list += ", "
			}
			list += n
		}
		return nil, option.Usagef("unknown command %q; allowed: %s%s", name, list, nearest.DidYouMean("", name, names))
	}
	return &p.Commands[at], nil
}

func (p *Program) names() []string {
	names := make([]string, len(p.Commands))
	for i := range p.Commands {
		names[i] = p.Commands[i].Name
	}
	return names
}

// Overview prints what the commands are.
func (p *Program) Overview(w io.Writer) {
	fmt.Fprintf(w, "%s %s\n\n", p.Name, p.About)
	for i := range p.Commands {
		c := &p.Commands[i]
		fmt.Fprintf(w, "  %s %-29s %s\n", p.Name, c.usage(), c.About)
	}
	fmt.Fprintf(w, "\n%s help COMMAND has the flags of a command.\n", p.Name)
}

func (c *Command) usage() string {
	if c.Args == "" {
		return c.Name
	}
	return c.Name + " " + c.Args
}

// Help prints what a command does and its flags, by groups.
func (p *Program) Help(w io.Writer, c *Command) {
	flags := ""
	if len(c.Table) > 0 {
		flags = " [FLAG...]"
	}
	args := ""
	if c.Args != "" {
		args = " " + c.Args
	}
	fmt.Fprintf(w, "%s %s%s%s: %s\n", p.Name, c.Name, flags, args, c.About)
	if len(c.Table) > 0 {
		fmt.Fprintf(w, "\n%s%s", c.Notes, p.Notes)
		option.Help(w, c.Table)
	}
}

// Tell runs the commands that every program has: completion, whose argument is the name of a shell, and help, without an argument or with that of a command.
func (p *Program) Tell(w io.Writer, command string, args []string) error {
	if command == "completion" {
		if len(args) != 1 {
			return option.Usagef("completion needs the name of a shell: %s", strings.Join(Shells(), ", "))
		}
		return p.Complete(w, args[0])
	}
	if len(args) == 0 {
		p.Overview(w)
		return nil
	}
	about, err := p.Command(args[0])
	if err == nil {
		p.Help(w, about)
	}
	return err
}
