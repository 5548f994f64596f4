// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "lib/dmapp/context.hpp"

#include <cstdint>
#include <optional>

// One call of the interface that starts operations, of one part or of many.
namespace orrery::dmapp {

// log2 of an element's bytes; -1: not a type. Any number is accepted.
constexpr int shift_of(dmapp_type_t type) {
  static_assert(DMAPP_BYTE == 0 && DMAPP_DW == 1 && DMAPP_QW == 2 && DMAPP_DQW == 3);
  const auto index = static_cast<unsigned>(type);
  if (index > 3) return -1;
  return static_cast<int>(index + (index != 0 ? 1 : 0));
}

// Elements of a transfer may not be more than memory has.
inline constexpr std::uint64_t kMostElements = std::uint64_t{1} << 47;

// Adds the parts, then finish(). Threads: the context's.
// Usage: Issue issue(*context, mode); issue.put(place, source, bytes); return issue.finish(syncid);
class Issue {
 public:
  Issue(Context& context, Mode mode) : context_(context), mode_(mode) {}
  // What a failed call started is over before the caller has its buffers back.
  ~Issue() { abandon(); }
  Issue(const Issue&) = delete;
  Issue& operator=(const Issue&) = delete;

  [[gnu::always_inline]] void put(const Place& place, const void* source, std::uint64_t bytes) {
    const Errc done =
        context_.try_now<nic::Op::put>(place, const_cast<void*>(source), bytes, mode_);  // NOLINT
    if (done != Errc::ok) [[unlikely]]
      start(place, Context::put_request(place, source, bytes));
  }
  [[gnu::always_inline]] void get(const Place& place, void* target, std::uint64_t bytes) {
    const Errc done = context_.try_now<nic::Op::get>(place, target, bytes, mode_);
    if (done != Errc::ok) [[unlikely]]
      start(place, Context::get_request(place, target, bytes));
  }
  [[gnu::always_inline]] void amo(const Place& place, std::uint8_t command, void* result, std::uint64_t a,
                                  std::uint64_t b) {
    const Errc done = context_.try_amo(place, command, result, a, b);
    if (done != Errc::ok) [[unlikely]]
      start(place, Context::amo_request(place, command, result, a, b));
  }
  // By the general path.
  [[gnu::noinline]] void start(const Place& place, const nic::Request& request);

  // Ends the call: waits, names or leaves what is under way, as its mode says.
  [[gnu::always_inline]] dmapp_return_t finish(dmapp_syncid_handle_t* syncid = nullptr) {
    if (tracker_ == nullptr && failed_ == Errc::ok) [[likely]] {
      if (mode_ == Mode::syncid) *syncid = Context::kComplete;
      return DMAPP_RC_SUCCESS;
    }
    return finish_slowly(syncid);
  }

 private:
  [[gnu::noinline]] dmapp_return_t finish_slowly(dmapp_syncid_handle_t* syncid);
  void abandon();

  Context& context_;
  const Mode mode_;
  Errc failed_ = Errc::ok;
  Tracker* tracker_ = nullptr;  // of what is under way; null: nothing is
  std::uint64_t name_ = 0;      // of tracker_, if it has one
  Tracker own_;                 // of a call that blocks
};

}  // namespace orrery::dmapp
