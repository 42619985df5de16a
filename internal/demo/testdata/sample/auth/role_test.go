package auth

import "testing"

func TestParseRole(t *testing.T) {
	if r, err := ParseRole("captain"); r != Captain || err != nil {
		t.Errorf("got %q, %v; want captain", r, err)
	}
	if _, err := ParseRole("pirate"); err == nil {
		t.Error("a pirate has a role")
	}
}

func TestRoleAllowsItself(t *testing.T) {
	for _, r := range []Role{Guest, Cashier, Captain} {
		if !r.Allows(r) {
			t.Errorf("a %s may not do what a %s may", r, r)
		}
	}
}

func TestHigherRoleAllowsLower(t *testing.T) {
	if !Captain.Allows(Guest) {
		t.Error("a captain may not do what a guest may")
	}
}

func TestLowerRoleIsRefused(t *testing.T) {
	if Guest.Allows(Captain) {
		t.Error("a guest may do what a captain may")
	}
}
