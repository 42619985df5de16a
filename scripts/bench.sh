#!/bin/sh
# Figures of cinch beside those of the peer, in one run. The peer is the
# binary of the npm package below; it is installed into .cache, not linked,
# and only ever talks to a server on loopback.
set -eu
cd "$(dirname "$0")/.."
: "${PEER_PACKAGE:=@anthropic-ai/claude-agent-sdk-linux-x64@0.3.332}"
mkdir -p .cache/bench
peer=""
if [ "${NO_PEER:-}" = "" ]; then
	if [ ! -x .cache/bench/node_modules/@anthropic-ai/claude-agent-sdk-linux-x64/claude ]; then
		(cd .cache/bench && npm init -y >/dev/null && npm install --no-audit --no-fund --loglevel=error "$PEER_PACKAGE")
	fi
	peer=.cache/bench/node_modules/@anthropic-ai/claude-agent-sdk-linux-x64/claude
fi
mkdir -p .cache/bench/empty
printf 'package main\n\nfunc main() {}\n' >.cache/bench/empty/main.go
go build -trimpath -ldflags '-s -w' -o .cache/bench/empty-go .cache/bench/empty/main.go
go build -trimpath -o .cache/bench/bench ./test/bench
.cache/bench/bench -cinch bin/cinch -peer "$peer" -empty .cache/bench/empty-go -json .cache/bench/figures.json "$@"
echo
go test -run '^$' -bench . -benchtime 1s ./internal/lib/sse/ ./internal/net/model/ ./internal/window/ 2>/dev/null | grep -E '^(Benchmark|pkg:)' || true
