// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/base/unique_fd.hpp"
#include "emu/job/pmi_line.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace orrery::job {

// The client's side of the PMI-1 text wire: speaks to the launcher over PMI_FD. Does not own the descriptor's
// number beyond itself: it is closed when the wire is destroyed, as PMI wants it.
//   1. One thread at a time; every call but barrier_enter() blocks until the launcher has answered.
//   2. A launcher that breaks the grammar or goes away is an error of the call, not of the process.
// Usage: auto wire = PmiWire::open(fd); wire.value()->put("a", "b"); wire.value()->barrier();
class PmiWire {
 public:
  struct Limits {
    std::size_t kvs_name = 0, key = 0, value = 0;  // bytes, without a terminating zero
  };

  // Says init, and asks for the limits and the name of the key-value space. Takes the descriptor.
  // Errors: corrupt (not a PMI-1 server), unreachable (it has closed), system.
  static Result<std::unique_ptr<PmiWire>> open(UniqueFd fd);

  const Limits& limits() const { return limits_; }
  const std::string& kvs_name() const { return kvs_name_; }
  Result<int> appnum();
  Result<int> universe_size();

  // One pair; both must be PMI tokens within the limits; other processes see it after the next barrier.
  // Errors: invalid_param (not a token), size, invalid_state (refused: the key exists), corrupt, unreachable.
  Status put(std::string_view key, std::string_view value);
  // Errors: no_match (no such key), invalid_param, size, corrupt, unreachable.
  Result<std::string> get(std::string_view key);
  // Any bytes of any length under one key, encoded, and cut into as many pairs "key", "key.1", ... as the
  // limit of a value needs. REQUIRES: the key leaves 8 characters of the limit.
  Status put_bytes(std::string_view key, std::string_view bytes);
  Result<std::string> get_bytes(std::string_view key);

  // The barrier in two halves. Between them no other call may be made.
  Status barrier_enter();
  Status barrier_leave();
  Status barrier();

  // Says goodbye; afterwards every call fails with invalid_state.
  Status finalize();
  // Asks the launcher to end the job with `code`. No answer comes.
  Status abort(int code);

 private:
  explicit PmiWire(UniqueFd fd) : fd_(std::move(fd)) {}
  Status send(std::string_view line);
  Result<std::string> receive();
  Result<std::string> ask(std::string_view line, std::string_view answer);

  UniqueFd fd_;
  PmiLineBuffer lines_;
  Limits limits_;
  std::string kvs_name_;
};

}  // namespace orrery::job
