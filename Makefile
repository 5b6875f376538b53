# One set of flags everywhere, or SQLite is compiled again. -O1 was measured to
# be as fast for ralph and builds in half the time.
export CGO_CFLAGS ?= -O1

# staticcheck finds misused APIs, dead code (U1000) and needless complication (S).
# Left out: ST1000 (a package comment stands in one file), ST1003 (names such as
# RALPH_… in tests), ST1005 (a message may begin with a name).
CHECKS := all,-ST1000,-ST1003,-ST1005

.PHONY: help build install demo test lint bench

help: ## show this list
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:.*##/\t/' | expand -t 10

build: ## build ./ralph
	go build -o ralph ./cmd/ralph

install: ## install ralph into $(go env GOBIN)
	go install ./cmd/ralph

demo: build ## the whole loop on a small project, with the scripted agent
	./ralph demo

test: lint ## everything that CI checks
	go test ./...

lint: ## formatting and static checks
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'run gofmt -w on these files'; exit 1; }
	go vet ./...
	go tool -modfile=internal/tools/go.mod staticcheck -checks $(CHECKS) ./...

bench: ## benchmarks
	go test -run '^$$' -bench . -benchmem ./prompt ./loop/...
