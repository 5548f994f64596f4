#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# usage: exit_test.sh ORRERY WORKER: a process ends while threads of it wait in every call that waits, in every
# way that programs end, again and again, alone and after puts to a peer, which misses none of them.
set -u
orrery=$1
worker=$2
for how in return exit _exit quick_exit exit_of_a_thread thread_exit_of_main exit_in_a_signal killed_by_a_signal; do
  expected=0
  [ $how != killed_by_a_signal ] || expected=143
  for after in 0 100 1000 5000 0; do
    timeout 30 "$orrery" run -n 1 "$worker" $how $after 2>/dev/null
    code=$?
    [ $code -eq $expected ] || { echo "$how after $after us: $code, not $expected"; exit 1; }
  done
  for adopt in hot never; do
    # What has no room in a lane yet goes with a process that nothing is told of its end.
    case $how in _exit | killed_by_a_signal) continue ;; esac
    ORRERY_ADOPT=$adopt timeout 60 "$orrery" run -n 2 --nodes 2 "$worker" $how 0
    code=$?
    [ $code -eq 0 ] || { echo "$how after puts to a peer, ORRERY_ADOPT=$adopt: $code"; exit 1; }
  done
done
for pes in 1 2; do
  timeout -s KILL 60 "$orrery" run -n $pes "$worker" last_thread 0
  code=$?
  [ $code -eq 0 ] || { echo "last_thread of $pes PEs: $code"; exit 1; }
done
# A job that hangs: the report names the calls in which threads sleep, and since when.
said=$(timeout 60 "$orrery" run -n 1 --timeout 2 "$worker" stay 0 2>&1)
for call in CqVectorMonitor CqWaitEvent PostdataProbeWaitById EpPostDataWaitById; do
  grep -Eq "thread [0-9]+ in GNI_$call for [12]\.[0-9] s" <<<"$said" || { echo "no GNI_$call in: $said"; exit 1; }
done
grep -Eq "(barrier 1|PMI_Init), (thread [0-9]+ in GNI_[A-Za-z]+ for [12]\.[0-9] s, )*GNI_CqWaitEvent for|in GNI_CqWaitEvent for" <<<"$said" ||
  { echo "the first thread's call is not in: $said"; exit 1; }
# So does that of an instance that waits for others of its node, which never join its queue.
said=$(timeout 60 "$orrery" run -n 1 --timeout 2 "$worker" join 0 2>&1)
grep -Eq "GNI_MsgqInit for [12]\.[0-9] s" <<<"$said" || { echo "no GNI_MsgqInit in: $said"; exit 1; }
# A peer that is about to be gone is told of once, however often it is asked for; one that is gone is not asked.
said=$(timeout 60 "$orrery" run -n 2 "$worker" gone 0 2>&1)
[ "$(grep -c "process 1 does not hand out its NIC" <<<"$said")" -le 1 ] || { echo "lines of process 1: $said"; exit 1; }
