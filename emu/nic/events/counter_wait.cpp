// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Waiting for counters: as for queues (queue_wait.cpp), with counts in the place of events.
#include "emu/base/patient_wait.hpp"
#include "emu/nic/events/waits.hpp"

#include <algorithm>
#include <vector>

namespace orrery::nic {

namespace {

// A sleeper looks again at least this often: answers to frames of ours are taken in by a thread that polls.
constexpr std::int64_t kCounterSliceNs = 50'000'000;

}  // namespace

Result<std::uint32_t> Waits::wait_counters(std::span<const CounterTest> tests,
                                           std::optional<std::int64_t> deadline_ns, const Stop& stop,
                                           CounterValue* value) {
  std::uint32_t found = 0;
  Errc outcome = Errc::not_done;
  const auto has_news = [&] {
    for (found = 0; found < tests.size(); ++found) {
      outcome = counters_.test(tests[found], value);
      if (outcome != Errc::not_done) return true;
    }
    if (stop()) outcome = Errc::terminated;
    return outcome != Errc::not_done;
  };
  const auto look = [&] {
    if (has_news()) return true;
    (void)mover_.progress(nullptr);
    return has_news();
  };
  const auto answer = [&]() -> Result<std::uint32_t> {
    if (outcome == Errc::ok) return found;
    return outcome == Errc::not_done ? Errc::timeout : outcome;
  };
  if (is_virtual() && !is_runtime_thread()) [[unlikely]] {
    std::optional<Picos> deadline;
    if (deadline_ns) deadline = Picos{*deadline_ns * 1000};
    for (;;) {
      mover_.move_in_turn();
      if (has_news() || (deadline && clock_->now() >= *deadline)) break;
      (void)clock_->wait(deadline);
    }
    return answer();
  }
  if (look_before_sleep(services_.wait_budget(), look, deadline_ns)) return answer();
  mover_.hand_frames_back();
  FutexWord& bell = view_.service().bell;
  std::vector<CounterTest> announced;
  const auto take_back = [&] {
    for (const CounterTest& test : announced) counters_.end_sleep(test);
    announced.clear();
  };
  for (;;) {
    const std::uint32_t signal = bell.load(std::memory_order_acquire);
    // Announced anew before each look: a thread that wakes sleepers takes their announcements back.
    for (const CounterTest& test : tests) {
      if (counters_.announce_sleep(test) == Errc::ok) announced.push_back(test);
    }
    if (look()) break;
    const std::int64_t now = monotonic_ns();
    if (deadline_ns && now >= *deadline_ns) break;
    futex_wait(bell, signal,
               deadline_ns ? std::min(*deadline_ns, now + kCounterSliceNs) : now + kCounterSliceNs);
    take_back();
  }
  take_back();
  return answer();
}

}  // namespace orrery::nic
