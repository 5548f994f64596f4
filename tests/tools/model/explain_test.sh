#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
set -euo pipefail
. "$(dirname "$0")/check.sh"

says 'hops of link.hop 105 ns' explain --machine gemini put 0 1234 64
says 'fitted to HG012' explain --machine gemini get 0 1234 64
says '(+-30 %)' explain --machine gemini put 0 1234 64
says 'layer mpi: MPI over mailboxes' explain --machine aries --layer mpi message 0 4 8
says 'links of link.global_cable' explain --machine aries put 0 1234 8
refuses "layer 'pvm' is not known: expected mpi" explain --machine aries --layer pvm message 0 4 8
says 'blue' explain --machine aries get 0 3071 8
says 'no remote atomics' explain --machine bluegene-l amo 0 100 8
says '10 us' explain --machine asci-q hardware_barrier 1024
says 'stage.barrier_level (each level beyond)' explain --machine asci-q hardware_barrier 1024
says '(+-10 %) fitted to QS023' explain --machine asci-q hardware_barrier 1024
says 'begins after hardware_barrier' explain --machine asci-q broadcast 64
says 'the same for any number of nodes' explain --machine bluegene-l hardware_barrier 512
says '(+-50 %)' explain --machine bluegene-l allreduce 512
says '(+-100 %)' explain --machine aries allreduce 512
says 'link.lane_rate: (+-10 %)' explain --machine gemini put 0 1234 4096
says 'no remote atomics' explain --machine bluegene-l dmapp.aadd 0 100 8
says '10 us' explain --machine asci-q pmi.Barrier 1024
says 'dmapp.c_barrier_join among 8 nodes: 2.57' explain --machine aries dmapp.c_barrier_join 8
refuses "an API's word as 'orrery machines --operations' lists them" explain --machine gemini gni.PUT 0 1 8
says '"data_at_ps": 0' explain --json --machine ideal put 0 1 4096
python3 - "$orrery" <<'PY'
import json, subprocess, sys
for machine in ("aries", "gemini", "seastar", "bluegene-l", "asci-q", "ideal"):
    e = json.loads(subprocess.check_output([sys.argv[1], "explain", "--json", "--machine", machine, "put", "0", "77", "64"]))
    assert sum(c["ps"] for c in e["to_data"]) == e["data_at_ps"], e
    # Every stage, hop and cable says by how much it may be off.
    for asked in (["put", "0", "77", "4096"], ["get", "0", "77", "8"], ["matched_get", "0", "77", "8"]):
        text = subprocess.check_output([sys.argv[1], "explain", "--machine", machine, *asked], text=True)
        assert "error not known" not in text, text
PY
refuses "gemini: target node '3840' is not accepted: expected a whole number 0..3839" explain --machine gemini put 0 3840 8
refuses "expected a whole number 0..3839" explain --machine gemini put -- -1 5 8
says 'put of 8 B from node 0 [' explain --machine aries --operation put --src 0 --dst 5 --bytes 8
says 'put of 8 B from node 0 [' explain --machine aries put 0 5 --bytes 8
refuses "is one number too many" explain --machine aries put 0 5 8 --bytes 8
refuses "the machine is given by --machine aries" explain aries put 0 1 8
refuses "operation 'putt' is not known" explain --machine gemini putt 0 1 8
refuses "machine 'cray' is not known: expected aries" explain --machine cray put 0 1 8
refuses "routing 'fast' is not known" explain --machine gemini --routing fast put 0 1 8
refuses "takes source node, target node and bytes" explain --machine gemini put 0
