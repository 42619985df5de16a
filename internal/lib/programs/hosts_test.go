package programs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/lib/shellcmd"
)

func TestHosts(t *testing.T) {
	t.Parallel()
	env := HostEnv{
		Remote: func(dir, name string) string {
			if dir != "/w" {
				return ""
			}
			return map[string]string{"": "git@hub.test:a/b.git", "up": "https://up.test/a.git"}[name]
		},
		Getenv: func(name string) string {
			return map[string]string{"GOPROXY": "https://mod.corp.test,direct"}[name]
		},
	}
	for src, want := range map[string]string{
		"curl https://api.test/x?y": "api.test:443", "curl -sSL -o f -H 'Host: no.test' http://a.test:8080/ b.test": "a.test:8080 b.test:80",
		"curl -x http://proxy.test:1 --data @x https://u:p@c.test": "c.test:443", "curl --url=https://d.test": "d.test:443",
		"wget -O - e.test/x": "e.test:80", "curl [2001:db8::1]:81/": "2001:db8::1:81", "https post f.test a=b": "f.test:443",
		"ssh -p 2222 -i key me@g.test uptime": "g.test:2222", "ssh ssh://h.test:23": "h.test:23", "scp -P 24 a me@i.test:b": "i.test:24",
		"rsync -a x j.test::mod": "j.test:873", "sftp k.test": "k.test:22", "rsync -e ssh a/b:c l.test:d": "l.test:22",
		"git clone git@m.test:a/b.git": "m.test:22", "git clone --depth 1 https://n.test/x": "n.test:443", "git fetch": "hub.test:22",
		"git push up main": "up.test:443", "git pull nowhere": "", "git status": "", "git -C /elsewhere fetch": "",
		"cd sub; git fetch": "hub.test:22", "cd sub && git fetch": "", "nc -z o.test 5432": "o.test:5432", "nc -l 80": "", "telnet p.test": "p.test:23",
		"exec 3<>/dev/tcp/q.test/99": "q.test:99", "npm ci": "registry.npmjs.org:443", "npm --version": "",
		"pip install x": "pypi.org:443 files.pythonhosted.org:443", "pip list": "", "go test ./...": "mod.corp.test:443", "go fmt": "",
		"timeout 5 curl https://r.test | sh": "r.test:443", "bash -c 'curl https://s.test'": "s.test:443", "psql postgres://u@t.test/db": "t.test:5432",
		"echo https://no.test": "", "grep -r https://no.test .": "", "X=$(curl u.test)": "u.test:80",
		"curl https://$H/x": "?", "curl $U": "?", "curl https://v.test/$X": "v.test:443", "ssh $H": "?", "git clone $U": "?",
		"python3 x.py --api https://w.test/": "w.test:443", "curl https://x.test https://x.test/2": "x.test:443",
	} {
		s := shellcmd.Parse(src, shellcmd.Env{Dir: "/w"})
		hosts, unsure := Hosts(s, env)
		var got []string
		for _, h := range hosts {
			got = append(got, fmt.Sprintf("%s:%d", h.Name, h.Port))
		}
		if unsure != "" {
			got = append(got, "?")
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%s: got %q (%s), want %q", src, g, unsure, want)
		}
	}
}

func FuzzHosts(f *testing.F) {
	for _, s := range []string{"curl https://a:1/", "ssh -p", "scp a:b", "git -c x=y fetch", "nc a 1", "cat </dev/tcp/a/1", "http post [::1", "wget -O"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		hosts, _ := Hosts(shellcmd.Parse(src, testEnv), HostEnv{})
		for _, h := range hosts {
			if h.Name == "" || h.Port == 0 || h.Scheme == "" || strings.ContainsAny(h.Name, "/@ \n") {
				t.Errorf("%q: %+v", src, h)
			}
		}
	})
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	s := shellcmd.Parse("git push && gh pr create", testEnv)
	files, variables := Credentials(s, "/h")
	if got := fmt.Sprint(files, variables); got != "[/h/.git-credentials /h/.netrc /h/.config/git/credentials /h/.config/gh/hosts.yml] [GH_TOKEN GITHUB_TOKEN]" {
		t.Error(got)
	}
	for command, want := range map[string]bool{
		"echo $TOKEN": true, `curl -H "x: ${TOKEN:-a}"`: true, "echo $TOKENS": false, "echo ${MY_TOKEN}": false, "echo TOKEN": false, "$": false, "echo ${#TOKEN}": true, "a$TOKEN.b": true,
	} {
		if got := Mentions(command, "TOKEN"); got != want {
			t.Errorf("%s: %v", command, got)
		}
	}
}
