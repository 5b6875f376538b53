# One set of flags everywhere, or SQLite is compiled again. -O1 was measured to
# be as fast for ralph and builds in half the time.
export CGO_CFLAGS ?= -O1

.PHONY: help build install demo test lint bench mutation dist

help: ## show this list
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:.*##/\t/' | expand -t 10

build: ## build ./ralph
	go build -o ralph ./cmd/ralph

install: ## install ralph into $(go env GOBIN)
	go install ./cmd/ralph

demo: build ## the whole loop on a small project, with the scripted agent
	./ralph demo

test: lint ## everything that CI checks
	go test -timeout 30m ./...

lint: ## formatting and static checks; .golangci.yml says which, and why
	go tool -modfile=internal/tools/go.mod golangci-lint run

bench: build ## ralph against what the same work costs without it; docs/benchmarks.md
	go run ./internal/bench $(BENCH)

mutation: ## break the rules, one change at a time, and list what no test notices; CONTRIBUTING.md
	go run ./internal/mutation $(MUTATION)

dist: ## build the release in dist/; .ci/dist says what it takes
	.ci/dist
