package translate

// interned keeps what was made of texts, so that equal texts give the same thing: routes that say the same share it, and a route
// that is translated again is the same route. Texts of routes that are gone are in it too. What bounds them is starting again,
// which costs routes that are translated later a new copy and no more. The zero value is empty.
type interned[V any] struct {
	most int // bytes of the texts, 0 = maxInterned
	made map[string]V
	size int // bytes of the texts now
}

// maxInterned bounds the texts of one interned, in bytes; maxAuthorities those of authorities, of which each service has its own copy.
const (
	maxInterned    = 4 << 20
	maxAuthorities = 16 << 20
)

func (c *interned[V]) get(text string) (v V, ok bool) {
	v, ok = c.made[text]
	return v, ok
}

func (c *interned[V]) put(text string, v V) {
	most := c.most
	if most == 0 {
		most = maxInterned
	}
	if c.size+len(text) > most || c.made == nil {
		c.made, c.size = make(map[string]V), 0
	}
	c.made[text] = v
	c.size += len(text)
}

// of returns what is kept for a text, else what made returns, and keeps it. It is nothing if made fails, which callers have made sure that it does not.
func (c *interned[V]) of(text string, made func() (V, error)) V {
	if known, ok := c.get(text); ok {
		return known
	}
	v, err := made()
	if err == nil {
		c.put(text, v)
	}
	return v
}
