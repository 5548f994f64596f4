// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Operations under a clock: each is priced when it is posted, and done at the times that the machine gives.
// The posting process does every part of it, as without a clock; only later. Nothing is granted here
// (Router::keep_grant), so that every operation takes this path.
#include "emu/nic/gate/timed.hpp"

#include "emu/base/timed_path.hpp"
#include "emu/clock/data_touch.hpp"
#include "emu/nic/events/completion_queue.hpp"
#include "emu/nic/state/hazard.hpp"
#include "emu/nic/state/thread_word.hpp"
#include "emu/nic/target/amo_cache.hpp"
#include "emu/nic/target/amo_unit.hpp"
#include "emu/nic/target/execute.hpp"
#include "emu/nic/transport/endpoint.hpp"
#include "emu/nic/transport/peer.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <vector>

namespace orrery::nic {

namespace {

// What the target's side does not need to know.
constexpr std::uint32_t kOurs = kLocalEvent | kGlobalEvent | kRemoteEvent | kInOrder | kBlockTransfer |
                                kFence | kLocalOffset | kResponseFlag;

bool brings_back(const Request& request) {
  const wire::Answer answer = wire::traits(request.op).answer;
  return answer == wire::Answer::data || (answer == wire::Answer::fetched && amo::fetches(request.command));
}

}  // namespace

// One operation under way. Its parts, in the order of their times:
//   what comes back:  read at the target | stored here | event here
//   everything else:  done at the target | event there | event here
// The final step (the event here) is scheduled when the operation is posted. Earlier steps run on the
// target's node (Clock::schedule_there). Where something comes back, no PE of the target's node may act
// for long, and what follows there is business of other nodes: so the final step first makes sure, at the
// time when the data is to be here, that the target's step has run.
class TimedOps::Operation final : public clock::Task {
 public:
  Operation(TimedOps& home, const Request& request) : home_(home), request_(request) { keep_source(); }

  void begin(const clock::Times& times) {
    times_ = times;
    retain(request_.completion);
    const bool whole = is_event();
    if (whole || (request_.flags & kRemoteEvent) != 0)
      times_.local_event_at = std::max(times_.local_event_at, times_.remote_event_at);
    stage_ = whole ? Stage::event_there : Stage::at_target;
    clock::Clock& clock = home_.clock_;
    clock.schedule_there(brings_back(request_) ? times_.turn_at
                         : whole               ? times_.remote_event_at
                                               : times_.data_at,
                         this, request_.remote.process);
    if (ends_there()) return;
    follows_ = brings_back(request_) && clock.is_virtual();
    clock.schedule(follows_ ? times_.data_at : times_.local_event_at, &last_, concerns_of_last());
  }

  ORRERY_TIMED_INLINE void run() override {
    clock::Clock& clock = home_.clock_;
    switch (stage_) {
      case Stage::at_target:
        status_ = apply();
        touch_target();
        if (ends_there()) return end();
        if (brings_back(request_)) {
          stage_ = Stage::data_here;
          return clock.schedule_there(times_.data_at, this, home_.self_);
        }
        if ((request_.flags & kRemoteEvent) != 0 && status_ == Errc::ok) {
          stage_ = Stage::event_there;
          return clock.schedule_there(times_.remote_event_at, this, request_.remote.process);
        }
        break;
      case Stage::event_there:
        if (is_event())
          status_ = apply();
        else
          home_.router_.raise_at_target(request_);
        touch_target();
        if (ends_there()) return end();
        break;
      case Stage::data_here:
        if (status_ == Errc::ok) status_ = store_here();
        clock.touch(home_.self_);
        if ((request_.flags & kRemoteEvent) != 0 && status_ == Errc::ok) {
          stage_ = Stage::event_there;
          return clock.schedule_there(times_.data_at, this, request_.remote.process);
        }
        break;
      case Stage::event_here:
        break;
    }
    stage_ = Stage::event_here;
  }

 private:
  bool is_event() const { return wire::traits(request_.op).is_event; }
  // A credit that has arrived ends in nothing that the program could find here: a turn for that would be two
  // switches of processes for every message.
  bool ends_there() const { return request_.op == Op::credit; }

  enum class Stage : std::uint8_t { at_target, event_there, data_here, event_here };

  // The event here.
  class Last final : public clock::Task {
   public:
    explicit Last(Operation& op) : op_(op) {}
    ORRERY_TIMED_INLINE void run() override { op_.end_in_turn(); }

   private:
    Operation& op_;
  };

  ORRERY_TIMED_INLINE void end_in_turn() {
    clock::Clock& clock = home_.clock_;
    const bool at_its_time = !follows_ || times_.data_at == times_.local_event_at;
    if (stage_ == Stage::at_target) clock.settle(request_.remote.process);
    if (stage_ == Stage::data_here) clock.settle(home_.self_);
    follows_ = false;
    if (!at_its_time) return clock.schedule(times_.local_event_at, &last_, concerns_of_last());
    if (stage_ == Stage::event_there) clock.settle(request_.remote.process);
    // Where the clock does everything at its time, parts of the same time come one after another.
    if (stage_ != Stage::event_here) return clock.schedule(times_.local_event_at, &last_, concerns_of_last());
    end();
  }

  // A queue that others fill too holds events in the order of their times. And what comes back is there for
  // threads on this node, and is told to the target, though this PE's program sleeps.
  clock::Concerns concerns_of_last() const {
    const CompletionQueue* const queue = request_.completion.queue;
    const bool shared = queue != nullptr && queue->is_destination();
    const bool tells = follows_ && (request_.flags & kRemoteEvent) != 0;
    if (shared || tells) return clock::Concerns::others;
    return follows_ ? clock::Concerns::its_node : clock::Concerns::itself;
  }

  // The source may change when the post returns, but for block transfers, whose event says when.
  void keep_source() {
    const bool to_here = brings_back(request_);
    if (request_.length == 0) return;
    if (to_here) {
      (void)keep(request_.length);
      return;
    }
    if (!wire::traits(request_.op).payload) return;
    if ((request_.flags & kLocalOffset) != 0) {
      if (!home_.regions_.gather(request_.local, request_.local_address, keep(request_.length)))
        status_ = Errc::invalid_handle;
    } else if ((request_.flags & kBlockTransfer) == 0 || request_.op == Op::message) {
      const auto* const from = reinterpret_cast<const std::byte*>(request_.local_address);
      load_bytes(keep(request_.length).data(), from, request_.length);
    }
  }

  std::span<std::byte> keep(std::uint64_t bytes) {
    if (bytes > small_.size()) large_.resize(bytes);
    kept_ = bytes > small_.size() ? std::span(large_) : std::span(small_).first(bytes);
    return kept_;
  }

  // At the target, without its event.
  Errc apply() {
    if (status_ != Errc::ok) return status_;
    Request there = request_;
    const bool whole = is_event();
    there.flags &= whole ? ~(kOurs & ~static_cast<std::uint32_t>(kRemoteEvent)) : ~kOurs;
    if (!kept_.empty()) there.local_address = reinterpret_cast<std::uint64_t>(kept_.data());
    return home_.apply_now(there);
  }

  Errc store_here() {
    if ((request_.flags & kLocalOffset) != 0)
      return home_.regions_.scatter(request_.local, request_.local_address, kept_) ? Errc::ok
                                                                                   : Errc::invalid_handle;
    auto* const to = reinterpret_cast<std::byte*>(request_.local_address);
    store_bytes(to, kept_.data(), kept_.size());
    if ((request_.flags & kResponseFlag) != 0)
      store_bytes(to + kept_.size(), reinterpret_cast<const std::byte*>(&request_.sync_value), 4);
    return Errc::ok;
  }

  void end() {
    clock::Clock& clock = home_.clock_;
    // Paced, this may be the clock's thread, and transactions are opened by the queue's alone.
    complete(request_.completion, status_, clock.is_virtual() ? Teller::owner_behind : Teller::other);
    if (!ends_there()) clock.touch(home_.self_);
    release(request_.completion);
    TimedOps& home = home_;
    this->~Operation();
    home.give_back(this);
  }

  void touch_target() {
    const bool event_follows = stage_ == Stage::at_target && (request_.flags & kRemoteEvent) != 0;
    if (request_.op == Op::credit)
      home_.clock_.stir(request_.remote.process);
    else if (request_.op == Op::message && event_follows && status_ == Errc::ok)
      home_.clock_.touch(clock::data_of(request_.remote.process));
    else
      home_.clock_.touch(request_.remote.process);
  }

  TimedOps& home_;
  Last last_{*this};
  const Request request_;
  clock::Times times_;
  Stage stage_ = Stage::at_target;
  Errc status_ = Errc::ok;
  bool follows_ = false;       // the last part looks after what is to come back
  std::span<std::byte> kept_;  // in one of the two:
  std::vector<std::byte> large_;
  std::array<std::byte, 128> small_;
};

namespace {

// Waits for the end of one operation.
class Awaited final : public Listener {
 public:
  // Release: what the operation brought is there. Not touched any more after that.
  void ended(const Completion&, const Ending& ending) override {
    status_.store(ending.status, std::memory_order_release);
  }
  // not_done: not yet.
  Errc status() const { return status_.load(std::memory_order_acquire); }

 private:
  std::atomic<Errc> status_{Errc::not_done};
};

}  // namespace

ORRERY_TIMED_PATH Errc TimedOps::apply_now(Request request) {
  Awaited awaited;
  request.completion = {.target = request.completion.target, .listener = &awaited};
  for (;;) {
    const Begun begun = router_.route(request, kSharedHazardSlot);
    if (begun.kind == Begun::Kind::ended) return begun.status;
    if (begun.kind == Begun::Kind::accepted) break;
    (void)mover_.move_along();
    yield_cpu();
  }
  while (awaited.status() == Errc::not_done) {
    (void)mover_.move_along();
    yield_cpu();
  }
  return awaited.status();
}

ORRERY_TIMED_PATH clock::Operation TimedOps::operation_of(const Request& request) {
  clock::Operation operation{.target = request.remote.process, .bytes = request.length};
  const bool block = (request.flags & kBlockTransfer) != 0;
  const wire::VerbTraits& verb = wire::traits(request.op);
  operation.op = block ? verb.block_price : (request.flags & kLaunched) != 0 ? verb.launch_price : verb.price;
  operation.uncontended = verb.uncontended;
  if (request.op == Op::amo) {
    const AmoWord word{request.remote_address, amo::width(request.command) == 4};
    const bool hit = (request.command & kAmoCached) != 0 && AmoCache(request.peer->link.nic).holds(word);
    operation.op = amo::fetches(request.command) ? (hit ? model::Op::fetch_amo : model::Op::fetch_amo_miss)
                                                 : (hit ? model::Op::amo : model::Op::amo_miss);
  }
  operation.routing = (request.flags & kInOrder) != 0
                          ? model::Routing::in_order
                          : model::routing_of_delivery_mode(request.delivery_mode);
  return operation;
}

ORRERY_TIMED_PATH void TimedOps::post(Endpoint& endpoint, const Request& request) {
  clock_.enter();
  // What an AMO costs depends on what the target's cache holds.
  if (request.op == Op::amo) clock_.settle(request.remote.process);
  clock::Operation operation = operation_of(request);
  const bool block = (request.flags & kBlockTransfer) != 0;
  if (block) operation.not_before = (request.flags & kFence) != 0 ? blocks_end_ : fence_end_;
  clock::Times times = clock_.start(operation);
  if ((request.flags & kInOrder) != 0) {
    // Behind everything that this endpoint posted, though a longer message before it takes longer.
    times.data_at = std::max(times.data_at, endpoint.data_until);
    times.turn_at = std::max(times.turn_at, endpoint.data_until);
  }
  if (brings_back(request)) times.data_at = std::max(times.data_at, times.turn_at);
  times.remote_event_at = std::max(times.remote_event_at, times.data_at);
  times.local_event_at = std::max(times.local_event_at, times.data_at);
  endpoint.data_until = std::max(endpoint.data_until, times.data_at);
  if (block) blocks_end_ = std::max(blocks_end_, times.local_event_at);
  if ((request.flags & kFence) != 0) fence_end_ = std::max(fence_end_, times.local_event_at);
  (new (take(sizeof(Operation))) Operation(*this, request))->begin(times);
  clock_.leave();
}

}  // namespace orrery::nic
