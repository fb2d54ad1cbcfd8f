package expansion

// Ingress returns the size of an Ingress with a number of rules. Each rule becomes a Route with
// the annotations. source is the length of the Ingress as JSON.
func Ingress(rules int, annotations map[string]string, source int) Size {
	text := 0
	for name, value := range annotations {
		text += len(name) + len(value)
	}
	return Size{Rules: rules, Backends: rules, Routes: rules, Copied: rules * text, Source: source}
}

// MostRules returns the number of rules of an Ingress that may be served, and the reason if it is
// not all of them.
func MostRules(rules int, annotations map[string]string, source int) (n int, why string) {
	if why = Ingress(rules, annotations, source).Check(); why == "" {
		return rules, ""
	}
	one := Ingress(1, annotations, source).Bytes() - Ingress(0, annotations, source).Bytes()
	n = min(rules, MaxRules, (ObjectAllowance+source*BytesPerByte-Ingress(0, annotations, source).Bytes())/one)
	return n, why
}
