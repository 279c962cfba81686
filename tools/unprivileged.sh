#!/usr/bin/env bash
# The tests as a user without privileges has them, started by root: as nobody, who may read the checkout wherever
# it lies and nothing else that others may not. What needs privileges skips itself and says so.
#   tools/unprivileged.sh [FILES...]
set -euo pipefail
cd "$(dirname "$0")/.."
[[ $(id -u) == 0 ]] || exec .venv/bin/pytest -n 3 --dist loadfile "${@:-tests}"
user=$(id -u nobody)
group=$(id -g nobody)
home=$(mktemp -d)
# A process that a test ended may write there for a moment yet; a failure of this is none of the tests'.
leave() { for _ in {1..20}; do rm -rf "$home" && return; sleep 0.5; done; echo "could not remove $home" >&2; }
trap leave EXIT
chown "$user:$group" "$home"
files=("$@")
((${#files[@]})) || files=(tests/conditions tests/explain tests/importers tests/unit
  tests/integration/test_{null_cli,posix,front_failures,front_settings,settings_real,check,load}.py)
kept=-all,+dac_read_search
setpriv --reuid="$user" --regid="$group" --clear-groups --no-new-privs \
  --inh-caps=$kept --ambient-caps=$kept --bounding-set=$kept \
  env GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0="$PWD" HOME="$home" TMPDIR="$home" PYTHONDONTWRITEBYTECODE=1 \
  .venv/bin/pytest -p no:cacheprovider -n "${WORKERS:-3}" --dist loadfile "${files[@]}"
