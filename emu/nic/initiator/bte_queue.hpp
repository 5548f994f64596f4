// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/base/wait.hpp"
#include "emu/nic/memory/regions.hpp"
#include "emu/nic/transport/request.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace orrery::nic {

class CompletionQueue;

// The block transfer engine: a thread that moves large transfers, so that the call that posts one returns at
// once. Two channels share it chunk by chunk, so a short transfer behind a long one finishes first.
//
// Threads: submit from any; the engine's own thread does the rest. The thread starts with the first transfer.
// Invariants: (1) a fenced transfer starts when every transfer submitted before it is complete, and no later
// one starts before it is; (2) every accepted transfer ends in exactly one call of
// complete().
class BteQueue {
 public:
  static constexpr std::uint32_t kCapacity = 1024;    // descriptors
  static constexpr std::uint64_t kChunk = 256 << 10;  // bytes of one turn: short against a time slice
  static constexpr std::size_t kChannels = 2;

  // What carries out the engine's work. Called by the engine's thread; is_quiet(): any.
  class Carrier {
   public:
    // Carries out one chunk, the `first` of its transfer or a later one. `whole` is checked first, so that a
    // transfer that is refused moves nothing. not_done: it cannot be done by a copy.
    virtual Errc carry(const Request& chunk, const Request& whole, bool first) = 0;
    // Sends a transfer as packets, which tell its end. not_done: they are on their way. no_resource: later.
    virtual Errc send(const Request& whole) = 0;
    // Where a byte of a list of segments lies (Regions::piece).
    virtual Regions::Piece piece(const MemKey& key, std::uint64_t offset) = 0;
    // Names of the requests that are on their way as packets.
    virtual std::vector<std::uint32_t> open_requests() = 0;
    // Moves along, and drops the names of those that have ended.
    virtual void await(std::vector<std::uint32_t>& names) = 0;
    // Whether nothing but the engine's work is under way, and no clock, wire or fault can put any there.
    virtual bool is_quiet() const = 0;

   protected:
    ~Carrier() = default;
  };

  explicit BteQueue(Carrier& carrier);
  // Transfers that have not finished end in `terminated`.
  ~BteQueue();
  // Ends the engine's thread. Not beside another thread that starts it.
  void end();
  BteQueue(const BteQueue&) = delete;
  BteQueue& operator=(const BteQueue&) = delete;

  // not_done: accepted. no_resource: kCapacity descriptors are waiting. Does not block.
  Errc submit(const Request& request);

  // Transfers that have not finished, and fenced ones among them. While one is, later transfers of any size
  // have to queue here too.
  std::uint32_t outstanding() const { return outstanding_.load(std::memory_order_acquire) & ~kFenced; }
  std::uint32_t fences() const { return fences_.load(std::memory_order_acquire); }

  // A fenced transfer is about to be posted, by whatever way. From then on the events of block transfers go
  // through the shared ring while others are before them: it is where those of the engine are, and inline
  // ones would be taken first.
  void note_fence() { outstanding_.fetch_or(kFenced, std::memory_order_relaxed); }
  // Whether an event of one that is over must go there.
  bool comes_behind_others(const CompletionQueue* queue) const {
    return (outstanding_.load(std::memory_order_relaxed) & kFenced) != 0 && !nothing_precedes(queue);
  }
  // Whether there is nothing that another transfer, or its event, would have to stay behind.
  bool untouched() const { return outstanding_.load(std::memory_order_acquire) == 0; }
  // The same where there were fences: all that was posted before is over, and its events are taken from the
  // queue (null: they go to none). REQUIRES: the caller's thread may poll the queue.
  bool nothing_precedes(const CompletionQueue* queue) const;

 private:
  struct Descriptor {
    Request request;
    std::uint64_t done = 0;  // bytes
  };

  struct Queues;
  static constexpr std::uint32_t kFenced = 1u << 31;

  void run();
  bool start_next();
  bool step(std::uint32_t index);
  void finish(std::uint32_t index, Errc status);
  bool awaited_frames_are_answered();

  Carrier& carrier_;
  std::vector<Descriptor> descriptors_;
  const std::unique_ptr<Queues> queues_;       // between posters and the engine
  std::atomic<std::uint32_t> outstanding_{0};  // a count, and kFenced: one word for the fast poster
  std::atomic<std::uint32_t> fences_{0};

  // Engine thread only.
  std::array<std::optional<std::uint32_t>, kChannels> channels_;
  std::deque<std::uint32_t> queued_;  // taken from the submitted ones, not started
  // Transfers that left as frames are over for the engine, not for a fence: what has to be answered before
  // the fenced transfer at the head of queued_ starts, or before anything follows one that left as frames.
  std::vector<std::uint32_t> awaited_;
  std::optional<std::uint32_t> awaited_by_;  // the fenced transfer that has not started
  bool fence_in_frames_ = false;             // one that left as frames

  FutexWord signal_{0};
  std::atomic<bool> sleeping_{false};
  std::atomic<bool> stopping_{false};
  std::atomic_flag started_ = ATOMIC_FLAG_INIT;
  std::thread thread_;
};

}  // namespace orrery::nic
