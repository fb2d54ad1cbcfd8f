package option

// Into adapts a parser to an Option that stores its result.
func Into[T any](to *T, parse func(string) (T, error)) func(string) error {
	return func(s string) error {
		v, err := parse(s)
		if err == nil {
			*to = v
		}
		return err
	}
}

// Words is Into for one of a few words.
func Words(to *string, allowed ...string) func(string) error {
	return Into(to, func(s string) (string, error) { return ParseWord(s, allowed...) })
}

// List is Into for a comma list.
func List(to *[]string) func(string) error {
	return Into(to, func(s string) ([]string, error) { return ParseList(s), nil })
}
