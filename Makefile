# Everything a person or a CI job does here. Recipes find or install what they need; see scripts/lib.sh.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.PHONY: demo up test ci bench soak conformance clean help build fmt lint schema openapi

demo: ## One change from Git to applied, on this machine, in about a minute
	@scripts/demo.sh

up: ## Start Plumbline here and leave it running; UP='--port 9000' passes options
	@scripts/up.sh $(UP)

test: ## Every test, with a private Postgres; TEST='queue::' runs what matches
	@scripts/test.sh $(TEST)

ci: ## All that CI checks: format, lints, migrations, documents, tests, demo
	@scripts/ci.sh

bench: ## Measure the budgets of the design; fails over budget; BENCH='queue state' runs some
	@scripts/bench.sh $(BENCH)

soak: ## Run seeded fault schedules and histories; SEED, MINUTES and WHAT may be set
	@scripts/soak.sh

conformance: ## Real terraform against any state backend: URL=https://host/state/{} or a Plumbline; TOKEN, USER_NAME, METHODS=twins
	@scripts/conformance.sh

build: ## Build every program
	@. scripts/lib.sh && need_cargo && cargo build --workspace --bins

fmt: ## Format the code
	@. scripts/lib.sh && need_cargo && cargo fmt --all && cargo fmt --manifest-path tests/provider/Cargo.toml

lint: ## Clippy, warnings are errors
	@. scripts/lib.sh && need_cargo && cargo clippy --workspace --all-targets -- -D warnings

schema: ## Write migrations/schema.sql from the migrations
	@scripts/generate.sh schema

openapi: ## Write docs/openapi.json from the handlers
	@scripts/generate.sh openapi

clean: ## Remove what was built and cached; what 'make up' keeps stays
	@scripts/clean.sh

help: ## This list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
