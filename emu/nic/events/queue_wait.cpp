// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Sleeping on several queues at once. Producers, in any process, wake a sleeper through one futex word: the
// queue's own for one that sleeps on that queue alone, and the process's bell for one that sleeps on several.
// CqState::waiters counts both kinds, so a producer looks at one word and, as long as no thread sleeps, does
// nothing more.
#include "emu/base/patient_wait.hpp"
#include "emu/nic/nic.hpp"

#include <algorithm>
#include <climits>

namespace orrery::nic {

namespace {

// A sleeper looks again at least this often: answers to frames of ours are taken in by a thread that polls.
constexpr std::int64_t kSliceNs = 50'000'000;
// And this often when one of the queues hears of our own posts, which raise their events without a look at
// sleepers: a post would pay for it every time.
constexpr std::int64_t kSourceSliceNs = 1'000'000;

}  // namespace

void Nic::ring_bell() {
  FutexWord& bell = view_.service().bell;
  bell.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(bell, INT_MAX);
}

Result<std::uint32_t> Nic::wait_any(std::span<CompletionQueue* const> queues,
                                    std::optional<std::int64_t> deadline_ns, const StopWaiting& stop) {
  std::uint32_t found = 0;
  // A thread of the runtime's own that waits for a program keeps real time.
  if (clock_ != nullptr && clock_->is_virtual() && !is_runtime_thread()) [[unlikely]] {
    if (stop()) return Errc::terminated;
    const Errc waited = wait_timed(queues, deadline_ns, &found);
    if (waited == Errc::ok) return found;
    return waited;
  }
  const auto has_news = [&] {
    for (found = 0; found < queues.size(); ++found) {
      if (queues[found]->test() != Errc::not_done) return true;
    }
    return false;
  };
  const auto look = [&] {
    if (stop() || has_news()) return true;
    progress();
    return has_news();
  };
  if (!look_before_sleep(services_.wait_budget(), look, deadline_ns)) {
    hand_frames_back();
    FutexWord& bell = view_.service().bell;
    bool sources = false;
    for (CompletionQueue* queue : queues) {
      sources = sources || queue->is_source();
      // Announced before the ring is looked at again: see push_event.
      queue->view().state->waiters.fetch_add(kBellWaiter, std::memory_order_seq_cst);
    }
    for (;;) {
      const std::uint32_t signal = bell.load(std::memory_order_acquire);
      if (look()) break;
      const std::int64_t now = monotonic_ns();
      if (deadline_ns && now >= *deadline_ns) break;
      const std::int64_t slice = now + (sources ? kSourceSliceNs : kSliceNs);
      futex_wait(bell, signal, deadline_ns ? std::min(*deadline_ns, slice) : slice);
    }
    for (CompletionQueue* queue : queues)
      queue->view().state->waiters.fetch_sub(kBellWaiter, std::memory_order_relaxed);
  }
  if (stop()) return Errc::terminated;
  if (found < queues.size()) return found;
  return Errc::timeout;
}

}  // namespace orrery::nic
