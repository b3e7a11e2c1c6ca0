# Every target works on a fresh checkout; `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
GOLANGCI_VERSION := v2.15.0
GOLANGCI := bin/golangci-lint-$(GOLANGCI_VERSION)
# As go test -v, and says again at the end what has failed.
GOTESTSUM := go run gotest.tools/gotestsum@v1.13.0 --format standard-verbose

# Packages that have tests for kfake and, with STREAMWORKER_TEST_BROKERS set, run them on a real Kafka too.
KAFKA_PACKAGES := ./pkg/topics ./pkg/group ./pkg/state ./pkg/control ./pkg/instance ./pkg/dev ./pkg/reset ./pkg/doctor ./pkg/command ./pkg/app ./deploy

# Random histories of `make sim`, per test.
SIM_HISTORIES ?= 20000

##@ Build

.PHONY: build
build: ## bin/streamworker, with its version in it
	go build -trimpath -ldflags "-X main.version=$(VERSION)" -o bin/streamworker ./cmd/streamworker

.PHONY: demo
demo: build ## watch tasks move for 20 s: broker, instances and stream in one process, no Kafka needed
	bin/streamworker dev --for 20s

##@ Checks

.PHONY: test
test: ## fast tests: no Kafka needed
	go test ./...

.PHONY: deploy-check
deploy-check: ## lint deploy/: chart, manifests, image, compose file, alerts, dashboard (downloads Helm and Prometheus as Go modules)
	cd deploy/check && go mod tidy -diff && go test -count=1 ./...

.PHONY: race
race: ## fast tests under the race detector
	go test -race -short -timeout 20m ./...

.PHONY: sim
sim: ## random simulation of assignor, leases and handover, SIM_HISTORIES histories
	STREAMWORKER_SIM_HISTORIES=$(SIM_HISTORIES) go test -count=1 -timeout 30m -run '^TestSim' ./pkg/sim

.PHONY: integration
integration: build ## tests on a real Kafka (starts one by scripts/kafka.sh; needs JDK 17+ and Maven)
	scripts/kafka.sh run go test -count=1 -p 1 -timeout 20m $(KAFKA_PACKAGES)
	$(GOTESTSUM) -- -count=1 -p 1 -timeout 60m -tags integration ./integration/...

.PHONY: differential
differential: ## the same results as Kafka Streams, on generated input (part of integration; needs a JDK 17+ and Maven, no Kafka)
	go test -count=1 -tags integration -v ./integration/differential

.PHONY: chaos
chaos: build ## random faults on a Kafka of three brokers, ten minutes for each guarantee (integration/chaos/doc.go: CHAOS_SEED and so on)
	CHAOS_TIME=$${CHAOS_TIME:-10m} go test -count=1 -timeout 120m -tags integration -v -run '^TestChaos$$' ./integration/chaos

.PHONY: browser
browser: ## the dashboard in a real browser, with screenshots in SCREENSHOTS (needs Chromium; integration/browser/doc.go)
	cd integration/browser && go test -count=1 -timeout 15m -v .

.PHONY: bench
bench: build ## micro-benchmarks, the drain at full size on a real Kafka, then bench-peer; hours
	go test -run '^$$' -bench . -benchmem ./pkg/...
	STREAMWORKER_SIZE=large go test -count=1 -timeout 120m -tags integration -v -run '^TestDrain|^TestScaleOut' ./integration/...
	$(MAKE) --no-print-directory bench-peer

.PHONY: bench-peer
bench-peer: ## streamworker and Kafka Streams side by side, figures into bin/bench-results.md (BENCH_FLAGS: docs/benchmarks.md; needs JDK 17+ and Maven)
	go build -o bin/bench ./integration/bench
	bin/bench -out bin/bench-results $(BENCH_FLAGS)

.PHONY: bench-compare
bench-compare: ## the hot path's benchmarks here and at BASE=<commit>, by turns: fails if one is slower by more than RATIO (1.15) (BENCH=<regexp>)
	scripts/bench-compare.sh '$(BASE)' '$(or $(BENCH),.)'

.PHONY: lint
lint: $(GOLANGCI) ## golangci-lint with .golangci.yml (builds the pinned version on first use)
	$(GOLANGCI) run --build-tags integration ./...

$(GOLANGCI):
	GOBIN=$(CURDIR)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv bin/golangci-lint $@

.PHONY: fmt-check
fmt-check: ## every Go file is as gofmt writes it
	@files=$$(gofmt -l cmd pkg integration deploy); if [ -n "$$files" ]; then echo "gofmt would change: $$files"; exit 1; fi

.PHONY: tidy-check
tidy-check: ## go.mod and go.sum are as go mod tidy writes them
	go mod tidy -diff

.PHONY: clean
clean: ## remove bin/
	rm -rf bin

.PHONY: help
help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {print "\n" substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
