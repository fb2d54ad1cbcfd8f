package field

import "testing"

func TestAuthenticatesConnection(t *testing.T) {
	for value, want := range map[string]bool{
		"NTLM TlRMTVNTUAABAAAA": true, "ntlm x": true, "Negotiate YII=": true, "NEGOTIATE": true, "nEgO2 x": true, "Kerberos x": true,
		"GSS-Negotiate x": true, "CredSSP FgMB": true, "\tNTLM x": true, "\xa0NTLM x": true, ", NTLM x": true, "Basic eA==, NTLM x": true, `"NTLM x"`: true,
		"": false, "Basic bnRsbQ==": false, "Bearer ntlm": false, "Bearer negotiate": false, "NTL": false, "xNTLM": false,
		`Digest username="a", realm="b", uri="/negotiate"`: false, "Basic nego": false,
	} {
		for _, name := range []string{"authorization", "proxy-authorization"} {
			if got, _ := AuthenticatesConnection(list("host", "a", name, value, "x", "y")); got != want {
				t.Errorf("%s: %q: %v, want %v", name, value, got, want)
			}
		}
	}
	if got, _ := AuthenticatesConnection(list("authorization", "Basic eA==", "authorization", "NTLM x")); !got {
		t.Error("the second of two lines is not seen")
	}
	if got, _ := AuthenticatesConnection(list("x-authorization", "NTLM x", "www-authenticate", "NTLM")); got {
		t.Error("a field of another name counts")
	}
}

func TestContinuesLogin(t *testing.T) {
	for value, want := range map[string]bool{
		"NTLM": false, "NTLM TlRMTVNTUAABAAAAl4II4g": false, "Negotiate YIIKAwYGKwYB": false, "Negotiate TlRMTVNTUAABAAAA": false,
		"NTLM TlRMTVNTUAADAAAA": true, "Negotiate oXcwdaADCgEB": true, "Basic eA==": false,
	} {
		if _, got := AuthenticatesConnection(list("authorization", value)); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

func TestChallengesConnection(t *testing.T) {
	for value, want := range map[string]bool{
		"NTLM": true, "Negotiate": true, "negotiate oYG2": true, `Basic realm="a", NTLM`: true, `Basic realm="a",Negotiate,NTLM`: true,
		`Digest realm="a, b", nonce="c", Nego2`: true, ` ,, NTLM`: true,
		`Basic realm="a"`: false, `Digest realm="intl", nonce="c"`: false, "Bearer": false, "": false,
	} {
		for _, name := range []string{"www-authenticate", "proxy-authenticate"} {
			if got, _ := ChallengesConnection(list(name, value)); got != want {
				t.Errorf("%s: %q: %v, want %v", name, value, got, want)
			}
		}
	}
	if got, _ := ChallengesConnection(list("www-authenticate", `Basic realm="a"`, "www-authenticate", "NTLM")); !got {
		t.Error("the second of two lines is not seen")
	}
	if got, _ := ChallengesConnection(list("persistent-auth", "true")); !got {
		t.Error("Persistent-Auth is not seen")
	}
	if got, _ := ChallengesConnection(list("authorization", "NTLM", "x", "Negotiate")); got {
		t.Error("a field of another name counts")
	}
}

func TestChallengeContinuesLogin(t *testing.T) {
	for value, want := range map[string]bool{
		"NTLM": false, "Negotiate ": false, "NTLM, Negotiate": false, `NTLM, Basic realm="a"`: false, "NTLM TlRMTVNTUAAC": true, "Negotiate oYG2": true,
	} {
		if _, got := ChallengesConnection(list("www-authenticate", value)); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

// FuzzConnectionScheme checks that a scheme is found in any member of a list, whatever text
// surrounds it.
func FuzzConnectionScheme(f *testing.F) {
	f.Add([]byte(`Basic realm="a"`), uint8(0))
	f.Add([]byte("\xff,"), uint8(1))
	f.Fuzz(func(t *testing.T, before []byte, which uint8) {
		scheme := connectionSchemes[int(which)%len(connectionSchemes)]
		for _, value := range [][]byte{append([]byte(scheme+" "), before...), append(append(append([]byte(nil), before...), ", "...), scheme...)} {
			if !hasConnectionScheme(value) {
				t.Fatalf("%q is not found in %q", scheme, value)
			}
		}
	})
}

func TestAuthenticatesConnectionAllocs(t *testing.T) {
	fields := list("host", "a", "accept", "*/*", "authorization", "Basic eA==", "authorization", "NTLM x")
	if n := testing.AllocsPerRun(100, func() { AuthenticatesConnection(fields) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
