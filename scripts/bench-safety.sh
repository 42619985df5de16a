#!/bin/sh
# Figures of docs/safety.md: verdicts, checkpoints, the sandbox. The peer is
# the npm package below, installed into .cache; NO_PEER=1 leaves it out.
set -eu
cd "$(dirname "$0")/.."
: "${SRT_PACKAGE:=@anthropic-ai/sandbox-runtime@0.0.78}"
srt=""
if [ "${NO_PEER:-}" = "" ]; then
	mkdir -p .cache/srt
	if [ ! -x .cache/srt/node_modules/.bin/srt ]; then
		(cd .cache/srt && npm init -y >/dev/null && npm install --no-audit --no-fund --loglevel=error "$SRT_PACKAGE")
	fi
	srt=$PWD/.cache/srt/node_modules/.bin/srt
fi
make -s build
go build -trimpath -o .cache/bench-safety ./test/bench/safety
.cache/bench-safety -cinch "$PWD/bin/cinch" -srt "$srt" "$@"
go test -run '^$' -bench 'JudgeTypical|JudgeLong' -benchtime 1s ./internal/policy/ | grep ^Benchmark
go test -run '^$' -bench Snap -benchtime 100x ./internal/checkpoint/ | grep ^Benchmark
go test -run '^$' -bench True -benchtime 30x ./internal/sandbox/ | grep ^Benchmark
go test -run '^$' -bench Throughput -benchtime 6x ./internal/net/egress/ | grep ^Benchmark
