# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""Comments of headers: their sentences have a subject of the code (the producer, the peer, a caller).

usage: check_english.py <root>

Code is not read, nor what a comment has in backticks or in quotation marks.
"""
import re
import sys

import check_documents
import tree

MORE = re.compile(r"\b(?:[Aa]nyone|[Ee]veryone|[Ss]hort ways?|[Ll]ong way|[Ll]ooks? about)\b")
TOKEN = re.compile(r'//(?P<line>.*)|/\*(?P<block>.*?)(?P<end>\*/|$)|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'')
QUOTED = re.compile(r'`[^`]*`|"[^"]*"')


def comments_of(text):
    """(number, words) of each line of `text` that has words in a comment."""
    inside = False
    for number, line in enumerate(text, 1):
        words = []
        if inside:
            body, end, line = line.partition("*/")
            words.append(body)
            inside = not end
        if not inside:
            for token in TOKEN.finditer(line):
                if token.group("line") is not None:
                    words.append(token.group("line"))
                elif token.group("block") is not None:
                    words.append(token.group("block"))
                    inside = not token.group("end")
        if words:
            yield number, " ".join(words)


def problems_of(root):
    problems, seen = [], 0
    for path in tree.sources(root):
        if not path.endswith((".h", ".hpp")):
            continue
        seen += 1
        for number, words in comments_of(tree.lines(root, path)):
            plain = QUOTED.sub("", words)
            word = check_documents.FORBIDDEN.search(plain) or MORE.search(plain)
            if word:
                problems.append(f"{path}:{number}: \"{word.group(0)}\": say which part of the code does it")
    return problems, seen


if __name__ == "__main__":
    found, seen = problems_of(sys.argv[1])
    tree.finish("comments of headers", found, seen)
