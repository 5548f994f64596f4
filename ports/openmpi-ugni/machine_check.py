#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""Runs MPI programs in a machine's time, several times each, and says which end, print the same and are exact.

    ports/run.sh openmpi-ugni check --machine aries,gemini --ranks 2,4,8 --runs 5 --osu DIR

Programs: Open MPI's examples and rma_check, which the port builds; hpcc, which verifies itself; and with --osu those
of OSU's micro-benchmarks that are in DIR and in its folders (pt2pt, collective, one-sided, startup), which a user
builds with this Open MPI's mpicc. Each runs with few iterations, since virtual time is the same in every round;
what is for two ranks runs with two. --only takes the names of programs. A run that has not ended after --time-out
seconds of real time is stopped. --busy starts that many busy loops beside every second run. A line for each program:
how many runs ended, whether their lines are the same to the byte (the launcher may mix the ranks' lines otherwise each
time), how many were exact, the seconds of each; then a table of how many programs did. hpcc prints nothing: "equal"
says nothing of what it writes into hpccoutf.txt, which has processor times of the host in it. Below a program that
failed: its folder, and the last line of its errors. Exit code 1: a program did not end, differed, or was not exact;
2: an option is not accepted, and nothing was run.
"""
import argparse
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time

EXAMPLES = ("hello_c", "ring_c", "connectivity_c", "rma_check")
FOR_TWO = re.compile(r"osu_(latency|latency_mt|bw|bibw|(put|get)_(latency|bw|bibw)|(acc|get_acc|cas|fop)_latency)$")
FEW = ["-i", "10", "-x", "2"]


def words_of(name, longest):
    """The options of one of OSU's programs."""
    if name in ("osu_init", "osu_hello", "osu_mbw_mr"):
        return []
    if re.match("osu_(put|get|acc|cas|fop)", name):
        return ["-w", "create"] + FEW  # what MPI allocates is shared on one host, past the NIC
    if name in ("osu_latency", "osu_latency_mt", "osu_multi_lat", "osu_bw", "osu_bibw", "osu_barrier", "osu_ibarrier"):
        return FEW
    return ["-i", "4", "-x", "1", "-m", str(longest)]


class Runner:
    def __init__(self, options):
        self.options = options
        self.busy = []

    def command(self, machine, ranks, report):
        return [self.options.orrery, "run", "--via", self.options.via, "-n", str(ranks), "--machine", machine,
                "--json", report]

    def make_busy(self, number):
        self.busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]

    def end_busy(self):
        for loop in self.busy:
            loop.kill()
            loop.wait()
        self.busy = []

    @staticmethod
    def stop(job):
        """The launcher is told first, so that it ends its ranks, which have sessions of their own."""
        for number, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, None)):
            if job.poll() is not None:
                return
            os.killpg(job.pid, number)
            try:
                job.wait(patience)
            except subprocess.TimeoutExpired:
                pass

    def run(self, machine, ranks, words, folder):
        """(exit code or None when stopped, output, whether it was exact, seconds)"""
        report = os.path.join(folder, "report.json")
        environment = dict(os.environ)
        if os.path.basename(words[0]) == "rma_check":
            environment["OMPI_MCA_osc"] = "rdma"  # over the NIC, whatever else could
        if os.path.exists(report):
            os.remove(report)
        began = time.monotonic()
        with open(os.path.join(folder, "output"), "w+", encoding="utf-8", errors="replace") as out, \
                open(os.path.join(folder, "errors"), "w", encoding="utf-8") as err:
            job = subprocess.Popen(self.command(machine, ranks, report) + words, cwd=folder, stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=err, env=environment, start_new_session=True)
            try:
                code = job.wait(self.options.time_out)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                self.stop(job)  # also when this program is stopped
            out.seek(0)
            text = out.read()
        exact = False
        if code == 0:
            with open(report, encoding="utf-8") as file:
                exact = json.load(file)["exact"]
        return code, text, exact, time.monotonic() - began


def hpcc_input(folder, ranks):
    """The example input of Debian's package, made small."""
    with open("/usr/share/doc/hpcc/examples/_hpccinf.txt", encoding="utf-8") as file:
        text = file.read()
    columns = 2
    for name, value in (("Ns", 64), ("NBs", 8), ("Ps", ranks // columns), ("Qs", columns)):
        text = re.sub(rf"(?m)^[0-9]+( *{name})$", rf"{value}\1", text)
    with open(os.path.join(folder, "hpccinf.txt"), "w", encoding="utf-8") as file:
        file.write(text)
    result = os.path.join(folder, "hpccoutf.txt")
    if os.path.exists(result):
        os.remove(result)


def programs(options):
    """(name, file) of all that are there"""
    found = [(name, os.path.join(options.work, name)) for name in EXAMPLES]
    if options.hpcc:
        found.append(("hpcc", options.hpcc))
    for place, _, names in sorted(os.walk(options.osu)) if options.osu else ():
        found += [(name, os.path.join(place, name)) for name in sorted(names)
                  if name.startswith("osu_") and os.access(os.path.join(place, name), os.X_OK)
                  and open(os.path.join(place, name), "rb").read(2) in (b"\x7fE", b"#!")]
    if options.only:
        unknown = set(options.only) - {name for name, _ in found}
        if unknown:
            sys.exit(f"machine_check.py: --only {','.join(sorted(unknown))}: there is no such program; there is: "
                     + " ".join(name for name, _ in found))
        found = [(name, file) for name, file in found if name in options.only]
    missing = [file for _, file in found if not os.path.exists(file)]
    if missing:
        sys.exit(f"machine_check.py: {missing[0]} is not there: expected what the port has built")
    return found


def check(runner, machine, ranks, name, file):
    """Runs a program as often as asked; prints its line. (ended, equal, exact), each True when of all runs"""
    options = runner.options
    folder = os.path.join(options.work, "machine", f"{os.path.basename(machine)}-{ranks}", name)
    os.makedirs(folder, exist_ok=True)
    codes, prints, exact, seconds, verified = [], [], [], [], True
    for number in range(options.runs):
        words = [file] + (words_of(name, options.longest) if name.startswith("osu_") else [])
        if name == "hpcc":
            hpcc_input(folder, ranks)
        runner.make_busy(options.busy if number % 2 else 0)
        try:
            code, text, was_exact, took = runner.run(machine, ranks, words, folder)
        finally:
            runner.end_busy()
        if name == "hpcc" and code == 0:
            with open(os.path.join(folder, "hpccoutf.txt"), encoding="utf-8") as result:
                verified = "Success=1" in result.read() and verified
        codes.append("stopped" if code is None else str(code))
        prints.append(hashlib.sha256("\n".join(sorted(text.split("\n"))).encode()).hexdigest())
        exact.append(was_exact)
        seconds.append(took)
        with open(os.path.join(folder, f"output.{number}"), "w", encoding="utf-8") as kept:
            kept.write(text)
    ended = codes.count("0")
    all_ended, equal, all_exact = ended == options.runs and verified, len(set(prints)) == 1, all(exact)
    others = sorted({code for code in codes if code != "0"})
    why = f" ({', '.join(code if code == 'stopped' else 'code ' + code for code in others)})" if others else ""
    print(f"{'ok     ' if all_ended and equal and all_exact else 'FAILED '} {machine} {ranks:3} {name:20} "
          f"ended {ended}/{options.runs}{why}{'' if verified else ', not verified'}, "
          f"{'equal' if equal else 'DIFFERS'}, exact {exact.count(True)}/{options.runs}, "
          f"{' '.join(f'{s:.1f}' for s in seconds)} s", flush=True)
    if not (all_ended and equal and all_exact):
        with open(os.path.join(folder, "errors"), encoding="utf-8", errors="replace") as file:
            last = [line.strip() for line in file if line.strip()][-1:]
        print(f"        {folder}: {last[0] if last else 'no errors printed'}", flush=True)
    return all_ended, equal, all_exact


def numbers(text):
    values = [int(word) for word in text.split(",")]
    if not values or min(values) < 2:
        raise argparse.ArgumentTypeError(f"{text} is not accepted: expected numbers of ranks, 2 or more, as 2,4,8")
    return values


def positive(text):
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not accepted: expected 1 or more")
    return int(text)


def refuse(text):
    print(f"machine_check.py: {text}", file=sys.stderr)
    sys.exit(2)


def problem_without_orrery(name):
    """What is wrong with a machine's name, by the tree's machine files; none: an empty text. What a file says is not
    looked at, but for the layers of one that comes with Orrery."""
    file = re.sub(r"(\.toml)\+[^/]*$", r"\1", name)
    if "/" in file or file.endswith(".toml"):
        return "" if os.path.isfile(file) else f"{file}: cannot be read: expected a machine file of at most 1 MiB"
    machines = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "machines")
    known = sorted(file.removesuffix(".toml") for file in os.listdir(machines) if file.endswith(".toml"))
    name, *layers = name.split("+")
    if name not in known:
        return f"machine '{name}' is not known: expected {', '.join(known)} or a path that ends in .toml"
    with open(os.path.join(machines, f"{name}.toml"), encoding="utf-8") as file:
        there = re.findall(r"(?m)^\[layer\.([^].]+)\]", file.read())
    for layer in layers:
        if layer not in there:
            what = "expected " + ", ".join(there) if there else "the machine has none"
            return f"{name}.toml: layer '{layer}' is not known: {what}"
    return ""


def accepted_machines(orrery, text):
    """The names in `text`, machine files by their whole path: a program runs in a folder of its own. Ends this
    program where `orrery` does not know one; by the tree's machine files where `orrery` is empty."""
    names = []
    for name in text.split(","):
        file, plus, layers = name.partition("+")
        if os.path.isfile(file):
            name = os.path.abspath(file) + plus + layers
        if not orrery:
            problem = problem_without_orrery(name)
            if problem:
                refuse(f"--machine {text}: {problem}")
            continue
        try:
            known = subprocess.run([orrery, "explain", "--machine", name, "message", "0", "0", "8"],
                                   capture_output=True, text=True, errors="replace", check=False)
        except OSError as error:
            refuse(f"{orrery} cannot be run ({error.strerror}): expected the command orrery, in ORRERY_PREFIX/bin")
        if known.returncode != 0:
            refuse(f"--machine {text}: {known.stderr.strip().removeprefix('orrery: ')}")
        names.append(name)
    return names


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--machine", required=True, help="names, as aries,gemini")
    arguments.add_argument("--ranks", type=numbers, default=[2, 4], help="numbers of ranks (2,4)")
    arguments.add_argument("--runs", type=positive, default=2, help="of each program (2)")
    arguments.add_argument("--time-out", type=positive, default=300, help="seconds of real time for a run (300)")
    arguments.add_argument("--busy", type=int, default=0, help="busy loops beside every second run (0)")
    arguments.add_argument("--longest", type=positive, default=65536, help="bytes of OSU's collectives (65536)")
    arguments.add_argument("--osu", help="folder of OSU's programs")
    arguments.add_argument("--only", type=lambda text: text.split(","), help="these programs alone")
    # What the port knows.
    arguments.add_argument("--orrery", default="orrery", help=argparse.SUPPRESS)
    arguments.add_argument("--via", default="mpirun", help=argparse.SUPPRESS)
    arguments.add_argument("--work", default=".", help=argparse.SUPPRESS)
    arguments.add_argument("--hpcc", help=argparse.SUPPRESS)
    arguments.add_argument("--only-options", action="store_true", help=argparse.SUPPRESS)  # refuse them, run nothing
    options = arguments.parse_args()
    if options.osu and not os.path.isdir(options.osu):
        arguments.error(f"--osu {options.osu} is not a folder: expected the one of OSU's programs")
    if os.path.dirname(options.orrery):
        options.orrery = os.path.abspath(options.orrery)
    options.machine = accepted_machines(options.orrery, options.machine)
    if options.only_options:
        return 0
    options.work = os.path.abspath(options.work)
    options.osu = os.path.abspath(options.osu) if options.osu else ""
    found = programs(options)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    runner = Runner(options)
    passed = failed = 0
    table = []
    for machine in options.machine:
        for ranks in options.ranks:
            results = [check(runner, machine, ranks, name, file) for name, file in found
                       if ranks == 2 or not FOR_TWO.match(name)]
            good = sum(all(result) for result in results)
            passed, failed = passed + good, failed + len(results) - good
            table.append((machine, ranks, len(results), *(sum(r[i] for r in results) for i in range(3)), good))
    print("\nmachine  ranks  programs  ended  equal  exact  all three")
    for machine, ranks, *counts in table:
        print(f"{machine:8} {ranks:5} {counts[0]:9} {counts[1]:6} {counts[2]:6} {counts[3]:6} {counts[4]:10}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
