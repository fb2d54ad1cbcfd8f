package expansion

// Ingress returns what an Ingress with a number of rules expands to: each is served as a Route, which
// has the annotations. source is the size of the Ingress as JSON.
func Ingress(rules int, annotations map[string]string, source int) Size {
	text := 0
	for name, value := range annotations {
		text += len(name) + len(value)
	}
	return Size{Rules: rules, Backends: rules, Routes: rules, Copied: rules * text, Source: source}
}

// MostRules returns how many rules of an Ingress may be served, and why no more, "" if all may.
func MostRules(rules int, annotations map[string]string, source int) (n int, why string) {
	if why = Ingress(rules, annotations, source).Check(); why == "" {
		return rules, ""
	}
	one := Ingress(1, annotations, source).Bytes() - Ingress(0, annotations, source).Bytes()
	n = min(rules, MaxRules, (ObjectAllowance+source*BytesPerByte-Ingress(0, annotations, source).Bytes())/one)
	return n, why
}
