package convert

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// maxName is how long a name, and a section's name, may be (RFC 1123).
const maxName = 253

// shortened is a text that has at most so many bytes: a long one ends with a hash of it.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return strings.TrimRight(text[:most-9], ".-") + "-" + hex.EncodeToString(sum[:4])
}

// spelled is a host as a part of a name: a wildcard begins with "any".
func spelled(host string) string {
	switch domain, wild := strings.CutPrefix(host, "*."); {
	case host == "":
		return "any-host"
	case wild:
		return "any." + domain
	}
	return host
}

// ref returns a pointer to a value.
func ref[T any](v T) *T { return &v }

// gatewayType is the type of an object of the Gateway API.
func gatewayType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: gatewayv1.GroupVersion.String(), Kind: kind}
}

// coreType is that of one of the core group.
func coreType(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }
