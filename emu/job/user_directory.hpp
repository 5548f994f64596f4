// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/event_loop.hpp"
#include "emu/base/status.hpp"
#include "emu/job/descriptors.hpp"
#include "emu/job/host_directory.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace orrery::job {

// The directory that processes of one user and one pid namespace on one host share when no `orrery run` made
// one for them. The process that binds the leader's socket first makes it and hands it to the others. When
// the leader is gone, the next newcomer binds the name and asks a member for the directory instead of making
// a second one.
struct UserDirectory {
  std::unique_ptr<HostDirectory> directory;
  std::unique_ptr<DescriptorServer> leader;  // set in the process that leads; needs `directory`, goes first
};

// "/HASH.NAMESPACES" or "orrery.UID.HASH.NAMESPACE": what the sockets of the job `job_name` of this user are
// called before the last dot. Abstract names are seen in the whole network namespace, but processes that
// share memory watch each other by pid: processes of another pid namespace are another host's, and reached
// by the wire.
std::string socket_prefix(std::string_view job_name);
// A fresh name for a member's descriptor server, under `prefix`.
std::string member_socket_name(std::string_view prefix);

// Finds or makes the directory of `job_name`. Blocks until `deadline_ns` of monotonic_ns() at most.
// Errors: timeout (leader and members are stopped), permission (another user holds the name), corrupt,
// system.
Result<UserDirectory> open_user_directory(EventLoop& loop, std::string_view job_name,
                                          std::int64_t deadline_ns);

}  // namespace orrery::job
