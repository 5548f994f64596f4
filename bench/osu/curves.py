#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""Curves of public OSU programs over Open MPI's uGNI transport, under a machine, beside measured ones.

    bench/osu/curves.py --programs DIR --out docs/figures -- LAUNCHER...

DIR holds osu_latency, osu_put_latency and osu_put_bw of OSU's micro-benchmarks, as they come. LAUNCHER is the
command that runs two ranks of one of them on the library: with a machine, and with btl/ugni as their transport.
Each program runs twice. Its transfers go by FMA up to 64 KiB, then by the block engine whatever their size. What
it prints goes to osu-aries.csv; put bandwidth and latency go to osu-aries-put-bw.svg and osu-aries-latency.svg.
--csv FILE draws from a file of an earlier run and runs nothing. Exit code 2: an option is not accepted, or the table
lacks a row or a column.
"""
import argparse
import csv
import os
import subprocess
import sys

from inputs import Rows, read_curves, refuse_missing
from plot import Plot

COLUMNS = ["program", "way", "bytes", "value", "unit"]
CURVE = ("program", "way")
FMA = "by FMA"
BTE = "by the block engine"
PROGRAMS = ("osu_put_bw", "osu_put_latency", "osu_latency")
LIMITS = {FMA: "65536", BTE: "0"}

# Measured on Cray XC; the first value is the bytes.
# LANL XC40, block engine: github open-mpi/ompi, pull 4919.
PUT_BW = {1024: 1552.63, 2048: 2301.67, 4096: 4439.05, 8192: 6128.77, 16384: 7505.59, 32768: 8554.46,
          65536: 9228.94, 131072: 9517.16, 262144: 9491.26}
# Broadwell, Open MPI's uGNI transport: github ofi-cray/libfabric-cray, report 1055.
LATENCY = {1: 1.39, 2: 1.35, 4: 1.32, 8: 1.33, 16: 1.32, 32: 1.39, 64: 1.50, 128: 1.51, 256: 1.53, 512: 1.56,
           1024: 1.73, 2048: 2.04, 4096: 2.62}
FMA_ONE_CORE = 3650  # MB/s at 1 MiB: github chapel-lang/chapel, pull 9678


def run(launcher, program, way):
    """{bytes: value} of what one program prints."""
    limit = LIMITS[way]
    environment = dict(os.environ)
    for name in ("fma_put_limit", "fma_get_limit"):
        environment["OMPI_MCA_btl_ugni_" + name] = limit
    # The window is the program's own memory: Open MPI copies between windows that it allocates on one host.
    window = ["-w", "create"] if "put" in program else []
    # Virtual time is the same in every round, so few will do.
    command = launcher + [program, "-i", "20", "-x", "2"] + window
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{program}: exit code {result.returncode}\n{result.stderr}")
    values = {}
    for line in result.stdout.splitlines():
        words = line.split()
        if len(words) == 2 and words[0].isdigit():
            values[int(words[0])] = float(words[1])
    if not values:
        sys.exit(f"{program}: printed no table\n{result.stdout}")
    return values


def crossover(fma, bte, better):
    """The smallest size from which on the block engine is the better."""
    sizes = sorted(set(fma) & set(bte))
    sizes = [size for size in sizes if size <= 65536]
    for index, size in enumerate(sizes):
        if all(better(bte[s], fma[s]) for s in sizes[index:]):
            return size
    return None


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--programs", help="folder of osu_latency, osu_put_latency, osu_put_bw")
    arguments.add_argument("--out", default="docs/figures")
    arguments.add_argument("--csv", help="draw from this file, run nothing")
    arguments.add_argument("launcher", nargs="*")
    options = arguments.parse_args()
    refuse_missing(arguments, options, COLUMNS)
    if options.csv:
        curves = read_curves(options.csv, COLUMNS, CURVE)
    else:
        if not options.programs or not options.launcher:
            arguments.error("--programs and a launcher are needed, or --csv")
        curves = Rows("what OSU's programs printed", CURVE + ("bytes",))
        for program in PROGRAMS:
            for way in LIMITS:
                curves.part((program, way)).update(
                    run(options.launcher, os.path.join(options.programs, program), way))
        with open(os.path.join(options.out, "osu-aries.csv"), "w", encoding="utf-8", newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(COLUMNS)
            for (program, way), points in curves.items():
                for size, value in sorted(points.items()):
                    lines.writerow([program, way, size, f"{value:g}", "MB/s" if "bw" in program else "us"])
    # Looked up before anything is drawn: a row that is missing leaves the curves as they were.
    curves.require((program, way) for program in PROGRAMS for way in LIMITS)
    bandwidths = {size: curves["osu_put_bw", BTE][size] for size in PUT_BW}
    latencies = {size: curves["osu_latency", FMA][size] for size in LATENCY}
    bandwidth = Plot("osu_put_bw under --machine aries: one rank to another", "MB/s", (8, 4 << 20), (16, 16384))
    bandwidth.line("by FMA (to 64 KiB)", {s: v for s, v in curves["osu_put_bw", FMA].items() if s <= 65536}, "#1b6ca8")
    bandwidth.line(BTE, curves["osu_put_bw", BTE], "#c0392b")
    bandwidth.marks("measured: LANL XC40, by the\nblock engine (open-mpi/ompi, 4919)", PUT_BW)
    bandwidth.level("measured: FMA, one core, 1 MiB", FMA_ONE_CORE)
    bandwidth.write(os.path.join(options.out, "osu-aries-put-bw.svg"))
    latency = Plot("osu_latency and osu_put_latency under --machine aries", "us", (1, 64 << 10), (0.5, 32))
    for program, colours in (("osu_put_latency", ("#1b6ca8", "#c0392b")),):
        for way, colour in zip(LIMITS, colours):
            latency.line(f"{program}, {way}", {s: v for s, v in curves[program, way].items() if s <= 65536}, colour)
    latency.line("osu_latency", {s: v for s, v in curves["osu_latency", FMA].items() if s <= 65536}, "#2e8b57")
    latency.marks("measured: osu_latency, Broadwell\n(ofi-cray/libfabric-cray, 1055)", LATENCY)
    latency.write(os.path.join(options.out, "osu-aries-latency.svg"))
    fma, bte = curves["osu_put_bw", FMA], curves["osu_put_bw", BTE]
    print("put bandwidth: the block engine is better from", crossover(fma, bte, lambda a, b: a > b), "bytes on")
    fma, bte = curves["osu_put_latency", FMA], curves["osu_put_latency", BTE]
    print("put latency: the block engine is better from", crossover(fma, bte, lambda a, b: a < b), "bytes on")
    for size, value in PUT_BW.items():
        ours = bandwidths[size]
        print(f"osu_put_bw {size}: measured {value:.0f} MB/s, here {ours:.0f} ({100 * (ours / value - 1):+.1f} %)")
    for size, value in LATENCY.items():
        ours = latencies[size]
        print(f"osu_latency {size}: measured {value:.2f} us, here {ours:.2f} ({100 * (ours / value - 1):+.1f} %)")


if __name__ == "__main__":
    main()
