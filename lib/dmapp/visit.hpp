// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

// The calling thread at this library: which Context is its own, and what keeps the World while a call waits.
namespace orrery::dmapp {

class Context;

// Number of the current world, 0 when there is none: threads know by it whether what they kept is stale.
extern std::atomic<std::uint64_t> g_epoch;

// How many calls that wait the thread is in. One for each Context, at its number.
struct alignas(64) Visits {
  std::atomic<std::uint32_t> depth{0};  // written by the thread alone
};
inline constexpr std::size_t kMaxContexts = 1024;
extern std::array<Visits, kMaxContexts> g_visits;
// Whether an announcement has to be a full barrier (base/asymmetric_fence.hpp). Constant while there
// is a world.
extern std::atomic<bool> g_strong_visits;

// What a thread remembers of its context.
struct Seat {
  Context* context = nullptr;
  std::uint64_t epoch = 0;
  Visits* visits = nullptr;
};
extern constinit thread_local Seat t_seat [[gnu::tls_model("initial-exec")]];

// Where the calling thread stands when it is not known any more; null outside init and finalize.
Context* take_seat();
// The thread's context is free for others; the thread's next call takes one.
void leave_seat();

// The calling thread's context; null before init and after finalize.
[[gnu::always_inline]] inline Context* here() {
  if (t_seat.epoch == g_epoch.load(std::memory_order_relaxed)) [[likely]]
    return t_seat.context;
  return take_seat();
}

// A call that waits, or that looks at what other threads have under way: the world stays while it lasts.
// dmapp_finalize waits for its end. The calls that are complete at once go without.
// Usage: const Visit visit;  if (visit.context() == nullptr) return DMAPP_RC_INVALID_PARAM;
class Visit {
 public:
  Visit() : context_(here()) {
    if (context_ == nullptr) return;
    visits_ = t_seat.visits;
    const std::uint32_t inside = visits_->depth.load(std::memory_order_relaxed) + 1;
    visits_->depth.store(inside, std::memory_order_relaxed);
    if (g_strong_visits.load(std::memory_order_relaxed)) [[unlikely]]
      visits_->depth.exchange(inside, std::memory_order_seq_cst);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // World::stop() takes the epoch away, then looks at the depths.
    if (is_current()) [[likely]]
      return;
    end();
    context_ = nullptr;
  }
  ~Visit() {
    if (context_ != nullptr) end();
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  // Null: there is no world.
  Context* context() const { return context_; }
  // False: dmapp_finalize waits for this call. A wait for another PE is given up then.
  static bool is_current() { return g_epoch.load(std::memory_order_acquire) == t_seat.epoch; }

 private:
  // Release: World::stop() frees what the call used.
  void end() const {
    visits_->depth.store(visits_->depth.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }

  Context* context_;
  Visits* visits_ = nullptr;
};

}  // namespace orrery::dmapp
