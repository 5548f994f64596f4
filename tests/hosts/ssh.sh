#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# ssh.sh PES PROGRAM [ARGUMENT...]: inside two_hosts.sh, runs the program on both hosts with `orrery run --hosts`
# ($TESTED_TOOL) by ssh itself: each host has an sshd of its own, with keys made for this run, in a folder that
# goes when it ends. What is called is "ssh" with the words that it is called with everywhere; the first `ssh` of
# PATH adds where the keys are.
set -u
. "$(dirname "$0")/../skip.sh"
[ $# -ge 2 ] || { echo "usage: ssh.sh PES PROGRAM [ARGUMENT...]" >&2; exit 2; }
pes=$1
shift
ssh=$(command -v ssh) && sshd=$(PATH=$PATH:/usr/sbin command -v sshd) && command -v ssh-keygen > /dev/null ||
  skip ssh "ssh and sshd (package openssh-server) are not installed"
[ "$(id -u)" = 0 ] || skip root "an sshd that others may log in at takes root"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 143' TERM INT HUP
ssh-keygen -q -t ed25519 -N '' -f "$work/key" && ssh-keygen -q -t ed25519 -N '' -f "$work/host" || exit 1
{ printf '%s,%s ' "$HOST_A" "$HOST_B"; cat "$work/host.pub"; } > "$work/known"
mkdir "$work/bin"
cat > "$work/bin/ssh" << END
#!/bin/sh
exec $ssh -F none -p 2222 -i $work/key -o UserKnownHostsFile=$work/known -o StrictHostKeyChecking=yes "\$@"
END
chmod 755 "$work/bin/ssh"
# The folder that sshd steps into before the first login may not be there where sshd is no service.
start='[ -d /run/sshd ] || { mount -t tmpfs tmpfs /run && mkdir /run/sshd; }; exec '$sshd' -D -e -f /dev/null -p 2222
  -h '$work'/host -o AuthorizedKeysFile='$work'/key.pub -o StrictModes=no -o PermitRootLogin=yes -o UsePAM=no -o PidFile=none'
start=$(printf '%s' "$start" | tr '\n' ' ')
for host in "$HOST_A" "$HOST_B"; do
  "$HOST_EXEC" "$host" "$start" > "$work/sshd-$host" 2>&1 &
done
PATH=$work/bin:$PATH
export PATH
for host in "$HOST_A" "$HOST_B"; do
  tries=0
  until ssh -o BatchMode=yes "$host" true 2> "$work/why"; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || { echo "ssh.sh: no login at $host:" >&2; cat "$work/why" "$work/sshd-$host" >&2; exit 1; }
    sleep 0.1
  done
done
"$TESTED_TOOL" run --hosts "$HOST_A,$HOST_B" --timeout 100 -n "$pes" "$@"
