# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""Every header compiles alone: .hpp as C++20; .h as C11 and as C++17, which is what clients have.

usage: check_headers.py <root> <build folder> <C compiler>,<C++ compiler> ... [-- flags...]

The first pair compiles every header; the others those of include/, which strangers compile with what they have.

The standard headers that cost most to read are read once for all the .hpp that have them: a .hpp that comes to
one of them anyway, by its own includes or by those of a header of ours that it includes, is compiled with that one
precompiled, which adds nothing that it would not have alone.

Objects go to <build folder>/headers, under names that stay the same, so that ccache spares what has not changed.
"""
import collections
import concurrent.futures
import os
import shutil
import subprocess
import sys

import tree

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O0", "-c"]
LAUNCHER = [shutil.which("ccache")] if shutil.which("ccache") else []
# Standard headers that take longer to read than most of ours.
DEAR = ("atomic", "functional", "memory", "string")
# So many headers have to share a set of them before that is worth a file.
WORTHWHILE = 4


def standard(root, path, known):
    """The standard headers that a header of ours comes to, directly or through others of ours."""
    if path not in known:
        known[path] = set()
        for line in tree.lines(root, path):
            include = tree.INCLUDE.match(line)
            if not include:
                continue
            kind, name = include.groups()
            if kind == "<" and name in DEAR:
                known[path].add(name)
            elif os.path.exists(f"{root}/{name}"):
                known[path] |= standard(root, name, known)
    return known[path]


def shared_sets(root, paths, known):
    """The sets of dear headers that enough of the .hpp come to."""
    counts = collections.Counter(frozenset(standard(root, path, known)) for path in paths if path.endswith(".hpp"))
    return [names for names, count in counts.items() if names and count >= WORTHWHILE]


def precompiled(root, build, wanted, sets, command, made):
    """What to add to the command of a .hpp that comes to the `wanted` so that it finds most of them precompiled."""
    names = max((one for one in sets if one <= wanted), key=len, default=None)
    if LAUNCHER or not names:
        return []
    header = f"{build}/headers/precompiled/{'_'.join(sorted(names))}.hpp"
    if header not in made:
        os.makedirs(os.path.dirname(header), exist_ok=True)
        with open(header, "w", encoding="utf-8") as out:
            out.write("".join(f"#include <{name}>\n" for name in sorted(names)))
        run = subprocess.run([*command, "-x", "c++-header", header, "-o", f"{header}.gch"], cwd=root)
        made[header] = ["-include", header] if run.returncode == 0 else []
    return made[header]


def jobs_of(root, build, compilers, flags):
    """One (header, what it is compiled as, command) for each header, language and compiler."""
    apis = [f"-I{root}/include/{name}" for name in sorted(os.listdir(f"{root}/include"))
            if os.path.isdir(f"{root}/include/{name}")] if os.path.isdir(f"{root}/include") else []
    where = [f"-I{root}", f"-I{root}/include", f"-I{build}/generated", *apis]
    paths = tree.sources(root)
    known, made = {}, {}
    sets = shared_sets(root, paths, known)
    for path in paths:
        for cc, cxx in compilers if path.startswith("include/") else compilers[:1]:
            if path.endswith(".hpp"):
                # What emu and lib are compiled with. clang knows -mcx16 as gcc does.
                command = [cxx, "-x", "c++", "-std=c++20", "-D_GNU_SOURCE", "-Wno-missing-field-initializers",
                           *WARNINGS, *where, *flags]
                yield path, f"{cxx} c++20", [*command, *precompiled(root, build, standard(root, path, known), sets, command, made)]
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
