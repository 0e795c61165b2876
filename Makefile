# Each target is one command that can as well be typed: this file only names them.
SEEDS    ?= 2000
FUZZTIME ?= 30s
BENCH    ?= .
COUNT    ?= 6

TOOL = go tool -modfile=tools/go.mod

.DEFAULT_GOAL := help
.PHONY: help build test test/race test/storm test/sim test/cluster storms fuzz bench bench/peers bench/since lab bank peers foreign lint fmt vuln prices release snapshot ci demo

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z\/]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the command into this folder
	go build ./cmd/headrace

test: ## every test, once, without the race detector
	go test ./...

test/race: ## every test under the race detector
	go test -race ./...

test/storm: ## thousands of callers at once, under the race detector
	go test -race -count=1 -v ./tests/...

test/sim: ## SEEDS simulated worlds (default 2000), every invariant after every step
	SEEDS=$(SEEDS) go test -count=1 -timeout=0 -run=Sim ./coordinator/machine/...

test/cluster: ## the cluster's own tests, and its acceptance tests over processes, six minutes
	.ci/run cluster

storms: ## hours of killing, freezing and cutting off; STORM_SEED repeats one
	cd cluster/tests && STORM=hour go test -count=1 -timeout=24h -v .

fuzz: ## every fuzz target for FUZZTIME (default 30s) each
	FUZZTIME=$(FUZZTIME) .ci/fuzz

bench: ## benchmarks matching BENCH, COUNT times, summed up
	go test -run='^$$' -bench='$(BENCH)' -benchmem -count=$(COUNT) ./... | tee bench.out
	$(TOOL) benchstat bench.out

bench/peers: ## headrace beside a bare loop and a naive program, five minutes
	go run ./tests/bench
	go run ./tests/bench -latency 100ms -inflight 256 -items 25600 -only bare,library,command

bench/since: ## what an item of headrace run costs, in comparison with 8b72be2, a minute
	tests/bench/since

lab: ## the law and its rivals in virtual time, as a table
	go run ./tests/lab/cmd/lab -heldout

bank: ## the law in more than a hundred simulated worlds, beside what is asked, half a minute
	go run ./tests/lab/cmd/lab -bank -law headrace

peers: ## the law and the command against servers that others wrote, on loopback, eight minutes
	tests/peers/run

foreign: ## clients, mocks, translators and servers that others wrote; the first time a quarter of an hour, to build them
	tests/foreign/run

snapshot: ## try to publish: goreleaser makes a release and uploads nothing; the first time it builds for half an hour
	HEADRACE_VERSION=$$(cat VERSION) go tool -modfile=tools/publish/go.mod goreleaser release --snapshot --clean

lint: ## the linters, formatting included
	.ci/run lint

fmt: ## format everything
	$(TOOL) golangci-lint fmt

vuln: ## known vulnerabilities in what is really called
	$(TOOL) govulncheck ./...

prices: ## fetch the list of prices anew; needs npm and Node.js
	go run ./internal/command/price/refresh

release: ## archives, wheels, npm and Debian packages of all platforms into dist/, ten minutes the first time
	go -C tools/release run .

ci: ## everything that must hold before a change is taken
	.ci/run

demo: ## the README's first two commands in a fresh clone
	.ci/demo
