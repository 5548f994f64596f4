// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/initiator/bte_queue.hpp"

#include "emu/base/start_thread.hpp"
#include "emu/nic/events/completion_queue.hpp"

#include <algorithm>
#include <mutex>

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <boost/lockfree/queue.hpp>

namespace orrery::nic {

// Of indices of descriptors_. Here and not in the header, which nearly every source of the NIC reads.
struct BteQueue::Queues {
  using Indices = boost::lockfree::queue<std::uint32_t, boost::lockfree::capacity<kCapacity>>;
  Indices free;
  Indices submitted;

  static bool start(BteQueue& engine);
};

BteQueue::BteQueue(Carrier& carrier)
    : carrier_(carrier), descriptors_(kCapacity), queues_(std::make_unique<Queues>()) {
  for (std::uint32_t i = 0; i < kCapacity; ++i) queues_->free.push(i);
}

BteQueue::~BteQueue() { end(); }

void BteQueue::end() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_seq_cst);
  signal_.fetch_add(1, std::memory_order_release);
  futex_wake(signal_, 1);
  thread_.join();
}

// Whether the engine runs; starts it the first time.
bool BteQueue::Queues::start(BteQueue& engine) {
  if (engine.started_.test(std::memory_order_acquire)) return true;
  static Lock<LockRank::engine_start> mu;  // of all queues: a start is rare
  const std::lock_guard lock(mu);
  if (engine.started_.test(std::memory_order_acquire)) return true;
  // Signals are the program's: none is delivered to the engine.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // A page of the program that is not there must still end the program, not freeze the engine.
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool runs = start_thread(engine.thread_, [&engine] { engine.run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!runs) return false;
  pthread_setname_np(engine.thread_.native_handle(), "orrery-bte");
  engine.started_.test_and_set(std::memory_order_release);
  return true;
}

Errc BteQueue::submit(const Request& request) {
  if (!Queues::start(*this)) return Errc::no_resource;
  std::uint32_t index = 0;
  if (!queues_->free.pop(index)) return Errc::no_resource;
  descriptors_[index] = {.request = request};
  retain(request.completion);
  outstanding_.fetch_add(1, std::memory_order_acq_rel);
  if ((request.flags & kFence) != 0) fences_.fetch_add(1, std::memory_order_acq_rel);
  queues_->submitted.push(index);
  // Sequentially consistent with the engine's announcement of its sleep: it sees the descriptor or we see it.
  signal_.fetch_add(1, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst)) futex_wake(signal_, 1);
  return Errc::not_done;
}

// Fills an idle channel. Returns whether it did.
bool BteQueue::start_next() {
  std::uint32_t index = 0;
  while (queues_->submitted.pop(index)) queued_.push_back(index);
  const auto idle = std::find(channels_.begin(), channels_.end(), std::nullopt);
  if (idle == channels_.end()) return false;
  if (fence_in_frames_) {
    if (!awaited_frames_are_answered()) return false;
    fence_in_frames_ = false;
    fences_.fetch_sub(1, std::memory_order_acq_rel);
    outstanding_.fetch_sub(1, std::memory_order_acq_rel);
  }
  if (queued_.empty()) return false;
  const auto fenced = [&](std::uint32_t i) { return (descriptors_[i].request.flags & kFence) != 0; };
  const auto busy = [](const auto& channel) { return channel.has_value(); };
  const bool any_busy = std::any_of(channels_.begin(), channels_.end(), busy);
  const bool fence_running =
      std::any_of(channels_.begin(), channels_.end(), [&](const auto& c) { return c && fenced(*c); });
  if (fence_running || (fenced(queued_.front()) && any_busy)) return false;
  if (fenced(queued_.front())) {
    if (awaited_by_ != queued_.front()) awaited_ = carrier_.open_requests();
    awaited_by_ = queued_.front();
    if (!awaited_frames_are_answered()) return false;
    awaited_by_.reset();
  }
  *idle = queued_.front();
  queued_.pop_front();
  return true;
}

bool BteQueue::awaited_frames_are_answered() {
  carrier_.await(awaited_);
  return awaited_.empty();
}

// Moves one chunk. Returns whether the transfer is over for the engine.
bool BteQueue::step(std::uint32_t index) {
  Descriptor& d = descriptors_[index];
  const Request& whole = d.request;
  Request chunk = whole;
  chunk.remote_address += d.done;
  chunk.length = std::min(whole.length - d.done, kChunk);
  if ((whole.flags & kLocalOffset) != 0) {
    const Regions::Piece piece = carrier_.piece(whole.local, whole.local_address + d.done);
    if (piece.at == nullptr && chunk.length != 0) {
      finish(index, Errc::bounds);
      return true;
    }
    chunk.local_address = reinterpret_cast<std::uint64_t>(piece.at);
    chunk.length = std::min(chunk.length, piece.bytes);
    chunk.flags &= ~static_cast<std::uint32_t>(kLocalOffset);
  } else {
    chunk.local_address += d.done;
  }
  const bool last = d.done + chunk.length == whole.length;
  if (!last) chunk.flags &= ~static_cast<std::uint32_t>(kRemoteEvent | kSyncFlag);
  const Errc status = carrier_.carry(chunk, whole, d.done == 0);
  if (status == Errc::not_done) {
    // Not by a copy of ours: as frames, from the start; storing the same bytes twice does no harm.
    const Errc sent = carrier_.send(whole);
    if (sent == Errc::no_resource) {
      yield_cpu();
      return false;  // later
    }
    if (sent == Errc::not_done) {
      finish(index, Errc::not_done);
      return true;
    }
    finish(index, sent);
    return true;
  }
  d.done += chunk.length;
  if (status != Errc::ok || last) {
    finish(index, status);
    return true;
  }
  return false;
}

bool BteQueue::nothing_precedes(const CompletionQueue* queue) const {
  // Acquire: each event is in its ring before its transfer is counted out.
  return outstanding() == 0 && carrier_.is_quiet() && (queue == nullptr || queue->shared_is_empty());
}

// `status` not_done: the frames raise the event.
void BteQueue::finish(std::uint32_t index, Errc status) {
  Descriptor& d = descriptors_[index];
  const bool fenced = (d.request.flags & kFence) != 0;
  if (status != Errc::not_done) complete(d.request.completion, status, Teller::other);
  release(d.request.completion);
  queues_->free.push(index);
  if (fenced && status == Errc::not_done) {
    awaited_ = carrier_.open_requests();
    fence_in_frames_ = true;
    return;
  }
  if (fenced) fences_.fetch_sub(1, std::memory_order_acq_rel);
  outstanding_.fetch_sub(1, std::memory_order_acq_rel);
}

void BteQueue::run() {
  mark_runtime_thread();
  // On a core that it shares with the thread that posts, the engine starts when that thread lets it, not in
  // the middle of the post.
  const sched_param no_priority{};
  (void)sched_setscheduler(0, SCHED_BATCH, &no_priority);
  for (;;) {
    if (stopping_.load(std::memory_order_relaxed)) break;
    while (start_next()) {
    }
    bool any = false;
    for (auto& channel : channels_) {
      if (!channel) continue;
      any = true;
      if (step(*channel)) channel.reset();
    }
    if (any) continue;
    if (fence_in_frames_ || awaited_by_) {
      yield_cpu();
      continue;
    }
    const std::uint32_t signal = signal_.load(std::memory_order_acquire);
    sleeping_.store(true, std::memory_order_seq_cst);
    if (queues_->submitted.empty() && !stopping_.load(std::memory_order_seq_cst))
      futex_wait(signal_, signal, std::nullopt);
    sleeping_.store(false, std::memory_order_relaxed);
  }
  for (auto& channel : channels_) {
    if (channel) finish(*channel, Errc::terminated);
  }
  std::uint32_t index = 0;
  while (queues_->submitted.pop(index)) queued_.push_back(index);
  for (const std::uint32_t i : queued_) finish(i, Errc::terminated);
}

}  // namespace orrery::nic
