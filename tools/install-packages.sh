#!/usr/bin/env bash
# Installs the Debian packages of packages/LIST.txt that are missing: install-packages.sh LIST...
# Does nothing, and needs no privilege, when none is missing. RTMETER_SKIP_PACKAGES=1 skips the check.
set -euo pipefail
cd "$(dirname "$0")/../packages"

[[ "${RTMETER_SKIP_PACKAGES:-}" != 1 ]] || exit 0

fail() {
  echo "install-packages.sh: $1" >&2
  exit 1
}

is_installed() {
  [[ "$(dpkg-query --show --showformat='${db:Status-Abbrev}' "$1" 2>/dev/null)" == ii* ]]
}

[[ $# -gt 0 ]] || fail "which lists? There are: $(ls -- *.txt | sed 's/\.txt$//' | xargs)"
wanted=()
for list in "$@"; do
  [[ -f "$list.txt" ]] || fail "no such list: packages/$list.txt"
  mapfile -t -O "${#wanted[@]}" wanted < <(sed 's/#.*//; s/[[:space:]]*$//; /^$/d' "$list.txt")
done

command -v dpkg-query apt-get >/dev/null ||
  fail "no Debian or Ubuntu: install what corresponds to '${wanted[*]}', then set RTMETER_SKIP_PACKAGES=1"

missing=()
for package in "${wanted[@]}"; do
  is_installed "$package" || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0
echo "installing Debian packages: ${missing[*]}"

as_root=()
if [[ $EUID -ne 0 ]]; then
  command -v sudo >/dev/null || fail "no sudo here; as root, run: apt-get install ${missing[*]}"
  as_root=(sudo)
fi

for package in "${missing[@]}"; do
  architecture=${package#*:}
  if [[ "$architecture" != "$package" ]] && ! dpkg --print-foreign-architectures | grep -qx "$architecture"; then
    "${as_root[@]}" dpkg --add-architecture "$architecture"
  fi
done

# An index that cannot be refreshed matters only if a package is then missing: the install tells.
"${as_root[@]}" apt-get update -qq -o DPkg::Lock::Timeout=300 || echo "install-packages.sh: apt-get update was incomplete; going on" >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -qq --yes --no-install-recommends -o DPkg::Lock::Timeout=300 \
  -o Dpkg::Use-Pty=0 "${missing[@]}" >/dev/null
