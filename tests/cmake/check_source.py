# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""Rules of style that no compiler knows: licence lines, lengths, include order, words that do not belong here.

usage: check_source.py <root>
"""
import re
import sys

import tree

LONGEST_LINE = 110
LONGEST_FILE = 500
NEEDS_LICENCE = tree.SOURCE_SUFFIXES + (".py", ".sh", ".cmake", ".toml", ".in", "CMakeLists.txt", ".ci/run")
NEEDS_COPYRIGHT = tree.SOURCE_SUFFIXES + (".py", ".sh")
# One letter of each is in brackets so that this file does not trip over itself.
WORDS = [
    (re.compile(r"(?:^|[^\w.])/(?:[w]ork|[r]oot|[h]ome|[f]arm)/\w"), "a path of one machine"),
    (re.compile(r"\b(?:[T]ODO|[F]IXME|[X]XX)\b|\b[f]or now\b"), "something left for later"),
    (re.compile(r"\b[i]ssue #?\d", re.I), "the number of an issue"),
    (re.compile(r"\b(?:[A]I|[L]LM|[C]laude|[a]ssistant|[C]hatGPT)\b"), "how the work was organised"),
    (re.compile(r"\b[h]elper (?:of|session)\b|\bthis [s]ession\b", re.I), "how the work was organised"),
]
CPP_HEADERS = re.compile(r"^[a-z_]+$")
OTHERS = ("fmt/", "gtest/", "gmock/", "benchmark/", "boost/", "toml++/", "nlohmann/", "CLI/")
OWN, OURS, OTHER, STD, SYSTEM = "own header", "our headers", "other libraries", "C++ std", "system"


def kind_of(quote, target, path, first):
    """Which group of style.md's include order a header is in."""
    if target.startswith(OTHERS):
        return OTHER
    if quote == '"':
        # A test's subject counts as any other header of ours.
        own = path.endswith(".cpp") and target.rsplit(".", 1)[0] == path.rsplit(".", 1)[0]
        return OWN if first and own else OURS
    return STD if CPP_HEADERS.match(target) else SYSTEM


def include_order(path, text):
    """Own header, ours, then C++ std, then system; other libraries before or after std; one kind a block."""
    problems, groups = [], []
    depth, previous = 0, None
    for number, line in enumerate(text, 1):
        directive = re.match(r"\s*#\s*(if|ifdef|ifndef|endif)\b", line)
        if directive:
            depth += -1 if directive.group(1) == "endif" else 1
        include = tree.INCLUDE.match(line)
        if not include or depth > 0:
            continue
        kind = kind_of(include.group(1), include.group(2), path, not groups)
        if previous is not None and groups[-1] != kind and previous == number - 1:
            problems.append(f"{path}:{number}: no blank line between {groups[-1]} and {kind}")
        if not groups or groups[-1] != kind:
            if kind in groups:
                problems.append(f"{path}:{number}: {kind} stand in two places")
            groups.append(kind)
        previous = number
    for order in ((OWN, OURS, STD, SYSTEM), (OWN, OURS, OTHER)):
        seen = [group for group in groups if group in order]
        if seen != sorted(seen, key=order.index):
            problems.append(f"{path}: include order is {', '.join(groups)}; style is {', '.join(order)}")
    return problems


def problems_of(root):
    paths = tree.files(root)
    problems = []
    for path in paths:
        text = tree.lines(root, path)
        head = "\n".join(text[:4])
        if text and path.endswith(NEEDS_LICENCE) and not path.startswith("cmake/pkgconfig/"):
            if "SPDX-License-Identifier: BSD-3-Clause" not in head:
                problems.append(f"{path}:1: no SPDX-License-Identifier line")
            if path.endswith(NEEDS_COPYRIGHT) and "Copyright" not in head:
                problems.append(f"{path}:1: no copyright line")
        is_source = path.endswith(tree.SOURCE_SUFFIXES)
        if is_source and not path.startswith("include/") and len(text) > LONGEST_FILE:
            problems.append(f"{path}: {len(text)} lines; a file has at most {LONGEST_FILE}")
        for number, line in enumerate(text, 1):
            if is_source and len(line) > LONGEST_LINE:
                problems.append(f"{path}:{number}: {len(line)} columns; a line has at most {LONGEST_LINE}")
            for pattern, what in WORDS:
                if pattern.search(line):
                    problems.append(f"{path}:{number}: names {what}: {line.strip()}")
        if is_source:
            if path.endswith((".h", ".hpp")) and not any(line.startswith("#pragma once") for line in text) \
                    and not path.startswith("include/"):
                problems.append(f"{path}: no #pragma once")
            if path.endswith((".hpp", ".cpp")):
                problems += include_order(path, text)
            if path.endswith(".hpp"):
                problems += [f"{path}:{number}: using namespace in a header"
                             for number, line in enumerate(text, 1) if re.match(r"\s*using namespace\b", line)]
    return problems, len(paths)


if __name__ == "__main__":
    found, seen = problems_of(sys.argv[1])
    tree.finish("source rules", found, seen)
