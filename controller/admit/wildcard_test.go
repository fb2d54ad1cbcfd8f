package admit

import (
	"slices"
	"strings"
	"testing"
)

// strictRows are, with the ownership check: age, route, and the routes that keep it out.
func strictRows() []claimRow {
	return readRows(`
0 ns1/r1 net :
1 ns1/r2 net W :
3 ns1/r4 www.same.net W :
4 ns1/r5 foo.same.net W : ns1/r4
10 ns2/r1 com : ns1/r2
11 ns2/r2 com W : ns1/r1 ns1/r2
13 ns2/r4 www.same.com W :
13 ns2/r5 www.same.com /abc W :
14 ns2/r6 foo.same.com W : ns2/r4
14 ns2/r7 foo.same.com /abc W : ns2/r5
21 ns3/r2 net W : ns1/r1 ns1/r2 ns2/r1 ns2/r2
22 ns3/r3 net /p1 W : ns1/r1 ns1/r2 ns2/r1 ns2/r2
23 ns3/r4 com : ns1/r2 ns2/r1 ns2/r2
24 ns3/r5 com W : ns1/r1 ns1/r2 ns2/r1 ns2/r2 ns3/r2
30 ns4/r1 d1.com :
31 ns5/r1 d1.com : ns4/r1
32 ns4/r2 d1.com : ns4/r1 ns5/r1
33 ns5/r2 d1.com : ns4/r1 ns5/r1 ns4/r2
40 ns6/r1 foo.d1.com W :
50 ns7/r1 bar.d1.com W : ns6/r1
51 ns7/r2 bar.d1.com : ns6/r1
51 ns7/r3 bar.d1.com /foo : ns6/r1
60 ns8/r1 baz.d1.com W : ns6/r1 ns7/r1 ns7/r2 ns7/r3
40 ns9/r1 foo.d2.com :
50 ns10/r1 bar.d2.com W : ns9/r1
51 ns10/r2 bar.d2.com :
52 ns10/r3 foo.d2.com : ns9/r1
55 ns10/r6 foo.d2.com /p1/p2/other : ns9/r1
60 ns11/r1 baz.d2.com W : ns9/r1 ns10/r1 ns10/r2 ns10/r3 ns10/r6
61 ns11/r2 baz.d2.com : ns10/r1
70 ns12/r1 foo.d3.com :
71 ns12/r2 bar.d3.com :
80 ns13/r1 foo.d3.com W : ns12/r1 ns12/r2
81 ns13/r2 bar.d3.com : ns12/r2
83 ns13/r4 bar.d3.com /def : ns12/r2
84 ns13/r5 wild.d3.com /aces W : ns12/r1 ns12/r2
85 ns13/r6 wild.d3.com /more W : ns12/r1 ns12/r2
90 ns14/r1 foo.d3.com : ns12/r1 ns13/r1 ns13/r5 ns13/r6
100 ns15/r1 foo.d4.com :
101 ns15/r2 foo.d4.com /abc :
102 ns15/r3 foo.d4.com : ns15/r1
104 ns15/r5 www.d4.com W :
105 ns15/r6 www.d4.com /abc W :
106 ns15/r7 www.d4.com W : ns15/r5
107 ns15/r8 www.d4.com /abc W : ns15/r6
108 ns15/r9 www.d4.com /def W :
109 ns15/r10 www.d4.com /def W : ns15/r9
`)
}

// claimRow is a route beside others.
type claimRow struct {
	claim     Claim
	conflicts []string
}

func readRows(text string) []claimRow {
	var rows []claimRow
	for line := range strings.Lines(strings.TrimSpace(text)) {
		left, right, _ := strings.Cut(line, ":")
		age, left, _ := strings.Cut(left, " ")
		n := 0
		for _, d := range age {
			n = n*10 + int(d-'0')
		}
		rows = append(rows, claimRow{route(n, left), strings.Fields(right)})
	}
	return rows
}

// TestStrictRows puts each row next to each older one. Two rows, which are about
// the claims of wildcard routes alone, come out otherwise on purpose:
//   - a wildcard route whose host has no dot stands for that host alone and keeps no
//     other out; in the HAProxy router all hosts without a dot are one domain to it, although
//     no request for them reaches it;
//   - a route and a wildcard route of one host, path and namespace do not hold both: what
//     the claims let through is stopped by the index of hosts in the HAProxy router too.
func TestStrictRows(t *testing.T) {
	rows := strictRows()
	for _, row := range rows {
		for _, other := range rows {
			a, b := &row.claim, &other.claim
			if a.Key == b.Key || !b.older(a) {
				continue
			}
			want := !slices.Contains(row.conflicts, b.Key.String())
			same := a.Host == b.Host && a.Key.Namespace == b.Key.Namespace
			switch {
			case !strings.Contains(a.Host, ".") && !strings.Contains(b.Host, "."):
				want = a.Host != b.Host || same && a.Path != b.Path
			case same && a.Path == b.Path:
				want = false
			}
			if got := admittedWith(Options{AllowWildcard: true}, *a, *b); got != want {
				t.Errorf("%s next to %s: admitted %v, want %v", a.Key, b.Key, got, want)
			}
		}
	}
}

// TestFreeRows puts routes next to older ones without the ownership check.
func TestFreeRows(t *testing.T) {
	rows := readRows(`
0 ns1/r1 org W :
1 ns1/r2 org /p1 :
2 ns1/r3 www.w3.org :
3 ns1/r4 info :
10 ns2/r1 info /p1 :
11 ns2/r2 www.server.info :
12 ns2/r3 www.server.info /p1 :
13 ns2/r4 wild.server.info W :
15 ns2/r6 org /other :
20 ns3/r1 org W : ns1/r1
24 ns4/r1 www.server.info : ns2/r2
25 ns4/r2 www.server.info /p1 : ns2/r3
26 ns4/r3 wild.server.info W : ns2/r4
30 ns5/r1 org /abc W :
32 p5/r3 www.server.info /abc/xyz W :
40 ns6/r1 somedomain.org :
41 ns7/r1 somedomain.org : ns6/r1
50 ns8/r1 foo.somedomain.org W :
51 ns8/r2 foo.somedomain.org /path1 W :
52 ns9/r1 foo.somedomain.org W : ns8/r1
53 ns9/r2 foo.somedomain.org /path1 W : ns8/r2
54 ns9/r3 bar.somedomain.org :
55 ns10/r1 baz.somedomain.org W : ns8/r1 ns9/r1
57 ns10/r3 bar.somedomain.org : ns9/r3
58 ns10/r4 bar.somedomain.org /path2 :
`)
	o := Options{AllowWildcard: true, DisableOwnership: true}
	for _, row := range rows {
		var free []Claim
		for _, other := range rows {
			if other.claim.Key == row.claim.Key || !other.claim.older(&row.claim) {
				continue
			}
			want := !slices.Contains(row.conflicts, other.claim.Key.String())
			if got := admittedWith(o, row.claim, other.claim); got != want {
				t.Errorf("%s next to %s: admitted %v, want %v", row.claim.Key, other.claim.Key, got, want)
			}
			if want {
				free = append(free, other.claim)
			}
		}
		if !admittedWith(o, row.claim, free...) {
			t.Errorf("%s is not admitted next to all it does not conflict with", row.claim.Key)
		}
	}
}

// TestNoHostNoClaim is a route without a host in any namespace: what the HAProxy router lets pass here is rejected for the host
// it lacks, by the next of its stages.
func TestNoHostNoClaim(t *testing.T) {
	o := Options{AllowWildcard: true}
	for _, policy := range []string{"None", "Subdomain"} {
		if v := o.Check("", policy); v.Reason != ReasonNoHost {
			t.Errorf("%s: %+v", policy, v)
		}
	}
}
