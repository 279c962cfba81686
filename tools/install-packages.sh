#!/usr/bin/env bash
# Installs the Debian packages of packages/LIST.txt that are missing: install-packages.sh LIST...
# A package with a question mark is left out, and named, where this release does not have it.
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
  fail "no Debian or Ubuntu: install what corresponds to '${wanted[*]%\?}', then set RTMETER_SKIP_PACKAGES=1"

missing=() optional=()
for package in "${wanted[@]}"; do
  is_installed "${package%\?}" && continue
  if [[ "$package" == *\? ]]; then optional+=("${package%\?}"); else missing+=("$package"); fi
done
[[ ${#missing[@]} -gt 0 || ${#optional[@]} -gt 0 ]] || exit 0

as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "no sudo here; as root, run: apt-get install ${missing[*]} ${optional[*]}"
  fi
}

# An index that cannot be refreshed matters only if a package is then missing: the install tells.
refresh() {
  as_root apt-get update -qq -o DPkg::Lock::Timeout=300 || echo "install-packages.sh: apt-get update was incomplete; going on" >&2
  refreshed=yes
}

# Adds those of the optional ones that can be installed to the missing ones. Asked one by one, of the index that
# there is, which needs no privilege.
add_optional() {
  local package words
  for package in "${optional[@]}"; do
    if words=$(apt-get install -qq --simulate --no-install-recommends "$package" 2>&1); then
      missing+=("$package")
    else
      echo "left out, with what needs it: $package (${words##*$'\n'})"
    fi
  done
  optional=()
}

for package in "${missing[@]}"; do
  architecture=${package#*:}
  if [[ "$architecture" != "$package" ]] && ! dpkg --print-foreign-architectures | grep -qx "$architecture"; then
    as_root dpkg --add-architecture "$architecture"
  fi
done

refreshed=
if [[ ${#missing[@]} -gt 0 || "$(apt-cache policy)" != *" Packages"* ]]; then  # or there is no index yet
  refresh
fi
add_optional
[[ ${#missing[@]} -gt 0 ]] || exit 0
echo "installing Debian packages: ${missing[*]}"
[[ -n "$refreshed" ]] || refresh
as_root env DEBIAN_FRONTEND=noninteractive \
  apt-get install -qq --yes --no-install-recommends -o DPkg::Lock::Timeout=300 \
  -o Dpkg::Use-Pty=0 "${missing[@]}" >/dev/null
