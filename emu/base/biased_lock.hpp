// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/asymmetric_fence.hpp"
#include "emu/base/wait.hpp"

#include <atomic>
#include <cstdint>

namespace orrery {

// Differs between the threads that live at one time. initial-exec: no call to reach it.
extern __attribute__((tls_model("initial-exec"))) constinit thread_local char t_thread_mark;

// A lock for one thread that takes and releases it a million times while other threads take it now and then.
// The bound thread announces itself with a store and checks with a load; any other thread pays for the
// barrier between the two (asymmetric_fence.hpp: a system call). A lock without a bound thread takes one
// locked instruction. Without that system call it is never bound. Not recursive, not fair, not for signal
// handlers. Threads: any; each call says which. Invariant: it is bound once in its life, so a thread that
// does not know yet that the lock is unbound can still withdraw its own announcement: no other thread makes
// one. Usage: const auto held = lock.try_enter(); if (held != BiasedLock::Held::no) ... lock.leave(held);
class BiasedLock {
 public:
  enum class Held : std::uint8_t { no, lightly, wholly };

  // Takes it if it is free. A thread that it is not bound to unbinds it: such a thread will come again.
  Held try_enter() {
    if (owner_.load(std::memory_order_relaxed) == &t_thread_mark) [[likely]] {
      if (inside_.load(std::memory_order_relaxed)) return Held::no;  // we have it already
      inside_.store(true, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      // Acquire: what the previous holder did.
      if (!held_.load(std::memory_order_acquire) && owner_.load(std::memory_order_relaxed) == &t_thread_mark)
          [[likely]]
        return Held::lightly;
      inside_.store(false, std::memory_order_release);
      return Held::no;
    }
    if (!try_lock()) return Held::no;
    if (is_foreign()) unbind();
    return Held::wholly;
  }
  void leave(Held held) {
    if (held == Held::lightly) [[likely]]
      inside_.store(false, std::memory_order_release);
    else
      unlock();
  }

  // Takes it if it is free, and leaves the binding as it is. Does not wait.
  bool try_lock() {
    if (held_.exchange(true, std::memory_order_seq_cst)) return false;
    if (owner_.load(std::memory_order_relaxed) == nullptr) return true;
    // Its thread has announced itself, or sees that we have it.
    if (is_foreign()) asymmetric_fence::heavy();
    if (!inside_.load(std::memory_order_acquire)) return true;
    held_.store(false, std::memory_order_release);
    return false;
  }
  void lock() {
    while (!try_lock()) {
      if (!spin_then_yield({}, [this] { return !taken(); })) yield_cpu();
    }
  }
  void unlock() { held_.store(false, std::memory_order_release); }

  // From now on the lock is this thread's to take lightly, if it was never bound and the
  // process has asymmetric fences. REQUIRES: wholly held.
  void bind() {
    if (was_bound_ || !asymmetric_fence::enrolled()) return;
    was_bound_ = true;
    owner_.store(&t_thread_mark, std::memory_order_relaxed);
  }
  // Ends the binding. REQUIRES: wholly held.
  void unbind() { owner_.store(nullptr, std::memory_order_relaxed); }

  // Whether it is bound to another thread. Any thread; what it says may be old.
  bool is_foreign() const {
    const char* const owner = owner_.load(std::memory_order_relaxed);
    return owner != nullptr && owner != &t_thread_mark;
  }
  // Whether a thread has it. Where is_foreign(), the caller has to call asymmetric_fence::heavy() before:
  // else it may not see a thread that took the lock earlier.
  bool taken() const {
    return held_.load(std::memory_order_seq_cst) || inside_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<bool> held_{false};            // wholly, or a thread is about to
  std::atomic<bool> inside_{false};          // lightly; only the thread that it is or was bound to stores it
  bool was_bound_ = false;                   // guarded by held_
  std::atomic<const char*> owner_{nullptr};  // changed with held_; mark of the thread that it is bound to
};

}  // namespace orrery
