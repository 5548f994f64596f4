# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""A program that loads libpmi when libc is there already: under a machine its clock is this host's.
Run: orrery run -n 1 --machine aries python3 late_library.py LIBPMI"""
import ctypes
import sys

pmi = ctypes.CDLL(sys.argv[1])
spawned = ctypes.c_int()
if pmi.PMI_Init(ctypes.byref(spawned)) != 0 or pmi.PMI_Finalize() != 0:
    sys.exit("PMI_Init or PMI_Finalize fails")
