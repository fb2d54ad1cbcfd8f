package cli

import (
	"fmt"
	"io"
	"strings"

	"turnout/internal/option"
)

// Shells are those that Complete knows.
func Shells() []string { return []string{"bash", "zsh", "fish"} }

// Complete writes a script that completes the program's commands, their flags and files in a shell. The script is whole: the program is not
// run when something is completed.
func (p *Program) Complete(w io.Writer, shell string) error {
	var b strings.Builder
	switch shell {
	case "bash":
		p.bash(&b)
	case "zsh":
		p.zsh(&b)
	case "fish":
		p.fish(&b)
	default:
		return option.Usagef("there is no completion for %q; allowed: %s", shell, strings.Join(Shells(), ", "))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("cannot print the completion: %w", err)
	}
	return nil
}

// isPath reports whether the value of an option is a file or a folder.
func isPath(o *option.Option) bool {
	return strings.Contains(o.Value, "FILE") || o.Value == "DIR"
}

// first is the command whose flags may be given without its name.
func (p *Program) first() *Command { return &p.Commands[0] }

func (p *Program) bash(b *strings.Builder) {
	fmt.Fprintf(b, `# Completion of %[1]s for bash: source <(%[1]s completion bash)
_%[1]s() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev= command=%[2]s flags= words= paths=
	(( COMP_CWORD > 0 )) && prev=${COMP_WORDS[COMP_CWORD-1]}
	COMPREPLY=()
	if (( COMP_CWORD == 1 )) && [[ $cur != -* ]]; then
		COMPREPLY=($(compgen -W '%[3]s' -- "$cur"))
		return
	fi
	(( COMP_CWORD > 1 )) && [[ ${COMP_WORDS[1]} != -* ]] && command=${COMP_WORDS[1]}
	case $command in
`, p.Name, p.first().Name, strings.Join(p.names(), " "))
	for i := range p.Commands {
		c := &p.Commands[i]
		var flags, takeFile, takeText []string
		for j := range c.Table {
			o := &c.Table[j]
			flag := "--" + o.Flag
			flags = append(flags, flag)
			if o.Short != "" {
				flag += "|-" + o.Short
			}
			switch {
			case o.IsBool:
			case isPath(o):
				takeFile = append(takeFile, flag)
			default:
				takeText = append(takeText, flag)
			}
		}
		fmt.Fprintf(b, "\t%s)\n\t\tflags='%s' words='%s'\n", c.Name, strings.Join(flags, " "), strings.Join(c.Words, " "))
		if c.Paths {
			b.WriteString("\t\tpaths=1\n")
		}
		if len(takeFile)+len(takeText) > 0 {
			b.WriteString("\t\tcase $prev in\n")
			if len(takeFile) > 0 {
				fmt.Fprintf(b, "\t\t%s) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", strings.Join(takeFile, "|"))
			}
			if len(takeText) > 0 {
				fmt.Fprintf(b, "\t\t%s) return ;;\n", strings.Join(takeText, "|"))
			}
			b.WriteString("\t\tesac\n")
		}
		b.WriteString("\t\t;;\n")
	}
	fmt.Fprintf(b, `	esac
	if [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "$flags" -- "$cur"))
	elif [[ $paths ]]; then
		compopt -o filenames 2>/dev/null
		COMPREPLY=($(compgen -f -- "$cur"))
	else
		COMPREPLY=($(compgen -W "$words" -- "$cur"))
	fi
}
complete -F _%[1]s %[1]s
`, p.Name)
}

func (p *Program) zsh(b *strings.Builder) {
	fmt.Fprintf(b, "#compdef %[1]s\n# Completion of %[1]s for zsh: source <(%[1]s completion zsh)\n_%[1]s() {\n\tlocal command=%[2]s\n\tlocal -a commands flags\n\tcommands=(\n", p.Name, p.first().Name)
	for i := range p.Commands {
		c := &p.Commands[i]
		fmt.Fprintf(b, "\t\t%s\n", quote(c.Name+":"+c.About))
	}
	b.WriteString("\t)\n\tif (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n\t\t_describe command commands\n\t\treturn\n\tfi\n" +
		"\tif [[ $words[2] != -* ]]; then\n\t\tcommand=$words[2]\n\t\tshift words\n\t\t(( CURRENT-- ))\n\tfi\n\tcase $command in\n")
	escape := strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`)
	for i := range p.Commands {
		c := &p.Commands[i]
		fmt.Fprintf(b, "\t%s)\n\t\tflags=(\n", c.Name)
		for j := range c.Table {
			o := &c.Table[j]
			spec, repeats, assign := "["+escape.Replace(o.Help)+"]", "", "="
			if o.Repeats {
				repeats = "*"
			}
			switch {
			case o.IsBool:
				assign = ""
			case isPath(o):
				spec += ":" + escape.Replace(o.Value) + ":_files"
			default:
				spec += ":" + escape.Replace(o.Value) + ":"
			}
			fmt.Fprintf(b, "\t\t\t%s\n", quote(repeats+"--"+o.Flag+assign+spec))
			if o.Short != "" {
				fmt.Fprintf(b, "\t\t\t%s\n", quote(repeats+"-"+o.Short+spec))
			}
		}
		switch {
		case c.Paths:
			b.WriteString("\t\t\t'*:file:_files'\n")
		case len(c.Words) > 0:
			fmt.Fprintf(b, "\t\t\t'1:word:(%s)'\n", strings.Join(c.Words, " "))
		}
		b.WriteString("\t\t)\n\t\t;;\n")
	}
	fmt.Fprintf(b, "\tesac\n\t_arguments -s $flags\n}\nif [[ $funcstack[1] == _%[1]s ]]; then\n\t_%[1]s \"$@\"\nelse\n\tcompdef _%[1]s %[1]s\nfi\n", p.Name)
}

func (p *Program) fish(b *strings.Builder) {
	fmt.Fprintf(b, "# Completion of %[1]s for fish: %[1]s completion fish | source\ncomplete -c %[1]s -f\n", p.Name)
	all := strings.Join(p.names(), " ")
	for i := range p.Commands {
		c := &p.Commands[i]
		fmt.Fprintf(b, "complete -c %s -n %s -a %s -d %s\n", p.Name, quote("not __fish_seen_subcommand_from "+all), c.Name, quote(c.About))
		in := quote("__fish_seen_subcommand_from " + c.Name)
		if c == p.first() {
			in = quote("__fish_seen_subcommand_from " + c.Name + "; or not __fish_seen_subcommand_from " + all)
		}
		for j := range c.Table {
			o := &c.Table[j]
			fmt.Fprintf(b, "complete -c %s -n %s -l %s", p.Name, in, o.Flag)
			if o.Short != "" {
				fmt.Fprintf(b, " -s %s", o.Short)
			}
			switch {
			case o.IsBool:
			case isPath(o):
				b.WriteString(" -r -F")
			default:
				b.WriteString(" -x")
			}
			fmt.Fprintf(b, " -d %s\n", quote(o.Help))
		}
		switch {
		case c.Paths:
			fmt.Fprintf(b, "complete -c %s -n %s -F\n", p.Name, in)
		case len(c.Words) > 0:
			fmt.Fprintf(b, "complete -c %s -n %s -a %s\n", p.Name, in, quote(strings.Join(c.Words, " ")))
		}
	}
}

// quote makes s one word of a shell: of all three.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
