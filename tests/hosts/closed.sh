#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# closed.sh PROGRAM [ARGUMENT...]: a PE whose program loses every inherited descriptor, twice: the second time after
# a first program has left without a word.
set -u
closed() (
  for fd in /proc/self/fd/*; do
    fd=${fd##*/}
    [ "$fd" -lt 3 ] || eval "exec $fd>&-"
  done 2> /dev/null
  exec "$@"
)
closed "$@" unfinalised && closed "$@"
