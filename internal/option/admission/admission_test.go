package admission

import (
	"slices"
	"testing"

	"turnout/controller"
	"turnout/internal/option"
)

// TestOptions: what is given goes where it belongs, those that say "yes" to what is the default among them.
func TestOptions(t *testing.T) {
	var c controller.Options
	args := []string{"--router-domain", "apps.test", "--denied-domains", "a.test, b.test", "--allow-wildcard-routes", "--extended-validation=false"}
	if _, _, err := option.Parse(Table(&c), nil, args, func(string) (string, bool) { return "", false }); err != nil {
		t.Fatal(err)
	}
	if c.RouterName != "public" || c.Domain != "apps.test" || !slices.Equal(c.DeniedDomains, []string{"a.test", "b.test"}) || !c.AllowWildcard || !c.SkipExtendedValidation || c.SkipExternalCertificate {
		t.Errorf("%+v", c)
	}
}
