package translate

import "weak"

// Interned keeps what was made of texts for as long as somebody uses it, so that equal texts give the same thing: rules that say the same share
// it, and a rule that is translated again is the same rule. The zero value is empty.
type Interned[V any] struct {
	made map[string]weak.Pointer[V]
	next int // number of entries at which those that nobody uses go
}

// minSwept is the number of entries below which none is looked for.
const minSwept = 256

// Of returns what is kept for a text, else what made returns, and keeps it.
func (c *Interned[V]) Of(text string, made func() (*V, error)) (*V, error) {
	if p, ok := c.made[text]; ok {
		if v := p.Value(); v != nil {
			return v, nil
		}
	}
	v, err := made()
	if err != nil || v == nil {
		return nil, err
	}
	if c.made == nil {
		c.made = make(map[string]weak.Pointer[V])
	}
	c.sweep()
	c.made[text] = weak.Make(v)
	return v, nil
}

// sweep takes out what nobody uses, each time that the number of entries has doubled.
func (c *Interned[V]) sweep() {
	if len(c.made) < max(c.next, minSwept) {
		return
	}
	for text, p := range c.made {
		if p.Value() == nil {
			delete(c.made, text)
		}
	}
	c.next = 2 * len(c.made)
}
