# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""The "Usage:" lines in comments of headers compile.

usage: check_usage.py <root> <build folder> <C++ compiler and its flags...>

The usage of a class or function is what follows "Usage:" up to the end of the comment: statements, in which an
ellipsis between two of them stands for what a caller does there. It becomes the body of a function in the namespace
of its place. tests/usage/parameters.txt has what the statements find declared, a line for a header:

    emu/job/job.hpp: DomainId domain, std::uint32_t instance

A header that is not named there needs nothing; a line for a header without usage is a problem.
"""
import os
import re
import subprocess
import sys

import tree

USAGE = re.compile(r"//.*\bUsage[^:]{0,40}:\s*(.*)")
PARAMETERS = "tests/usage/parameters.txt"
STAND_INS = "tests/usage/stand_ins.hpp"
NAMESPACE = re.compile(r"^namespace ([\w:]+) \{(?!.*\})")


def usages_of(lines):
    """(number, namespace, statements) of each usage in the lines of a header."""
    spaces, number = [], 0
    while number < len(lines):
        line = lines[number]
        number += 1
        named = NAMESPACE.match(line)
        if named:
            spaces.append(named.group(1))
        elif line.startswith("}  // namespace"):
            spaces.pop()
        found = USAGE.search(line)
        if not found or found.group(1).startswith("see "):
            continue
        first, said = number, [found.group(1)]
        while number < len(lines) and lines[number].lstrip().startswith("//"):
            said.append(lines[number].lstrip().lstrip("/").strip())
            number += 1
        if not spaces:  # a comment above the namespace that it is about
            spaces_after = (NAMESPACE.match(later) for later in lines[number:])
            space = next(later.group(1) for later in spaces_after if later)
        else:
            space = "::".join(spaces)
        text = re.sub(r"(?:^|\s)\.\.\.(?=\s|$)", "", " ".join(said)).strip()
        yield first, space, text if text.endswith((";", "}")) else text + ";"


def parameters_of(path):
    rows = {}
    with open(path, encoding="utf-8") as text:
        for line in text:
            if line.strip() and not line.startswith("#"):
                header, _, parameters = line.partition(":")
                rows[header.strip()] = parameters.strip()
    return rows


def unit_of(root, rows):
    """A source with a function for each usage, the number of these, and the rows of headers that have none."""
    rows = dict(rows)
    includes, functions = [], []
    for path in tree.sources(root):
        if not path.endswith(".hpp") or not path.startswith(("emu/", "lib/")):
            continue
        usages = list(usages_of(tree.lines(root, path)))
        parameters = rows.pop(path, "") if usages else ""
        if usages:
            includes.append(f'#include "{path}"')
        for number, space, text in usages:
            functions.append(f"namespace {space} {{\nauto usage_{len(functions)}({parameters}) {{\n"
                             f'#line {number} "{path}"\n  {text}\n}}\n}}  // namespace {space}')
    source = "\n".join([*includes, f'#include "{STAND_INS}"', "", *functions]) + "\n"
    return source, len(functions), sorted(rows)


def problems_of(root, build, command):
    source, seen, left = unit_of(root, parameters_of(f"{root}/{PARAMETERS}"))
    problems = [f"{PARAMETERS}: {header} has no usage" for header in left]
    os.makedirs(build, exist_ok=True)
    unit = f"{build}/usage.cpp"
    with open(unit, "w", encoding="utf-8") as out:
        out.write(source)
    run = subprocess.run([*command, "-std=c++20", "-D_GNU_SOURCE", "-fsyntax-only", "-w", f"-I{root}",
                          *(f"-I{root}/include/{api}" for api in ("", "gni", "dmapp")), unit],
                         cwd=root, capture_output=True, text=True)
    found = [line for line in run.stderr.splitlines() if ": error:" in line or "fatal error" in line]
    return problems + (found or [run.stderr] if run.returncode else []), seen


if __name__ == "__main__":
    found, seen = problems_of(sys.argv[1], sys.argv[2], sys.argv[3:])
    tree.finish("usage lines", found, seen)
