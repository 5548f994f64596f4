// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/events/completion_queue.hpp"
#include "emu/nic/events/counter.hpp"
#include "emu/nic/state/host_services.hpp"
#include "emu/nic/state/mover.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace orrery::nic {

// Sleeping until a queue has an event or a counter has reached a value: in real time on a word of the
// segment, under a virtual clock by the clock.
// Threads: any; ring_bell() too. Waits may run beside threads that use the queues.
// Usage: if (waits.wait(queue, waits.now_ns() + 1'000'000) == Errc::ok) queue.take(&event);
class Waits {
 public:
  Waits(HostServices& services, NicView view, CounterPool& counters, Mover& mover)
      : services_(services), view_(view), clock_(services.clock()), counters_(counters), mover_(mover) {}

  // What deadlines are in: the virtual clock's time, or CLOCK_MONOTONIC.
  std::int64_t now_ns() const;
  // Sleeps until the queue has an event or an overrun, or `deadline_ns` passes (none: never). ok, timeout.
  Errc wait(CompletionQueue& queue, std::optional<std::int64_t> deadline_ns);
  // Sleeps until one of the queues has an event or an overrun; returns its place in the list, takes nothing.
  // `stop` is called now and then, and after ring_bell().
  // Errors: timeout, terminated (stop returned true). REQUIRES: the queues live until it returns.
  using Stop = std::function<bool()>;
  Result<std::uint32_t> wait_any(std::span<CompletionQueue* const> queues,
                                 std::optional<std::int64_t> deadline_ns, const Stop& stop);
  // Sleeps until one of the tests is met; as wait_any, `value` its counts. Errors: invalid_handle too.
  Result<std::uint32_t> wait_counters(std::span<const CounterTest> tests,
                                      std::optional<std::int64_t> deadline_ns, const Stop& stop,
                                      CounterValue* value);
  // Wakes every sleeper in wait_any() and wait_counters() to look again. A system call.
  void ring_bell();

 private:
  bool is_virtual() const { return clock_ != nullptr && clock_->is_virtual(); }
  Errc wait_timed(std::span<CompletionQueue* const> queues, std::optional<std::int64_t> deadline_ns,
                  std::uint32_t* found);

  HostServices& services_;
  const NicView view_;
  clock::Clock* const clock_;
  CounterPool& counters_;
  Mover& mover_;
};

}  // namespace orrery::nic
