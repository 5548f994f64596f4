// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/base/unique_fd.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Unix sockets in a folder that this user alone may enter: another user can neither take a name there nor
// reach a socket. The folder is ORRERY_SOCKETS, or else the first that is to be had of
// $XDG_RUNTIME_DIR/orrery, /run/user/UID/orrery and /tmp/orrery-UID. A name here is "/" and a file's name. A
// file that a killed process left is taken over by the next socket of that name, or removed by a later one.
namespace orrery::job {

// Whether a socket's name is one of these; else it is an abstract one.
bool is_in_folder(std::string_view name);

// The folder in which this process makes its sockets, made if it is not there; "" when there is none, or
// ORRERY_SOCKETS says "abstract".
std::string socket_folder();

// Errors: no_resource (a process listens at that name), timeout (another process holds the folder), size,
// system.
Result<UniqueFd> listen_in_folder(std::string_view name);
// As connect_abstract(); looks into each of the folders above.
Result<UniqueFd> connect_in_folder(std::string_view name, std::int64_t deadline_ns);
// Takes the name away. REQUIRES: this process listens there, and no process shall connect any more.
void remove_from_folder(std::string_view name);
// Names that begin with `prefix`. A file may be one that no process listens at any more.
std::vector<std::string> names_in_folders(std::string_view prefix);

}  // namespace orrery::job
