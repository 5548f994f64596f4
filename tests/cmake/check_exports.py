# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""A shared library exports what its map file says, no more and no less, under its soname.

usage: check_exports.py <library> <map file> <soname>
"""
import fnmatch
import re
import subprocess
import sys

import tree

# Mangled names of other people's that ours must never interpose, whatever a map's wildcard says: functions,
# vtables, typeinfo and guards of std::, fmt:: and the like. A function of ours that takes a std:: type is ours.
FOREIGN = re.compile(r"^_Z(?:T[VISTC]|GV)?(?:N[KVrRO]*)?"
                     r"(?:S[tabsiod]|3fmt|5boost|4toml|8nlohmann|3CLI|7testing|9__gnu_cxx)")


def patterns_of(text):
    """The `global:` names of a version script, and its version nodes. What has no version stands in a comment of
    the script, `# unversioned: name name`: a script that has named versions cannot list it."""
    unversioned = [name for line in re.findall(r"#\s*unversioned:([^\n]*)", text) for name in line.split()]
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"#[^\n]*", "", text)
    patterns, nodes = unversioned, []
    for node, body in re.findall(r"(\w*)\s*\{(.*?)\}", text, flags=re.S):
        nodes.append(node)
        scope = "global"
        for word in re.findall(r"global\s*:|local\s*:|[^\s;:]+(?=\s*;)", body):
            if word.endswith(":"):
                scope = word.rstrip(" :")
            elif scope == "global":
                patterns.append(word)
    return patterns, nodes


def compare(symbols, patterns, nodes):
    """Problems of a list of exported symbols against a map."""
    problems = []
    for name in symbols:
        if name in nodes:
            continue
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            problems.append(f"exports {name}, which the map does not name")
        elif FOREIGN.match(name):
            problems.append(f"exports {name}, which is not ours")
    for pattern in patterns:
        if not any(character in pattern for character in "*?[") and pattern not in symbols:
            problems.append(f"does not export {pattern}, which the map names")
    return problems


def exported(library):
    run = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", library], capture_output=True, text=True,
                         check=True)
    return [line.split()[0].split("@")[0] for line in run.stdout.splitlines() if line.strip()]


def soname_of(library):
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    found = re.search(r"\(SONAME\).*\[(.*)\]", dynamic)
    return found.group(1) if found else None


if __name__ == "__main__":
    library, map_file, soname = sys.argv[1:4]
    with open(map_file, encoding="utf-8") as text:
        patterns, nodes = patterns_of(text.read())
    symbols = exported(library)
    problems = compare(symbols, patterns, nodes)
    if soname_of(library) != soname:
        problems.append(f"has soname {soname_of(library)}, not {soname}")
    tree.finish(f"exports of {soname}", [f"{soname} {problem}" for problem in problems], len(symbols))
