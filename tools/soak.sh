#!/usr/bin/env bash
# The tests N times over, each time in four ways: alone, beside `stress-ng --cpu 4`, on one CPU, with the files
# in random order. Then a table of what failed; exits with 1 if anything did. Build first (make test does).
#   tools/soak.sh N [FILES...]     files of pytest, or of C++ tests
# RESUME=1 goes on with the last soak of the same sources and files, after the rounds that it had ended.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:?usage: tools/soak.sh N [FILES...]}
shift
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "soak: N = '$rounds': is no number of rounds; give 1 or more" >&2; exit 1; }
[[ -x .venv/bin/pytest && -d build/release ]] || { echo "soak: nothing is built here; run make test first" >&2; exit 1; }
command -v stress-ng >/dev/null || { echo "soak: needs stress-ng; install it (apt-get install stress-ng)" >&2; exit 1; }
first_cpu=$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')
files=("$@")
table=build/tests/soak.txt ended=build/tests/soak-ended.txt
of="$(.venv/bin/python -c 'import sys; sys.path.insert(0, "tools"); import run_tests; print(run_tests.sources())') ${files[*]}"
mkdir -p build/tests
resume=${RESUME:-}
unset RESUME # of which run_tests.py makes something else
if [[ $resume != 1 || $(head -n 1 "$ended" 2>/dev/null) != "$of" ]]; then
  : >"$table"
  echo "$of" >"$ended"
fi
stress=
end_stress() { [[ -z $stress ]] || { kill "$stress"; wait "$stress" || true; stress=; } }
trap end_stress EXIT

# round WAY COMMAND...: one run of the tests; what failed goes into the table.
round() {
  local way=$1 began=$SECONDS code=0
  shift
  if grep "^round $n, ${way%%-[0-9]*}" "$ended"; then
    return
  fi
  echo "== round $n of $rounds, $way"
  rm -f build/tests/failed.txt
  "$@" .venv/bin/python tools/run_tests.py "${files[@]}" || code=$?
  [[ -f build/tests/failed.txt ]] || echo "no results, exit code $code" >build/tests/failed.txt
  sed "s/^/$way\t/" build/tests/failed.txt >>"$table"
  echo "round $n, $way: $(wc -l <build/tests/failed.txt) failed, $((SECONDS - began)) s" | tee -a "$ended"
}

for ((n = 1; n <= rounds; n++)); do
  round alone env
  stress-ng --quiet --cpu 4 --timeout 0 & stress=$!
  round beside-load env
  end_stress
  round one-cpu taskset -c "$first_cpu"
  seed=$((RANDOM * 32768 + RANDOM))
  round "order-$seed" env RTMETER_ORDER="$seed"
done

echo
if [[ -s $table ]]; then
  echo "times  way  what failed (RTMETER_ORDER=N repeats order-N)"
  sort "$table" | uniq -c | sort -rn
  exit 1
fi
echo "$rounds rounds, each alone, beside load, on one CPU and in random order: nothing failed"
