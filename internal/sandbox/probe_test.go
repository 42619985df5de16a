package sandbox

import (
	"strings"
	"testing"
)

// Each thing that keeps bubblewrap from working is named, with the smallest
// change that mends it.
func TestBlockersAreNamed(t *testing.T) {
	t.Parallel()
	const refused = "bwrap: setting up uid map: Permission denied"
	for _, tc := range []struct {
		name         string
		f            facts
		system       map[string]string
		blocker, fix string
	}{
		{"missing", facts{err: "not found"}, nil, "bubblewrap (bwrap) is not installed", "apt install bubblewrap"},
		{"no user namespaces", facts{bwrap: "/b", stderr: "bwrap: Creating new namespace failed: No space left on device"},
			map[string]string{"/proc/sys/user/max_user_namespaces": "0"}, "user.max_user_namespaces is 0", "sysctl -w user.max_user_namespaces="},
		{"user namespaces for root", facts{bwrap: "/b", stderr: "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces."},
			map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "0"}, "kernel.unprivileged_userns_clone is 0", "sysctl -w kernel.unprivileged_userns_clone=1"},
		{"AppArmor", facts{bwrap: "/usr/bin/bwrap", stderr: refused},
			map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, "AppArmor", "profile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }"},
		{"AppArmor, seen at the loopback", facts{bwrap: "/b", stderr: "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted"},
			map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, "AppArmor", "apparmor_parser -r"},
		{"a container's filter", facts{bwrap: "/b", stderr: refused},
			map[string]string{"/.dockerenv": "x"}, "the container's system call filter", "seccomp=unconfined"},
		{"a filter of something else", facts{bwrap: "/b", stderr: "bwrap: Creating new namespace failed: Operation not permitted"},
			map[string]string{"/proc/self/status": "Name:\tx\nSeccomp:\t2\n"}, "the container's system call filter", "seccomp=unconfined"},
		{"podman", facts{bwrap: "/b", stderr: refused},
			map[string]string{"/run/.containerenv": "engine=podman"}, "the container's system call filter", "seccomp=unconfined"},
		{"no proc", facts{bwrap: "/b", stderr: "bwrap: Can't mount proc on /newroot/proc: Operation not permitted"},
			map[string]string{"/.dockerenv": "x"}, "no new /proc can be mounted", "sandbox.enableWeakerNestedSandbox"},
		{"no network namespace", facts{bwrap: "/b", stderr: "bwrap: loopback: Failed RTM_NEWADDR: No such device"}, nil, "no network namespace", "where network namespaces are allowed"},
		{"helper", facts{bwrap: "/b", stderr: "cinch: sandbox: entering Landlock: invalid argument"}, nil, "entering Landlock: invalid argument", "update the kernel"},
		{"anything else", facts{bwrap: "/b", err: "it hung"}, nil, "it hung", "'/b --ro-bind / / true'"},
	} {
		tc.f.system = func(name string) string { return tc.system[name] }
		blocker, fix := tc.f.explain()
		if !strings.Contains(blocker, tc.blocker) || !strings.Contains(fix, tc.fix) {
			t.Errorf("%s: got %q, to mend it %q; want %q, %q", tc.name, blocker, fix, tc.blocker, tc.fix)
		}
	}
}
