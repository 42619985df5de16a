package programs

import (
	"path"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/lib/shellcmd"
)

// habits are the credentials that programs look for without being told.
var habits = [...]struct{ programs, files, variables string }{
	{"ssh scp sftp rsync mosh", ".ssh/id_ed25519 .ssh/id_rsa .ssh/id_ecdsa", ""},
	{"git", ".git-credentials .netrc .config/git/credentials", ""},
	{"curl wget", ".netrc", ""},
	{"gh", ".config/gh/hosts.yml", "GH_TOKEN GITHUB_TOKEN"},
	{"npm npx pnpm yarn", ".npmrc .yarnrc.yml", "NPM_TOKEN NODE_AUTH_TOKEN"},
	{"pip pip3 pipx uv uvx twine poetry", ".netrc .pypirc .config/pip/pip.conf", "PIP_INDEX_URL UV_INDEX_URL TWINE_PASSWORD"},
	{"cargo", ".cargo/credentials.toml", "CARGO_REGISTRY_TOKEN"},
	{"aws", ".aws/credentials .aws/config", "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN"},
	{"gcloud gsutil bq", ".config/gcloud/credentials.db .config/gcloud/application_default_credentials.json", "GOOGLE_APPLICATION_CREDENTIALS"},
	{"docker podman", ".docker/config.json", ""},
	{"kubectl helm", ".kube/config", "KUBECONFIG"},
	{"terraform", ".terraformrc .terraform.d/credentials.tfrc.json", ""},
	{"gem bundle", ".gem/credentials", "GEM_HOST_API_KEY"},
	{"psql pg_dump", ".pgpass", "PGPASSWORD"},
}

// Credentials returns the files below home and the variables that the commands
// of s look for credentials in, by what their programs are known to do. What
// their words name is for Paths, and Mentions.
func Credentials(s *shellcmd.Script, home string) (files, variables []string) {
	for _, c := range s.Commands {
		program := path.Base(c.Program())
		for _, h := range habits {
			if !slices.Contains(strings.Fields(h.programs), program) {
				continue
			}
			for _, f := range strings.Fields(h.files) {
				if home != "" {
					files = append(files, path.Join(home, f))
				}
			}
			variables = append(variables, strings.Fields(h.variables)...)
		}
	}
	return files, variables
}

// Mentions reports whether the text of a command expands a variable.
func Mentions(command, variable string) bool {
	for rest := command; ; {
		i := strings.IndexByte(rest, '$')
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
		name := strings.TrimPrefix(rest, "{")
		name = strings.TrimLeft(name, "!#")
		if after, ok := strings.CutPrefix(name, variable); ok && (after == "" || !nameByte(after[0])) {
			return true
		}
	}
}

func nameByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
}
