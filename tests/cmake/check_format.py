# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""Every source is as clang-format would write it.

usage: check_format.py <root> <clang-format>
"""
import subprocess
import sys

import tree


def problems_of(root, clang_format):
    paths = tree.sources(root)
    problems = []
    for begin in range(0, len(paths), 40):
        run = subprocess.run([clang_format, "--dry-run", *paths[begin:begin + 40]], cwd=root, capture_output=True,
                             text=True)
        problems += [line for line in run.stderr.splitlines() if "warning:" in line or "error:" in line]
        if run.returncode != 0 and not run.stderr:
            problems.append(f"{clang_format} ended with {run.returncode}")
    return problems, len(paths)


if __name__ == "__main__":
    found, seen = problems_of(sys.argv[1], sys.argv[2])
    tree.finish("format", found, seen)
