package accesslog

import (
	"errors"
	"net/url"
	"strings"

	"turnout/proxy"
)

// ParseHelp reads Config.Help: an address of http or https without a fragment, which lines put behind it.
func ParseHelp(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Fragment != "" || strings.HasSuffix(text, "#") || u.User != nil {
		return "", errors.New("allowed: an address of http or https without user and fragment")
	}
	return text, nil
}

// links are the members of a line that link to a reason, by reason; none for those that say of no failure. nil without a page.
func links(page string) []string {
	if page == "" {
		return nil
	}
	all := make([]string, len(proxy.Reasons()))
	for _, reason := range proxy.Reasons() {
		switch reason {
		case proxy.ReasonOK, proxy.ReasonRedirect, proxy.ReasonTunnelClosed:
			continue
		}
		all[reason] = string(appendText([]byte(`,"help":`), page+"#"+reason.String()))
	}
	return all
}
