// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/nic.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

// What is under way, and how it ended: what syncids and gsync tell. It knows a NIC, and nothing of PEs or
// of the library's world: a test plays it in a box.
namespace orrery::dmapp {

// Operations that end together. `left` is changed under the context's lock and may be read without.
struct Tracker {
  std::atomic<std::uint32_t> left{0};
  std::atomic<Errc> first{Errc::ok};  // the first failure; the same
};

// A queue of the NIC and the operations whose ends it tells. Invariant: every operation that the NIC
// accepted is counted in one tracker until its event was taken in. Threads: one at a time.
class Completions {
 public:
  // `depth`: operations that may be under way. Errors: the NIC's.
  Status open(nic::Nic& nic, std::uint32_t depth) {
    nic_ = &nic;
    const auto queue = nic.create_queue(depth, 0);
    if (!queue.ok()) return queue.code();
    queue_ = queue.value();
    queue_->become_source();
    return {};
  }
  // REQUIRES: nothing is under way.
  void close() {
    if (queue_ != nullptr) (void)nic_->destroy_queue(queue_);
    queue_ = nullptr;
  }
  nic::CompletionQueue* queue() const { return queue_; }

  // Starts it, counted in `tracker`. no_resource: no room; what is under way makes some. Errors: the NIC's;
  // nothing was started then.
  Errc start(nic::Endpoint& endpoint, nic::Request& request, Tracker& tracker) {
    request.context = &tracker;
    const Errc accepted = nic_->initiator().post_checked(endpoint, request);
    if (accepted == Errc::ok) tracker.left.fetch_add(1, std::memory_order_relaxed);
    return accepted;
  }
  // Takes in what ended.
  void reap() {
    nic::Event event;
    while (nic_->poll(*queue_, &event) != Errc::not_done) take_in(event);
  }
  // The same of what has been told already: no look in vain, in which a clock's time would pass. Whether
  // there was anything.
  bool reap_told() {
    bool any = false;
    nic::Event event;
    for (; queue_->take(&event) != Errc::not_done; any = true) take_in(event);
    return any;
  }
  // How many ends were taken in. Without the lock.
  std::uint64_t taken_in() const { return taken_in_.load(std::memory_order_acquire); }
  bool is_empty() const { return queue_->posts_open() == 0; }
  // After a look: as end_of().
  Errc test(Tracker& tracker) {
    reap();
    return end_of(tracker);
  }
  // Whether nothing of it is left, and how it ended; that is forgotten. not_done.
  static Errc end_of(Tracker& tracker) {
    return tracker.left.load(std::memory_order_relaxed) == 0 ? take(tracker) : Errc::not_done;
  }
  // The first failure, which is forgotten.
  static Errc take(Tracker& tracker) {
    const Errc first = tracker.first.load(std::memory_order_relaxed);
    if (first != Errc::ok) tracker.first.store(Errc::ok, std::memory_order_relaxed);
    return first;
  }
  // Whether take() would say ok, with nothing left. Without the lock.
  [[gnu::always_inline]] static bool is_idle(const Tracker& tracker) {
    // Acquire: pairs with reap(), which notes a failure first.
    return tracker.left.load(std::memory_order_acquire) == 0 &&
           tracker.first.load(std::memory_order_relaxed) == Errc::ok;
  }

 private:
  void take_in(const nic::Event& event) {
    if (event.kind != nic::EventKind::post) return;
    void* context = nullptr;
    if (!queue_->collect(event.transaction(), &context)) return;
    Tracker& tracker = *static_cast<Tracker*>(context);
    if (event.status != Errc::ok && tracker.first.load(std::memory_order_relaxed) == Errc::ok)
      tracker.first.store(event.status, std::memory_order_relaxed);
    // Release: a thread that sees that nothing is left sees the failure, and what came.
    tracker.left.fetch_sub(1, std::memory_order_release);
    taken_in_.store(taken_in_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  nic::Nic* nic_ = nullptr;
  nic::CompletionQueue* queue_ = nullptr;
  std::atomic<std::uint64_t> taken_in_{0};
};

// gsync's test over `count` threads: at(i) has is_idle(), is_under_way(), which looks first, and take(), of
// what the thread left to gsync. not_done; else the first failure, which is forgotten: none is before all
// is done.
template <typename At>
Errc test_all(std::size_t count, At at) {
  bool left = false;
  for (std::size_t i = 0; i < count; ++i)
    if (!at(i).is_idle() && at(i).is_under_way()) left = true;
  if (left) return Errc::not_done;
  Errc first = Errc::ok;
  for (std::size_t i = 0; i < count; ++i) {
    if (at(i).is_idle()) continue;
    const Errc ended = at(i).take();
    if (first == Errc::ok) first = ended;
  }
  return first;
}

}  // namespace orrery::dmapp
