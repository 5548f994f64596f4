# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""The README says what is there: its table of uGNI calls is the map file's, and what it points to exists.

usage: check_readme.py <root> [<map file of libugni.so>]
"""
import itertools
import os
import re
import sys

import check_exports
import tree

CALLS = re.compile(r"<!-- ugni calls -->(.*?)<!-- end -->", re.S)
LINK = re.compile(r"\]\(([^)#:]+)\)")
COMMAND = re.compile(r"^    ((?:tools|\.ci|bench|build)/\S+)", re.M)


def expand(word):
    """GNI_Cq{Create,Destroy} is two names."""
    parts = re.split(r"\{([^}]*)\}", word)
    choices = [part.split(",") if index % 2 else [part] for index, part in enumerate(parts)]
    return {"".join(choice) for choice in itertools.product(*choices)}


def calls_of(text):
    table = CALLS.search(text)
    words = re.findall(r"GNI_[\w{},]*\w\}?", re.sub(r",\s+", ",", table.group(1)) if table else "")
    return set().union(*(expand(word.rstrip(",")) for word in words)) if words else set()


def problems_of(root, exported):
    with open(f"{root}/README.md", encoding="utf-8") as readme:
        text = readme.read()
    problems = []
    named = calls_of(text)
    if exported is not None:
        problems += [f"README.md's table lacks {name}, which libugni exports" for name in sorted(exported - named)]
        problems += [f"README.md's table has {name}, which libugni does not export" for name in sorted(named - exported)]
    targets = [target.strip() for target in LINK.findall(text)]
    targets += [command for command in COMMAND.findall(text) if not command.startswith("build/")]
    problems += [f"README.md points to {target}, which is not there" for target in targets
                 if not os.path.exists(f"{root}/{target}")]
    return problems, len(named) + len(targets)


if __name__ == "__main__":
    exported = None
    if len(sys.argv) > 2:
        with open(sys.argv[2], encoding="utf-8") as text:
            exported = {name for name in check_exports.patterns_of(text.read())[0] if name.startswith("GNI_")}
    found, seen = problems_of(sys.argv[1], exported)
    tree.finish("README", found, seen)
