package egress

import (
	"net/netip"
	"testing"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	r, errs := NewRules(
		[]string{"Example.COM.", "*.github.com", "api.test:8443", "10.1.2.3", "[2001:db8::1]:443", "localhost:8000", "192.168.0.0/16", "both.test"},
		[]string{"gist.github.com", "both.test", "*.bad.test", "10.1.2.4", "1::2:3"}, false)
	if len(errs) != 0 {
		t.Fatal(errs)
	}
	for _, tc := range []struct {
		host string
		port uint16
		want Verdict
		by   string
	}{
		{"example.com", 443, Allowed, "Example.COM."},
		{"EXAMPLE.com.", 80, Allowed, "Example.COM."},
		{"sub.example.com", 443, Unknown, ""},
		{"notexample.com", 443, Unknown, ""},
		{"api.github.com", 443, Allowed, "*.github.com"},
		{"a.b.github.com", 22, Allowed, "*.github.com"},
		{"github.com", 443, Unknown, ""},
		{"evilgithub.com", 443, Unknown, ""},
		{"gist.github.com", 443, Denied, "gist.github.com"},
		{"api.test", 8443, Allowed, "api.test:8443"},
		{"api.test", 443, Unknown, ""},
		{"both.test", 443, Denied, "both.test"},
		{"x.bad.test", 443, Denied, "*.bad.test"},
		{"bad.test", 443, Unknown, ""},
		{"10.1.2.3", 22, Allowed, "10.1.2.3"},
		{"::ffff:10.1.2.3", 22, Allowed, "10.1.2.3"},
		{"10.1.2.4", 22, Denied, "10.1.2.4"},
		{"2001:db8::1", 443, Allowed, "[2001:db8::1]:443"},
		{"2001:db8::1", 80, Unknown, ""},
		{"localhost", 8000, Allowed, "localhost:8000"},
		{"127.0.0.1", 8000, Allowed, "localhost:8000"},
		{"::1", 8000, Allowed, "localhost:8000"},
		{"127.0.0.1", 8001, Unknown, ""},
		{"192.168.7.7", 1, Allowed, "192.168.0.0/16"},
		{"1::2:3", 9, Denied, "1::2:3"},
		{"1::2", 3, Denied, "1::2:3"},
	} {
		target, err := NewTarget(tc.host, tc.port)
		if err != nil {
			t.Errorf("%s: %v", tc.host, err)
			continue
		}
		if v, by := r.Decide(target); v != tc.want || by != tc.by {
			t.Errorf("%s: got %v by %q, want %v by %q", target, v, by, tc.want, tc.by)
		}
	}
}

func TestNotATarget(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"", ".", "a..b", "127.1", "2130706433", "0x7f.0.0.1", "0x7f000001", "1.2.3.4.5", "a b", "a@b", "a/b", "fe80::1%eth0", "example.com:80", "\x00", "exämple.com"} {
		if got, err := NewTarget(host, 80); err == nil {
			t.Errorf("%q was taken for %s", host, got)
		}
	}
}

func TestNotARule(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"*", "*.com", "https://example.com", "example.com:0", "example.com:x", "a*.com", "[::1", "::1:443", "", "exam ple"} {
		if r, errs := NewRules([]string{s}, nil, false); len(errs) == 0 {
			t.Errorf("%q was taken for an allow rule: %+v", s, r.allow)
		}
	}
	r, errs := NewRules(nil, []string{"*"}, false)
	target, _ := NewTarget("anything.test", 1)
	if v, _ := r.Decide(target); len(errs) != 0 || v != Denied {
		t.Errorf("* does not deny: %v %v", v, errs)
	}
}

func TestCheckAddr(t *testing.T) {
	t.Parallel()
	r, _ := NewRules([]string{"name.test", "localhost", "10.1.2.3", "172.16.0.0/12", "169.254.169.254:80"}, []string{"172.16.9.9", "8.8.8.8"}, false)
	for _, tc := range []struct {
		host, addr string
		port       uint16
		ok         bool
	}{
		{"name.test", "93.184.216.34", 443, true},
		{"name.test", "127.0.0.1", 443, false},
		{"name.test", "::1", 443, false},
		{"name.test", "169.254.169.254", 443, false},
		{"name.test", "169.254.169.254", 80, true},
		{"name.test", "10.1.2.3", 443, true},
		{"name.test", "10.1.2.5", 443, false},
		{"name.test", "172.20.0.1", 443, true},
		{"name.test", "172.16.9.9", 443, false},
		{"name.test", "8.8.8.8", 443, false},
		{"name.test", "::ffff:10.0.0.1", 443, false},
		{"name.test", "64:ff9b::a00:1", 443, false},
		{"name.test", "fd00::1", 443, false},
		{"name.test", "fe80::1", 443, false},
		{"name.test", "0.0.0.0", 443, false},
		{"name.test", "100.64.0.1", 443, false},
		{"name.test", "224.0.0.1", 443, false},
		{"localhost", "127.0.0.1", 443, true},
		{"localhost", "::1", 443, true},
		{"localhost", "10.9.9.9", 443, false},
		{"127.0.0.1", "127.0.0.1", 443, true},
	} {
		target, err := NewTarget(tc.host, tc.port)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.CheckAddr(target, netip.MustParseAddr(tc.addr)); (err == nil) != tc.ok {
			t.Errorf("%s at %s: got %v, want ok %v", target, tc.addr, err, tc.ok)
		}
	}
}

func FuzzRules(f *testing.F) {
	for _, s := range []string{"*.a.b:1", "[::1]:2", "10.0.0.0/8", "*", "a.b."} {
		f.Add(s, "a.b", uint16(443))
	}
	f.Fuzz(func(t *testing.T, rule, host string, port uint16) {
		deny, _ := NewRules(nil, []string{rule}, false)
		both, _ := NewRules([]string{rule}, []string{rule}, true)
		target, err := NewTarget(host, port)
		if err != nil {
			return
		}
		if v, _ := both.Decide(target); v == Allowed {
			t.Errorf("%q allows %s although it denies it", rule, target)
		}
		deny.Decide(target)
	})
}
