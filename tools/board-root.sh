#!/usr/bin/env bash
# What is on a board's disk, made of Debian's packages of its architecture: board-root.sh aarch64|armhf.
# Downloaded and unpacked once into build/board/ARCH, never installed: glibc/ has Debian's shell and small
# programs, busybox/ has nothing but static ones: no libc.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() {
  echo "board-root.sh: $1" >&2
  exit 1
}
case "$#:${1:-}" in
  1:aarch64) debian=arm64 qemu=qemu-aarch64 ;;
  1:armhf) debian=armhf qemu=qemu-arm ;;
  *) fail "usage: board-root.sh aarch64|armhf" ;;
esac
packages=(bash-static busybox-static coreutils dash grep libacl1 libattr1 libc6 libcap-ng0 libgmp10 libpcre2-8-0
  libselinux1 sed util-linux)
store=build/board/$1
[[ ! -d $store/glibc ]] || exit 0

echo "unpacking a root file system for $1"
rm -rf "$store"
mkdir -p "$store"/{packages,busybox/bin,part}
(cd "$store/packages" && apt-get download -qq -o APT::Sandbox::User=root "${packages[@]/%/:$debian}" >&2) ||
  fail "cannot download Debian's packages of $debian: run make packages-cross, and apt-get update"
for package in "$store"/packages/*.deb; do
  dpkg-deb --extract "$package" "$store/part"
done
rm -r "$store/packages" "$store"/part/usr/share/{doc,man,locale}
cp "$store"/part/bin/{bash-static,busybox} "$store/busybox/bin/"
for applet in $("$qemu" "$store/busybox/bin/busybox" --list | grep -vxE '(ba|a)?sh|busybox'); do
  ln -s busybox "$store/busybox/bin/$applet"
  [[ -e $store/part/bin/$applet || -e $store/part/usr/bin/$applet ]] || ln -s busybox "$store/part/bin/$applet"
done
ln -s bash-static "$store/busybox/bin/sh" # busybox' own runs the emulator in the place of its applets
for root in part busybox; do
  mkdir -p "$store/$root"/{dev,etc,lib/x86_64-linux-gnu,lib64,proc,root,run/lock,sys,tmp,var}
  chmod 1777 "$store/$root"/{run/lock,tmp}
done
mv "$store/part" "$store/glibc"
