#!/bin/sh
# Formatting, vet, staticcheck, shape and dependency list; no tests but arch.
set -eu
cd "$(dirname "$0")/.."

bad=$(gofmt -l $(git ls-files '*.go'))
if [ -n "$bad" ]; then
	echo "check: not gofmt-clean:" >&2
	echo "$bad" >&2
	exit 1
fi
go vet ./...
go tool staticcheck ./...
go test -timeout 5m ./internal/arch/
