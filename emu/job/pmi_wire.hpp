// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/base/unique_fd.hpp"
#include "emu/job/pmi_client.hpp"
#include "emu/job/pmi_line.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace orrery::job {

// The client's side of the PMI-1 text wire: speaks to the launcher over PMI_FD. Does not own the descriptor's
// number beyond itself: it is closed when the wire is destroyed, as PMI wants it.
//   1. One thread at a time; every call but barrier_enter() blocks until the launcher has answered.
//   2. A launcher that breaks the grammar or goes away is an error of the call, not of the process. After the
//      former nothing more is said: every call fails with invalid_state.
// Usage: auto wire = PmiWire::open(std::move(fd)); wire.value()->put("a", "b"); wire.value()->barrier();
class PmiWire final : public PmiClient {
 public:
  // Says init, and asks for the limits and the name of the key-value space. Takes the descriptor.
  // Errors: corrupt (not a PMI-1 server), unreachable (it has closed), system.
  static Result<std::unique_ptr<PmiWire>> open(UniqueFd fd);

  const Limits& limits() const override { return limits_; }
  const std::string& kvs_name() const override { return kvs_name_; }
  Result<int> appnum() override;
  Result<int> universe_size() override;
  Status put(std::string_view key, std::string_view value) override;
  Result<std::string> get(std::string_view key, int from = kAnybody) override;
  Status barrier_enter() override;
  Status barrier_leave() override;
  Status finalize() override;
  Status abort(int code) override;

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
