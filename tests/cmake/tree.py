# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""What the checks of the tree share: which files there are, and how a check ends."""
import os
import re
import subprocess
import sys

SOURCE_SUFFIXES = (".h", ".hpp", ".c", ".cpp")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^">]+)[">]')


def files(root):
    """Paths below root, relative to it: what git tracks or would add; every file where there is no git."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True) if os.path.exists(f"{root}/.git") else None
    if listed and listed.returncode == 0:
        return sorted({p for p in listed.stdout.split("\0") if p and os.path.isfile(f"{root}/{p}")})
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f != "build" and not f.startswith(".git")]
        found += [os.path.relpath(f"{folder}/{name}", root) for name in names]
    return sorted(found)


def sources(root):
    return [path for path in files(root) if path.endswith(SOURCE_SUFFIXES)]


def lines(root, path):
    with open(f"{root}/{path}", encoding="utf-8", errors="replace") as text:
        return text.read().splitlines()


def finish(what, problems, seen):
    """Prints the problems and ends the program: 0 when something was seen and nothing is wrong with it."""
    for problem in problems:
        print(problem)
    if not seen:
        problems = [f"{what}: nothing to check"]
        print(problems[0])
    print(f"{what}: {seen} checked, {len(problems)} problems")
    sys.exit(1 if problems else 0)
