#!/usr/bin/env bash
# Runs campaigns/demo.yaml with the given rtmeter and writes its HTML report. A requirement that is not
# met, or too little evidence, is a result, not an error; a cell that could not be measured is one.
set -euo pipefail
rtmeter=$1

only=()
trial=$(mktemp -d)
trap 'rm -rf "$trial"' EXIT
if ! refusal=$("$rtmeter" measure wakeup --adapter posix --samples 10 --warm-up 0 --scheduling fifo:80 \
  --lock-memory --out "$trial/cell" 2>&1 >/dev/null); then
  echo "the realtime variants are left out, since they cannot run here:"
  echo "$refusal"
  only=(--only "variant==ordinary")
fi

# Why its late releases were late, where the kernel's events can be had.
campaign=campaigns/demo.yaml
if refusal=$("$rtmeter" measure wakeup --adapter posix --samples 10 --warm-up 0 --explain \
  --out "$trial/traced" 2>&1 >/dev/null); then
  campaign=$trial/demo.yaml
  sed 's/^defaults:$/&\n  explain: true/' campaigns/demo.yaml >"$campaign"
else
  echo "why releases were late is left out, since it cannot be recorded here:"
  echo "$refusal"
fi

newest_run() {
  ls -td results/*/demo/*/ 2>/dev/null | head -1 || true
}

before=$(newest_run)
status=0
"$rtmeter" run "$campaign" "${only[@]}" || status=$?
newest=$(newest_run)
[[ "$newest" != "$before" ]] || exit 1  # it did not begin, and has said why
report=$("$rtmeter" report "$newest")
echo "report: $report (open it in a browser)"
echo
if [[ $campaign != campaigns/demo.yaml ]]; then
  echo "Why releases were late, and what mends that: $rtmeter explain ${newest%/}"
fi
echo "Next, the same for a loop of yours: give its period and its deadline, and type"
echo
echo "  $rtmeter measure timer --adapter posix --period 2ms --deadline 2ms --duration 30s"
echo
echo "The adapters that are built here: $rtmeter adapters. What makes this machine late: $rtmeter check."
[[ $status -ne 1 ]]
