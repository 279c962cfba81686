# In a guest: a board that has sshd and nothing else of ours, until its power fails or it is told to end.
#   bash guest_board.sh /out: the host's key and who may log in lie there; so do its journal and its /tmp,
#   as on a disk.
set -eu
mkdir -p /run/sshd "$1/tmp"
cp "$1/host" /run/host && chmod 600 /run/host
set -- StrictModes=no PermitRootLogin=yes UsePAM=no PasswordAuthentication=no PidFile=none Port=22 \
  KexAlgorithms=curve25519-sha256 "AuthorizedKeysFile=$1/key.pub" \
  "SetEnv=TMPDIR=$1/tmp RTMETER_STATE_DIR=$1/state HOME=/run"
for setting; do options+=(-o "$setting"); done
exec /usr/sbin/sshd -D -e -f /dev/null -h /run/host "${options[@]}"
