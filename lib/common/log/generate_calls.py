# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""Writes calls.cpp: one function for each call that an interface's headers declare, which hands it on and logs it.

usage: generate_calls.py <calls.json> <calls.cpp> <header> ...

calls.json says what the headers do not:
  api       the interface's folder below lib/
  calls     a regular expression for the names of its calls
  answers   one for the types of pointers through which a call answers; what else is behind a pointer is what the client
            says
  asked     parameters ("call.parameter") that the expression takes for answers, and the client gives
  answered  parameters that it does not take for answers, and are
  lists     {parameter: the parameter that says how many it points to}
  sleepers  a regular expression for calls that may sleep, some until a peer does something: these are what hangs
  events    types of answers that the log shows by event(), with what was there before the call
"""
import json
import re
import sys
from pathlib import Path


def declarations(headers, calls):
    """[(result, name, parameters)] of the calls."""
    pattern = re.compile(rf"^(\w[\w ]*?[ *]+)({calls})\(([^;{{]*)\);", re.M)
    for path in headers:
        text = re.sub(r"/\*.*?\*/", "", Path(path).read_text(), flags=re.S)
        for result, name, parameters in pattern.findall(text):
            yield result.strip(), name, split(" ".join(parameters.split()))


def split(parameters):
    """[(type, name, declaration)] of a parameter list."""
    if parameters in ("", "void"):
        return []
    pieces, depth, begin = [], 0, 0
    for i, letter in enumerate(parameters + ","):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            pieces.append(parameters[begin:i].strip())
            begin = i + 1
    found = []
    for piece in pieces:
        function = re.search(r"\(\*(\w+)\)", piece)
        name = function.group(1) if function else re.search(r"(\w+)$", piece).group(1)
        found.append(("function" if function else piece[:-len(name)].strip(), name, piece))
    return found


def answers_of(rules, name, parameters):
    for kind, parameter, _ in parameters:
        full = f"{name}.{parameter}"
        if parameter in rules["lists"] or full in rules["asked"]:
            continue
        if re.fullmatch(rules["answers"], kind) or full in rules["answered"]:
            yield kind, parameter


def body(rules, result, name, parameters):
    answers = list(answers_of(rules, name, parameters))
    answered = {parameter for _, parameter in answers}
    lines = [f'  Call call("{name}");']
    for _, parameter, _ in parameters:
        if parameter in rules["lists"]:
            lines.append(f'  call.list("{parameter}", {parameter}, {rules["lists"][parameter]});')
        elif parameter not in answered:
            lines.append(f'  call.in("{parameter}", {parameter});')
    if re.search(rules["sleepers"], name):
        lines.append("  call.about_to_wait();")
    lines += [f"  call.before({parameter});" for kind, parameter in answers if kind in rules["events"]]
    arguments = ", ".join(parameter for _, parameter, _ in parameters)
    if result == "void":
        lines += [f"  next({arguments});", "  call.returned();"]
    else:
        lines += [f"  const auto said = next({arguments});", "  call.returned(said);"]
    for kind, parameter in answers:
        show = "event" if kind in rules["events"] else "out"
        lines.append(f'  call.{show}("{parameter}", {parameter});')
    lines.append("  call.end();")
    if result != "void":
        lines.append("  return said;")
    return lines


def main():
    described, target, *headers = sys.argv[1:]
    rules = {"asked": [], "answered": [], "lists": {}, "events": [], **json.loads(Path(described).read_text())}
    calls = list(declarations(headers, rules["calls"]))
    if not calls:
        sys.exit(f"generate_calls.py: {', '.join(headers)} declare no call")
    known = {f"{name}.{parameter}" for _, name, parameters in calls for _, parameter, _ in parameters}
    for full in rules["asked"] + rules["answered"]:
        if full not in known:
            sys.exit(f"generate_calls.py: {described}: no call has {full}")
    api = rules["api"]
    out = [f"// Written by lib/common/log/generate_calls.py from the headers of {api}.",
           f'#include "lib/{api}/log/call_log.hpp"', "", f"using orrery::{api}::log::Call;",
           "using orrery::common::log::Next;", "", 'extern "C" {']
    for result, name, parameters in calls:
        declared = ", ".join(declaration for _, _, declaration in parameters)
        out += ["", f"{result} {name}({declared}) {{", f'  static constinit Next<decltype({name})> next("{name}");',
                *body(rules, result, name, parameters), "}"]
    out += ["", '}  // extern "C"', ""]
    Path(target).write_text("\n".join(out))


main()
