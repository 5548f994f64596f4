# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""Every header compiles alone: .hpp as C++20; .h as C11 and as C++17, which is what clients have.

usage: check_headers.py <root> <build folder> <C compiler>,<C++ compiler> ... [-- flags...]

The first pair compiles every header; the others those of include/, which strangers compile with what they have.

A .hpp that the build itself compiles first of all, as the first line of the source of its name, is known to
compile alone: what is in <build folder>/compile_commands.json that way is not compiled again.

Objects go to <build folder>/headers, under names that stay the same, so that ccache spares what has not changed.
"""
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys

import tree

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O0", "-c"]
LAUNCHER = [shutil.which("ccache")] if shutil.which("ccache") else []


def first_in_its_source(root, build):
    """Headers of which the build has seen that they compile alone."""
    try:
        with open(f"{build}/compile_commands.json", encoding="utf-8") as commands:
            sources = {os.path.relpath(entry["file"], root) for entry in json.load(commands)}
    except FileNotFoundError:
        return set()
    found = set()
    for source in sources:
        header = source.removesuffix(".cpp") + ".hpp"
        if not source.endswith(".cpp") or not os.path.exists(f"{root}/{header}"):
            continue
        with open(f"{root}/{source}", encoding="utf-8") as text:
            first = next((line for line in text if line.startswith("#include")), "").strip()
        with open(f"{root}/{header}", encoding="utf-8") as text:
            once = "#pragma once" in text.read().splitlines()
        if once and first == f'#include "{header}"':
            found.add(header)
    return found


def jobs_of(root, build, compilers, flags):
    """One (header, what it is compiled as, command) for each header, language and compiler."""
    apis = [f"-I{root}/include/{name}" for name in sorted(os.listdir(f"{root}/include"))
            if os.path.isdir(f"{root}/include/{name}")] if os.path.isdir(f"{root}/include") else []
    where = [f"-I{root}", f"-I{root}/include", f"-I{build}/generated", *apis]
    known = first_in_its_source(root, build)
    for path in tree.sources(root):
        if path in known:
            continue
        for cc, cxx in compilers if path.startswith("include/") else compilers[:1]:
            if path.endswith(".hpp"):
                # What emu and lib are compiled with. clang knows -mcx16 as gcc does.
                yield path, f"{cxx} c++20", [cxx, "-x", "c++", "-std=c++20", "-D_GNU_SOURCE",
                                             "-Wno-missing-field-initializers", *WARNINGS, *where, *flags]
            elif path.endswith(".h"):
                yield path, f"{cc} c11", [cc, "-x", "c", "-std=c11", *WARNINGS, *where]
                yield path, f"{cxx} c++17", [cxx, "-x", "c++", "-std=c++17", *WARNINGS, *where]


def compile_alone(root, build, path, language, command):
    # Through a file that includes it, twice: a header given as the main file is not seen as one.
    unit = f"{build}/headers/{language.replace('/', '_').replace(' ', '_')}/{path}.unit"
    text = f'#include "{path}"\n#include "{path}"\nextern int orrery_unit_is_not_empty;\n'
    os.makedirs(os.path.dirname(unit), exist_ok=True)
    if not os.path.exists(unit):
        with open(unit, "w", encoding="utf-8") as out:
            out.write(text)
    # As cmake/options.cmake runs ccache: a second checkout finds what the first one compiled.
    run = subprocess.run([*LAUNCHER, *command, unit, "-o", f"{unit}.o"], cwd=root, capture_output=True, text=True,
                         env={**os.environ, "CCACHE_BASEDIR": root})
    if run.returncode == 0:
        return None
    first = next((line for line in run.stderr.splitlines() if "error" in line), run.stderr.strip()[:300])
    return f"{path}: {language}: {first}"


def problems_of(root, build, compilers, flags):
    jobs = list(jobs_of(root, build, compilers, flags))
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = list(pool.map(lambda job: compile_alone(root, build, *job), jobs))
    return [problem for problem in found if problem], len(jobs)


if __name__ == "__main__":
    arguments, flags = sys.argv[1:], []
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, flags = arguments[:cut], arguments[cut + 1:]
    pairs = [tuple(pair.split(",")) for pair in arguments[2:]]
    found, seen = problems_of(arguments[0], arguments[1], pairs, flags)
    tree.finish("headers alone", found, seen)
