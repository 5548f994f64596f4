// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/target/match_state.hpp"

#include <atomic>
#include <cstring>
#include <type_traits>

namespace orrery::nic::match {

// The lock of a match unit, held for one change of its state.
//   1. Every word of the state changes through set(): what it was is in the journal before it changes.
//   2. commit() makes the changes whole. A holder that dies before it leaves the journal behind, and the next
//      holder takes everything back; after it, the change stands.
//   3. Words that no list, queue or index leads to yet may be written plainly: taking a change back leaves
//      them unreachable again.
//   4. Nothing that blocks, copies more than a few hundred bytes or calls back runs while it is held. A
//      holder that is stopped (SIGSTOP between two instructions) delays others until it goes on or dies.
// Threads: any, of any process; not recursive.
// Usage: { Session session(view); session.set(entry.state, kLinked); }
class Session {
 public:
  explicit Session(const View& view) : view_(view), header_(view.header()) {
    if (const int got = pthread_mutex_trylock(&header_.lock); got != 0) [[unlikely]]
      lock(got);
    held_ = true;
  }
  ~Session() { close(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const View& view() const { return view_; }

  template <typename T>
  void set(T& word, std::type_identity_t<T> value) {
    set_from(word, word, value);
  }
  // The same, where the word's value is known to be `before`: it is not read.
  template <typename T>
  void set_from(T& word, std::type_identity_t<T> before, std::type_identity_t<T> value) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
    const std::uint32_t used = header_.journal_used;
    if (used >= kJournal) overflow();
    JournalLine& line = header_.journal[used];
    line.offset = static_cast<std::uint32_t>(reinterpret_cast<std::byte*>(&word) - view_.base());
    line.bytes = sizeof(T);
    line.before = 0;
    std::memcpy(&line.before, &before, sizeof(T));
    // Program order is all that a process's death leaves behind: the compiler must keep it. Readers without
    // the lock (counters) see whole words.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    store(header_.journal_used, used + 1);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if constexpr (std::is_integral_v<T>)
      store(word, value);
    else
      word = value;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  // What was changed so far stands, whatever becomes of this process.
  void commit() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    store(header_.journal_used, 0u);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  // In a loop of steps that each leave lists and counts whole: keeps the journal from running full. A death
  // then undoes the steps since.
  void commit_if_long() {
    if (header_.journal_used > kJournal / 2) commit();
  }

  // A sleeper may have what it waits for: woken when the lock is free.
  void wake_later() { wake_ = true; }
  // The owner may take the event at that position of that slot's queue once the change stands.
  void publish_later(EventSlot& slot, std::uint64_t position) {
    if (raised_ < kRaised) told_[raised_] = {&slot, position};
    ++raised_;
  }
  // Commits and unlocks before the end of the scope.
  void close() {
    if (!held_) return;
    held_ = false;
    commit();
    // Events may be taken without the lock, so only when they stand: the holder says so of each after the
    // commit. One that dies in between leaves it to the next.
    if (raised_ > kRaised) [[unlikely]]
      publish_all();
    else
      for (std::uint32_t i = 0; i < raised_; ++i)
        // Release: an owner that sees it sees the event.
        std::atomic_ref<std::uint64_t>(told_[i].slot->published)
            .store(told_[i].position + 1, std::memory_order_release);
    pthread_mutex_unlock(&header_.lock);
    // The unlock is a full barrier on what a sleeper looks at (x86), so that either it sees the change or
    // this thread sees the sleeper.
    if (wake_ && header_.sleepers.load(std::memory_order_seq_cst) != 0) [[unlikely]]
      wake();
  }

 private:
  template <typename T>
  static void store(T& word, T value) {
    std::atomic_ref<T>(word).store(value, std::memory_order_relaxed);
  }
  // After a try that said `got`.
  void lock(int got);
  void roll_back();
  void wake();
  void publish_all();
  [[noreturn]] static void overflow();

  struct Raised {
    EventSlot* slot;
    std::uint64_t position;
  };
  static constexpr std::uint32_t kRaised = 8;  // beyond them, all queues are looked through

  const View view_;
  Header& header_;
  Raised told_[kRaised];
  std::uint32_t raised_ = 0;
  bool held_ = false;
  bool wake_ = false;
};

}  // namespace orrery::nic::match
