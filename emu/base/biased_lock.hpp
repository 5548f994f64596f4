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

// A lock that one thread takes and gives back a million times while another comes by now and then. The thread
// it is bound to announces itself with a store and looks with a load; whoever else comes pays for the barrier
// that lies between (asymmetric_fence.hpp: a system call). A lock that is bound to nobody takes one locked
// instruction. Without that system call it is never bound. Not recursive, not fair, not for signal handlers.
// Threads: any; each call says who may make it. Invariant: it is bound once in its life, so that a thread
// which has not heard that it is bound no more can still take its own announcement back, since it is nobody
// else's. Usage: const auto held = lock.try_enter(); if (held != BiasedLock::Held::no) ... lock.leave(held);
class BiasedLock {
 public:
  enum class Held : std::uint8_t { no, lightly, wholly };

  // Takes it if nobody has it. A thread that it is not bound to unbinds it: it will come again.
  Held try_enter() {
    if (owner_.load(std::memory_order_relaxed) == &t_thread_mark) [[likely]] {
      if (inside_.load(std::memory_order_relaxed)) return Held::no;  // we have it already
      inside_.store(true, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      // Acquire: what was done by whoever held it last.
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

  // Takes it if nobody has it, and leaves it bound to whom it is bound. Does not wait.
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

  // From now on the lock is this thread's to take lightly, if it was never bound. REQUIRES: wholly held.
  void bind() {
    if (was_bound_ || !asymmetric_fence::enrolled()) return;
    was_bound_ = true;
    owner_.store(&t_thread_mark, std::memory_order_relaxed);
  }
  // It is nobody's. REQUIRES: wholly held.
  void unbind() { owner_.store(nullptr, std::memory_order_relaxed); }

  // Whether it is bound to another thread. Any thread; what it says may be old.
  bool is_foreign() const {
    const char* const owner = owner_.load(std::memory_order_relaxed);
    return owner != nullptr && owner != &t_thread_mark;
  }
  // Whether somebody has it. Where is_foreign(), a thread has to call asymmetric_fence::heavy() before, to
  // hear of one who took it before that.
  bool taken() const {
    return held_.load(std::memory_order_seq_cst) || inside_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<bool> held_{false};            // wholly, or somebody is about to
  std::atomic<bool> inside_{false};          // lightly; only the thread that it is or was bound to stores it
  bool was_bound_ = false;                   // guarded by held_
  std::atomic<const char*> owner_{nullptr};  // changed with held_; mark of the thread that it is bound to
};

}  // namespace orrery
