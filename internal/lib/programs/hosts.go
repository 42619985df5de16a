package programs

import (
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/lib/shellcmd"
)

// A Host is a host that a command contacts, as far as its words tell.
type Host struct {
	Name   string // as written, without brackets
	Port   uint16
	Scheme string // http, https, ssh, git or tcp
	Why    string // where it comes from: a word, a remote, "npm's registry"
}

// A HostEnv is what the hosts of a command depend on besides its words. Its
// functions may be nil.
type HostEnv struct {
	// Remote returns the URL of a git remote, "" for the one that is
	// customary, of the repository around dir.
	Remote func(dir, name string) string
	// Getenv looks up an environment variable.
	Getenv func(name string) string
}

// Hosts returns the hosts that the commands of s contact, each once. unsure is
// "" if that is all of them as far as words can tell: what scripts and
// builds contact by themselves is in no word.
func Hosts(s *shellcmd.Script, env HostEnv) (hosts []Host, unsure string) {
	h := &hoster{env: env, script: s}
	if s.Problem != "" {
		h.unsure = "the command cannot be read: " + s.Problem
	}
	for _, c := range s.Commands {
		h.command(c)
	}
	return h.hosts, h.unsure
}

// A hoster collects hosts.
type hoster struct {
	env    HostEnv
	script *shellcmd.Script
	hosts  []Host
	unsure string
}

// ports are the customary ones of schemes.
var ports = [...]struct {
	scheme string
	port   uint16
	kind   string
}{
	{"https", 443, "https"}, {"http", 80, "http"}, {"wss", 443, "https"}, {"ws", 80, "http"}, {"ssh", 22, "ssh"}, {"git+ssh", 22, "ssh"},
	{"sftp", 22, "ssh"}, {"scp", 22, "ssh"}, {"git", 9418, "git"}, {"ftp", 21, "tcp"}, {"ftps", 990, "tcp"}, {"rsync", 873, "tcp"},
	{"redis", 6379, "tcp"}, {"postgres", 5432, "tcp"}, {"postgresql", 5432, "tcp"}, {"mysql", 3306, "tcp"}, {"mongodb", 27017, "tcp"},
	{"amqp", 5672, "tcp"}, {"git+https", 443, "https"},
}

func (h *hoster) add(name string, port uint16, scheme, why string) {
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if name == "" || port == 0 || strings.ContainsAny(name, "/@ \t\n\x00$`*?") {
		return
	}
	x := Host{name, port, scheme, why}
	if !slices.ContainsFunc(h.hosts, func(o Host) bool { return o.Name == x.Name && o.Port == x.Port }) {
		h.hosts = append(h.hosts, x)
	}
}

// url takes text if it is a URL with a host.
func (h *hoster) url(text, why string) bool {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return false
	}
	for _, p := range ports {
		if !strings.EqualFold(scheme, p.scheme) {
			continue
		}
		// A path may hold what no URL may: the host is all that matters.
		authority := rest
		if i := strings.IndexAny(rest, "/?#\\"); i >= 0 {
			authority = rest[:i]
		}
		authority = authority[strings.LastIndexByte(authority, '@')+1:]
		h.authority(authority, p.port, p.kind, why)
		return true
	}
	return false
}

// authority takes HOST or HOST:PORT.
func (h *hoster) authority(text string, port uint16, scheme, why string) {
	u, err := url.Parse("//" + text)
	if err != nil || u.Hostname() == "" {
		return
	}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return
		}
		port = uint16(n)
	}
	h.add(u.Hostname(), port, scheme, why)
}

// command takes what one command contacts.
func (h *hoster) command(c *shellcmd.Command) {
	for _, r := range c.Redirects {
		h.device(r.Target)
	}
	if len(c.Argv) == 0 || c.Transparent || c.Defined {
		return
	}
	program := path.Base(c.Program())
	args := c.Argv[1:]
	switch program {
	case "echo", "printf", "grep", "rg", "sed", "awk", "cat", "true", ":", "test", "[", "export", "cd":
		return // words that look like hosts are only text there
	case "ssh", "mosh":
		h.ssh(args)
		return
	case "scp", "sftp", "rsync":
		h.copy(args, program)
		return
	case "git":
		h.git(c, args)
		return
	case "nc", "ncat", "netcat", "telnet":
		h.connect(args, program)
		return
	}
	bare := program == "curl" || program == "wget" || program == "http" || program == "https" || program == "xh"
	before := len(h.hosts)
	for i := 0; i < len(args); i++ {
		a := args[i]
		if bare && fetchValue(program, a) {
			i++
			continue
		}
		text := a.Text
		if _, v, ok := strings.Cut(text, "="); ok && a.IsOption() {
			text = v
		}
		switch {
		case !a.Known && !strings.Contains(a.Prefix, "://"):
			if bare {
				h.unknown(a)
			}
		case !a.Known:
			if rest := a.Prefix[strings.Index(a.Prefix, "://")+3:]; strings.ContainsAny(rest, "/?#") {
				h.url(a.Prefix, "its words")
			} else {
				h.unknown(a)
			}
		case h.url(text, "its words"):
		case bare && !a.IsOption() && text != "":
			h.bare(program, text)
		}
	}
	if len(h.hosts) == before {
		h.registry(program, args)
	}
}

func (h *hoster) unknown(a shellcmd.Word) {
	if h.unsure == "" {
		h.unsure = "the word " + a.Source + " is not known before the command runs"
	}
}

// bare takes a host without a scheme, as download programs do.
func (h *hoster) bare(program, text string) {
	if i := strings.IndexAny(text, "/?#"); i >= 0 {
		text = text[:i]
	}
	if program == "http" || program == "xh" || program == "https" {
		if strings.ContainsAny(text, "=") || slices.Contains(strings.Fields("get post put patch delete head options"), strings.ToLower(text)) || strings.Contains(text, ":") && net.ParseIP(text) == nil && !portAtEnd(text) {
			return // a method, a field or a header
		}
	}
	port, scheme := uint16(80), "http"
	if program == "https" {
		port, scheme = 443, "https"
	}
	h.authority(text[strings.LastIndexByte(text, '@')+1:], port, scheme, "its words")
}

func portAtEnd(text string) bool {
	_, p, err := net.SplitHostPort(text)
	_, perr := strconv.ParseUint(p, 10, 16)
	return err == nil && perr == nil
}

// fetchValue reports whether option a of a download program takes the next
// word, which is then no host that is asked for.
func fetchValue(program string, a shellcmd.Word) bool {
	if program != "curl" && program != "wget" || !a.Known || !a.IsOption() || strings.Contains(a.Text, "=") {
		return false
	}
	if strings.HasPrefix(a.Text, "--") {
		list := " output header data data-raw data-binary data-urlencode form user user-agent referer request proxy proxy-user cookie cookie-jar cacert cert key max-time connect-timeout retry write-out upload-file range resolve connect-to interface config proto json limit-rate noproxy preproxy socks5 socks5-hostname ciphers output-dir "
		if program == "wget" {
			list = " output-document output-file header post-data post-file body-data method user password user-agent referer directory-prefix tries timeout input-file level accept reject domains execute "
		}
		return strings.Contains(list, " "+a.Text[2:]+" ")
	}
	letters := "oHdFuAeXxbcEmwTrKCDtyYz"
	if program == "wget" {
		letters = "OoaePtTilADRBUQ"
	}
	return strings.IndexByte(letters, a.Text[len(a.Text)-1]) >= 0
}

// ssh takes the host of ssh's arguments.
func (h *hoster) ssh(args []shellcmd.Word) {
	port := uint16(22)
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a.IsOption() && a.Known {
			if len(a.Text) == 2 && strings.IndexByte("bcDEeFIiJLlmOopQRSWw", a.Text[1]) >= 0 {
				if i++; a.Text == "-p" && i < len(args) {
					port = number(args[i].Text, port)
				}
			} else if rest, ok := strings.CutPrefix(a.Text, "-p"); ok {
				port = number(rest, port)
			}
			continue
		}
		if !a.Known {
			h.unknown(a)
		} else if !h.url(a.Text, "its words") {
			h.add(a.Text[strings.LastIndexByte(a.Text, '@')+1:], port, "ssh", "its words")
		}
		return
	}
}

func number(s string, otherwise uint16) uint16 {
	if n, err := strconv.ParseUint(s, 10, 16); err == nil && n > 0 {
		return uint16(n)
	}
	return otherwise
}

// copy takes the hosts of scp, sftp and rsync.
func (h *hoster) copy(args []shellcmd.Word, program string) {
	port := uint16(22)
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.Known && a.Text == "-P" && program != "rsync" && i+1 < len(args):
			i++
			port = number(args[i].Text, port)
		case a.Known && program != "rsync" && len(a.Text) == 2 && a.IsOption() && strings.IndexByte("cFiJloSXD", a.Text[1]) >= 0,
			a.Known && program == "rsync" && (a.Text == "-e" || a.Text == "--rsh" || a.Text == "-f"):
			i++
		case a.IsOption():
		case !a.Known:
			h.unknown(a)
		case h.url(a.Text, "its words"):
		case strings.Contains(a.Text, "::"):
			h.authority(a.Text[:strings.Index(a.Text, "::")], 873, "tcp", "its words")
		default:
			if host := scpHost(a.Text); host != "" {
				h.add(host, port, "ssh", "its words")
			} else if program == "sftp" {
				h.add(a.Text[strings.LastIndexByte(a.Text, '@')+1:], port, "ssh", "its words")
			}
		}
	}
}

// scpHost is the host of [USER@]HOST:PATH, "" if text is no such thing.
func scpHost(text string) string {
	colon := strings.IndexByte(text, ':')
	if slash := strings.IndexByte(text, '/'); colon < 1 || slash >= 0 && slash < colon {
		return ""
	}
	return text[:colon][strings.LastIndexByte(text[:colon], '@')+1:]
}

// git takes what a git command contacts: a URL, or a remote by name.
func (h *hoster) git(c *shellcmd.Command, args []shellcmd.Word) {
	i, why := gitCommand(args)
	if why != "" || i >= len(args) {
		return
	}
	sub, rest := args[i].Text, args[i+1:]
	switch sub {
	case "clone", "fetch", "pull", "push", "ls-remote", "archive":
	case "submodule":
		h.unsure = "what submodules are fetched from is in their configuration"
		return
	case "remote":
		if len(rest) < 1 || rest[0].Text != "update" && rest[0].Text != "show" && rest[0].Text != "prune" {
			return
		}
		rest = rest[1:]
	default:
		return
	}
	name := ""
	for _, a := range rest {
		if !a.Known {
			h.unknown(a)
			return
		}
		if a.IsOption() || number(a.Text, 0) != 0 { // an option or its value
			continue
		}
		if h.repository(a.Text, "its words") {
			return
		}
		if name == "" {
			name = a.Text
		}
	}
	if sub == "clone" || h.env.Remote == nil {
		return
	}
	dirs := c.Dirs
	for j := 0; j+1 < i; j++ {
		if args[j].Text == "-C" {
			dirs = nil
			if to := args[j+1]; to.Known && path.IsAbs(to.Text) {
				dirs = []string{to.Text}
			} else if to.Known {
				for _, d := range c.Dirs {
					dirs = append(dirs, path.Join(d, to.Text))
				}
			}
		}
	}
	for _, dir := range dirs {
		if u := h.env.Remote(dir, name); u != "" {
			h.repository(u, "the remote "+or(name, "of the branch"))
		}
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// repository takes the host of a repository's URL.
func (h *hoster) repository(text, why string) bool {
	if h.url(text, why) {
		return true
	}
	host := scpHost(text)
	if host != "" {
		h.add(host, 22, "ssh", why)
	}
	return host != ""
}

// connect takes HOST PORT.
func (h *hoster) connect(args []shellcmd.Word, program string) {
	var words []string
	for _, a := range args {
		switch {
		case !a.Known:
			h.unknown(a)
			return
		case a.IsOption():
			if strings.ContainsAny(a.Text, "lU") {
				return // listens, or uses a local socket
			}
		default:
			words = append(words, a.Text)
		}
	}
	if len(words) == 1 && program == "telnet" {
		words = append(words, "23")
	}
	if n := len(words); n >= 2 {
		h.add(words[n-2], number(words[n-1], 0), "tcp", "its words")
	}
}

// device takes the host of /dev/tcp/HOST/PORT.
func (h *hoster) device(w shellcmd.Word) {
	text := w.Text
	if !w.Known {
		text = w.Prefix
	}
	rest, ok := strings.CutPrefix(text, "/dev/tcp/")
	if !ok {
		return
	}
	host, port, _ := strings.Cut(rest, "/")
	if n := number(port, 0); w.Known && n > 0 {
		h.add(host, n, "tcp", "its words")
	} else {
		h.unknown(w)
	}
}

// registries are where programs fetch from by themselves; variable names one in
// their place.
var registries = [...]struct {
	programs, commands string
	variable           string
	hosts              string
}{
	{"npm pnpm yarn npx bunx bun", "", "npm_config_registry", "registry.npmjs.org"},
	{"pip pip3 pipx uv uvx poetry", "install download add sync lock tool run", "PIP_INDEX_URL", "pypi.org files.pythonhosted.org"},
	{"cargo", "build check test run fetch install update add clippy bench doc", "", "index.crates.io static.crates.io"},
	{"go", "get install mod build test run vet generate", "GOPROXY", "proxy.golang.org sum.golang.org"},
	{"gem bundle", "install update add", "", "rubygems.org index.rubygems.org"},
	{"composer", "", "", "repo.packagist.org"},
	{"gh", "", "GH_HOST", "api.github.com github.com"},
	{"docker podman", "pull run build push", "", "registry-1.docker.io auth.docker.io production.cloudflare.docker.com"},
	{"mvn gradle", "", "", "repo.maven.apache.org"},
}

// registry takes where a package manager fetches from.
func (h *hoster) registry(program string, args []shellcmd.Word) {
	for _, r := range registries {
		if !slices.Contains(strings.Fields(r.programs), program) {
			continue
		}
		if r.commands != "" && (len(args) == 0 || !slices.Contains(strings.Fields(r.commands), args[0].Text)) {
			return
		}
		if len(args) > 0 && (args[0].Text == "--version" || args[0].Text == "-v" || args[0].Text == "--help") {
			return
		}
		if h.env.Getenv != nil && r.variable != "" {
			if v, _, _ := strings.Cut(h.env.Getenv(r.variable), ","); v != "" && v != "direct" && v != "off" {
				if !h.url(v, r.variable) {
					h.add(v, 443, "https", r.variable)
				}
				return
			}
		}
		for _, host := range strings.Fields(r.hosts) {
			h.add(host, 443, "https", "where "+program+" fetches from")
		}
		return
	}
}
