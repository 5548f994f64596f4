// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Operations under a clock: each is priced when it is posted, and done at the times that the machine gives.
// The posting process does every part of it, as without a clock; only later. Nothing is granted here
// (Nic::keep_grant), so that every operation takes this path.
#include "emu/nic/gate/timed.hpp"

#include "emu/base/timed_path.hpp"
#include "emu/clock/data_touch.hpp"
#include "emu/nic/nic.hpp"
#include "emu/nic/state/hazard.hpp"
#include "emu/nic/target/amo_cache.hpp"
#include "emu/nic/target/amo_unit.hpp"
#include "emu/nic/target/execute.hpp"

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

// A contribution that is sent so often without finding room for its packet is given up: seconds.
constexpr int kJoinTries = 1'000'000;

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
class TimedOp final : public clock::Task {
 public:
  TimedOp(Nic& nic, const Request& request) : nic_(nic), request_(request) { keep_source(); }

  void begin(const clock::Times& times) {
    times_ = times;
    retain(request_.completion);
    const bool whole = is_event();
    if (whole || (request_.flags & kRemoteEvent) != 0)
      times_.local_event_at = std::max(times_.local_event_at, times_.remote_event_at);
    stage_ = whole ? Stage::event_there : Stage::at_target;
    clock::Clock& clock = *nic_.clock_;
    clock.schedule_there(brings_back(request_) ? times_.turn_at
                         : whole               ? times_.remote_event_at
                                               : times_.data_at,
                         this, request_.remote.process);
    if (ends_there()) return;
    follows_ = brings_back(request_) && clock.is_virtual();
    clock.schedule(follows_ ? times_.data_at : times_.local_event_at, &last_, concerns_of_last());
  }

  ORRERY_TIMED_INLINE void run() override {
    clock::Clock& clock = *nic_.clock_;
    switch (stage_) {
      case Stage::at_target:
        status_ = apply();
        touch_target();
        if (ends_there()) return end();
        if (brings_back(request_)) {
          stage_ = Stage::data_here;
          return clock.schedule_there(times_.data_at, this, nic_.self_);
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
          raise_there();
        touch_target();
        if (ends_there()) return end();
        break;
      case Stage::data_here:
        if (status_ == Errc::ok) status_ = store_here();
        clock.touch(nic_.self_);
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
    explicit Last(TimedOp& op) : op_(op) {}
    ORRERY_TIMED_INLINE void run() override { op_.end_in_turn(); }

   private:
    TimedOp& op_;
  };

  ORRERY_TIMED_INLINE void end_in_turn() {
    clock::Clock& clock = *nic_.clock_;
    const bool at_its_time = !follows_ || times_.data_at == times_.local_event_at;
    if (stage_ == Stage::at_target) clock.settle(request_.remote.process);
    if (stage_ == Stage::data_here) clock.settle(nic_.self_);
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
      if (!nic_.gather(request_.local, request_.local_address, keep(request_.length)))
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
    return nic_.apply_now(there);
  }

  void raise_there() {
    Peer& peer = *request_.peer;
    const std::uint32_t index = request_.remote.index;
    // Announced as an access is (Nic::try_direct): the queue stays until this is over.
    const std::lock_guard shared(nic_.shared_hazard_mu_);
    const HazardGuard guard(peer.hazard(kSharedHazardSlot), index, peer.link.strong_hazards);
    const std::uint64_t word = announced_word(peer.link.nic.region(index));
    // Deregistered since the data came: no owner is left to be told.
    if (control::state(word) == RegionState::free || control::generation(word) != request_.remote.generation)
      return;
    raise_remote_event(peer.link.nic, word, event_kind(request_.op), request_.remote_event_data);
  }

  Errc store_here() {
    if ((request_.flags & kLocalOffset) != 0)
      return nic_.scatter(request_.local, request_.local_address, kept_) ? Errc::ok : Errc::invalid_handle;
    auto* const to = reinterpret_cast<std::byte*>(request_.local_address);
    store_bytes(to, kept_.data(), kept_.size());
    if ((request_.flags & kResponseFlag) != 0)
      store_bytes(to + kept_.size(), reinterpret_cast<const std::byte*>(&request_.sync_value), 4);
    return Errc::ok;
  }

  void end() {
    clock::Clock& clock = *nic_.clock_;
    // Paced, this may be the clock's thread, and transactions are opened by the queue's alone.
    complete(request_.completion, status_, clock.is_virtual() ? Teller::owner_behind : Teller::other);
    if (!ends_there()) clock.touch(nic_.self_);
    release(request_.completion);
    TimedOps& home = *nic_.timed_;
    this->~TimedOp();
    home.give_back(this);
  }

  void touch_target() {
    const bool event_follows = stage_ == Stage::at_target && (request_.flags & kRemoteEvent) != 0;
    if (request_.op == Op::credit)
      nic_.clock_->stir(request_.remote.process);
    else if (request_.op == Op::message && event_follows && status_ == Errc::ok)
      nic_.clock_->touch(clock::data_of(request_.remote.process));
    else
      nic_.clock_->touch(request_.remote.process);
  }

  Nic& nic_;
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

// Does it now, on any path, and tells no sink: its status is what is returned. Any thread; waits
// for the peer's service thread where its memory is not mapped here.
ORRERY_TIMED_PATH Errc Nic::apply_now(Request request) {
  Awaited awaited;
  request.completion = {.target = request.completion.target, .listener = &awaited};
  for (;;) {
    const Begun begun = route(request, kSharedHazardSlot);
    if (begun.kind == Begun::Kind::ended) return begun.status;
    if (begun.kind == Begun::Kind::accepted) break;
    move_along();
    yield_cpu();
  }
  while (awaited.status() == Errc::not_done) {
    move_along();
    yield_cpu();
  }
  return awaited.status();
}

ORRERY_TIMED_PATH clock::Operation Nic::operation_of(const Request& request) const {
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

// Prices the operation and lets it begin.
ORRERY_TIMED_PATH void Nic::post_timed(Endpoint& endpoint, const Request& request) {
  clock_->enter();
  // What an AMO costs depends on what the target's cache holds.
  if (request.op == Op::amo) clock_->settle(request.remote.process);
  clock::Operation operation = operation_of(request);
  const bool block = (request.flags & kBlockTransfer) != 0;
  if (block) operation.not_before = (request.flags & kFence) != 0 ? timed_->blocks_end : timed_->fence_end;
  clock::Times times = clock_->start(operation);
  if ((request.flags & kInOrder) != 0) {
    // Behind everything that this endpoint posted, though a longer message before it takes longer.
    times.data_at = std::max(times.data_at, endpoint.data_until);
    times.turn_at = std::max(times.turn_at, endpoint.data_until);
  }
  if (brings_back(request)) times.data_at = std::max(times.data_at, times.turn_at);
  times.remote_event_at = std::max(times.remote_event_at, times.data_at);
  times.local_event_at = std::max(times.local_event_at, times.data_at);
  endpoint.data_until = std::max(endpoint.data_until, times.data_at);
  if (block) timed_->blocks_end = std::max(timed_->blocks_end, times.local_event_at);
  if ((request.flags & kFence) != 0) timed_->fence_end = std::max(timed_->fence_end, times.local_event_at);
  (new (timed_->take(sizeof(TimedOp))) TimedOp(*this, request))->begin(times);
  clock_->leave();
}

// A contribution to a reduction under way. It arrives when the machine would have the result were it the
// last: so the result of all is there when the last one's is.
class TimedJoin final : public clock::Task {
 public:
  TimedJoin(Nic& nic, const Port& port, CeEdge& edge, const Completion& completion, const CeJoin& join)
      : nic_(nic), port_(port), edge_(edge), completion_(completion), join_(join) {
    retain(completion_);
  }

  void run() override {
    Errc joined = nic_.collective_.join(port_, edge_, join_);
    // Its record was kept for it (join_timed). A packet may find no room for a moment, of real time: answers
    // make it. Else another endpoint says that it is the same child, and this contribution is lost: a task
    // that came again and again would keep the clock from running dry, so that no deadlock is ever told and
    // no process ends.
    for (int tries = 0; joined == Errc::no_resource && tries < kJoinTries; ++tries) {
      nic_.move_along();
      yield_cpu();
      joined = nic_.collective_.join(port_, edge_, join_);
    }
    if (joined == Errc::no_resource) nic_.collective_.lose(port_, edge_, join_);
    complete(completion_, joined, Teller::other);
    // The last to come hands up what all came to: those before need not look for that.
    nic_.collective_.progress();
    // Every PE in the tree may have a result now.
    nic_.clock_->touch_all();
    nic_.collective_.arrived(edge_, join_.value.reduction);
    release(completion_);
    delete this;
  }

 private:
  Nic& nic_;
  const Port& port_;
  CeEdge& edge_;
  const Completion completion_;
  const CeJoin join_;
};

Errc Nic::join_timed(Request& request, const Port& port, CeEdge& edge, const CeJoin& join) {
  if (!collective_.reserve(edge, join.value.reduction)) {
    // A look in vain: a program that tries until it is taken lets time pass for those that it waits for.
    progress_timed(&edge);
    return Errc::no_resource;
  }
  if (const Errc reserved = reserve(request.completion); reserved != Errc::ok) {
    collective_.arrived(edge, join.value.reduction);
    return reserved;
  }
  clock_->enter();
  for (int i = 1; i < 3; ++i) std::atomic_ref(join.result[i]).store(0, std::memory_order_relaxed);
  std::atomic_ref(join.result[0]).store(join.pending, std::memory_order_release);
  auto* const task = new TimedJoin(*this, port, edge, request.completion, join);
  constexpr std::uint64_t kBytes = 16;  // two operands
  const Picos takes = clock_->collective_time(model::Collective::allreduce, kBytes);
  clock_->schedule(clock_->now() + takes, task, clock::Concerns::others);
  clock_->leave();
  return Errc::ok;
}

// A look in vain: the frames first, then time.
void Nic::progress_timed(const void* source) {
  move_along();
  if (is_runtime_thread()) return;
  clock_->idle(source);
  // What has come meanwhile is there for the look that waited for it.
  if (clock_->is_virtual()) collective_.progress_in_turn();
}

// A blocking wait in virtual time.
Errc Nic::wait_timed(std::span<CompletionQueue* const> queues, std::optional<std::int64_t> deadline_ns,
                     std::uint32_t* found) {
  const auto has_news = [&] {
    for (*found = 0; *found < queues.size(); ++*found) {
      if (queues[*found]->test() != Errc::not_done) return true;
    }
    return false;
  };
  std::optional<Picos> deadline;
  if (deadline_ns) deadline = Picos{*deadline_ns * 1000};
  for (;;) {
    move_along();
    collective_.progress_in_turn();
    if (has_news()) return Errc::ok;
    if (deadline && clock_->now() >= *deadline) return Errc::timeout;
    (void)clock_->wait(deadline);
  }
}

std::int64_t Nic::now_ns() {
  return clock_ != nullptr && clock_->is_virtual() ? clock_->now().count() / 1000 : monotonic_ns();
}

}  // namespace orrery::nic
