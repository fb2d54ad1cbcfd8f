package access

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"turnout/internal/admin"
)

// TestMistakes: a login or certificate that cannot be read ends the start.
func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	user := filepath.Join(dir, "user")
	if err := os.WriteFile(user, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := Options{UserFile: user, PasswordFile: dir + "/none"}
	if _, err := a.Login(); err == nil || !strings.HasPrefix(err.Error(), "cannot read the password of the admin port: ") {
		t.Errorf("error %v", err)
	}
	a = Options{User: "u", Password: "p", UserFile: dir + "/none"} // one file alone does not count
	if got, err := a.Login(); err != nil || got.User != "u" || got.Password != "p" {
		t.Errorf("%+v, %v", got, err)
	}
	a = Options{CertFile: dir + "/none", KeyFile: dir + "/none"}
	if _, err := a.tls(nil); err == nil || !strings.HasPrefix(err.Error(), "cannot serve TLS on the admin port: ") {
		t.Errorf("error %v", err)
	}
}

// TestAsked is who is asked for a login.
func TestAsked(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		open    *bool
		cluster bool
		want    admin.Asked
	}{
		{nil, false, admin.AskRemote}, {nil, true, admin.AskAll}, {&no, false, admin.AskAll}, {&no, true, admin.AskAll},
		{&yes, false, admin.AskNobody}, {&yes, true, admin.AskNobody},
	} {
		if got := (&Options{Open: c.open}).asked(c.cluster); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
