# Everything the project does with itself; no step is done by hand. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:

VENV := .venv
BIN := $(VENV)/bin
JOBS ?= $(shell nproc)
# Tests that run at once: most wait for processes more than they compute.
WORKERS ?= $(shell echo $$(( 3 * $$(nproc) )))
# Compiled once: the tests start rtmeter hundreds of times.
unexport PYTHONDONTWRITEBYTECODE
# What is built is the same whether .venv is active or not: it has packages of middleware that the system has too.
unexport VIRTUAL_ENV
export PATH := $(subst $(CURDIR)/$(VENV)/bin:,,$(PATH))
# The tests build a wheel, and an adapter beside the core, of what this has compiled already.
export CC CXX
export CMAKE_C_COMPILER_LAUNCHER = $(shell command -v ccache)
export CMAKE_CXX_COMPILER_LAUNCHER = $(CMAKE_C_COMPILER_LAUNCHER)
export CCACHE_DIR ?= $(CURDIR)/build/ccache
# It changes no code: what was compiled with it serves those who build without.
export CCACHE_IGNOREOPTIONS = -Werror
# Without it no file is kept that was compiled with a precompiled header, as the tests are.
export CCACHE_SLOPPINESS = pch_defines,time_macros
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export CTEST_PARALLEL_LEVEL := $(JOBS)
# The first interpreter that is new enough; looked for when it is needed, since make may have to install it.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PIP = $(BIN)/python -m pip --quiet --disable-pip-version-check
CPP_FILES = $(shell git ls-files --cached --others --exclude-standard '*.cpp' '*.hpp' '*.h')
RUST_FILES = --edition 2024 $(shell git ls-files --cached --others --exclude-standard '*.rs')

.PHONY: all
all: probes venv ## Build the probes and install the front into .venv (the default)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- Installing and building: each step is done once, and again when what it depends on changes ---

packages-%:
	@tools/install-packages.sh $*

# pip is the last that is made of an environment: one that was given up half-way is made anew, and so is one
# whose Python is gone; looked at before make takes a stamp in it, which goes too, for up to date.
whole_venv := $(shell [[ -x $(BIN)/python && -e $(BIN)/pip ]] && echo yes)
.PHONY: again
again:

$(VENV)/requirements.stamp: requirements.lock $(if $(whole_venv),,again) | packages-build
	@[[ -n "$(whole_venv)$(PYTHON)" ]] || { echo "make: Python 3.11 or newer is needed; set PYTHON to one" >&2; exit 1; }
	@[[ -x $(BIN)/python && -e $(BIN)/pip ]] || $(PYTHON) -m venv --clear $(VENV)
	@echo "installing Python packages into $(VENV)"
	@mkdir -p build
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock >build/uv.txt
	@$(PIP) install $(locked) build/uv.txt
	@sed '/^pyspark==/,/[^\\]$$/d' requirements.lock >build/requirements.txt
	@$(call install-locked,build/requirements.txt)
	@touch $@

# Spark is half of all that there is to download, and has no part in `make test`.
$(VENV)/spark.stamp: $(VENV)/requirements.stamp
	@$(call install-locked,requirements.lock)
	@touch $@

# uv takes seconds, where pip takes a minute and a half; pip knows indexes that uv does not (pip.conf).
install-locked = { $(BIN)/uv pip install --quiet --python $(BIN)/python $(locked) $(1) 2>build/uv.log || \
	{ echo "uv cannot (build/uv.log); by pip"; $(PIP) install $(locked) $(1); }; }
locked = --require-hashes --no-deps -r

# Editable, without a second build of the probes: those of build/release are used.
$(VENV)/rtmeter.stamp: $(VENV)/requirements.stamp pyproject.toml CMakeLists.txt
	@$(PIP) install --no-build-isolation --no-deps \
		--config-settings=wheel.cmake=false --config-settings=editable.mode=inplace --editable .
	@touch $@

.PHONY: venv
venv: $(VENV)/rtmeter.stamp ## Create .venv with rtmeter in it

# build-PRESET: configure and build one preset of CMakePresets.json; its output is kept and shown on failure.
# The Python packages bring a ROS 2.
build-%: packages-build $(VENV)/requirements.stamp
	@mkdir -p build
	@cmake --preset $* >build/$*.log 2>&1 || { cat build/$*.log; exit 1; }
	@sed -n '/^-- Adapters:/,/^-- Configuring/{/Configuring/!s/^-- //p}' build/$*.log
	@cmake --build --preset $*

.PHONY: probes
probes: build-release ## Build the probes

# Without the package that starts every Python of the environment twice; the probes find ROS 2 by themselves.
.PHONY: lock
lock: packages-build ## Renew requirements.lock from pyproject.toml
	@$(PYTHON) -m venv build/lock && build/lock/bin/python -m pip install --quiet uv
	@{ echo "# Exact Python packages for development and CI, with their hashes. Written by \`make lock\`; do not edit."; \
	   build/lock/bin/uv pip compile pyproject.toml --all-extras --group dev --group ros --universal --python-version 3.11 \
	     --no-emit-package ros-wheels-bootstrapper \
	     --generate-hashes --no-emit-index-url --no-annotate --no-header --quiet; } >build/requirements.lock
	@mv build/requirements.lock requirements.lock

# --- What it is for ---

PREFIX ?= /usr/local
.PHONY: install
install: probes ## Install probes, librtmeter and what adapters need into PREFIX (/usr/local)
	@cmake --install build/release --prefix $(PREFIX)
	@echo "for programs that use librtmeter: sudo ldconfig (of another PREFIX than /usr/local: LD_LIBRARY_PATH)"

.PHONY: demo
demo: probes venv ## Measure this machine for about a minute and a half: verdicts and an HTML report
	@tools/demo.sh $(BIN)/rtmeter

# --- Tests ---

# Each C++ test says on a line "[reduced] ..." what it did not run in full; pytest lists its own at its end.
run-tests = @WORKERS=$(WORKERS) $(BIN)/python tools/run_tests.py

.PHONY: test
test: packages-test venv build-test ## Install, build and test, at a size that fits two cores
	@echo "[reduced] not run: sanitizers (make sanitize), ARM under qemu (make cross); make test-full runs all"
	$(run-tests)

.PHONY: test-full
test-full: export RTMETER_FULL := 1
test-full: packages-test packages-kernel venv $(VENV)/spark.stamp build-test ## Every test at full size, sanitizers and other architectures too
	@failed=0; $(run-tests:@%=%) || failed=1; make -k sanitize cross || failed=1; exit $$failed

.PHONY: soak
soak: ## The tests N times over, beside load, on one CPU, in random order: make soak N=2 FILES="..."
	@tools/soak.sh $(or $(N),1) $(FILES)

.PHONY: test-kernel
test-kernel: export RTMETER_FULL := 1
test-kernel: packages-test packages-kernel venv probes ## Boot a PREEMPT_RT and an ordinary kernel in QEMU and test in them
	@$(BIN)/pytest tests/kernel -rA

.PHONY: sanitize
sanitize: packages-test build-asan build-tsan ## Test the core under the address, undefined and thread sanitizers
	@failed=0; for preset in asan tsan; do ctest --preset $$preset || failed=1; done; exit $$failed

.PHONY: cross
cross: packages-cross packages-test venv probes build-cross-aarch64 build-cross-armhf ## Cross-build for ARM and test under qemu
	@tools/cross-test.sh aarch64
	@tools/cross-test.sh armhf
	@tools/board-root.sh aarch64
	@tools/board-root.sh armhf
	@RTMETER_FULL=1 $(BIN)/pytest tests/boards

.PHONY: rates
rates: venv ## Simulate every rate of docs/simulated-rates.md at full size, and write it there
	@rm -f build/rates.json
	@failed=0; RTMETER_FULL=1 $(BIN)/pytest tests/statistics || failed=$$?; \
		$(BIN)/python tools/rates_tables.py; exit $$failed

# A sample of a fixed seed; `python tools/mutants --help` says how to try others, or all.
.PHONY: mutants
mutants: venv ## Change the code and count what the tests notice (docs/mutants.md)
	@nice -n 15 $(BIN)/python tools/mutants --at-least 7 --minutes 20 --write

.PHONY: mutants-core
mutants-core: packages-test venv ## The same for the core's measurements
	@nice -n 15 $(BIN)/python tools/mutants_core.py --sample 120

.PHONY: bench
bench: packages-bench venv build-bench ## Run those of docs/benchmarks.md that need no arguments
	@for name in record_cost loop_cost log_size help_time probe_24h summary_24h verdict_24h \
		vs_cyclictest monitor_cost explain_cost vs_ddsperf vs_direct trip_memory; do \
		echo; echo "== $$name"; $(BIN)/python bench/$$name.py; done

# --- Style ---

.PHONY: lint
lint: venv ## Check style, types and import directions
	@$(BIN)/ruff check --no-cache
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/clang-format --dry-run --Werror $(CPP_FILES)
	@if command -v rustfmt >/dev/null; then rustfmt --check $(RUST_FILES); else echo "no rustfmt: Rust is not checked"; fi

.PHONY: tidy
tidy: packages-lint packages-test build-test ## Run clang-tidy over the C++ sources
	@cmake --preset test -B build/tidy -DRTMETER_UNITY=OFF >build/tidy.log 2>&1 || { cat build/tidy.log; exit 1; }
	@# What is generated lies in build/release; another compiler's precompiled header is none for clang.
	@sed -i 's/-Winvalid-pch -include [^ ]*//; s#$(CURDIR)/build/tidy#$(CURDIR)/build/release#g' build/tidy/compile_commands.json
	@run-clang-tidy -quiet -extra-arg-before=-std=c++17 -p build/tidy -j $(JOBS) \
		'$(CURDIR)/(core|adapters|tests)/' 2>/dev/null

.PHONY: format
format: venv ## Format all sources
	@$(BIN)/ruff check --no-cache --fix-only --quiet
	@$(BIN)/ruff format --quiet
	@$(BIN)/clang-format -i $(CPP_FILES)
	@if command -v rustfmt >/dev/null; then rustfmt $(RUST_FILES); fi

.PHONY: clean
clean: ## Remove what was built (.venv and results stay)
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
