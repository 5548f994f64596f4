# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""Writes calls.cpp: one function for each call that the headers declare, which hands it on and logs it.

usage: generate_calls.py <folder of the headers> <calls.cpp>
"""
import re
import sys
from pathlib import Path

# Pointers through which a call answers, by what they point to. Anything else behind a pointer is what the client
# says.
ANSWERS = re.compile(r"^(?:u?int(?:8|16|32|64)?(?:_t)?|unsigned int|gni_\w+_handle_t|gni_mem_handle_t|gni_cq_entry_t|"
                     r"gni_post_state_t|gni_nic_device_t|gni_error_mask_t|void\*|gni_post_descriptor_t\*)\*$")
# And the exceptions: handles that the client gives.
ASKED = {("GNI_MemDeregister", "mem_hndl"), ("GNI_MemHndlQueryAttr", "mem_hndl"),
         ("GNI_RebuildMemHndl", "src_mem_hndl")}
LISTS = {"cqs": "num_cqs", "cq_hndls": "num_cqs", "child_eps": "num_child_eps"}
# Calls that may sleep, some until a peer does something: these are what hangs.
SLEEPERS = re.compile(r"Wait|VectorMonitor|CompChanGetEvent|MsgqInit|MsgqProgress|MsgqConnect|DqueueConnect|DqueuePut|"
                      r"CdmAttach|SuspendJob")


def declarations(folder):
    for path in sorted(Path(folder).glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        for name, parameters in re.findall(r"\bgni_return_t\s+(GNI_\w+)\(([^;]*)\);", text):
            yield name, split(" ".join(parameters.split()))


def split(parameters):
    """[(type, name, declaration)] of a parameter list."""
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


def body(name, parameters):
    answers = [(kind, parameter) for kind, parameter, _ in parameters
               if ANSWERS.match(kind) and (name, parameter) not in ASKED and parameter not in LISTS]
    answered = {parameter for _, parameter in answers}
    lines = [f'  Call call("{name}");']
    for _, parameter, _ in parameters:
        if parameter in LISTS:
            lines.append(f'  call.list("{parameter}", {parameter}, {LISTS[parameter]});')
        elif parameter not in answered:
            lines.append(f'  call.in("{parameter}", {parameter});')
    if SLEEPERS.search(name):
        lines.append("  call.about_to_wait();")
    lines += [f"  call.before({parameter});" for kind, parameter in answers if kind == "gni_cq_entry_t*"]
    arguments = ", ".join(parameter for _, parameter, _ in parameters)
    lines.append(f"  call.returned(next({arguments}));")
    for kind, parameter in answers:
        show = "event" if kind == "gni_cq_entry_t*" else "out"
        lines.append(f'  call.{show}("{parameter}", {parameter});')
    return lines


def main():
    folder, target = sys.argv[1:]
    calls = list(declarations(folder))
    if not calls:
        sys.exit(f"generate_calls.py: no call is declared in {folder}")
    out = ["// Written by lib/gni/log/generate_calls.py from the headers.", '#include "lib/gni/log/call_log.hpp"', "",
           "using orrery::gni::log::Call;", "using orrery::gni::log::Next;", "", 'extern "C" {']
    for name, parameters in calls:
        declared = ", ".join(declaration for _, _, declaration in parameters)
        out += ["", f"gni_return_t {name}({declared}) {{", f'  static constinit Next<decltype({name})> next("{name}");',
                *body(name, parameters), "  return call.end();", "}"]
    out += ["", '}  // extern "C"', ""]
    Path(target).write_text("\n".join(out))


main()
