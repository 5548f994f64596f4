// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Sleeping on several queues at once. Producers, in any process, wake a sleeper through one futex word: the
// queue's own for one that sleeps on that queue alone, and the process's bell for one that sleeps on several.
// CqState::waiters counts both kinds, so a producer looks at one word and, as long as no thread sleeps, does
// nothing more.
#include "emu/base/patient_wait.hpp"
#include "emu/nic/events/waits.hpp"

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

void Waits::ring_bell() {
  FutexWord& bell = view_.service().bell;
  bell.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(bell, INT_MAX);
}

Result<std::uint32_t> Waits::wait_any(std::span<CompletionQueue* const> queues,
                                      std::optional<std::int64_t> deadline_ns, const Stop& stop) {
  std::uint32_t found = 0;
  // A thread of the runtime's own that waits for a program keeps real time.
  if (is_virtual() && !is_runtime_thread()) [[unlikely]] {
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
  bool stopped = false;
  const auto look = [&] {
    stopped = stop();
    if (stopped || has_news()) return true;
    (void)mover_.progress(nullptr);
    return has_news();
  };
  if (!look_before_sleep(services_.wait_budget(), look, deadline_ns)) {
    mover_.hand_frames_back();
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
  if (stopped || stop()) return Errc::terminated;
  if (found < queues.size()) return found;
  return Errc::timeout;
}

// A blocking wait in virtual time.
Errc Waits::wait_timed(std::span<CompletionQueue* const> queues, std::optional<std::int64_t> deadline_ns,
                       std::uint32_t* found) {
  const auto has_news = [&] {
    for (*found = 0; *found < queues.size(); ++*found) {
      if (queues[*found]->test() != Errc::not_done) return true;
    }
    return false;
  };
  std::optional<Picos> deadline;
  if (deadline_ns) deadline = Picos{*deadline_ns * 1000};
  for (;;) {
    mover_.move_in_turn();
    if (has_news()) return Errc::ok;
    if (deadline && clock_->now() >= *deadline) return Errc::timeout;
    (void)clock_->wait(deadline);
  }
}

std::int64_t Waits::now_ns() const { return is_virtual() ? clock_->now().count() / 1000 : monotonic_ns(); }

Errc Waits::wait(CompletionQueue& queue, std::optional<std::int64_t> deadline_ns) {
  if (is_virtual()) [[unlikely]] {
    CompletionQueue* const only[] = {&queue};
    std::uint32_t found = 0;
    return wait_timed(only, deadline_ns, &found);
  }
  const auto has_news = [&] {
    if (queue.test() != Errc::not_done) return true;
    (void)mover_.progress(nullptr);
    return queue.test() != Errc::not_done;
  };
  if (look_before_sleep(services_.wait_budget(), has_news, deadline_ns)) return Errc::ok;
  mover_.hand_frames_back();
  CqState& state = *queue.view().state;
  // Announced before the ring is looked at again: see push_event.
  state.waiters.fetch_add(1, std::memory_order_seq_cst);
  Errc result = Errc::timeout;
  for (;;) {
    const std::uint32_t signal = state.signal.load(std::memory_order_acquire);
    if (has_news()) {
      result = Errc::ok;
      break;
    }
    const std::int64_t now = monotonic_ns();
    if (deadline_ns && now >= *deadline_ns) break;
    const std::int64_t slice = now + kSliceNs;
    futex_wait(state.signal, signal, deadline_ns ? std::min(*deadline_ns, slice) : slice);
  }
  state.waiters.fetch_sub(1, std::memory_order_relaxed);
  return result;
}

}  // namespace orrery::nic
