# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""Documents: what they point to exists, their lines end by column 120, and their sentences have a subject of the code.

usage: check_documents.py <root>

Links are followed from the document's own folder. A name in backticks that begins with a folder of the tree is a path,
and so is the path in a comment of a header or a source. In it * and {a,b} are those of a shell.
"""
import glob
import itertools
import os
import re
import sys

import tree

LONGEST = 120
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
ANCHOR = re.compile(r"\]\(([^)#:\s]*)#([^)\s]+)\)")
FOLDERS = "emu|lib|include|tests|tools|bench|examples|ports|machines|docs|cmake"
PATH = re.compile(r"`((?:%s)/[\w./*{},+-]+?)/?`" % FOLDERS)
IN_COMMENT = re.compile(r"//.*?\b((?:emu|lib|docs|bench|tools|tests|base|nic|job|memory|clock|wire|model)/[\w/]+\.(?:hpp|cpp|md|h))")
INSTALLED = ("lib/orrery", "lib/pkgconfig", "lib/cmake", "lib/x86_64-linux-gnu", "include/orrery/<api>")
COMMAND = re.compile(r"^    ((?:tools|\.ci|bench|ports)/[\w./-]+)", re.M)
FORBIDDEN = re.compile(r"\b(?:[Ww]ho|[Ww]hoever|[Nn]obody|[Ss]omebody|[Ss]omeone|[Aa]nybody|[Ee]verybody|[Ww]hom)\b")


def expand(path):
    """lib/{a,b} is two paths."""
    parts = re.split(r"\{([^}]*)\}", path)
    return ["".join(p) for p in itertools.product(*[x.split(",") if n % 2 else [x] for n, x in enumerate(parts)])]


def is_there(root, path):
    """A file or folder, or a unit by its name without suffix; or a place below an installation's prefix."""
    return path.startswith(INSTALLED) or all(
        any(glob.glob(f"{root}/{one}{suffix}") for suffix in ("", ".hpp", ".cpp", ".sh")) for one in expand(path))


def anchors_of(text):
    """What headings are called in a link."""
    names = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"`|\[|\]\([^)]*\)", "", name)).strip().lower().replace(" ", "-") for name in names}


def document_problems(root, path):
    text = "\n".join(tree.lines(root, path))
    folder = os.path.dirname(path)
    problems = []
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > LONGEST:
            problems.append(f"{path}:{number}: {len(line)} columns; a line has at most {LONGEST}")
        word = FORBIDDEN.search(re.sub(r"`[^`]*`", "", line))
        if word:
            problems.append(f"{path}:{number}: \"{word.group(0)}\": say which part of the code does it")
    targets = [(target, os.path.normpath(os.path.join(folder, target))) for target in LINK.findall(text)]
    targets += [(name, name) for name in PATH.findall(text)]
    targets += [(name, name) for name in COMMAND.findall(text)]
    problems += [f"{path}: points to {name}, which is not there" for name, target in targets if not is_there(root, target)]
    for target, anchor in ANCHOR.findall(text):
        other = os.path.normpath(os.path.join(folder, target)) if target else path
        if other.endswith(".md") and os.path.exists(f"{root}/{other}"):
            if anchor not in anchors_of("\n".join(tree.lines(root, other))):
                problems.append(f"{path}: {other} has no heading #{anchor}")
    return problems, len(targets)


def comment_problems(root, path):
    found = []
    for number, line in enumerate(tree.lines(root, path), 1):
        for name in IN_COMMENT.findall(line):
            if not any(os.path.exists(f"{root}/{base}{name}") for base in ("", "emu/", "emu/nic/", os.path.dirname(path) + "/")) \
                    and not glob.glob(f"{root}/emu/nic/*/{os.path.basename(name)}"):
                found.append(f"{path}:{number}: points to {name}, which is not there")
    return found


def problems_of(root):
    problems, seen = [], 0
    for path in tree.files(root):
        if path.endswith(".md"):
            found, targets = document_problems(root, path)
            problems += found
            seen += 1 + targets
        elif path.endswith(tree.SOURCE_SUFFIXES):
            problems += comment_problems(root, path)
    return problems, seen


if __name__ == "__main__":
    found, seen = problems_of(sys.argv[1])
    tree.finish("documents", found, seen)
