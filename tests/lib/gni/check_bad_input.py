# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""Every call that the library exports is called by some test with something that it has to refuse: a comparison of
its result with an error code.

usage: check_bad_input.py <root>
"""
import re
import sys
from pathlib import Path

COMPARED = re.compile(r"(?:EXPECT|ASSERT)_EQ\(\s*(GNI_\w+)\(")
ERROR = re.compile(r"GNI_RC_(?!SUCCESS\b|NOT_DONE\b)\w+")


def refused(text):
    """The calls that a test's text compares with an error code."""
    found = set()
    for match in COMPARED.finditer(text):
        if ERROR.search(text[match.start():text.index(";", match.start())]):
            found.add(match.group(1))
    return found


def main(root):
    headers = "".join(path.read_text() for path in sorted((root / "include/gni/detail").glob("*.h")))
    declared = set(re.findall(r"^gni_return_t (GNI_\w+)\(", headers, re.M))
    exported = declared & set(re.findall(r"GNI_\w+", (root / "lib/gni/gni.map").read_text()))
    tests = [refused(path.read_text()) for path in sorted((root / "tests/lib/gni").glob("*.cpp"))]
    missing = sorted(exported - set().union(*tests))
    for name in missing:
        print(f"{name}: no test gives it anything that it has to refuse")
    print(f"{len(exported) - len(missing)} of {len(exported)} exported calls, {len(declared)} declared")
    return 1 if missing or len(declared) != 113 else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
