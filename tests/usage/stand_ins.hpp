// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "lib/common/handle_table.hpp"
#include "lib/common/log/call_line.hpp"

#include <cstdint>

#include <sys/epoll.h>

// What a "Usage:" line of a template takes from the API that it is for, under the names that the line has.
namespace orrery::common {

enum class Kind : std::uint8_t { ep = 1 };
struct Ep {};

namespace log {

struct Call : LoggedCall<Call> {
  using CallLine::returned;
  using LoggedCall::LoggedCall;
  void returned(int) {}
};

}  // namespace log
}  // namespace orrery::common
