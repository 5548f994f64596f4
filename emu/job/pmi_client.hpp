// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace orrery::job {

// The client's side of whatever process manager started this process: a key-value space and a barrier. One
// thread at a time; every call but barrier_enter() blocks until the manager has answered. A manager that
// breaks its protocol or goes away is an error of the call, not of the process.
class PmiClient {
 public:
  struct Limits {
    std::size_t kvs_name = 0, key = 0, value = 0;  // bytes, without a terminating zero
  };

  virtual ~PmiClient() = default;

  virtual const Limits& limits() const = 0;
  // The name of the job's key-value space: unique among the manager's jobs.
  virtual const std::string& kvs_name() const = 0;
  virtual Result<int> appnum() = 0;
  virtual Result<int> universe_size() = 0;

  // One pair; both must be PMI tokens within the limits; other processes see it after the next barrier.
  // Errors: invalid_param (not a token), size, invalid_state (refused: the key exists), corrupt, unreachable.
  virtual Status put(std::string_view key, std::string_view value) = 0;
  // `from`: the rank that put it, when that is known. Errors: no_match (no such key), invalid_param, size,
  // corrupt, unreachable.
  static constexpr int kAnybody = -1;
  virtual Result<std::string> get(std::string_view key, int from = kAnybody) = 0;
  // Any bytes of any length under one key, encoded, and cut into as many pairs "key", "key.1", ... as the
  // limit of a value needs. REQUIRES: the key leaves 8 characters of the limit.
  Status put_bytes(std::string_view key, std::string_view bytes);
  Result<std::string> get_bytes(std::string_view key, int from = kAnybody);

  // The barrier in two halves. Between them no other call may be made.
  virtual Status barrier_enter() = 0;
  virtual Status barrier_leave() = 0;
  Status barrier() {
    const Status entered = barrier_enter();
    return entered.ok() ? barrier_leave() : entered;
  }

  // Says goodbye; afterwards every call fails with invalid_state.
  virtual Status finalize() = 0;
  // Asks the manager to end the job with `code`. No answer comes.
  virtual Status abort(int code) = 0;
};

}  // namespace orrery::job
