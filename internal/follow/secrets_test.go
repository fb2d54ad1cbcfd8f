package follow

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"turnout/tlsmux"
)

// TestSecretsOfTickets: the current one makes new tickets, others follow by name; what cannot be used says why.
func TestSecretsOfTickets(t *testing.T) {
	secret := func(b byte) []byte { return bytes.Repeat([]byte{b}, tlsmux.MinTicketSecret) }
	many := map[string][]byte{currentSecret: secret('c')}
	for i := range mostSecrets {
		many[fmt.Sprint("old", i)] = secret('o')
	}
	for name, c := range map[string]struct {
		contents map[string][]byte
		want     string // first byte of each
		err      string
	}{
		"three":     {map[string][]byte{"previous": secret('p'), currentSecret: secret('c'), "next": secret('n')}, "cnp", ""},
		"none":      {nil, "", "there is no current"},
		"too short": {map[string][]byte{currentSecret: []byte("x")}, "", "current holds 1 bytes, less than"},
		"too many":  {many, "", "there are 17 secrets, more than 16"},
	} {
		t.Run(name, func(t *testing.T) {
			secrets, err := secretsOf(c.contents)
			var got strings.Builder
			for _, s := range secrets {
				got.WriteByte(s[0])
			}
			if got.String() != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q, %v; want %q, %q", got.String(), err, c.want, c.err)
			}
		})
	}
}
