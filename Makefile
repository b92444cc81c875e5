# Targets for people. What they do is in programs and tests; here is only what to call.
export FENCEDLEASE_CACHE ?= $(HOME)/.cache/fencedlease
# One for each checkout: cargo takes what another checkout built for its own, and would run that one's code.
export CARGO_TARGET_DIR ?= $(FENCEDLEASE_CACHE)/target/$(firstword $(shell printf %s '$(CURDIR)' | cksum))

# Where tests keep what they saw of the faults that they injected.
export FENCEDLEASE_FAULTS_DIR ?= $(CARGO_TARGET_DIR)/faults

# An error says what failed and where the cluster stood; thirty lines of frames below it hide that.
export RUST_LIB_BACKTRACE ?= 0

DENY_VERSION := 0.20.2
DENY := $(FENCEDLEASE_CACHE)/cargo-deny
HARNESS := cargo run --locked --quiet -p fencedlease-cluster --bin cluster --
# What runs without a cluster. Its integration tests start redis-server and processes of their own.
LOCAL := --locked --workspace --exclude fencedlease-end-to-end --exclude fencedlease-client-tests

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test check programs local end-to-end applications faults recovery cluster env clean cache-clean crds deny rust space bench histories nemesis soak fuzz model

help: ## Print this
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r target text; \
		do printf '  make %-13s %s\n' "$$target" "$$text"; done

demo: rust space ## Show a holder cut off, killed and replaced, and its late write refused, on a real Kubernetes here
	cargo run --locked --quiet -p fencedlease-end-to-end --bin demo

# The last two wait more than they compute, so they wait together; what the first says comes when both have ended.
test: check programs local ## Everything: check, tests with a real Redis, tests on a real Kubernetes
	cargo test --locked --no-run -p fencedlease-client-tests
	@said="$(CARGO_TARGET_DIR)/applications.log"; $(MAKE) --no-print-directory applications >"$$said" 2>&1 & applications=$$!; \
		$(MAKE) --no-print-directory end-to-end; cluster=$$?; \
		wait $$applications; result=$$?; cat "$$said"; exit $$((cluster + result))

check: rust space ## The fast part: format, lints, unit tests, generated files, arrows between the parts
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo test $(LOCAL) --lib --bins -- --skip installed_packages
	cargo test --locked -p fencedlease-architecture -p fencedlease-crds
	cargo test --locked -p fencedlease-client-tests --test pages

programs: rust space ## Install and build what the tests run: Debian's and Python's packages, Kubernetes and object stores from Go modules
	$(HARNESS) build

# They wait more than they compute, so there are more at a time than processors.
local: rust space ## Integration tests that need no cluster and that check leaves out: a real Redis, real processes
	cargo test $(LOCAL) --lib --quiet installed_packages
	RUST_TEST_THREADS=5 cargo test $(LOCAL) --exclude fencedlease-architecture --exclude fencedlease-crds --test '*'

end-to-end: rust space ## Tests on a real Kubernetes, which is brought up and down
	$(HARNESS) up --nodes 2
	cargo test --locked -p fencedlease-end-to-end -- --test-threads=3; \
		result=$$?; $(HARNESS) down && exit $$result

applications: rust space ## Run the how-tos for application engineers: five languages, a real sidecar, Redis and PostgreSQL
	cargo test --locked -p fencedlease-client-tests -- --test-threads=6

faults: local end-to-end ## Run the tests that inject faults, and write docs/faults.md from what they measured
	cargo run --locked --quiet -p fencedlease-faults --bin fault-matrix -- "$(FENCEDLEASE_FAULTS_DIR)" docs/faults.md

recovery: rust ## Kill the cluster's program at every step and see that nothing is left; ends a running cluster
	cargo test --locked -p fencedlease-cluster --bench recovery

cluster: rust ## Bring a real Kubernetes up on this machine and leave it there
	$(HARNESS) up

env: rust ## Print what makes kubectl and helm of your shell use that cluster: eval "$(make -s env)"
	@$(HARNESS) env

clean: rust ## End the cluster and remove what it left on this machine
	$(HARNESS) down

cache-clean: clean ## Remove all that was built, the Kubernetes programs too
	rm -rf -- "$(FENCEDLEASE_CACHE)"

bench: rust space ## Print what the checks cost: the gate beside nginx, a raise, triggers, a handover
	cargo run --locked --quiet --release -p fencedlease-bench --bin bench

histories: rust space ## Judge 1,000 histories of 8 clients at a gate that is killed, and see broken gates found out
	cargo test --locked -p fencedlease-gate --bench histories -- --nocapture --test-threads=1

nemesis: rust space ## Judge 10,000 handovers under random faults, an hour and more; NEMESIS="--handovers N --seed S" for others
	cargo run --locked --quiet -p fencedlease-nemesis --bin nemesis -- $(NEMESIS)

soak: rust space ## Hold four leases for an hour at half the timeout beside 16 busy threads; MINUTES=N for less
	cargo run --locked --quiet -p fencedlease-nemesis --bin soak -- --minutes $(or $(MINUTES),60)

model: rust space ## Check sidecar and guard in every order of events with two faults, where make check tries one
	FENCEDLEASE_MODEL_FAULTS=2 cargo test --locked --release -p fencedlease-sidecar --lib guard::machine::model -- --nocapture

fuzz: rust space ## Let libFuzzer look for bad input to each parser, 10 minutes each; MINUTES=1 for less; needs a C++ compiler
	cargo run --locked --quiet -p fencedlease-fuzz --bin fuzz -- --minutes $(or $(MINUTES),10)

crds: rust ## Write the CRD's YAML and the chart's copy anew from the Rust types
	cargo run --locked --quiet -p fencedlease-crds --features generate --bin crdgen

deny: rust ## Check licences, banned crates and sources of what we depend on
	@test -x "$(DENY)/bin/cargo-deny" || { CARGO_TARGET_DIR="$(DENY)/build" \
		cargo install cargo-deny --version $(DENY_VERSION) --locked --root "$(DENY)" && rm -rf "$(DENY)/build"; }
	"$(DENY)/bin/cargo-deny" --locked check bans licenses sources

rust:
	@command -v cc >/dev/null || { echo "No C compiler: run 'apt-get install -y gcc libc6-dev'." >&2; exit 1; }
	@command -v cargo >/dev/null || { echo "No Rust: install rustup (https://rustup.rs);" \
		"it fetches the version in rust-toolchain.toml by itself." >&2; exit 1; }

# A compiler that meets a full disk says so in a hundred lines, or dies of it.
space:
	@mkdir -p "$(CARGO_TARGET_DIR)" && free=$$(df -Pk "$(CARGO_TARGET_DIR)" | awk 'NR == 2 { print int($$4 / 1024) }'); \
	[ "$$free" -ge 3072 ] || { echo "Only $$free MiB are free for $(CARGO_TARGET_DIR): a first build needs 12 GiB, a later" \
		"one 3. Free some ('make cache-clean' removes all that was built), or name a folder elsewhere: FENCEDLEASE_CACHE=…" >&2; exit 1; }
