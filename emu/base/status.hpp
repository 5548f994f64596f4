// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

namespace orrery {

// Why an operation did not (yet) do what was asked. One byte, so that it travels in packets and
// completion events. Three kinds: `ok`; back-pressure (`not_done`, `no_resource`), which is a result
// and is never logged; and errors. Each API maps every value by one total table of its own.
// DO NOT CHANGE THE VALUES: they are on the wire and in shared memory. Append only.
enum class Errc : std::uint8_t {
  ok = 0,
  not_done = 1,         // nothing there yet, try again
  no_resource = 2,      // a table, queue or credit is used up; retry after completions
  no_memory = 3,        // the operating system gave no memory
  invalid_param = 4,    // an argument is outside what the call accepts
  invalid_state = 5,    // the object cannot do that now
  alignment = 6,        // address or length misaligned for the operation
  permission = 7,       // read-only memory, or a privileged act
  no_match = 8,         // nothing of that name, tag or address
  size = 9,             // longer than the limit
  timeout = 10,         // the deadline passed
  illegal_op = 11,      // the modelled device has no such operation
  bounds = 12,          // outside the registered range
  invalid_handle = 13,  // remote memory handle is not (or no longer) valid
  unreachable = 14,     // the peer is dead or cannot be addressed
  overrun = 15,         // a completion queue was full
  corrupt = 16,         // bytes from outside failed validation
  unsupported = 17,     // not available on this system
  system = 18,          // a system call failed in a way of its own
  terminated = 19,      // cancelled by its owner
  protection = 20,      // belongs to another communication domain
  duplicate = 21,       // another one is in that place
};
inline constexpr int kErrcCount = 22;

// The enumerator's name, for messages ("no_match").
std::string_view errc_name(Errc code);

// Outcome of a call that returns nothing else.
class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr Status(Errc code) : code_(code) {}  // NOLINT: implicit on purpose, `return Errc::bounds;`
  constexpr bool ok() const { return code_ == Errc::ok; }
  constexpr Errc code() const { return code_; }
  friend constexpr bool operator==(Status a, Status b) { return a.code_ == b.code_; }

 private:
  Errc code_ = Errc::ok;
};

// A value, or the reason there is none. `value()` may only be called when ok().
template <typename T>
class [[nodiscard]] Result {
 public:
  constexpr Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit on purpose
  constexpr Result(Errc code) : code_(code) {}             // NOLINT: implicit on purpose
  constexpr bool ok() const { return code_ == Errc::ok; }
  constexpr Errc code() const { return code_; }
  constexpr Status status() const { return code_; }
  constexpr T& value() & { return value_; }
  constexpr const T& value() const& { return value_; }
  constexpr T&& value() && { return std::move(value_); }

 private:
  T value_{};
  Errc code_ = Errc::ok;
};

}  // namespace orrery
