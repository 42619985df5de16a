# Two commands matter: make demo, make test. The rest is for developers.
GO      ?= go
BIN     := bin/cinch
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo 0.1.0)
LDFLAGS := -s -w
# Tests of one package may not hang the run.
TIMEOUT := 20m

.PHONY: demo test check bench build cross fuzz setup clean

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/cinch

# demo: the real loop repairs a real sample project; needs Go and git only.
demo: build
	$(BIN) demo

setup:
	sh scripts/setup.sh

# test: installs what the tests need, then runs all of them.
test: setup build
	$(GO) test -race -timeout $(TIMEOUT) ./...

# check: everything a reviewer should not have to look for.
check:
	sh scripts/check.sh

# bench: our figures beside the peer's, as ratios of one run.
bench: build
	sh scripts/bench.sh

cross:
	sh scripts/cross.sh

# fuzz: every fuzz target for a short while.
fuzz:
	sh scripts/fuzz.sh

clean:
	rm -rf bin
