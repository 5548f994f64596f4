# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""What an operation under virtual time goes through stands together in few pages (emu/base/timed_path.hpp).

usage: check_timed_path.py <root> <library> <pages> <nm>
"""
import re
import subprocess
import sys

import tree

MARK = re.compile(r"ORRERY_TIMED_(?:PATH|INLINE)\b[^;{]*?((?:\w+::)?~?\w+)\(")
NAMESPACE = re.compile(r"^namespace ([\w:]+) \{", re.M)
# Without these there is no path at all: if one is renamed, so is its line here.
KEY = ("Initiator::post_checked", "Router::route", "TimedOps::apply_now", "VirtualClock::run_until", "model::quote", "nic::execute",
       "nic::push_event", "nic::complete", "Turns::leave")
PAGE = 4096


def marked(root):
    """Names of the functions that a source marks: Class::name, or namespace::name of those that are free."""
    names = set()
    for path in tree.sources(root):
        if path.startswith(("emu/", "lib/")) and path != "emu/base/timed_path.hpp":
            text = "\n".join(tree.lines(root, path))
            spaces = [space.split("::")[-1] for space in NAMESPACE.findall(text)]
            for name in MARK.findall(text):
                names.update([name] if "::" in name else [f"{space}::{name}" for space in spaces])
    return names


def symbols(library, nm):
    """(name without arguments, address, size) of the library's functions."""
    listing = subprocess.run([nm, "-S", "-C", "--defined-only", library], check=True, capture_output=True, text=True)
    for line in listing.stdout.splitlines():
        found = re.match(r"([0-9a-f]+) ([0-9a-f]+) [tTwW] (.*)", line)
        if found:
            name = re.sub(r"\(anonymous namespace\)::", "", found.group(3)).split("(")[0]
            yield name, int(found.group(1), 16), int(found.group(2), 16)


def is_marked(name, names):
    """Whether a symbol is one of those: members by class and name, free functions by name in a namespace."""
    return "::".join(name.split("::")[-2:]) in names


def main(root, library, most, nm):
    names = marked(root)
    pages, seen = set(), set()
    for name, address, size in symbols(library, nm):
        if not is_marked(name, names):
            continue
        seen.add("::".join(name.split("::")[-2:]))
        pages.update(range(address // PAGE, (address + size - 1) // PAGE + 1))
    problems = [f"{library}: no function {name}, which is on the timed path; is it inline, or renamed?"
                for name in KEY if name not in seen]
    if len(pages) > most:
        problems.append(f"{library}: the timed path is spread over {len(pages)} pages; {most} are meant to do")
    print(f"{len(seen)} functions on {len(pages)} pages")
    tree.finish("timed path", problems, len(seen))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
