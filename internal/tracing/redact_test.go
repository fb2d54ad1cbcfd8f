package tracing

import "testing"

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"":                     "",
		"a=1&b=2":              "a=1&b=2",
		"a&b":                  "a&b",
		"token":                "token",
		"token=":               "token=REDACTED",
		"a=1&Token=x=y&b=2":    "a=1&Token=REDACTED&b=2",
		"X-Amz-Signature=1":    "X-Amz-Signature=REDACTED",
		"AWSAccessKeyId=1":     "AWSAccessKeyId=REDACTED",
		"sig=1&code=2&state=3": "sig=REDACTED&code=REDACTED&state=3",
		"api_key=1&api-key=2":  "api_key=REDACTED&api-key=REDACTED",
		"pass%77ord=1":         "pass%77ord=REDACTED",
		"%zztoken=1":           "%zztoken=REDACTED",
		"zipcode=1&monkey=2":   "zipcode=1&monkey=2",
		"SAMLResponse=x&&":     "SAMLResponse=REDACTED&&",
	} {
		if got := redact(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
