#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""OSU's programs over Open MPI's uGNI transport in a machine's time, beside the model and beside what others measured.

    bench/osu/openmpi.py --osu DIR [--via LAUNCHER] [--orrery FILE] [--programs DIR] [--out DIR] [--csv FILE]

DIR holds OSU's micro-benchmarks, which an MPI program's user builds with the mpicc of an Open MPI that is built over
Orrery (ports/openmpi-ugni); LAUNCHER is that Open MPI's mpirun, with its own options. Each program runs --runs times
on Aries and on Gemini, and must print the same each time. What they print goes to openmpi.csv, the curves to
openmpi-*.svg; the tables that docs/timing.md has are printed. --programs: this tree's benchmark programs, which say
what the model has for a stream of block transfers. --csv FILE takes what an earlier run measured and runs nothing of
MPI. Exit code 1: a figure is further from the model, or from what was measured, than the last table allows; 2: an
option is not accepted, or a table lacks a row or a column.
"""
import argparse
import csv
import json
import math
import os
import re
import subprocess
import sys

from inputs import Rows, read_curves, read_rows, refuse_missing
from plot import Plot

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
COLUMNS = ["machine", "layer", "program", "ranks", "bytes", "value", "unit"]
CURVE = ("machine", "layer", "program", "ranks")
MACHINES = ("aries", "gemini")
NAMES = {"aries": "Aries", "gemini": "Gemini"}
LATENCY, PUT, GET = "osu_latency", "osu_put_latency", "osu_get_latency"
FOP, CAS, BW, RATE = "osu_fop_latency", "osu_cas_latency", "osu_bw", "osu_mbw_mr"
BARRIER, ALLREDUCE = "osu_barrier", "osu_allreduce"
WINDOW = ["-w", "create"]  # the program's own memory: what MPI allocates is shared on one host, past the NIC
FEW = ["-i", "20", "-x", "2"]  # virtual time is the same in every round
RANKS = (2, 4, 8, 16, 64)
# Program, layers of software above the NIC, numbers of ranks, options.
RUNS = (
    (LATENCY, "", (2,), FEW), (LATENCY, "mpi", (2,), FEW), (PUT, "", (2,), WINDOW + FEW),
    (GET, "", (2,), WINDOW + FEW), (FOP, "", (2,), WINDOW + FEW), (CAS, "", (2,), WINDOW + FEW),
    (BW, "", (2,), ["-i", "4", "-x", "1"]), (RATE, "", (2, 4), []),
    (BARRIER, "", RANKS, FEW), (ALLREDUCE, "", RANKS, FEW + ["-m", "4096"]))
# What Open MPI sends before the data of a short message: its matching header and its transport's own.
HEADER = 18
LONGEST_SHORT = 4096
DRAWN = (2, 4, 16, 64)  # of the ranks of osu_allreduce
COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#e08e0b", "#7d3c98", "#555555", "#a0522d", "#008b8b")


def fail(text):
    sys.exit(f"openmpi.py: {text}")


def run_one(options, machine, layer, program, ranks, words):
    """What one run of a program of OSU prints, and whether the run was exact."""
    report = os.path.join(options.out, "openmpi.json")
    command = [options.orrery, "run", "--via", options.via, "-n", str(ranks), "--machine", machine, "--json", report]
    command += (["--layer", layer] if layer else []) + [os.path.join(options.osu, program)] + words
    result = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        fail(f"{' '.join(command)}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
    with open(report, encoding="utf-8") as file:
        exact = json.load(file)["exact"]
    os.remove(report)
    return result.stdout, exact


def points_of(program, text):
    """{bytes: value} of what was printed. Messages a second, where a program prints them, are under "rate"."""
    values, rates = {}, {}
    for line in text.splitlines():
        words = line.split()
        try:
            numbers = [float(word) for word in words]
        except ValueError:
            continue
        if program == BARRIER and len(numbers) == 1:
            values[0] = numbers[0]
        elif len(numbers) >= 2:
            values[int(numbers[0])] = numbers[1]
            if program == RATE:
                rates[int(numbers[0])] = numbers[2] / 1e6
    if not values:
        fail(f"{program} printed no table:\n{text}")
    return values, rates


def measured(options):
    """{(machine, layer, program, ranks): {bytes: value}}; what was not the same in every run, or not exact."""
    found, remarks = Rows("what OSU's programs printed", CURVE + ("bytes",)), []
    for machine in MACHINES:
        for program, layer, numbers, words in RUNS:
            for ranks in numbers:
                printed = [run_one(options, machine, layer, program, ranks, words) for _ in range(options.runs)]
                name = f"{program}, {ranks} ranks, {machine}{'+' + layer if layer else ''}"
                if len({text for text, _ in printed}) != 1:
                    remarks.append(f"{name}: not the same in {options.runs} runs")
                if not all(exact for _, exact in printed):
                    remarks.append(f"{name}: not exact")
                values, rates = points_of(program, printed[0][0])
                found.part((machine, layer, program, ranks)).update(values)
                if rates:
                    found.part((machine, layer, program + " messages", ranks)).update(rates)
                print(f"{name}: done", file=sys.stderr, flush=True)
    return found, remarks


def unit(program):
    return "M/s" if program.endswith(" messages") else "MB/s" if program in (BW, RATE) else "us"


def write_csv(path, found):
    with open(path, "w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(COLUMNS)
        for (machine, layer, program, ranks), points in found.items():
            for size, value in sorted(points.items()):
                lines.writerow([machine, layer, program, ranks, size, f"{value:g}", unit(program)])


class Model:
    """What the machines say, by `orrery explain` and by the benchmark programs' own column of it."""

    def __init__(self, options):
        self.options = options
        self.known = {}

    def explain(self, machine, layer, words):
        key = (machine, layer, tuple(words))
        if key not in self.known:
            command = [self.options.orrery, "explain", "--json", "--machine", machine]
            command += (["--layer", layer] if layer else []) + [str(word) for word in words]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode != 0:
                fail(f"{' '.join(command)}: {result.stderr}")
            self.known[key] = json.loads(result.stdout)
        return self.known[key]

    def message(self, machine, layer, size, to=1):
        """us until the target's event of a message, which keeps its order"""
        words = ["--routing", "in_order", "message", 0, to, size]
        return self.explain(machine, layer, words)["remote_event_at_ps"] / 1e6

    def doubling(self, machine, ranks, size):
        """us of messages to the ranks 1, 2, 4 ... away, one after the other"""
        return sum(self.message(machine, "", size, 1 << power) for power in range(rounds(ranks)))

    def barrier(self, machine, ranks):
        """us of what Open MPI does: with 4 to 7 ranks to the first one and back to all, else recursive doubling"""
        if 4 <= ranks < 8:
            return (2 * self.message(machine, "", HEADER, ranks - 1) +
                    (ranks - 2) / self.messages(machine, HEADER))
        return self.doubling(machine, ranks, HEADER)

    def done(self, machine, operation, size):
        """us until the source's event"""
        return self.explain(machine, "", [operation, 0, 1, size])["local_event_at_ps"] / 1e6

    def look(self, machine):
        """us of a look that finds nothing"""
        key = (machine, "look")
        if key not in self.known:
            with open(os.path.join(ROOT, "machines", machine + ".toml"), encoding="utf-8") as file:
                line = next(line for line in file if line.startswith("look ="))
            value, of = re.search(r'"([0-9.]+) ([a-z]+)"', line).groups()
            self.known[key] = float(value) * {"ns": 1e-3, "us": 1}[of]
        return self.known[key]

    def messages(self, machine, size):
        """M/s of one processor that does nothing but send"""
        return 1e6 / self.explain(machine, "", ["message", 0, 1, size])["cpu_busy_ps"]

    def stream(self, machine):
        """{bytes: MB/s} of block transfers, one after the other"""
        if machine not in self.known:
            command = [self.options.orrery, "run", "-n", "2", "--machine", machine, "--",
                       os.path.join(self.options.programs, "orrery_put_bandwidth"), "--bte", "--model", "-i", "10",
                       "-x", "2"]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            rows = [line.split() for line in result.stdout.splitlines()]
            self.known[machine] = Rows(" ".join(command), ("bytes",))
            self.known[machine].update((int(row[0]), float(row[2])) for row in rows
                                       if len(row) == 4 and row[0].isdigit())
            if result.returncode != 0 or not self.known[machine]:
                fail(f"{' '.join(command)}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
        return self.known[machine]


def published():
    """{id: (value, unit)} of machines/measurements.csv and machines/reference.csv"""
    rows = Rows("machines/measurements.csv and reference.csv", ("id",))
    for name in ("measurements.csv", "reference.csv"):
        for _, row in read_rows(os.path.join(ROOT, "machines", name), ("id", "printed", "unit")):
            rows[row["id"]] = (row["printed"], row["unit"])
    return rows


def rounds(ranks):
    return int(math.log2(ranks))


def size_name(size):
    return f"{size} B" if size < 1024 else f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB"


def rows_of(machine, found, model, said):
    """(what, program, model or None, digits, what others measured) of a machine's table"""
    def cited(*names):
        texts = []
        for name in names:
            value, of = said[name]
            texts.append(f"{float(value) * 1000:g}" if of == "GB/s" else value)
        return f"{', '.join(texts)} ({', '.join(names)})" if names else ""

    on = {"aries": {("mpi", 8): ("HA105", "HA101", "AR065"), ("mpi", 1024): ("HA008", "HA106"),
                    ("mpi", 2048): ("HA107",), ("mpi", 4096): ("HA009", "HA108"), (BW, 4 << 20): ("HA015",)},
          "gemini": {("mpi", 8): ("HG004",), (BW, 4 << 20): ("HG102",)}}[machine]
    plain = found[machine, "", LATENCY, 2]
    yield "osu_latency, 8 B, us", plain[8], model.message(machine, "", 8), 2, ""
    for size in (8, 1024, 2048, 4096):
        yield (f"the same with `--layer mpi`, {size_name(size)}", found[machine, "mpi", LATENCY, 2][size],
               model.message(machine, "mpi", size), 2, cited(*on.get(("mpi", size), ())))
    for program, operation, size in ((PUT, "fma_put", 8), (PUT, "fma_put", 4096), (GET, "fma_get", 8),
                                     (GET, "bte_get", 4096)):
        yield (f"{program}, {size_name(size)}, us", found[machine, "", program, 2][size],
               model.done(machine, operation, size), 2, "")
    for program in (FOP, CAS):
        yield (f"{program}, us", found[machine, "", program, 2][8], model.done(machine, "fetch_amo_miss", 8), 2, "")
    for size in (64 << 10, 4 << 20):
        yield (f"osu_bw, {size_name(size)}, MB/s", found[machine, "", BW, 2][size], model.stream(machine)[size], 0,
               cited(*on.get((BW, size), ())))
    for ranks in (2, 4):
        yield (f"osu_mbw_mr, {ranks // 2} pair{'s' if ranks > 2 else ''}, 8 B, M messages/s",
               found[machine, "", RATE + " messages", ranks][8],
               ranks // 2 * model.messages(machine, 8 + HEADER), 2, "")
        yield ("the same, 4 MiB, MB/s", found[machine, "", RATE, ranks][4 << 20],
               (1 if machine == "gemini" else ranks // 2) * model.stream(machine)[4 << 20], 0, "")
    for ranks in RANKS:
        yield (f"osu_barrier, {ranks} ranks, us", found[machine, "", BARRIER, ranks][0],
               model.barrier(machine, ranks), 2, "")
    for ranks in RANKS:
        yield (f"osu_allreduce, 8 B, {ranks} ranks, us", found[machine, "", ALLREDUCE, ranks][8],
               model.doubling(machine, ranks, 8 + HEADER), 2, "")


def print_tables(tables):
    for machine, rows in tables.items():
        print(f"\n| on {NAMES[machine]} | program | model | program over model | published |\n|---|---|---|---|---|")
        for what, value, expected, digits, others in rows:
            print(f"| {what} | {value:,.{digits}f} | {expected:,.{digits}f} | {100 * (value / expected - 1):+.1f} % "
                  f"| {others} |")


def draw(found, model, said, folder):
    for machine in MACHINES:
        plot = Plot(f"Open MPI on {NAMES[machine]}: latencies, one rank to another", "us", (1, 64 << 10), (0.5, 32))
        for (program, layer), colour in zip(((LATENCY, ""), (LATENCY, "mpi"), (PUT, ""), (GET, "")), COLOURS):
            plot.line(program + (" with --layer mpi" if layer else ""), found[machine, layer, program, 2], colour)
        sizes = [1 << power for power in range(17)]
        short = [size for size in sizes if size <= LONGEST_SHORT]
        plot.line("model: message", {s: model.message(machine, "", s) for s in short}, COLOURS[4])
        plot.line("model: message, --layer mpi", {s: model.message(machine, "mpi", s) for s in short}, COLOURS[5])
        plot.line("model: put", {s: model.done(machine, "fma_put", s) for s in short}, COLOURS[6])
        plot.line("model: get", {s: model.done(machine, "fma_get", s) for s in short if s < 4096}, COLOURS[7])
        marks = {"aries": {8: "HA105", 1024: "HA106", 2048: "HA107", 4096: "HA108"}, "gemini": {8: "HG004"}}[machine]
        plot.marks("measured: osu_latency\n(" + ", ".join(marks.values()) + ")",
                   {size: float(said[name][0]) for size, name in marks.items()})
        plot.write(os.path.join(folder, f"openmpi-{machine}-latency.svg"))

        plot = Plot(f"Open MPI on {NAMES[machine]}: bandwidth of one pair", "MB/s", (1, 4 << 20), (4, 16384))
        plot.line("osu_bw", found[machine, "", BW, 2], COLOURS[0])
        plot.line("osu_mbw_mr", found[machine, "", RATE, 2], COLOURS[1])
        plot.line("model: messages, header and data",
                  {s: s * model.messages(machine, s + HEADER) for s in short}, COLOURS[4])
        plot.line("model: block transfers", {s: v for s, v in model.stream(machine).items() if s >= 4096}, COLOURS[5])
        name = {"aries": "HA015", "gemini": "HG102"}[machine]
        plot.marks(f"measured: MPI ({name})", {4 << 20: float(said[name][0]) * 1000})
        plot.write(os.path.join(folder, f"openmpi-{machine}-bandwidth.svg"))

        plot = Plot(f"Open MPI on {NAMES[machine]}: osu_allreduce", "us", (8, 4096), (0.5, 32))
        for ranks, colour in zip(DRAWN, COLOURS):
            plot.line(f"{ranks} ranks", found[machine, "", ALLREDUCE, ranks], colour)
        for ranks, colour in zip(DRAWN, COLOURS[4:]):
            points = {s: model.doubling(machine, ranks, s + HEADER) for s in short if s >= 8}
            plot.line(f"model: {rounds(ranks)} message{'s in turn' if ranks > 2 else ''}", points, colour)
        plot.write(os.path.join(folder, f"openmpi-{machine}-allreduce.svg"))


# What misses and is told: Open MPI sends its headers too, and looks twice in vain before it answers (docs/timing.md).
KNOWN = {"aries: osu_latency, 8 B, beside the model's message", "gemini: osu_latency, 8 B, beside the model's message"}


def judged(found, model, said):
    """(what, value, compared with, per cent allowed) of each statement that is held"""
    for machine in MACHINES:
        eight = found[machine, "", LATENCY, 2][8]
        yield f"{machine}: osu_latency, 8 B, beside the model's message", eight, model.message(machine, "", 8), 5
        for size in (1, 8, 64, 512, 4096):
            yield (f"{machine}: osu_latency, {size_name(size)}, beside the message with its headers and two looks",
                   found[machine, "", LATENCY, 2][size],
                   model.message(machine, "", size + HEADER) + 2 * model.look(machine), 1)
        for program, operation in ((PUT, "fma_put"), (GET, "fma_get"), (FOP, "fetch_amo_miss"),
                                   (CAS, "fetch_amo_miss")):
            yield (f"{machine}: {program}, 8 B, beside the model", found[machine, "", program, 2][8],
                   model.done(machine, operation, 8), 1)
        for program in (BW, RATE):
            yield (f"{machine}: {program}, 4 MiB, beside the model's block transfers",
                   found[machine, "", program, 2][4 << 20], model.stream(machine)[4 << 20], 1)
        for ranks in RANKS:
            yield (f"{machine}: osu_barrier, {ranks} ranks, beside its messages",
                   found[machine, "", BARRIER, ranks][0], model.barrier(machine, ranks), 15)
            yield (f"{machine}: osu_allreduce, 8 B, {ranks} ranks, beside its messages",
                   found[machine, "", ALLREDUCE, ranks][8], model.doubling(machine, ranks, 8 + HEADER), 15)
    latency = found["aries", "mpi", LATENCY, 2]
    for size, name in ((8, "HA105"), (1024, "HA106"), (2048, "HA107"), (4096, "HA108"), (1024, "HA008"),
                       (4096, "HA009")):
        yield f"aries: osu_latency, {size_name(size)}, beside {name}", latency[size], float(said[name][0]), 15
    yield ("aries: osu_bw, 4 MiB, beside HA015", found["aries", "", BW, 2][4 << 20],
           float(said["HA015"][0]) * 1000, 15)
    yield ("gemini: osu_latency, 8 B, beside HG004", found["gemini", "mpi", LATENCY, 2][8],
           float(said["HG004"][0]), 15)
    yield ("gemini: osu_bw, 4 MiB, beside HG102", found["gemini", "", BW, 2][4 << 20],
           float(said["HG102"][0]) * 1000, 15)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--osu", help="folder of OSU's programs")
    arguments.add_argument("--via", default="mpirun", help="Open MPI's launcher and its options")
    arguments.add_argument("--runs", type=int, default=2, help="of each program")
    arguments.add_argument("--orrery", default="build/release/tools/orrery/orrery", help="the launcher and the model")
    arguments.add_argument("--programs", default="build/release/bench", help="folder of this tree's benchmarks")
    arguments.add_argument("--out", default="docs/figures", help="folder of what is written")
    arguments.add_argument("--csv", help="take these values, run nothing of MPI")
    options = arguments.parse_args()
    if not options.csv and not options.osu:
        arguments.error("--osu is needed, or --csv")
    if options.runs < 1:
        arguments.error(f"--runs {options.runs} is not accepted: expected 1 or more")
    refuse_missing(arguments, options, COLUMNS)
    model, said = Model(options), published()
    remarks = []
    if options.csv:
        found = read_curves(options.csv, COLUMNS, CURVE)
    else:
        found, remarks = measured(options)
        write_csv(os.path.join(options.out, "openmpi.csv"), found)
    # Everything is looked up before anything is drawn: a row that is missing leaves the curves as they were.
    tables = {machine: list(rows_of(machine, found, model, said)) for machine in MACHINES}
    statements = list(judged(found, model, said))
    draw(found, model, said, options.out)
    print_tables(tables)
    print("\nheld")
    missed = 0
    for what, value, expected, allowed in statements:
        error = 100 * (value / expected - 1)
        misses = abs(error) > allowed
        missed += misses != (what in KNOWN)
        verdict = f", more than {allowed}: {'MISSED, as told' if what in KNOWN else 'MISSED'}" if misses else ""
        print(f"  {what}: {value:g}, {expected:.4g}: {error:+.1f} %{verdict}")
    for remark in remarks:
        print(f"  {remark}")
    return 1 if missed or remarks else 0


if __name__ == "__main__":
    sys.exit(main())
