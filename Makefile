# Short commands for all tasks; `make` alone lists them. Each target first makes what it depends on.
#   PRESET=release|dev|asan|tsan   the CMake preset (default release)
#   CONFIG=FILE                    the configuration for run (default configs/maskrcnn.toml)
#   ARGS=...                       further arguments for the trainer (run), ctest (test, test-all) or the benchmarks (bench)

PRESET ?= release
CONFIG ?= configs/maskrcnn.toml
ARGS ?=

folder := build/$(PRESET)
trainer := $(folder)/bin/trainer

# Compiling a translation unit with libtorch takes up to 2.5 GiB: one job per core, limited by the available memory.
CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell awk -v cores=$$(nproc) '/^MemAvailable/ \
  { jobs = int($$2 / 2.5 / 1048576); print jobs < 1 ? 1 : jobs < cores ? jobs : cores }' /proc/meminfo)

# Sources to format: files that git tracks, and new files that it does not ignore.
sources = git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cpp' '*.cu' '*.cuh' 'tools/report/*.js'

.PHONY: help setup setup_python build gpu_tests all run test test-all no-unity sanitize fuzz bench deb package schema wheel format lint docs clean

help: ## list the targets (this text)
	@echo 'usage: make TARGET [PRESET=$(PRESET)] [CONFIG=$(CONFIG)] [ARGS=...]'
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 12 | sed 's/^/  /'

setup: ## install what is missing: Debian packages, libtorch in .deps/
	@scripts/setup

build: setup $(folder)/build.ninja ## build build/PRESET/bin/trainer and what it loads
	cmake --build --preset $(PRESET) --parallel $(CMAKE_BUILD_PARALLEL_LEVEL) --target programs
	@scripts/compile_commands.py $(folder)

gpu_tests: build
	cmake --build --preset $(PRESET) --parallel $(CMAKE_BUILD_PARALLEL_LEVEL) --target gpu_tests

all: setup setup_python $(folder)/build.ninja ## build the tests and benchmarks too
	@test -d $(folder)/tests/python || cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) --parallel $(CMAKE_BUILD_PARALLEL_LEVEL)

setup_python: setup
	@scripts/setup_python

# The build itself detects later changes of CMake files.
$(folder)/build.ninja: | setup
	cmake --preset $(PRESET)

run: build ## train CONFIG on the sample data set, which is made on first use
	$(trainer) run $(CONFIG) $(ARGS)

test: all ## run the tests, except those labelled slow
	ctest --preset $(PRESET) --output-on-failure --no-tests=error -j2 -LE '^slow$$' $(ARGS)

test-all: all no-unity ## run all tests, also beside peers in Python, and compile without unity batches
	@scripts/setup_python peers
	@scripts/setup_python export
	@scripts/setup_python notebooks
	ctest --preset $(PRESET) --output-on-failure --no-tests=error -j2 $(ARGS)

no-unity: setup ## compile the programs with each source alone: unity batches hide missing includes and clashes of names
	cmake --preset no-unity
	cmake --build --preset no-unity --parallel $(CMAKE_BUILD_PARALLEL_LEVEL) --target programs

# Runs the tests of rooms without libtorch, because libtorch itself is not instrumented. Python's tests do not run under
# ThreadSanitizer, because Python is not instrumented either. The kernels of models/ also run under AddressSanitizer:
# without leak detection, because MPI leaks, and without tests of several ranks, whose tolerances fit a release build's
# rounding.
sanitize: setup setup_python ## run the tests of rooms without libtorch under ThreadSanitizer, then Address- and UBSanitizer, that of models, too
	@scripts/setup_tsan
	for preset in tsan asan; do \
	  rooms='base engine coco dataflow formats data report'; \
	  test $$preset = tsan || rooms="$$rooms python"; \
	  cmake --preset $$preset && \
	  cmake --build --preset $$preset --parallel $(CMAKE_BUILD_PARALLEL_LEVEL) --target $$(printf ' tests_%s' $$rooms) && \
	  ctest --preset $$preset --output-on-failure --no-tests=error -L "^($$(echo $$rooms | tr ' ' '|'))$$" $(ARGS) || exit 1; \
	done
	cmake --build --preset asan --parallel $(CMAKE_BUILD_PARALLEL_LEVEL) --target tests_models
	ASAN_OPTIONS=detect_leaks=0 ctest --preset asan --output-on-failure --no-tests=error -L '^models$$' -E '^models/ranks' $(ARGS)

fuzz: setup ## feed made-up and damaged input to the parsers, FUZZ_SECONDS (60) each; a fault leaves build/fuzz/TARGET-crash-*
	@scripts/setup_fuzz
	cmake --preset fuzz
	cmake --build --preset fuzz --parallel $(CMAKE_BUILD_PARALLEL_LEVEL)
	scripts/fuzz

bench: export MILLRACE_PEERS_PYTHON ?= $(CURDIR)/.deps/bench/bin/python
bench: all ## measure everything beside its peers, and put the tables into docs/benchmarks.md; about an hour
	@scripts/setup_python bench
	test -d data/sample || $(trainer) sample --out data/sample --train 2048 --val 128
	tests/bench/everything.py $(folder)/bin $(ARGS)

wheel: ## write a wheel of the Python package into build/, for other machines
	@scripts/wheel

deb: build gpu_tests ## write build/millrace_VERSION_ARCH.deb for this Debian
	cpack --config $(folder)/CPackConfig.cmake

schema: build ## write schema/: by millrace.schema.json editors check and complete configurations, of reference.json docs are made
	cp $(folder)/shell/trainer.schema.json schema/millrace.schema.json
	scripts/docs/reference.py $(trainer) >schema/reference.json

package: build gpu_tests ## write build/millrace-VERSION-linux-x86_64.tar.zst, which runs where nothing of this is installed
	scripts/package $(folder)

format: setup ## put the sources into the house's format
	@$(sources) | xargs -0 -r -n 8 -P 2 clang-format -i

lint: setup ## check the format, the width of lines, includes between folders, words, and the viewer
	@$(sources) | xargs -0 -r -n 8 -P 2 clang-format --dry-run -Werror
	@scripts/check_columns.py
	@scripts/check_rooms.py
	@scripts/check_words.py
	@scripts/check_viewer.py

docs: ## make build/docs/html/index.html of the pages, without a build; the tests check their snippets
	@scripts/setup_python docs
	@scripts/check_links.py
	@.deps/python/bin/python scripts/docs/make_html.py

clean: ## remove what was built; libtorch in .deps/ stays
	rm -rf build
