# Each target sets up what it needs (tools/setup) and can be the first one typed in a fresh clone.
# PYTHON chooses the Python that .venv is made of.

.DEFAULT_GOAL := build
SHELL := /bin/bash
PYTHON ?= python3
JOBS ?= $(shell nproc)
export PYTHON
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)

# The link of `make bench-network`, as tc names rates.
RATE ?= 1gbit

# How long `make fuzz` takes.
SECONDS ?= 60

# What `make bench` measures; by default gradients that it makes itself.
FILES ?= out/bench/gradients.safetensors
CODECS ?= cast:dtype=bf16 int8 int4 fine unbiased coarse near_lossless near_lossless:mantissa=6 lossless

.NOTPARALLEL:
.PHONY: build package release demo compare compare-full test test-tsan test-compat bench bench-peers \
        bench-network bench-results bench-tables exhaustive fuzz reliability campaign format lint \
        clean help

help:
	@echo 'make build          library, command line, C++ tests and the Python package into .venv'
	@echo 'make demo           train on two ranks and write out/demo/report.{json,html}'
	@echo 'make compare        what each codec costs in learning, under 10 minutes; compare-full: hours'
	@echo 'make test           all the tests that CI runs'
	@echo 'make test-tsan      threads, transport and collectives with ThreadSanitizer, some minutes'
	@echo 'make test-compat    the Python tests with the oldest torch, in an environment of its own (GB)'
	@echo 'make bench          speed and ratio of CODECS="..." on FILES="...", one thread; out/bench/report.*'
	@echo 'make bench-peers    the same beside zipnn, blosc2, zstd, lz4, fpzip, zfp, SZ3 (own environment)'
	@echo 'make bench-results  measures FILES for bench/results and the tables of README'
	@echo 'make bench-tables   the tables of README from bench/results'
	@echo 'make bench-network  all-reduce over a link of RATE=1gbit between two network namespaces'
	@echo 'make exhaustive     quantizers and codecs on all bit patterns, random groups and collectives'
	@echo 'make fuzz           damaged frames and other bytes for SECONDS=60'
	@echo 'make reliability    tests that show a promise; all three write the ledger and RELIABILITY.md'
	@echo 'make campaign       before a release: 10^8 and 10^9 frames, groups, patterns (hours), see tools/campaign'
	@echo 'make format, lint   clang-format; include law, budgets, format, ruff, cppcheck, clang-tidy'
	@echo 'make clean          removes build/ and out/, keeps .venv'

# .venv/bin/python imports gradwire, .venv/bin/gradwire is the command line.
build: release package

release:
	tools/setup build test
	cmake --preset release
	cmake --build --preset release

package:
	tools/setup build
	@echo 'building the Python package and the command line (minutes the first time)'
	.venv/bin/python -m pip install --disable-pip-version-check --no-input -q \
	  --no-build-isolation --no-deps .

demo: package
	tools/setup build demo
	.venv/bin/python examples/demo/run.py

# Both go on where they were stopped.
compare: package
	tools/setup build demo
	.venv/bin/python -m gradwire.compare

compare-full: package
	tools/setup build demo
	.venv/bin/python -m gradwire.compare --preset full --document docs/comparison.md

test: package
	tools/setup build demo test
	.venv/bin/python tools/run_tests

test-tsan:
	tools/setup build test
	cmake --preset tsan
	cmake --build --preset tsan
	TSAN_OPTIONS=halt_on_error=1 build/tsan/tests/gradwire_thread_tests --gtest_brief=1

test-compat:
	tools/setup build test
	$(PYTHON) tools/compat

bench: package $(FILES)
	.venv/bin/python bench/bench.py $(FILES) --only --min-bytes 100M $(CODECS:%=--codec %)

bench-peers: package $(FILES)
	.venv/bin/python bench/peers.py $(FILES)

out/bench/gradients.safetensors:
	.venv/bin/python bench/dump_gradients.py $@

bench-results: package
	bench/record.py gradients .venv/bin/gradwire bench $(FILES) --only --json $(CODECS:%=--codec %)
	bench/record.py speed .venv/bin/gradwire bench $(FILES) --only --json --min-bytes 100M $(CODECS:%=--codec %)
	bench/readme_tables.py

bench-tables:
	bench/readme_tables.py

bench-network: package
	tools/setup build demo
	.venv/bin/python bench/network.py --link $(RATE)

exhaustive:
	tools/setup build test
	cmake --preset release
	cmake --build --preset release --target gradwire_exhaustive
	tools/ledger.py -- build/release/tests/exhaustive/gradwire_exhaustive --jobs $(JOBS); \
	  status=$$?; tools/render_reliability.py && exit $$status

fuzz:
	tools/setup build test
	tools/fuzz.py --seconds $(SECONDS); status=$$?; tools/render_reliability.py && exit $$status

reliability: release
	tools/record_tests.py; status=$$?; tools/render_reliability.py && exit $$status

campaign:
	tools/setup build test
	cmake --preset release
	cmake --build --preset release --target gradwire_exhaustive gradwire_mutate
	tools/campaign; status=$$?; tools/render_reliability.py && exit $$status

format:
	tools/setup build test
	tools/format

lint:
	tools/setup build test
	tools/check_layers
	tools/check_budgets
	tools/format --check
	.venv/bin/ruff check
	tools/cppcheck
	tools/tidy

clean:
	rm -rf build out
