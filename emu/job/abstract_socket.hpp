// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/base/unique_fd.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

// Unix sockets (SOCK_SEQPACKET). A name that begins with "/" is one of socket_folder.hpp; every other one is
// abstract: nothing in a file system, gone with its process, but within reach of every user.
namespace orrery::job {

// Errors: no_resource (the name is taken), size (longer than 107 bytes), system.
Result<UniqueFd> listen_at(std::string_view name);
Result<UniqueFd> listen_abstract(std::string_view name);

// Connects; waits until `deadline_ns` of monotonic_ns() while the other end's backlog is full.
// Errors: unreachable (no socket listens there), timeout, size, system.
Result<UniqueFd> connect_to(std::string_view name, std::int64_t deadline_ns);
Result<UniqueFd> connect_abstract(std::string_view name, std::int64_t deadline_ns);

// The process at the other end, as the kernel recorded it when the connection was made.
struct SocketPeer {
  uid_t uid = 0;
  pid_t pid = 0;
};
// Nothing, too, when the kernel shows the uid that stands for every user that this user namespace does not
// know.
std::optional<SocketPeer> peer_of(int fd);
// Whether the process at the other end has our user and pid namespaces: a process of a container has this
// user's number perhaps, and is none of this user's. False when that cannot be told.
bool shares_namespaces(const SocketPeer& peer);
// Whether `uid` stands for every user that this user namespace does not know.
bool is_overflow_user(uid_t uid);

// Sends one record with descriptors. False when it was not sent whole.
bool send_with_fds(int fd, std::span<const std::byte> record, std::span<const int> fds);

// Receives one record of at most bytes.size() and up to `max_fds` descriptors, close-on-exec. 0: the other
// end has closed. Errors: timeout, corrupt (cut, or more descriptors than that), unreachable, system.
Result<std::size_t> receive_with_fds(int fd, std::span<std::byte> bytes, int max_fds,
                                     std::int64_t deadline_ns, std::vector<UniqueFd>* fds);

// Names of sockets that begin with `prefix`: files of the folder, or listening abstract ones, from
// /proc/net/unix.
std::vector<std::string> socket_names(std::string_view prefix);
// The name in a line of /proc/net/unix; nothing when it is no listening abstract socket's.
std::optional<std::string_view> listening_name(std::string_view line);

}  // namespace orrery::job
