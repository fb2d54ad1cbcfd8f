// Package work counts the work that one request takes of its event loop where text of a tenant
// meets bytes of a client or pod. docs/limits.md, "Units of work", has the cost of each operation.
package work

// Units of work. One unit takes at most 8 ns.
const (
	// Request is the work of one request over its life: at most 1 ms.
	Request = 120 << 10

	// Reserve is the part of Request that optional operations leave to others, see Account.Spare.
	Reserve = 16 << 10
)

// Account is the work that a request may still take. It belongs to the exchange of the request.
// The zero value grants nothing.
type Account struct {
	left int
}

// Of returns an account of n units.
func Of(n int) Account { return Account{left: n} }

// Spend takes n units. False: the account has fewer, and every later call returns false, too.
func (a *Account) Spend(n int) bool {
	a.left -= n
	return a.left >= 0
}

// Charge takes n units for an operation that takes place even if the account has fewer, such as the
// removal of the router's own cookie. The size of a head bounds n, so that a request takes at most
// Reserve more than it has. Over tells afterwards whether the request may go on.
func (a *Account) Charge(n int) { a.left -= n }

// Spare takes n units for an operation that the request can do without. It takes none and returns
// false if fewer than Reserve units would be left.
func (a *Account) Spare(n int) bool {
	if a.left-n < Reserve {
		return false
	}
	a.left -= n
	return true
}

// Over reports whether Spend has refused an operation, or Charge has taken more than was left.
func (a *Account) Over() bool { return a.left < 0 }

// Left returns the units that are left. They are negative if Over.
func (a *Account) Left() int { return a.left }

// Fields returns the work of comparing a name with those of n fields, and of moving the fields.
func Fields(n int) int { return 1 + n/2 }

// Text returns the work of reading or writing n bytes one by one.
func Text(n int) int { return n / 4 }

// Copied returns the work of copying or comparing n bytes at once.
func Copied(n int) int { return n / 128 }
