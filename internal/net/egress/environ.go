package egress

import (
	"strconv"

	"github.com/seed-eb844fcb/cinch/internal/net/egress/connector"
)

// An Inside is what commands find where they run.
type Inside struct {
	// Port is that of the proxy, on loopback.
	Port uint16
	// Web and Socks are ports on loopback of other proxies, which stand in for
	// this one for their protocol; 0 is none.
	Web, Socks uint16
	// Program is this program as commands can run it, for SSH; "" leaves SSH
	// without a way out.
	Program string
	// Env looks up what commands would find else. May be nil.
	Env func(string) string
}

// Environ are the variables by which programs find the proxy. Where localhost
// is a host outside, by the rules, it is reached through the proxy like any
// other.
func (p *Proxy) Environ(in Inside) []string {
	at := func(port uint16) string { return "127.0.0.1:" + strconv.Itoa(int(port)) }
	own := "cinch:" + p.token + "@" + at(in.Port)
	web, socks := "http://"+own, "socks5h://"+own
	host, user, password, rsync := in.Port, "cinch", p.token, own
	if in.Web != 0 {
		web, host, user, password, rsync = "http://"+at(in.Web), in.Web, "", "", at(in.Web)
	}
	if in.Socks != 0 {
		socks = "socks5h://" + at(in.Socks)
	}
	none := "localhost,127.0.0.1,::1"
	if any, _ := p.o.Rules().Loopback(); any {
		none = ""
	}
	out := []string{
		"HTTP_PROXY=" + web, "HTTPS_PROXY=" + web, "http_proxy=" + web, "https_proxy=" + web,
		"ALL_PROXY=" + socks, "all_proxy=" + socks, "NO_PROXY=" + none, "no_proxy=" + none,
		"GRPC_PROXY=" + web, "grpc_proxy=" + web, "FTP_PROXY=" + web, "ftp_proxy=" + web, "RSYNC_PROXY=" + rsync,
		"CLOUDSDK_PROXY_TYPE=http", "CLOUDSDK_PROXY_ADDRESS=127.0.0.1", "CLOUDSDK_PROXY_PORT=" + strconv.Itoa(int(host)),
		"CLOUDSDK_PROXY_USERNAME=" + user, "CLOUDSDK_PROXY_PASSWORD=" + password,
		"NODE_USE_ENV_PROXY=1", connector.Variable + "=" + web,
	}
	if in.Program != "" {
		out = append(out, "GIT_SSH_COMMAND="+gitSSH(in)+" "+connector.SSH(in.Program))
	}
	return out
}

// gitSSH is the command by which git would start ssh, for a shell.
func gitSSH(in Inside) string {
	if in.Env != nil {
		if c := in.Env("GIT_SSH_COMMAND"); c != "" {
			return c
		}
		if program := in.Env("GIT_SSH"); program != "" {
			return connector.Quote(program)
		}
	}
	return "ssh"
}

// SSHConfig is config, the ssh configuration of the machine, for commands: the
// user's own is read before it and still counts.
func SSHConfig(program string, config []byte) []byte {
	return append([]byte("Host *\n  ProxyCommand "+connector.Command(program)+"\n\n"), config...)
}
