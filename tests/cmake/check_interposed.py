# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""Sources of emu/ that define functions of the C library compile with the second compiler too: it compares such a
definition with the system's declaration more strictly than the first one does.

usage: check_interposed.py <root> <build folder> <C++ compiler> [flags...]
"""
import concurrent.futures
import os
import subprocess
import sys

import tree

FLAGS = ["-std=c++20", "-D_GNU_SOURCE", "-DFMT_SHARED", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra",
         "-Wno-missing-field-initializers", "-Werror", "-fsyntax-only"]


def interposes(root, path):
    return path.startswith("emu/") and path.endswith(".cpp") and any(
        line.startswith('extern "C"') for line in tree.lines(root, path))


def complaint(root, build, compiler, flags, path):
    run = subprocess.run([compiler, *FLAGS, f"-I{root}", f"-I{root}/include", f"-I{build}/generated", *flags, path],
                         cwd=root, capture_output=True, text=True)
    if run.returncode == 0:
        return None
    return next((line for line in run.stderr.splitlines() if "error" in line), f"{path}: {run.stderr.strip()[:300]}")


def problems_of(root, build, compiler, flags):
    paths = [path for path in tree.sources(root) if interposes(root, path)]
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = list(pool.map(lambda path: complaint(root, build, compiler, flags, path), paths))
    return [problem for problem in found if problem], len(paths)


if __name__ == "__main__":
    found, seen = problems_of(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
    tree.finish("functions of the C library", found, seen)
