package admit

import (
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
)

// TestKeyNobodyCanUse: a certificate whose key crypto/rsa does not sign with rejects its route. Otherwise handshakes would fail.
func TestKeyNobodyCanUse(t *testing.T) {
	_, parsed, v := TLS(&routev1.TLSConfig{Termination: routev1.TLSTerminationEdge, Certificate: shortCert, Key: shortKey}, tlsNow, nil)
	if v.Admitted || parsed != nil || v.Reason != ReasonInvalid || !strings.Contains(v.Message, "spec.tls.certificate") ||
		!strings.Contains(v.Message, "RSA key of 768 bits; allowed: 1024 to 8192") {
		t.Errorf("%+v", v)
	}
}

// shortCert and shortKey are of 768 bits, which crypto/rsa does not make.
const shortCert = `-----BEGIN CERTIFICATE-----
MIIB2jCCAWSgAwIBAgIUOc8V4+gINfPoCy7/4ElXX7lJsREwDQYJKoZIhvcNAQEL
BQAwFTETMBEGA1UEAwwKc2hvcnQudGVzdDAgFw0yNjExMjIwMDA2NDFaGA8yMTI2
MTAyOTAwMDY0MVowFTETMBEGA1UEAwwKc2hvcnQudGVzdDB8MA0GCSqGSIb3DQEB
AQUAA2sAMGgCYQDjds4wTpSoIChA8SeOmD69iXz+kxc+7sA+OJg+ME2rfyYSqodv
MaZYts5FXkQd2LXh665a3+PxSVValefET9n66DmDK4JlvDB3qspYvaIxF8sIQuO8
5bhefwv4By352n0CAwEAAaNqMGgwHQYDVR0OBBYEFDEtICTpce+ratXWTXGkSvBq
HJIMMB8GA1UdIwQYMBaAFDEtICTpce+ratXWTXGkSvBqHJIMMA8GA1UdEwEB/wQF
MAMBAf8wFQYDVR0RBA4wDIIKc2hvcnQudGVzdDANBgkqhkiG9w0BAQsFAANhABYE
HHVD1zD3UDwSx5FHgAfRo7WYbII+bxLvRfGI7wKhorzxa2FFD+NU60WFI1wkLWmS
g37pSgtWfMGNY8YFXNrLW1oLSZUej4dVm0d1rNqhuL9MJYF9zzJNi1H6nR+46Q==
-----END CERTIFICATE-----
`

const shortKey = `-----BEGIN RSA PRIVATE KEY-----
MIIBzAIBAAJhAON2zjBOlKggKEDxJ46YPr2JfP6TFz7uwD44mD4wTat/JhKqh28x
pli2zkVeRB3YteHrrlrf4/FJVVqV58RP2froOYMrgmW8MHeqyli9ojEXywhC47zl
uF5/C/gHLfnafQIDAQABAmEAlXgHS5UHeGcRLIOLI9eFOtUyzrJnTxJiP0C/QfZJ
w4zcvt1R+85baeZOKyUji51Pwf0bZmEDip3hmo9OpVBT3EDca9AQJvy1gxNz+U6q
N6THaQneQ0es6Xxwp5nPPwE9AjEA/FpdpwFr1kF/hLmsH+6FH53LyXivKp1GHyHw
VMK8SsB1YfDcVozCfdogmQ0be+7HAjEA5sBblAKNggvbwOUBfsgIml9a7kljP4O7
MHsQ5w5nn/PLJln5k/Q/X9ez1M5W5XibAjEA1F9whYYKrOu+V4KyusTPQAZaZJmu
QRzO0JCNY6fnMrm5j81WgXhAjg2udV+0i54tAjBewV7ZyLKTVItJCsEybrIZsk6E
y14WFuInZmHqf9/Nry8c8JWsTAA6Ozl9ib3lPUECMQD3JE3Lh53mev9oR73QE+77
9RPwMMTatngj5jmQo+z6y+UnxetkAlfCGkFQtntET7o=
-----END RSA PRIVATE KEY-----
`
