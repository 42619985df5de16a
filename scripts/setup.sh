#!/bin/sh
# Installs what the tests need and is not there: bubblewrap, ripgrep, git,
# node, python3, poppler, and the npm packages of test/sdk. Says what to do
# where it cannot.
set -eu
cd "$(dirname "$0")/.."

need=""
for pair in bwrap:bubblewrap rg:ripgrep git:git node:nodejs npm:npm python3:python3 pdftoppm:poppler-utils; do
	command -v "${pair%%:*}" >/dev/null 2>&1 || need="$need ${pair##*:}"
done
if [ -n "$need" ]; then
	if command -v apt-get >/dev/null 2>&1; then
		sudo=""
		[ "$(id -u)" = 0 ] || sudo=sudo
		$sudo apt-get update -qq
		# shellcheck disable=SC2086 # a list of words
		DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $need >/dev/null
	else
		echo "setup: missing:$need" >&2
		echo "hint: install them with your package manager, then run this again" >&2
		exit 1
	fi
fi

if [ -f test/sdk/package-lock.json ]; then
	stamp=test/sdk/node_modules/.cinch-stamp
	if ! cmp -s test/sdk/package-lock.json "$stamp" 2>/dev/null; then
		# The optional packages are the peer's binaries, hundreds of megabytes.
		(cd test/sdk && npm ci --omit=optional --no-audit --no-fund --loglevel=error)
		cp test/sdk/package-lock.json "$stamp"
	fi
fi
