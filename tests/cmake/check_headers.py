# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""Every header compiles alone: .hpp as C++20; .h as C11 and as C++17, which is what clients have.

usage: check_headers.py <root> <folder of generated headers> <C compiler>,<C++ compiler> ... [-- flags...]
"""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

import tree

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]


def jobs_of(root, generated, compilers, flags):
    """One (header, command) for each header, language and compiler."""
    apis = [f"-I{root}/include/{name}" for name in sorted(os.listdir(f"{root}/include"))
            if os.path.isdir(f"{root}/include/{name}")] if os.path.isdir(f"{root}/include") else []
    where = [f"-I{root}", f"-I{root}/include", f"-I{generated}", *apis]
    for path in tree.sources(root):
        for cc, cxx in compilers:
            if path.endswith(".hpp"):
                # What emu and lib are compiled with. clang knows -mcx16 as gcc does.
                yield path, [cxx, "-x", "c++", "-std=c++20", "-D_GNU_SOURCE", "-Wno-missing-field-initializers",
                             *WARNINGS, *where, *flags]
            elif path.endswith(".h"):
                yield path, [cc, "-x", "c", "-std=c11", *WARNINGS, *where]
                yield path, [cxx, "-x", "c++", "-std=c++17", *WARNINGS, *where]


def compile_alone(root, path, command):
    # Through a file that includes it, twice: a header given as the main file is not seen as one.
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as unit:
        unit.write(f'#include "{path}"\n#include "{path}"\nextern int orrery_unit_is_not_empty;\n')
        unit.flush()
        run = subprocess.run([*command, unit.name], cwd=root, capture_output=True, text=True)
    if run.returncode == 0:
        return None
    first = next((line for line in run.stderr.splitlines() if "error" in line), run.stderr.strip()[:300])
    return f"{path}: {command[0]} {command[3]}: {first}"


def problems_of(root, generated, compilers, flags):
    jobs = list(jobs_of(root, generated, compilers, flags))
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = list(pool.map(lambda job: compile_alone(root, *job), jobs))
    return [problem for problem in found if problem], len(jobs)


if __name__ == "__main__":
    arguments, flags = sys.argv[1:], []
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, flags = arguments[:cut], arguments[cut + 1:]
    pairs = [tuple(pair.split(",")) for pair in arguments[2:]]
    found, seen = problems_of(arguments[0], arguments[1], pairs, flags)
    tree.finish("headers alone", found, seen)
