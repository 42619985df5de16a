#!/bin/sh
# Makes docs/demo.svg from a real run of the demo.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
{
	echo '$ make demo'
	bin/cinch demo --keep "$dir/ferry" </dev/null | sed "s#$dir/##g"
} | go run ./test/picture >docs/demo.svg
