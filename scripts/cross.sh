#!/bin/sh
# The platforms that must build and vet, though Linux is where tests run.
set -eu
cd "$(dirname "$0")/.."
for target in linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do
	echo "cross: $target"
	GOOS=${target%/*} GOARCH=${target#*/} CGO_ENABLED=0 go build -o /dev/null ./cmd/cinch
	GOOS=${target%/*} GOARCH=${target#*/} CGO_ENABLED=0 go vet ./...
done
