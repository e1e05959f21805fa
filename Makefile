# Everything a developer does here, by name. `make help` lists the targets.
GO        ?= go
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS   := -s -w -X highwater/sidecar/app.Version=$(VERSION)
GOLANGCI  := v2.15.0
SHELL     := /bin/bash

.PHONY: help build demo test test/unit test/race test/e2e test/psql golden lint fmt generate verify bench image check clean

help: ## list the targets
	@grep -hE '^[a-z0-9/]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

build: ## build bin/highwater, static
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/highwater ./sidecar

demo: build ## the main job on embedded parts; needs only Go
	./bin/highwater demo $(DEMO)

test: ## everything: units, end to end on both brokers, psql transcripts, documentation
	./tests/run.sh

test/unit: ## the tests beside the code
	$(GO) test ./migrations/... ./queue/... ./reader/... ./sidecar/... ./sql/...

test/race: ## the tests beside the code, with the race detector
	$(GO) test -race ./queue/... ./reader/... ./sidecar/...

test/e2e: ## end to end against PostgreSQL and both brokers
	$(GO) test -count=1 ./tests/e2e/...

test/psql: ## golden psql transcripts and every statement of the documentation
	$(GO) test -count=1 ./tests/psql/...

golden: ## rewrite the golden files; review the difference
	HIGHWATER_GOLDEN=write $(GO) test -count=1 ./tests/psql/... ./migrations/...

bin/golangci-lint-$(GOLANGCI):
	GOBIN=$(CURDIR)/bin $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI)
	mv bin/golangci-lint $@

lint: bin/golangci-lint-$(GOLANGCI) ## import arrows, style and common faults
	./bin/golangci-lint-$(GOLANGCI) run ./...

fmt: bin/golangci-lint-$(GOLANGCI) ## format the code
	./bin/golangci-lint-$(GOLANGCI) fmt ./...

generate: ## rewrite generated documentation
	HIGHWATER_GOLDEN=write $(GO) test -count=1 -run Generated ./tests/psql/...

verify: ## generated and formatted files are current
	./bin/golangci-lint-$(GOLANGCI) fmt --diff ./...
	$(GO) mod tidy -diff

bench: ## rows a second of whole runs, as ratios to COPY in the same sitting
	$(GO) test -count=1 -timeout 40m -run XXX -bench . -benchtime 1x ./tests/bench/...

image: ## the container image
	docker build -t highwater:$(VERSION) .

check: fmt lint test verify ## all of it, before a commit

clean: ## remove what was built
	rm -rf bin
