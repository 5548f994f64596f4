# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""Layer table of docs/architecture.md section 2, over every #include and every API name of the tree.

usage: check_layers.py <root>
"""
import os
import re
import sys

import tree

# What a layer may include besides itself. Strictly down: the members of one row do not see each other.
BELOW = {
    "emu/base": [],
    "emu/model": ["emu/base"],
    "emu/memory": ["emu/base"],
    "emu/job": ["emu/base"],
    "emu/clock": ["emu/base", "emu/model", "emu/memory", "emu/job"],
    "emu/wire": ["emu/base", "emu/model", "emu/memory", "emu/job"],
    "emu/nic": ["emu/base", "emu/model", "emu/memory", "emu/job", "emu/clock", "emu/wire"],
    "emu/sim": ["emu/base", "emu/model"],
}
# The folders of emu/nic, each of which may include itself and those before it. "" is nic.hpp, which owns the units.
NIC_FOLDERS = ("state", "device", "events", "target", "memory", "transport", "initiator", "gate", "message", "collective",
               "", "host")
# A unit's source may reach its NIC; so may these headers, which API libraries compile into their calls.
NIC_INLINE = ("emu/nic/initiator/fma_window.hpp", "emu/nic/initiator/fast_path.hpp", "emu/nic/message/message.hpp")
# What else goes against the direction: a rule or a name that is declared in a folder further on.
NIC_UPWARD = {("emu/nic/target/execute.cpp", "emu/nic/message/channel.hpp"),
              ("emu/nic/transport/unacknowledged.cpp", "emu/nic/initiator/fast_path.hpp")}
EVERY_EMU = [layer for layer in BELOW if layer != "emu/sim"]
APIS = ("gni", "dmapp", "shmem", "portals", "cci", "pmi", "udreg", "alps", "rca", "wlm_detect", "xpmem")
# Headers of other APIs that an API's own has or needs: <dmapp.h> includes <gni_pub.h>, a fact of the interface, and its
# PEs meet by PMI, as the machines' library does. OpenSHMEM stands on DMAPP: the one API library over another.
ALSO = {"lib/dmapp": ["include/gni", "include/pmi"], "include/dmapp": ["include/gni"],
        "lib/shmem": ["lib/dmapp", "include/dmapp", "include/gni", "include/pmi"], "lib/portals": ["include/pmi"]}
# The API whose names another one's library may use.
STANDS_ON = {"shmem": "dmapp"}
# Folders outside the table: they are clients of the rest and nothing includes them.
CLIENTS = ("tests", "examples", "bench", "tools", "ports", "docs")
API_NAME = re.compile(r"\b(GNI_\w+|Ptl[A-Z]\w*|PTL_\w+|dmapp_\w+|DMAPP_\w+|cci_\w+|CCI_\w+)")
API_OF_PREFIX = {"GNI": "gni", "Ptl": "portals", "PTL": "portals", "dmap": "dmapp", "DMAP": "dmapp",
                 "cci_": "cci", "CCI_": "cci"}


def layer_of(path):
    """The folder of the table that a path lies in: emu/wire, lib/gni, include/gni, tests, ..."""
    parts = path.split("/")
    if parts[:2] == ["lib", "portals4"] or parts[:2] == ["lib", "portals3"]:
        return "lib/portals"  # over include/portals
    if parts[0] in ("emu", "lib", "include") and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0]


def nic_folder(path):
    """The folder of emu/nic that a path lies in, "" for its own files; None outside emu/nic."""
    parts = path.split("/")
    if parts[:2] != ["emu", "nic"]:
        return None
    return parts[2] if len(parts) > 3 else ""


def goes_up_in_nic(path, target):
    """Whether an include within emu/nic goes against the order of its folders."""
    of, to = nic_folder(path), nic_folder(target)
    if of not in NIC_FOLDERS or to not in NIC_FOLDERS or NIC_FOLDERS.index(to) <= NIC_FOLDERS.index(of):
        return False
    reaches_nic = target == "emu/nic/nic.hpp" and (path.endswith(".cpp") or path in NIC_INLINE)
    return not reaches_nic and (path, target) not in NIC_UPWARD


def api_of(name):
    return next(api for prefix, api in API_OF_PREFIX.items() if name.startswith(prefix))


def allowed(layer):
    """The layers that `layer` may include, or None when it may include anything."""
    kind, _, name = layer.partition("/")
    if layer in BELOW:
        return BELOW[layer] + [layer]
    if kind == "lib":
        common = [] if name == "common" else ["lib/common"]
        return EVERY_EMU + [layer, f"include/{name}", "include/orrery"] + common + ALSO.get(layer, [])
    if kind == "include":
        return [layer, "include/orrery"] + ALSO.get(layer, [])
    return None


def resolve(target, path, known, headers):
    """The file of ours that an include names, or None for a header of another project."""
    folder = path.rsplit("/", 1)[0]
    for candidate in (target, os.path.normpath(f"{folder}/{target}"), f"include/{target}"):
        if candidate in known:
            return candidate
    return headers.get(target)


def problems_of(root):
    paths = tree.sources(root)
    known = set(paths)
    # The include path has every API's own folder: <gni_pub.h> is include/gni/gni_pub.h.
    headers = {path.split("/", 2)[2]: path for path in paths if path.startswith("include/") and path.count("/") > 1}
    problems = []
    for path in paths:
        layer = layer_of(path)
        if layer.startswith("emu/") and layer not in BELOW:
            problems.append(f"{path}: {layer} is not in the layer table (tests/cmake/check_layers.py)")
            continue
        if layer.startswith("lib/") and layer[4:] not in APIS + ("common",):
            problems.append(f"{path}: {layer} is not one of the APIs {', '.join(APIS)}")
            continue
        if layer == "emu/nic" and nic_folder(path) not in NIC_FOLDERS and not path.endswith("CMakeLists.txt"):
            problems.append(f"{path}: emu/nic/{nic_folder(path)} is not among the folders of check_layers.py")
        below = allowed(layer)
        for number, line in enumerate(tree.lines(root, path), 1):
            where = f"{path}:{number}"
            include = tree.INCLUDE.match(line)
            if include and below is not None:
                target = include.group(2)
                if layer == "emu/nic" and goes_up_in_nic(path, target):
                    problems.append(f"{where}: emu/nic/{nic_folder(path)} includes {target}; the folders' order is "
                                    f"{', '.join(folder or 'nic.hpp' for folder in NIC_FOLDERS)}")
                if target.startswith("emu/") and target not in known:
                    reached = "/".join(target.split("/")[:2])  # generated headers
                else:
                    reached = resolve(target, path, known, headers)
                    reached = reached and layer_of(reached)
                if reached and reached not in below:
                    problems.append(f"{where}: {layer} includes {target} of {reached}; it may include {', '.join(below)}")
            if layer in BELOW:
                for name in API_NAME.findall(line):
                    problems.append(f"{where}: {name} belongs to an API; {layer} serves all of them")
            if layer.startswith(("lib/", "include/")):
                own = layer.split("/")[1]
                for name in API_NAME.findall(line):
                    if own != "orrery" and api_of(name) not in (own, STANDS_ON.get(own)):
                        problems.append(f"{where}: {name} belongs to another API than {own}")
    return problems, len(paths)


if __name__ == "__main__":
    found, seen = problems_of(sys.argv[1])
    tree.finish("layer table", found, seen)
