# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""Refuses what a command line names and is not there, with what is expected; for the figures of benchmark programs."""
import csv
import io
import math
import os
import sys


def refuse(text):
    """Ends the program with exit code 2 and this line."""
    print(f"{os.path.basename(sys.argv[0])}: {text}", file=sys.stderr)
    sys.exit(2)


def refuse_missing(arguments, options, columns):
    """Ends the program with an error of `arguments` when --csv FILE cannot be read or lacks one of `columns`, when
    --out is no folder, or when --orrery, where the program has it, is no program."""
    if options.csv:
        try:
            with open(options.csv, encoding="utf-8", newline="") as file:
                there = next(csv.reader(file), [])
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            arguments.error(f"--csv {options.csv} cannot be read ({error}): expected a file of an earlier run")
        if there != columns:
            lacking = ",".join(column for column in columns if column not in there)
            arguments.error(f"--csv {options.csv}: its first line is '{','.join(there)[:60]}'"
                            f"{f', without {lacking}' if lacking else ''}: expected {','.join(columns)}")
    if not os.path.isdir(options.out):
        arguments.error(f"--out {options.out} is not a folder: expected one that is there")
    orrery = getattr(options, "orrery", None)
    if orrery is not None and not (os.path.isfile(orrery) and os.access(orrery, os.X_OK)):
        arguments.error(f"--orrery {orrery} is not a program: expected the command orrery")


def as_row(values):
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(values)
    return text.getvalue()


class Rows(dict):
    """Rows of a table by their first columns. A look for one that is not there ends the program with its name."""

    def __init__(self, place, columns, first=()):
        """`place`: where the table is from; `columns`: those that name a row; `first`: what the table's part that
        this is has in the first of them."""
        super().__init__()
        self.place, self.columns, self.first = place, columns, first

    def __missing__(self, key):
        values = self.first + (key if isinstance(key, tuple) else (key,))
        refuse(f"{self.place}: no row {as_row(values)} ({','.join(self.columns[:len(values)])})")

    def require(self, keys):
        for key in keys:
            self[key]  # pylint: disable=pointless-statement

    def part(self, key):
        """The part of the table whose rows begin so: {last column: value}; an empty one at first."""
        return self.setdefault(key, Rows(self.place, self.columns, key))


def number_in(path, line, row, column, kind, least):
    try:
        value = kind(row[column])
    except ValueError:
        value = math.nan
    if not least <= value < math.inf:
        what = "whole number" if kind is int else "number"
        refuse(f"{path}: line {line}: {column} is '{row[column][:60]}': expected a {what} of {least:g} or more")
    return value


def read_rows(path, columns):
    """(line, {column: text}) of a table's rows, each of which has all `columns` and no more."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            lines = csv.reader(file)
            there = next(lines, [])
            for column in columns:
                if column not in there:
                    refuse(f"{path}: no column {column} in its first line, '{','.join(there)[:60]}'")
            for row in lines:
                if len(row) < len(there):
                    refuse(f"{path}: line {lines.line_num}: '{as_row(row)[:60]}' has no {','.join(there[len(row):])}: "
                           f"expected {','.join(there)}")
                if len(row) > len(there):
                    refuse(f"{path}: line {lines.line_num}: '{as_row(row[len(there):])[:60]}' is more than expected: "
                           f"{','.join(there)}")
                yield lines.line_num, dict(zip(there, row))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        refuse(f"{path} cannot be read: {error}")


def read_curves(path, columns, name, least=0):
    """{values of the columns `name`: {bytes: value}} of a table with `columns`, which write_csv has made. "ranks" and
    "bytes" are whole numbers; a value is `least` or more."""
    found = Rows(path, name + ("bytes",))
    for line, row in read_rows(path, columns):
        key = tuple(number_in(path, line, row, column, int, 1) if column == "ranks" else row[column]
                    for column in name)
        points, size = found.part(key), number_in(path, line, row, "bytes", int, 0)
        if size in points:
            refuse(f"{path}: line {line}: {as_row(key + (size,))} is there already")
        points[size] = number_in(path, line, row, "value", float, least)
    return found
