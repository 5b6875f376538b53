# One set of flags everywhere, or SQLite is compiled again. -O1 was measured to
# be as fast for ralph and builds in half the time.
export CGO_CFLAGS ?= -O1

# Tools of our own: modules beside ralph's, which its tests (messagesapi) and make start.
own := internal/tools/bench internal/tools/messagesapi internal/tools/mutation

# Temporary files are in memory, where that is allowed; lint has vetted all. Without debug information, linking takes half
# the time.
gotest := .ci/memory go test -vet=off -ldflags=-w

.PHONY: help build install demo test check nightly long race lint pictures bench storm postgres mutation dist

help: ## show this list
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:.*##/\t/' | expand -t 10

build: ## build ./ralph
	go build -o ralph ./cmd/ralph

install: ## install ralph into $(go env GOBIN)
	go install ./cmd/ralph

demo: build ## the whole loop on a small project, with the scripted agent
	./ralph demo

test: ## the tests for every change: no linter, npm, browser, PostgreSQL or slow tests
	$(gotest) -short -timeout 20m -p 2 -parallel 8 ./...

check: lint ## the rest of CI: the linter, the race detector, and all tests that make test skips
	$(MAKE) --no-print-directory -j2 race long # each waits for processes more often than for a processor
	for tool in $(own); do (cd $$tool && $(CURDIR)/$(gotest) ./...) || exit 1; done
	$(MAKE) --no-print-directory bench BENCH=-small >/dev/null

# Commands, rare stories, browsers, real CLIs and machines, then the other tests that need PostgreSQL.
long:
	$(gotest) -timeout 30m -parallel 8 ./cmd/ralph -skip '^TestStories$$'
	$(gotest) -timeout 30m ./store ./loop/merging ./loop \
		-run 'Commit|History|Moved?|Server|LockTheHistory|Crowd$$|Machine|TriedAgain|MadeAnew|CannotBeDropped|BesidePrints|NoFailureOf|AnyExpectation'

race: ## concurrent code, under the race detector
	$(gotest) -race -timeout 30m -p 2 -parallel 4 ./internal/follow ./internal/jsonrpc ./internal/notify ./internal/systemd ./internal/watch \
		./internal/web/localhttp ./loop/agent/... ./loop/session ./mcpserver \
		-skip 'CostsLittle|Giant|TestAgentsThatSpeakWrongly/.*/(.*64_MiB|a_flood|many_long_names)'
	RALPH_TEST_STORM=1 $(gotest) -race -timeout 30m -p 2 -parallel 4 ./internal/proc ./internal/web ./loop ./loop/merging ./store \
		-run 'Simulated(Fleet)?$$|AtOnce|Beside|Stream|Followed|TestServe|TestRun[A-Z]|InPreparation|OtherSessions|ToStop|Crowd|Processes'

lint: ## formatting and static checks; .golangci.yml says which, and why
	go tool -modfile=internal/tools/go.mod golangci-lint run
	lint=$$(go tool -n -modfile=internal/tools/go.mod golangci-lint) && for tool in $(own); do (cd $$tool && $$lint run) || exit 1; done
	GOOS=darwin CGO_ENABLED=0 go build ./internal/proc ./internal/sandbox ./internal/pipe # what differs on macOS compiles

pictures: ## docs/pictures, of every page and screen in PICTURES (./pictures): sizes, light and dark
	mkdir -p $(or $(PICTURES),pictures)
	TZ=UTC RALPH_TEST_PAGES=1 RALPH_TEST_SCREENSHOTS=$(abspath $(or $(PICTURES),pictures)) $(gotest) -count=1 -timeout 20m \
		./cmd/ralph ./internal/watch -run LooksLikeThis
	cd $(or $(PICTURES),pictures) && install -m 644 demo.svg watch.svg inbox.svg report.svg morning-light.png morning-dark.png $(CURDIR)/docs/pictures

bench: build ## ralph against what the same work costs without it; internal/tools/bench/README.md
	go run -C internal/tools/bench . -C $(CURDIR) $(BENCH)

storm: ## several sessions at once, simulated and killed, by random seeds; STORM says how many
	RALPH_TEST_SEED=$$(date +%s) RALPH_TEST_STORM=$(or $(STORM),100) go test -count=1 -timeout 2h -v ./loop/... -run TestSimulated
	RALPH_TEST_SEED=$$(date +%s) RALPH_TEST_STORM=1 RALPH_TEST_WORKERS=1000 RALPH_TEST_TASKS=2000 \
		go test -count=1 -timeout 2h -v ./loop/merging -run TestSimulatedFleet
	RALPH_TEST_SEED=$$(date +%s) RALPH_TEST_DAMAGES=$(or $(STORM),100) RALPH_TEST_MOMENTS=20 go test -count=1 -timeout 2h -v ./cmd/ralph -run "TestDamagedState|TestADiskThatFillsUp"
	RALPH_TEST_STORM=1 go test -count=1 -timeout 2h -v ./cmd/ralph -run TestHostileWorkspaces
	RALPH_TEST_KILLS=$(or $(STORM),100) go test -count=1 -timeout 2h -v ./cmd/ralph -run 'TestACrowdThatIsKilled|TestKilledAtAnyMoment|TestAMoveThatIsKilled'
	RALPH_TEST_SEED=$$(date +%s) RALPH_TEST_KILLS=$(or $(STORM),200) go test -count=1 -timeout 2h -v ./forge -run TestKilledAtEachStep
	RALPH_TEST_STORMS=$(or $(STORM),10) go test -count=1 -timeout 2h -v ./cmd/ralph -run TestStormOfMachines
	RALPH_TEST_REAL_KILLS=$(or $(STORM),20) go test -count=1 -timeout 2h -v ./cmd/ralph -run 'TestRealKilledAtAnyMoment|TestRealACrowdThatIsKilled'
	RALPH_TEST_CHEATS=all go test -count=1 -timeout 2h -v ./cmd/ralph -run 'TestGateWithAgents|TestRealChecksAreThrownAway|TestSituations/.*/G'
	RALPH_TEST_AGENTS=all RALPH_TEST_TROUBLES=1 go test -count=1 -timeout 2h -v ./cmd/ralph -run TestRealTroubles

postgres: ## the tests and stories on PostgreSQL, not on files
	RALPH_REQUIRE_POSTGRES=1 RALPH_TEST_DATABASE=postgres .ci/memory go test -timeout 60m -p 2 -parallel 4 ./store ./loop/... ./mcpserver ./internal/web
	RALPH_REQUIRE_POSTGRES=1 RALPH_TEST_DATABASE=postgres .ci/memory go test -timeout 60m -parallel 4 ./cmd/ralph -run Stories

nightly: storm postgres mutation ## hours: storms, all agents, every page, the protocol's own suite, a release
	RALPH_TEST_AGENTS=all go test -count=1 -timeout 2h ./cmd/ralph -run TestReal
	RALPH_TEST_PAGES=1 RALPH_TEST_DIST=1 RALPH_TEST_WAIT=20 go test -count=1 -timeout 2h -v ./cmd/ralph -run 'Page|Hostile|Dist|Installed|TestMachinesAddUp'
	.ci/gitea
	.ci/suites

mutation: ## break the rules, one change at a time, and list what no test notices; CONTRIBUTING.md
	go run -C internal/tools/mutation . -C $(CURDIR) $(MUTATION)

dist: ## build the release in dist/; .ci/dist says what it takes
	.ci/dist
