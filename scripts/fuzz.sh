#!/bin/sh
# Runs every fuzz target for FUZZTIME (default 10s) each.
set -eu
cd "$(dirname "$0")/.."
: "${FUZZTIME:=10s}"
grep -rl --include='*_test.go' '^func Fuzz' internal | while read -r file; do
	dir=$(dirname "$file")
	sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file" | while read -r name; do
		echo "fuzz: $dir $name"
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$FUZZTIME" "./$dir"
	done
done
