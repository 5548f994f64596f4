// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/units.hpp"
#include "emu/clock/virtual_clock.hpp"

#include <atomic>
#include <cstdint>

#include <dlfcn.h>
#include <time.h>

// What the calls that are served in virtual time (program_time.cpp, program_waits.cpp) have in common.
namespace orrery::clock {

// What a program finds when virtual time is 0: fixed, so that runs agree, and not 0, which some take for
// unset.
inline constexpr std::int64_t kMonotonicStart = 1'000;         // s
inline constexpr std::int64_t kRealtimeStart = 1'000'000'000;  // s since 1970: 9 September 2001
inline constexpr std::int64_t kNs = 1'000'000'000;

// libc's own call of that name, looked up once. Threads that look it up at once find the same, and any may
// keep it.
inline void* real(std::atomic<void*>& kept, const char* name) {
  void* call = kept.load(std::memory_order_relaxed);
  if (call != nullptr) [[likely]]
    return call;
  // By handle: RTLD_NEXT finds nothing where libc was loaded first.
  call = dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), name);
  kept.store(call, std::memory_order_relaxed);
  return call;
}
#define ORRERY_REAL(name)                                 \
  static constinit std::atomic<void*> kept_call{nullptr}; \
  auto* const real_call = reinterpret_cast<decltype(&::name)>(::orrery::clock::real(kept_call, #name))

// Begins a call that is libc's unless a clock answers it.
#define ORRERY_CLOCK_OR_REAL(name, ...)                                                                 \
  ORRERY_REAL(name);                                                                                    \
  ::orrery::clock::VirtualClock* const clock = ::orrery::clock::clock_for(__builtin_return_address(0)); \
  if (clock == nullptr) [[likely]]                                                                      \
  return real_call(__VA_ARGS__)

// The clock that answers a call from `caller`, or null: none is served, or the caller is the runtime's.
VirtualClock* clock_for(const void* caller);

// The clock of this process, whichever library calls, for a thread that has been in it; null: there is none,
// or it has not.
VirtualClock* clock_for_thread();
// The clock of this process; null: there is none.
VirtualClock* clock_of_process();

bool is_steady(clockid_t id);
bool is_wall(clockid_t id);
bool is_valid(const timespec* t);
timespec timespec_of(Picos time, std::int64_t start);
Picos duration_of(const timespec& t);
// The virtual time that a program means by `t` on that clock; what is past is 0.
Picos point_of(const timespec& t, clockid_t id);

// The real time on that clock, a millisecond from now: what another thread of the program is given, in real
// time, to do what is waited for, before virtual time passes.
timespec a_moment_from_now(clockid_t id);

}  // namespace orrery::clock
