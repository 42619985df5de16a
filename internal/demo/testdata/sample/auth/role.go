package auth

import "fmt"

// A Role is what somebody may do. Every role may do what lower ones may.
type Role string

const (
	Guest   Role = "guest"
	Cashier Role = "cashier"
	Captain Role = "captain"
)

var rank = map[Role]int{Guest: 1, Cashier: 2, Captain: 3}

// ParseRole returns the role with that name.
func ParseRole(name string) (Role, error) {
	if r := Role(name); rank[r] > 0 {
		return r, nil
	}
	return "", fmt.Errorf("no role is called %q", name)
}

// Allows reports whether r may do what need is needed for.
func (r Role) Allows(need Role) bool {
	return rank[r] > rank[need]
}
