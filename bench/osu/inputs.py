# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""Refuses what a command line names and is not there, with what is expected; for the figures of benchmark programs."""
import csv
import os


def refuse_missing(arguments, options, columns):
    """Ends the program with an error of `arguments` when --csv FILE cannot be read or lacks one of `columns`, when
    --out is no folder, or when --orrery, where the program has it, is no program."""
    if options.csv:
        try:
            with open(options.csv, encoding="utf-8", newline="") as file:
                there = next(csv.reader(file), [])
        except (OSError, UnicodeDecodeError) as error:
            arguments.error(f"--csv {options.csv} cannot be read ({error}): expected a file of an earlier run")
        if there != columns:
            arguments.error(f"--csv {options.csv}: its first line is '{','.join(there)[:60]}': "
                            f"expected {','.join(columns)}")
    if not os.path.isdir(options.out):
        arguments.error(f"--out {options.out} is not a folder: expected one that is there")
    orrery = getattr(options, "orrery", None)
    if orrery is not None and not (os.path.isfile(orrery) and os.access(orrery, os.X_OK)):
        arguments.error(f"--orrery {orrery} is not a program: expected the command orrery")
