#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""Every call that <dmapp.h> declares is given bad arguments by one of the tests.

usage: check_refusals.py HEADER_FOLDER TEST...
"""
import pathlib
import re
import sys

folder, *tests = map(pathlib.Path, sys.argv[1:])
text = "\n".join(re.sub(r"/\*.*?\*/", "", p.read_text(), flags=re.S) for p in sorted(folder.rglob("*.h")))
declared = set(re.findall(r"^[\w\s*]*?\b(dmapp_\w+)\(", text, flags=re.M))
tried = set()
for test in tests:
    source = test.read_text()
    tried |= set(re.findall(r"\b(dmapp_\w+)\(", source))
    for name in re.findall(r"\bORRERY_THREE\((dmapp_\w+)", source):  # a family
        tried |= {name, name + "_nb", name + "_nbi"}
missing = sorted(declared - tried)
print(f"{len(declared)} calls are declared, {len(missing)} of them are given no bad argument:", *missing)
sys.exit(1 if missing or len(declared) < 114 else 0)
