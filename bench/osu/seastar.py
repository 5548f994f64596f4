#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""The SeaStar paper's comparison, measured: Portals 3.3 beside CCI, as its Figures 2 to 4 have them.

    bench/osu/seastar.py [--programs DIR] [--orrery FILE] [--out DIR] [--csv FILE]

Runs the ping-pong, bandwidth and rate programs of both libraries on the SeaStar machine in virtual time, prints a
table for each figure and what the paper says beside it, and writes seastar.csv and seastar-figure-{2,3,4}.svg.
Exit code 1: a figure is not the paper's; 2: an option is not accepted, or the table lacks a row or a column. --csv FILE
takes what an earlier run measured.
"""
import argparse
import csv
import os
import subprocess
import sys

from inputs import Rows, read_curves, refuse_missing
from plot import Plot

COLUMNS = ["figure", "curve", "bytes", "value"]
CURVE = ("figure", "curve")
PORTALS, COPIED = "Portals, bind and put", "Portals, copy into bound memory"
ACKNOWLEDGED = "Portals, with an acknowledgement"
UU, RO = "CCI, unreliable (UU)", "CCI, reliable and ordered (RO)"
LATENCY, BANDWIDTH, RATE = "latency, us", "bandwidth, MB/s", "messages, M/s"
COLOURS = {PORTALS: "#c0392b", COPIED: "#e08e0b", ACKNOWLEDGED: "#7d3c98", UU: "#1b6ca8", RO: "#2e8b57"}
PORTALS_OPTIONS = {PORTALS: [], COPIED: ["--copy"], ACKNOWLEDGED: ["--ack"]}
CCI_OPTIONS = {UU: [], RO: ["--reliable"]}
PAGE = 4096  # the longest message of CCI on this machine
LONGEST = 1 << 20
LEAST = 0.001  # of any figure: some are divided by


def runs():
    """(figure, curve, program, options) of each run."""
    for curve, options in PORTALS_OPTIONS.items():
        yield LATENCY, curve, "orrery_portals3_put_latency", options + ["-M", str(PAGE)]
        if curve != ACKNOWLEDGED:
            yield BANDWIDTH, curve, "orrery_portals3_put_rate", options + ["--bandwidth", "-M", str(LONGEST)]
            yield RATE, curve, "orrery_portals3_put_rate", options + ["-M", str(PAGE)]
    for curve, options in CCI_OPTIONS.items():
        yield LATENCY, curve, "orrery_cci_latency", options
        yield BANDWIDTH, curve, "orrery_cci_rate", options + ["--bandwidth"]
        yield RATE, curve, "orrery_cci_rate", options


def measured(orrery, programs):
    """{(figure, curve): {bytes: value}}"""
    found = Rows("what the programs printed", CURVE + ("bytes",))
    for figure, curve, program, options in runs():
        # Virtual time is the same in every round, so few will do.
        command = [orrery, "run", "-n", "2", "--machine", "seastar", "--clock", "virtual", "--",
                   os.path.join(programs, program), "-i", "20", "-x", "2"] + options
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
        rows = [line.split() for line in result.stdout.splitlines()]
        points = {int(row[0]): float(row[1]) for row in rows if len(row) >= 2 and row[0].isdigit()}
        if not points:
            sys.exit(f"{' '.join(command)}: printed no table\n{result.stdout}")
        found.part((figure, curve)).update(points)
    return found


def write_csv(path, found):
    with open(path, "w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(COLUMNS)
        for (figure, curve), points in found.items():
            for size, value in sorted(points.items()):
                lines.writerow([figure, curve, size, f"{value:g}"])


def draw(found, folder):
    figures = ((2, LATENCY, "ping-pong latency", (8, PAGE), (2, 32)),
               (3, BANDWIDTH, "streaming bandwidth", (8, LONGEST), (1, 2048)),
               (4, RATE, "streaming message rate", (8, PAGE), (0.0625, 2)))
    for number, figure, title, x_range, y_range in figures:
        plot = Plot(f"As Figure {number} of the SeaStar paper: {title}", figure, x_range, y_range)
        for curve, colour in COLOURS.items():
            if (figure, curve) in found:
                plot.line(curve, found[figure, curve], colour)
        plot.write(os.path.join(folder, f"seastar-figure-{number}.svg"))


def print_tables(found):
    for figure in (LATENCY, BANDWIDTH, RATE):
        print(f"\n{figure}")
        for curve in COLOURS:
            points = found.get((figure, curve))
            if points:
                print(f"  {curve:34}" + "  ".join(f"{size}: {points[size]:g}" for size in sorted(points)))


def judged(found):
    """(what, here, lowest, highest, what the paper says) of each of its statements."""
    portals, cci = found[LATENCY, PORTALS], found[LATENCY, UU]
    yield "Portals' latency, 64 B over 32 B", portals[64] / portals[32], 1.2, 2.0, "a jump above 32 B"
    yield "Portals' latency, 32 B over 16 B", portals[32] / portals[16], 1.0, 1.05, "none up to 32 B"
    for size in (8, PAGE):
        yield (f"what an acknowledgement adds at {size} B, us",
               found[LATENCY, ACKNOWLEDGED][size] - portals[size], 4.4, 6.0, "4.4 to 6")
    yield "CCI's latency, 8 B, us", cci[8], 2.69, 3.0, "2.83 at 0 B"
    yield "CCI's latency, 4 KiB, us", cci[PAGE], 4.74, 5.24, "4.99"
    yield "CCI's latency, reliable, 4 KiB, us", found[LATENCY, RO][PAGE], 5.0, 5.52, "5.26"
    for size in (8, PAGE):
        yield (f"CCI's latency at {size} B, part of Portals'", cci[size] / portals[size], 0.3, 0.7,
               "0.5 to 0.7, or 0.3 to 0.5: the paper has both")
    yield "CCI's bandwidth, 4 KiB, MB/s", found[BANDWIDTH, UU][PAGE], 1900, 2100, "2 GB/s"
    yield "Portals' bandwidth, 1 MiB, MB/s", found[BANDWIDTH, PORTALS][LONGEST], 1700, 2100, "above 1,700"
    yield ("CCI's bandwidth over Portals', 1 KiB",
           found[BANDWIDTH, UU][1024] / found[BANDWIDTH, PORTALS][1024], 6, 7.1, "almost 7")
    for size in (8, 1024):
        yield f"CCI's messages, {size} B, M/s", found[RATE, UU][size], 1.0, 1.1, "one in 0.96 us up to 1 KiB"
    yield "CCI's messages, 4 KiB, M/s", found[RATE, UU][PAGE], 0.45, 0.5, "slightly under 0.5"
    yield "CCI's messages, reliable, 8 B, M/s", found[RATE, RO][8], 0.61, 0.68, "over 0.64"
    yield "CCI's messages over Portals', 8 B", found[RATE, UU][8] / found[RATE, PORTALS][8], 5.4, 6.6, "6"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--programs", default="build/release/bench", help="folder of the programs")
    arguments.add_argument("--orrery", default="build/release/tools/orrery/orrery", help="the launcher")
    arguments.add_argument("--out", default="docs/figures", help="folder of what is written")
    arguments.add_argument("--csv", help="take these values, run nothing")
    options = arguments.parse_args()
    refuse_missing(arguments, options, COLUMNS)
    if options.csv:
        found = read_curves(options.csv, COLUMNS, CURVE, LEAST)
    else:
        found = measured(options.orrery, options.programs)
        write_csv(os.path.join(options.out, "seastar.csv"), found)
    statements = list(judged(found))  # before anything is drawn: a row may be missing
    draw(found, options.out)
    print_tables(found)
    print("\nbeside the paper")
    wrong = 0
    for what, here, low, high, said in statements:
        is_so = low <= here <= high
        wrong += not is_so
        print(f"  {what}: {here:.3g} (paper: {said}){'' if is_so else '  NOT SO'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
