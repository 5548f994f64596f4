// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/base/unique_fd.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace orrery::job {

// Where a process finds the job of `orrery run` whose descriptors were closed on the way to it (by Python's
// subprocess, a test runner, a daemon): the name of the socket (abstract_socket.hpp) at which the launcher
// listens, which the PEs have in ORRERY_JOB_AT.
struct EntranceName {
  pid_t launcher = 0;        // in the launcher's pid namespace
  std::uint64_t job_id = 0;  // of the host directory

  std::string text() const;  // "/run.PID.JOB" or "orrery.UID.run.PID.JOB", the socket's name
  static std::optional<EntranceName> parse(std::string_view text);
};

// The launcher's side. Owns the socket and the clients that have not said yet what they want.
//   1. One thread, that of the launcher's poll loop; no call waits.
//   2. Processes of this user are answered, others disconnected.
//   3. A client that says nothing costs one of 64 places, the oldest goes first.
// Usage, once entrance.fd() is readable: entrance.serve({.directory = fd, .pmi_of = wire_of});
class Entrance {
 public:
  // Errors: no_resource (the name is taken), system.
  static Result<std::unique_ptr<Entrance>> open(const EntranceName& name);
  ~Entrance();
  Entrance(const Entrance&) = delete;
  Entrance& operator=(const Entrance&) = delete;

  // Readable when serve() has something to do.
  int fd() const { return epoll_.get(); }
  struct Answers {
    int directory = -1;
    // The PE's end of a new wire for that rank; invalid: refused. The rank may be any number.
    std::function<UniqueFd(std::uint32_t rank)> pmi_of;
  };
  void serve(const Answers& answers);

 private:
  Entrance() = default;
  void take_client();
  void answer(int client, const Answers& answers);

  UniqueFd epoll_;
  UniqueFd socket_;
  std::uint64_t job_id_ = 0;
  std::string name_;
  pid_t owner_ = 0;
  std::deque<UniqueFd> pending_;  // oldest first
};

}  // namespace orrery::job
