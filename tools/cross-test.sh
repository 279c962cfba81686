#!/usr/bin/env bash
# Runs the tests of a cross build under qemu: cross-test.sh aarch64|armhf. Ends with the tests that were
# skipped and why, so that nobody takes the emulator's word for what only a board can show.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ $# -eq 1 && -f "cmake/toolchain-$1.cmake" ]] || {
  echo "usage: cross-test.sh ARCH, one of $(ls cmake/toolchain-*.cmake | sed 's/.*toolchain-//; s/\.cmake//' | xargs)" >&2
  exit 1
}

status=0
ctest --preset "cross-$1" || status=$?

# GoogleTest writes "FILE:LINE: Skipped", the reason on the next line, then "[  SKIPPED ] TEST (N ms)".
echo "Skipped under qemu ($1):"
awk '/: Skipped$/ { getline reason }
     /^\[  SKIPPED \] .* ms\)$/ { print "  " $4 ": " reason }' \
  "build/cross-$1/Testing/Temporary/LastTest.log" | sort -u
echo "  traps_test, measured_path_test: not built, the trap is written for native x86-64"
exit $status
