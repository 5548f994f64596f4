# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""The table of calls in lib/gni/README.md names every name that the header declares, and says "yes" for
exactly those that lib/gni/gni.map exports. (That the library exports what the map says is another test.)

usage: check_call_table.py <root> [--write]   --write replaces the table's rows
"""
import re
import sys
from pathlib import Path

BEGIN, END = "<!-- calls: begin -->", "<!-- calls: end -->"


def declared(root):
    """Function and data names per header, in the order of gni_pub.h's includes."""
    public = (root / "include/gni/gni_pub.h").read_text()
    found = {}
    for part in re.findall(r'#include "detail/(\w+\.h)"', public):
        text = (root / "include/gni/detail" / part).read_text()
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        text = re.sub(r"^\s*#.*?(?<!\\)$", "", text, flags=re.M)
        names = re.findall(r"^(?:gni_return_t|uint64_t|unsigned|int|void|const char\*)\s+(\w+)\(", text, flags=re.M)
        names += re.findall(r"^extern const char\* (\w+)\[\];", text, flags=re.M)
        if names:
            found[part] = names
    return found


def exported(root):
    text = re.sub(r"#[^\n]*", "", (root / "lib/gni/gni.map").read_text())
    return set(re.findall(r"\b(GNI_\w+|gni_\w+);", text))


def rows(root):
    exports = exported(root)
    return [f"| `{name}` | {'yes' if name in exports else 'no'} | `{part}` |"
            for part, names in declared(root).items() for name in names]


def main():
    root = Path(sys.argv[1])
    readme = root / "lib/gni/README.md"
    text = readme.read_text()
    before, rest = text.split(BEGIN)
    table, after = rest.split(END)
    wanted = rows(root)
    everything = {name for names in declared(root).values() for name in names}
    problems = [f"gni.map exports {name}, which no header declares" for name in sorted(exported(root) - everything)]
    if len(wanted) < 113:
        problems.append(f"only {len(wanted)} declarations were found in the headers")
    if "--write" in sys.argv:
        head = "\n| name | exported | header |\n| --- | --- | --- |\n"
        readme.write_text(before + BEGIN + head + "\n".join(wanted) + "\n" + END + after)
    else:
        have = [line for line in table.splitlines() if line.startswith("| `")]
        problems += [f"README.md lacks: {row}" for row in wanted if row not in have]
        problems += [f"README.md has, and should not: {row}" for row in have if row not in wanted]
    for problem in problems:
        print(problem)
    print(f"calls of uGNI: {len(wanted)} checked, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
