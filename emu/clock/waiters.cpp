// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/waiters.hpp"

#include <algorithm>
#include <utility>

namespace orrery::clock {

namespace {

constexpr std::uint32_t kRoused = 1;
// The number of the look that the calling thread was let make, and is not back from; 0: none.
// initial-exec: no call to reach it.
__attribute__((tls_model("initial-exec"))) thread_local constinit std::uint32_t t_look = 0;
// News that it has heard of.
__attribute__((tls_model("initial-exec"))) thread_local constinit std::uint64_t t_news = 0;

}  // namespace

// False: it need not wait.
bool Waiters::enter(Waiter& mine) {
  {
    const std::lock_guard lock(mu_);
    const std::uint64_t news = news_.load(std::memory_order_acquire);
    if (std::exchange(t_news, news) != news) return false;
    mine.round = rounds_.load(std::memory_order_relaxed);
    waiting_.push_back(&mine);
    count_.store(static_cast<std::uint32_t>(waiting_.size()), std::memory_order_relaxed);
  }
  // After it is in the list: it is seen there by a round that sees it come back.
  come_back();
  return true;
}

bool Waiters::leave(Waiter& mine) {
  const std::lock_guard lock(mu_);
  const std::uint32_t let = mine.let.load(std::memory_order_acquire);
  t_news = news_.load(std::memory_order_acquire);
  if (let == 0) {
    std::erase(waiting_, &mine);
    count_.store(static_cast<std::uint32_t>(waiting_.size()), std::memory_order_relaxed);
    return false;
  }
  t_look = let == kRoused ? 0 : let;
  return true;
}

void Waiters::come_back() {
  std::uint32_t look = std::exchange(t_look, 0);
  if (look == 0) return;
  // Fails when it was given up meanwhile.
  if (away_.compare_exchange_strong(look, 0, std::memory_order_acq_rel)) futex_wake(away_, 1);
}

void Waiters::rouse() {
  const std::lock_guard lock(mu_);
  for (Waiter* const one : waiting_) {
    one->let.store(kRoused, std::memory_order_release);
    futex_wake(one->let, 1);
  }
  waiting_.clear();
  count_.store(0, std::memory_order_relaxed);
}

std::int64_t Waiters::first_deadline() {
  const std::lock_guard lock(mu_);
  std::int64_t first = kNoDeadline;
  for (const Waiter* const one : waiting_) first = std::min(first, one->deadline);
  return first;
}

bool Waiters::let_next(std::uint64_t round, std::int64_t now, bool all) {
  const std::lock_guard lock(mu_);
  auto next = waiting_.end();
  for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
    if ((*at)->round >= round || !(all || (*at)->deadline <= now)) continue;
    if (next == waiting_.end() || (*at)->tid < (*next)->tid) next = at;
  }
  if (next == waiting_.end()) return false;
  Waiter* const one = *next;
  waiting_.erase(next);
  count_.store(static_cast<std::uint32_t>(waiting_.size()), std::memory_order_relaxed);
  if (++looks_ <= kRoused) looks_ = kRoused + 1;
  away_.store(looks_, std::memory_order_relaxed);
  // Under the lock: it takes that before it is gone.
  one->let.store(looks_, std::memory_order_release);
  futex_wake(one->let, 1);
  return true;
}

}  // namespace orrery::clock
