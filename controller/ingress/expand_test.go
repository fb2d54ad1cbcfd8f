package ingress

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"turnout/controller/expansion"
	"turnout/routing"
)

// read returns an Ingress of the namespace ns, called web. The text is its spec in YAML's flow style, PATH TYPE SERVICE:PORT for short.
func read(t testing.TB, spec string, annotations ...string) *networkingv1.Ingress {
	t.Helper()
	o := new(networkingv1.Ingress)
	if err := yaml.UnmarshalStrict([]byte("metadata: {namespace: ns, name: web, uid: u}\nspec: "+spec), o); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(annotations); i += 2 {
		if o.Annotations == nil {
			o.Annotations = map[string]string{}
		}
		o.Annotations[annotations[i]] = annotations[i+1]
	}
	return o
}

// paths returns http with paths of the form "Type /path service:port".
func paths(list ...string) string {
	var all []string
	for _, text := range list {
		f := strings.Fields(text)
		if len(f) == 2 {
			f = []string{f[0], `""`, f[1]}
		}
		service, port, _ := strings.Cut(f[2], ":")
		kind := "number"
		if port[0] > '9' {
			kind = "name"
		}
		all = append(all, fmt.Sprintf("{pathType: %s, path: %s, backend: {service: {name: %s, port: {%s: %s}}}}", f[0], f[1], service, kind, port))
	}
	return "http: {paths: [" + strings.Join(all, ", ") + "]}"
}

const backend = "defaultBackend: {service: {name: d, port: {number: 80}}}"

// services are those that there are: all have the ports 80 (http) and 443 (https), u one without a name, e is an ExternalName.
func services(name string) *corev1.Service {
	s := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
		{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}, {Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}, {Name: "https", Port: 443},
	}}}
	switch name {
	case "u":
		s.Spec.Ports = []corev1.ServicePort{{Port: 8080}}
	case "e":
		s.Spec.Type = corev1.ServiceTypeExternalName
	case "missing":
		return nil
	}
	return s
}

func expand(o *networkingv1.Ingress) Result { return Expand(Input{Ingress: o, Service: services}) }

// lines is what the rules are, one per line: host, kind of path, path, service, port, TLS.
func lines(r Result) (all []string) {
	for i := range r.Rules {
		rule := &r.Rules[i]
		kind := map[routing.PathKind]string{routing.PathPrefix: "prefix", routing.PathExact: "exact"}[rule.Path.Kind]
		if rule.Default {
			kind = "default"
		}
		to, tls := rule.Route.Spec.To.Name, string(rule.Route.Spec.TLS.Termination)+" "+string(rule.Route.Spec.TLS.InsecureEdgeTerminationPolicy)
		if p := rule.Route.Spec.Port; p != nil {
			to += ":" + p.TargetPort.String()
		}
		if s := rule.Route.Spec.TLS.ExternalCertificate; s != nil {
			tls += " " + s.Name
		}
		all = append(all, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s %s", rule.Host, kind, rule.Path.Value, to, tls)), " "))
	}
	return all
}

func reasons(r Result) (all []string) {
	for _, p := range r.Problems {
		all = append(all, p.Reason)
	}
	return all
}

// TestExpand has the shapes that an Ingress may have.
func TestExpand(t *testing.T) {
	for _, c := range []struct {
		name, spec string
		want       []string
		problems   string
	}{
		{"default backend alone", "{" + backend + "}", []string{"* default d:http edge Allow"}, ""},
		{"kinds of paths", "{rules: [{host: a.test, " + paths("Exact /e s:80", "Prefix /p s:https", "ImplementationSpecific /i s:http", "ImplementationSpecific u:8080") + "}]}",
			[]string{"a.test exact /e s:http edge Allow", "a.test prefix /p s:https edge Allow", "a.test prefix /i s:http edge Allow", "a.test prefix u edge Allow"}, ""},
		{"default backend behind a host's paths", "{" + backend + ", rules: [{host: a.test, " + paths("Prefix /p s:80") + "}]}",
			[]string{"a.test prefix /p s:http edge Allow", "* default d:http edge Allow", "a.test default d:http edge Allow"}, ""},
		{"rule without http", "{" + backend + ", rules: [{host: a.test}]}", []string{"* default d:http edge Allow", "a.test default d:http edge Allow"}, ""},
		{"rule without http and default", "{rules: [{host: a.test}]}", nil, ""},
		{"no host", "{rules: [{" + paths("Prefix / s:80") + "}]}", []string{"* prefix / s:http edge Allow"}, ""},
		{"wildcard", "{rules: [{host: '*.w.test', " + paths("Prefix / s:80") + "}]}", []string{"wildcard.w.test prefix / s:http edge Allow"}, ""},
		{"exact and prefix", "{rules: [{host: a.test, " + paths("Prefix /foo s:80", "Exact /foo s:80") + "}]}",
			[]string{"a.test prefix /foo s:http edge Allow", "a.test exact /foo s:http edge Allow"}, ""},
		{"the longer text", "{rules: [{host: a.test, " + paths("Prefix /foo s:80", "Prefix /foo/ s:443") + "}]}", []string{"a.test prefix /foo/ s:https edge Allow"}, "DuplicatePath"},
		{"twice", "{rules: [{host: a.test, " + paths("Prefix /foo s:80") + "}, {host: a.test, " + paths("Prefix /foo s:443", "Exact /x s:80", "Exact /x/ s:80") + "}]}",
			[]string{"a.test prefix /foo s:http edge Allow", "a.test exact /x s:http edge Allow", "a.test exact /x/ s:http edge Allow"}, "DuplicatePath"},
		{"missing Service", "{rules: [{host: a.test, " + paths("Prefix /a missing:80", "Prefix /b missing:80", "Prefix /c s:80") + "}]}",
			[]string{"a.test prefix /a edge Allow", "a.test prefix /b edge Allow", "a.test prefix /c s:http edge Allow"}, "ServiceNotFound"},
		{"missing ports", "{rules: [{host: a.test, " + paths("Prefix /a s:81", "Prefix /b s:grpc", "Prefix /c s:53", "Prefix /d s:dns") + "}]}",
			[]string{"a.test prefix /a edge Allow", "a.test prefix /b edge Allow", "a.test prefix /c edge Allow", "a.test prefix /d edge Allow"},
			"ServicePortNotFound ServicePortNotFound ServicePortNotFound ServicePortNotFound"},
		{"ExternalName", "{rules: [{host: a.test, " + paths("Prefix /a e:80") + "}]}", []string{"a.test prefix /a edge Allow"}, "UnsupportedService"},
		{"resource", "{defaultBackend: {resource: {kind: Bucket, name: b}}}", []string{"* default edge Allow"}, "UnsupportedBackend"},
		{"nothing", "{defaultBackend: {}}", []string{"* default edge Allow"}, "UnsupportedBackend"},
	} {
		r := expand(read(t, c.spec))
		if got := lines(r); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		if got := strings.Join(reasons(r), " "); got != c.problems {
			t.Errorf("%s: problems %q %v", c.name, got, r.Problems)
		}
		for i := range r.Rules {
			if refused := r.Rules[i].Problem != (Problem{}); refused != (r.Rules[i].Route.Spec.To.Name == "") {
				t.Errorf("%s: rule %d has the problem %v and the Service %q", c.name, i, r.Rules[i].Problem, r.Rules[i].Route.Spec.To.Name)
			}
		}
	}
}

// TestTLSByHost: the entry that names a host decides, then a wildcard's, then one without hosts; a host that only an entry names gets the rules that
// cover it under its own name.
func TestTLSByHost(t *testing.T) {
	host := func(name string) string { return "{host: '" + name + "', " + paths("Prefix / s:80") + "}" }
	for _, c := range []struct {
		name, spec string
		want       []string
		problems   string
	}{
		{"by name", "{rules: [" + host("a.test") + ", " + host("b.test") + "], tls: [{hosts: [a.test], secretName: one}, {hosts: [a.test], secretName: two}]}",
			[]string{"a.test prefix / s:http edge Allow one", "b.test prefix / s:http edge Allow"}, ""},
		{"by wildcard", "{rules: [" + host("a.w.test") + ", " + host("b.a.w.test") + ", " + host("*.w.test") + "], tls: [{hosts: ['*.w.test'], secretName: wild}]}",
			[]string{"a.w.test prefix / s:http edge Allow wild", "b.a.w.test prefix / s:http edge Allow", "wildcard.w.test prefix / s:http edge Allow wild"}, ""},
		{"by name before wildcard", "{rules: [" + host("a.w.test") + "], tls: [{hosts: ['*.w.test'], secretName: wild}, {hosts: [a.w.test], secretName: own}]}",
			[]string{"a.w.test prefix / s:http edge Allow own"}, ""},
		{"without hosts", "{" + backend + ", rules: [" + host("a.test") + "], tls: [{secretName: all}]}",
			[]string{"a.test prefix / s:http edge Allow all", "* default d:http edge Allow all", "a.test default d:http edge Allow all"}, ""},
		{"default certificate", "{rules: [" + host("a.test") + "], tls: [{hosts: [a.test]}, {secretName: all}]}", []string{"a.test prefix / s:http edge Allow"}, ""},
		{"host of a wildcard rule", "{rules: [" + host("*.w.test") + "], tls: [{hosts: [own.w.test], secretName: own}]}",
			[]string{"wildcard.w.test prefix / s:http edge Allow", "own.w.test prefix / s:http edge Allow own"}, ""},
		{"host of rules for any", "{" + backend + ", tls: [{hosts: [a.test, '*.w.test'], secretName: own}]}",
			[]string{"* default d:http edge Allow", "a.test default d:http edge Allow own", "wildcard.w.test default d:http edge Allow own"}, ""},
		{"host of nobody", "{rules: [" + host("a.test") + "], tls: [{hosts: [b.test, ''], secretName: own}]}", []string{"a.test prefix / s:http edge Allow"}, "UnusedCertificate"},
	} {
		r := expand(read(t, c.spec))
		if got := lines(r); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		if got := strings.Join(reasons(r), " "); got != c.problems {
			t.Errorf("%s: problems %q", c.name, got)
		}
	}
}

// TestAnnotations: those of Routes go to each rule, those that Routes have as fields decide about TLS, and what keeps requests out elsewhere is
// never ignored in silence.
func TestAnnotations(t *testing.T) {
	const spec = "{rules: [{host: a.test, http: {paths: [{pathType: Prefix, path: /, backend: {service: {name: s, port: {number: 80}}}}]}}, " +
		"{host: b.test, http: {paths: [{pathType: Prefix, path: /, backend: {service: {name: s, port: {number: 80}}}}]}}], tls: [{hosts: [a.test], secretName: own}]}"
	for _, c := range []struct {
		annotations string // KEY=VALUE, separated by blanks
		a, b        string
		problems    string
	}{
		{"", "edge Allow own", "edge Allow", ""},
		{AnnotationTermination + "=reencrypt", "reencrypt Allow own", "reencrypt Allow", ""},
		{AnnotationTermination + "=passthrough", "passthrough None", "passthrough None", ""},
		{AnnotationTermination + "=passthrough " + AnnotationInsecure + "=Redirect", "passthrough Redirect", "passthrough Redirect", ""},
		{AnnotationTermination + "=passthrough " + AnnotationInsecure + "=Allow", "passthrough None", "passthrough None", "UnsupportedAnnotation"},
		{AnnotationTermination + "=Edge", "edge Allow own", "edge Allow", "UnsupportedAnnotation"},
		{AnnotationInsecure + "=Redirect", "edge Redirect own", "edge Allow", ""},
		{AnnotationInsecure + "=None", "edge None own", "edge Allow", ""},
		{AnnotationInsecure + "=redirect", "edge Allow own", "edge Allow", "UnsupportedAnnotation"},
		{AnnotationPodCA + "=x", "edge Allow own", "edge Allow", ""},
		{AnnotationTermination + "=reencrypt " + AnnotationPodCA + "=x", "refused", "refused", "UnsupportedAnnotation"},
		{"nginx.ingress.kubernetes.io/auth-url=x", "refused", "refused", "UnsupportedAnnotation"},
		{"nginx.ingress.kubernetes.io/limit-rps=1", "refused", "refused", "UnsupportedAnnotation"},
		{"nginx.ingress.kubernetes.io/whitelist-source-range=10.0.0.0/8", "refused", "refused", "UnsupportedAnnotation"},
		{"nginx.ingress.kubernetes.io/proxy-body-size=1m auth-url=x example.com/auth-url=x", "edge Allow own", "edge Allow", ""},
	} {
		var list []string
		for _, pair := range strings.Fields(c.annotations) {
			key, value, _ := strings.Cut(pair, "=")
			list = append(list, key, value)
		}
		o := read(t, spec, list...)
		o.Annotations = Kept(o.Annotations) // what the sources leave leads to the same
		r := expand(o)
		var got []string
		for i, line := range lines(r) {
			_, tls, _ := strings.Cut(line, "s:http ")
			if r.Rules[i].Problem != (Problem{}) {
				tls = "refused"
			}
			got = append(got, tls)
		}
		if !slices.Equal(got, []string{c.a, c.b}) || strings.Join(reasons(r), " ") != c.problems {
			t.Errorf("%s: %q, problems %v", c.annotations, got, r.Problems)
		}
	}
	r := expand(read(t, spec, "haproxy.router.openshift.io/timeout", "5s", AnnotationClass, "x", AnnotationInsecure, "None", "other", "y"))
	for i := range r.Rules {
		if got := r.Rules[i].Route.Annotations; len(got) != 1 || got["haproxy.router.openshift.io/timeout"] != "5s" {
			t.Errorf("annotations of a rule: %v", got)
		}
	}
}

// TestPassthroughHasNoPaths: what a client asks for is not seen, so only whole hosts can be served.
func TestPassthroughHasNoPaths(t *testing.T) {
	r := expand(read(t, "{"+backend+", rules: [{host: a.test, "+paths("Prefix / s:443", "Prefix /p s:443", "Exact / s:443")+"}, {"+paths("Prefix / s:443")+"}]}", AnnotationTermination, "passthrough"))
	want := []string{"a.test prefix s:https passthrough None", "a.test default d:http passthrough None"}
	if got := lines(r); !slices.Equal(got, want) {
		t.Errorf("rules %q", got)
	}
	if got := strings.Join(reasons(r), " "); got != "UnsupportedPath UnsupportedPath UnsupportedPath" {
		t.Errorf("problems %v", r.Problems)
	}
}

// TestNamesStay: a rule is called by what it takes, wherever it stands in the Ingress; two rules never have one name.
func TestNamesStay(t *testing.T) {
	one := expand(read(t, "{rules: [{host: a.test, "+paths("Prefix /a s:80", "Exact /a s:80", "Prefix /b s:80")+"}]}"))
	other := expand(read(t, "{rules: [{host: z.test, "+paths("Prefix /a s:80")+"}, {host: a.test, "+paths("Prefix /b/ s:443", "Prefix /a s:80")+"}]}"))
	if one.Rules[0].Key() != other.Rules[2].Key() || one.Rules[2].Key() != other.Rules[1].Key() {
		t.Errorf("names %v and %v", one.Rules[0].Key(), other.Rules[2].Key())
	}
	seen := map[string]bool{}
	for _, r := range append(slices.Clone(one.Rules), other.Rules[0]) {
		if name := r.Route.Name; seen[name] || !strings.HasPrefix(name, "web~") {
			t.Errorf("name %s", name)
		} else {
			seen[name] = true
		}
	}
}

// TestTooManyRules: an Ingress with more rules than are served keeps the first ones, and says so.
func TestTooManyRules(t *testing.T) {
	o := read(t, "{"+backend+"}")
	for i := range expansion.MaxRules + 10 {
		o.Spec.Rules = append(o.Spec.Rules, read(t, "{rules: [{host: h.test, "+paths("Exact /x s:80")+"}]}").Spec.Rules...)
		o.Spec.Rules[i].HTTP.Paths[0].Path = fmt.Sprint("/", i)
	}
	r := expand(o)
	if len(r.Rules) != expansion.MaxRules || r.Beyond != 12 || strings.Join(reasons(r), " ") != "TooManyRules" {
		t.Errorf("%d rules, %d beyond, %v", len(r.Rules), r.Beyond, r.Problems)
	}
	if last := r.Rules[expansion.MaxRules-1].Path.Value; last != fmt.Sprint("/", expansion.MaxRules-1) {
		t.Errorf("the last rule is %s", last)
	}
}
