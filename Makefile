# The menu: `make` alone prints it. Every target does its own set-up (see ./setup).
.DEFAULT_GOAL := menu
.PHONY: menu demo test bench lint docs \
        test-rust test-32bit test-explore test-scribbler test-loom test-miri test-nostd \
        test-firmware test-zcu102 test-fuzz test-counts soak bench-firmware bench-host

SHELL := bash
.SHELLFLAGS := -euo pipefail -c

FUZZ_RUNS ?= 1000000
FUZZ_TARGETS := hdlc packet server client observer keyexpr zenoh
FUZZ_PLAYS := domain session
NO_STD_TARGETS := thumbv6m-none-eabi thumbv7em-none-eabi riscv32imac-unknown-none-elf

menu: ##
	@grep -hE '^[a-z0-9-]+:.*## .' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  make \1\t/' | expand -t 24

demo: ## the main job: one service and one client in every placement
	@./setup demo
	@[ -x target/release/sinew ] || echo "building the tool: a few minutes the first time" >&2
	@cargo build --release -p sinew-cli
	@boards=; images=firmware/target/thumbv7m-none-eabi/release; \
	if ! command -v qemu-system-arm >/dev/null; then \
		echo "no rows for a Cortex-M3: ./setup test installs QEMU, which emulates one" >&2; \
	elif ! ls -d "$$(rustc --print sysroot)/lib/rustlib"/{thumbv7m-none-eabi,src} >/dev/null 2>&1; then \
		echo "no rows for a Cortex-M3: ./setup test installs the Rust target for it" >&2; \
	else \
		[ -x $$images/queued ] || echo "building the board's images: a minute or two" >&2; \
		(cd firmware && ../.ci/cross build -q --release -p an385 --bin queued --bin shared \
			--target thumbv7m-none-eabi); \
		boards="--board qemu:$$images/queued --board qemu:$$images/shared"; fi; \
	python=build/venv/bin/python; router=; \
	if $$python -c 'import zenoh' 2>/dev/null; then \
		router="$$python tests/interop/zenoh/peer.py router --listen"; \
	else echo "no row with a Zenoh router: ./setup test installs one" >&2; fi; \
	target/release/sinew demo $$boards $${router:+--router "$$router"} $(DEMO)

test: ## everything that CI runs
	@./setup test
	@$(MAKE) --no-print-directory lint test-rust test-32bit test-explore test-scribbler \
		test-loom test-miri test-nostd test-firmware test-counts test-fuzz
	@echo "all checks passed"

lint: ## formatting and clippy, warnings are errors
	@./setup test
	cargo fmt --all --check
	cargo clippy -q --workspace --all-targets --all-features -- -D warnings
	$(MAKE) --no-print-directory -C firmware lint
	RUSTDOCFLAGS="-D warnings" cargo doc -q --workspace --no-deps --all-features

test-rust: ## unit, property, table, simulation, system and interop tests
	@./setup test
	cargo test -q --workspace --all-features --no-fail-fast

test-32bit: ## the shared layout and frames on a 32-bit machine, and links of 32-bit with 64-bit processes
	@./setup test
	@if [ "$$(uname -m)" = x86_64 ]; then \
		cargo test -q --target i686-unknown-linux-gnu -p sinew-shm --features linux \
			--test golden --test linux --test messages --test memory --test waiting \
			--test hostile_messages --test secrets; \
		cargo test -q --target i686-unknown-linux-gnu -p sinew \
			--test hdlc_vectors --test frame_properties; \
		program() { cargo test -q -p sinew-shm --features linux --test $$1 --no-run \
			--message-format=json "$${@:2}" | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p'; }; \
		for loops in linux_loops linux_slots; do \
			wide=$$(program $$loops); narrow=$$(program $$loops --target i686-unknown-linux-gnu); \
			echo "64 bits, and peers of 32:"; SINEW_ROUNDS=50 SINEW_PEER=$$narrow $$wide; \
			echo "32 bits, and peers of 64:"; SINEW_ROUNDS=50 SINEW_PEER=$$wide $$narrow; \
		done; \
	else echo "test-32bit: needs an x86-64 machine, skipped"; fi

test-explore: ## every state of a domain link's two sides, with a crash at every step
	cargo test -q --release -p sinew-shm --features std --lib explore -- --nocapture

test-scribbler: ## a domain link's side against foreign writes, under the address sanitizer
	@./setup test
	@host=$$(rustc -vV | sed -n 's/^host: //p'); \
		RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address -Cdebug-assertions=on" \
		ASAN_OPTIONS=detect_leaks=0 SINEW_CALLS=10000000 \
		cargo test -q --release --target-dir target/address --target $$host -p sinew-shm \
			--test scribbler --test hostile --test hostile_play -- --nocapture

test-loom: ## every interleaving of what threads share, and mutants that must fail
	RUSTFLAGS="--cfg loom" cargo test -q --target-dir target/loom -p sinew-shm --release --test loom
	RUSTFLAGS="--cfg loom" cargo test -q --target-dir target/loom -p sinew-shm --release --test loom_domain
	RUSTFLAGS="--cfg loom" cargo test -q --target-dir target/loom -p sinew-shm --release --test loom_messages
	RUSTFLAGS="--cfg loom" cargo test -q --target-dir target/loom -p sinew-shm --release --test loom_locks
	RUSTFLAGS="--cfg loom" cargo test -q --target-dir target/loom -p sinew --release --lib loom

MIRI := -Zmiri-ignore-leaks -Zmiri-disable-weak-memory-emulation
test-miri: ## the thread link under Miri, and the shared layout on a big-endian machine
	@./setup miri
	@# Tests leak the memory that they share. Those that only play with random input are not for Miri.
	@# Its weak memory stops at an atomic store to what was read in another width; that is for the models.
	MIRIFLAGS="$(MIRI)" cargo +nightly miri test -q -p sinew-shm --lib --test queue \
		--test domain --test threads --test state --test lock --test draining --test refusals --test doscom \
		--test observe --test messages --test memory --test waiting
	MIRIFLAGS="$(MIRI)" cargo +nightly miri test -q -p sinew-shm --test golden --target s390x-unknown-linux-gnu
	MIRIFLAGS="$(MIRI)" cargo +nightly miri test -q -p sinew --features shm,conformance \
		--test queue_conformance --test domain_conformance

test-nostd: ## the core on cores without an operating system
	@./setup test
	@for target in $(NO_STD_TARGETS); do \
		echo "sinew for $$target"; \
		.ci/cross build -q -p sinew --no-default-features --target $$target; \
		.ci/cross build -q -p sinew --features shm,micropb --target $$target; \
		.ci/cross build -q -p sinew-demo --target $$target; \
	done

test-firmware: ## Cortex-M images in QEMU, called from the host; flash, RAM; instructions, also on RV32
	@./setup test
	$(MAKE) --no-print-directory -C firmware test

test-zcu102: ## not in CI: Debian's Linux on a Cortex-A53 and the services on a Cortex-R5F, in QEMU
	@./setup zcu102
	$(MAKE) --no-print-directory -C firmware test-zcu102

test-counts: ## instruction gates, by callgrind
	@./setup test
	cargo run -q --profile bench -p sinew-bench -- counts --gate

test-fuzz: ## every reader of foreign bytes, FUZZ_RUNS executions each; of plays a fifth
	@./setup fuzz
	@for target in $(FUZZ_TARGETS); do fuzz/run $$target $(FUZZ_RUNS); done
	@# One execution of these is a whole play.
	@for target in $(FUZZ_PLAYS); do fuzz/run $$target $$(($(FUZZ_RUNS) / 5)); done

soak: ## hours: 10,000 kills of linked processes and boards, 1,000,000,000 executions of each fuzz target
	SINEW_ROUNDS=10000 cargo test -q -p sinew-shm --features linux --test linux_loops
	SINEW_ROUNDS=10000 cargo test -q -p sinew-shm --features linux --test linux_slots
	$(MAKE) --no-print-directory -C firmware soak
	@$(MAKE) --no-print-directory test-fuzz FUZZ_RUNS=1000000000

BENCH ?= rpc
bench: $(if $(filter firmware,$(BENCH)),bench-firmware,bench-host) ## BENCH=rpc: the talk's experiment, the instruction counts; BENCH=shm, BENCH=pubsub: and the peers; BENCH=firmware: calls, in cycles

bench-firmware:
	@./setup bench-firmware
	@$(MAKE) --no-print-directory -C firmware bench

bench-host:
	@./setup test
	@if [ "$(firstword $(BENCH))" = pubsub ]; then \
		[ -x bench/zenoh-peer/target/release/zenoh-peer ] || \
			echo "building Zenoh: some minutes the first time" >&2; \
		cargo build -q --release --locked --manifest-path bench/zenoh-peer/Cargo.toml; fi
	cargo build -q --profile bench -p sinew-cli -p sinew-bench
	target/release/sinew-bench $(BENCH)

docs: ## the book and the API reference; its links and code samples are checked
	@./setup docs
	cargo test -q -p sinew-tests --test docs --test book
	mdbook build docs
	cargo doc -q --workspace --no-deps --all-features
	@echo "the book: target/book/index.html; the API: target/doc/sinew/index.html"
