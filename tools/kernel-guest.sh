#!/usr/bin/env bash
# Boots one of Debian's kernels in QEMU (software emulation: meaningless for timing) and runs a command in it:
#   kernel-guest.sh rt|ordinary OUT COMMAND...
# The guest sees this machine's files read-only, with its own changes in memory; OUT, a folder of this
# machine, is /out there and can be written. The command runs as root in the current folder, with a TMPDIR of
# its own. The exit code is the command's; 124 if the guest did not end within LIMIT_S seconds (default 900),
# 125 if it did not run it. FORWARD=PORT: the guest has a network, and this machine's port on loopback is its 22.
set -euo pipefail
fail() {
  echo "kernel-guest.sh: $1" >&2
  exit 125
}
[[ $# -ge 3 ]] || fail "usage: kernel-guest.sh rt|ordinary OUT COMMAND..."
kernel=$1
case $kernel in
  rt) meta=linux-image-rt-amd64 ;;
  ordinary) meta=linux-image-amd64 ;;
  *) fail "no such kernel: '$1'; choose rt or ordinary" ;;
esac
case $PWD/ in
  /dev/* | /proc/* | /run/* | /sys/*) fail "the guest has its own ${PWD%"${PWD#/*/}"}: go to another folder" ;;
esac
store=$(cd "$(dirname "$0")/.." && pwd)/build/kernel/$kernel
mkdir -p "$2" "$store"
out=$(cd "$2" && pwd)
shift 2

# --- The kernel: downloaded and unpacked once ---

if [[ ! -d $store/tree ]]; then
  package=$(apt-cache depends "$meta" 2>/dev/null | awk '/Depends: linux-image/ { print $2; exit }')
  [[ -n $package ]] || fail "apt knows no $meta: run apt-get update on a Debian machine"
  echo "kernel-guest.sh: unpacking $package" >&2
  rm -rf "${store:?}"/*
  (cd "$store" && apt-get download -qq -o APT::Sandbox::User=root "$package" >&2) || fail "cannot download $package"
  dpkg -x "$store"/*.deb "$store/part" && rm "$store"/*.deb
  depmod -b "$store/part" "$(basename "$store"/part/lib/modules/*)"
  mv "$store/part" "$store/tree"
fi
version=$(basename "$store"/tree/lib/modules/*)

# --- Its first file system: again when this script has changed ---

if [[ ! $store/initrd -nt $0 ]]; then
  first=$store/initrd.tree
  rm -rf "$first"
  mkdir -p "$first"/{bin,dev,proc,sys,lower,upper,guest,modules}
  cp /bin/busybox "$first/bin/"
  for wanted in virtio_pci 9pnet_virtio 9p overlay virtio_net; do
    modprobe -d "$store/tree" -S "$version" --show-depends "$wanted"
  done | awk '$1 == "insmod" { print $2 }' | awk '!seen[$0]++' | while read -r module; do
    cp "$module" "$first/modules/"
    basename "$module"
  done >"$first/modules/order"
  echo "$store/tree/lib/modules" >"$first/modules/folder"
  cat >"$first/init" <<'INIT'
#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
while read -r module; do $b insmod /modules/$module; done </modules/order
share() { $b mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,$1 $2 $3; }
share ro,cache=loose host /lower
$b mount -t tmpfs tmpfs /upper && $b mkdir /upper/changes /upper/work
$b mount -t overlay -o lowerdir=/lower,upperdir=/upper/changes,workdir=/upper/work overlay /guest
$b mkdir -p /guest/out /guest/lib/modules
share rw,cache=none out /guest/out
$b mount --bind "/guest$($b cat /modules/folder)" /guest/lib/modules
$b mount -t proc proc /guest/proc
$b mount -t sysfs sys /guest/sys
$b mount -t devtmpfs dev /guest/dev
$b mkdir -p /guest/dev/pts /guest/dev/shm
$b mount -t devpts devpts /guest/dev/pts
$b mount -t tmpfs tmpfs /guest/dev/shm
$b mount -t tmpfs -o mode=755 tmpfs /guest/run  # as systemd has it: root's locks lie there
$b mkdir /guest/run/tmp
$b mount -t debugfs debugfs /guest/sys/kernel/debug
$b mount -t tracefs tracefs /guest/sys/kernel/tracing
$b mount -t cgroup2 cgroup2 /guest/sys/fs/cgroup
echo /modprobe >/proc/sys/kernel/modprobe
$b chroot /guest ip link set lo up
if $b test -e /sys/class/net/eth0; then
  $b chroot /guest ip addr add 10.0.2.15/24 dev eth0
  $b chroot /guest ip link set eth0 up
fi
$b chroot /guest /bin/bash /out/.command >/guest/out/.output 2>&1
echo $? >/guest/out/.exit
$b sync
$b poweroff -f
INIT
  cat >"$first/modprobe" <<'MODPROBE' # the kernel asks for modules in its own root, not the guest's
#!/bin/busybox sh
exec /bin/busybox chroot /guest /sbin/modprobe "$@"
MODPROBE
  chmod +x "$first/init" "$first/modprobe"
  (cd "$first" && find . | cpio --quiet -o -H newc | gzip -1) >"$store/initrd.part"
  mv "$store/initrd.part" "$store/initrd"
fi

# --- The command, and the machine that runs it ---

rm -f "$out"/.{command,output,exit,console}
{
  echo "export HOME=/run/tmp TMPDIR=/run/tmp PATH=$PATH LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1"
  printf 'cd %q && %s\n' "$PWD" "$(printf '%q ' "$@")"
} >"$out/.command"
network=()
[[ -z "${FORWARD:-}" ]] || network=(-nic "user,restrict=on,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:$FORWARD-:22")
status=0
timeout --kill-after=5 "${LIMIT_S:-900}" qemu-system-x86_64 \
  -machine q35 -accel tcg,thread=multi -cpu max -smp 2 -m "${MEMORY:-2G}" \
  -nodefaults -no-reboot -display none -serial "file:$out/.console" \
  -kernel "$store/tree/boot/vmlinuz-$version" -initrd "$store/initrd" \
  -append "console=ttyS0 quiet panic=1 no_timer_check hostname=guest-$kernel ${APPEND:-}" \
  -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
  "${network[@]}" -virtfs "local,path=$out,mount_tag=out,security_model=none" </dev/null || status=$?
[[ ! -f $out/.output ]] || cat "$out/.output"
[[ $status -ne 124 && $status -ne 137 ]] || { echo "kernel-guest.sh: stopped after ${LIMIT_S:-900} s" >&2; exit 124; }
[[ -f $out/.exit ]] || { tail -n 20 "$out/.console" >&2 2>/dev/null; fail "the guest did not get so far"; }
exit "$(cat "$out/.exit")"
