// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Contributions as posts, at once or under a clock.
#include "emu/base/wait.hpp"
#include "emu/clock/clock.hpp"
#include "emu/nic/collective/collective_engine.hpp"
#include "emu/nic/events/completion.hpp"
#include "emu/nic/events/port.hpp"
#include "emu/nic/gate/fault.hpp"
#include "emu/nic/initiator/initiator.hpp"
#include "emu/nic/initiator/post_gate.hpp"
#include "emu/nic/transport/endpoint.hpp"
#include "emu/nic/transport/request.hpp"

#include <atomic>

namespace orrery::nic {

namespace {

// A contribution that finds no room for its packet for so long is given up.
constexpr std::int64_t kJoinLimitNs = 60'000'000'000;

}  // namespace

// A contribution to a reduction under way. It arrives when the machine would have the result were it the
// last: so the result of all is there when the last one's is.
class CollectiveEngine::TimedJoin final : public clock::Task {
 public:
  TimedJoin(CollectiveEngine& engine, const Port& port, CeEdge& edge, const Completion& completion,
            const CeJoin& join)
      : engine_(engine), port_(port), edge_(edge), completion_(completion), join_(join) {
    retain(completion_);
  }

  void run() override {
    Errc joined = engine_.join(port_, edge_, join_);
    // Its record was kept for it (post_timed). A packet may find no room for a moment, of real time: answers
    // make it. Else another endpoint says that it is the same child, and this contribution is lost: a task
    // that came again and again would keep the clock from running dry, so that no deadlock is ever told and
    // no process ends.
    const std::int64_t limit = monotonic_ns() + kJoinLimitNs;
    while (joined == Errc::no_resource && monotonic_ns() < limit) {
      (void)engine_.mover_.move_along();
      yield_cpu();
      joined = engine_.join(port_, edge_, join_);
    }
    if (joined == Errc::no_resource) engine_.lose(port_, edge_, join_);
    complete(completion_, joined, Teller::other);
    // The last to come hands up what all came to: those before need not look for that.
    engine_.progress();
    // Every PE in the tree may have a result now.
    engine_.clock_->touch_all();
    engine_.arrived(edge_, join_.value.reduction);
    release(completion_);
    delete this;
  }

 private:
  CollectiveEngine& engine_;
  const Port& port_;
  CeEdge& edge_;
  const Completion completion_;
  const CeJoin join_;
};

Errc CollectiveEngine::post_timed(Request& request, const Port& port, CeEdge& edge, const CeJoin& join) {
  if (!reserve(edge, join.value.reduction)) {
    // A look in vain: a program that tries until it is taken lets time pass for those that it waits for.
    (void)mover_.progress(&edge);
    return Errc::no_resource;
  }
  if (const Errc reserved = nic::reserve(request.completion); reserved != Errc::ok) {
    arrived(edge, join.value.reduction);
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

Errc CollectiveEngine::post(Endpoint& endpoint, CeEdge& edge, Request request, const CeJoin& join) {
  const PostGate gate(view_, *endpoint.port);
  Initiator::address(endpoint, &request);
  if (clock_ != nullptr) return post_timed(request, *endpoint.port, edge, join);
  Completion& told = request.completion;
  if (const Errc reserved = nic::reserve(told); reserved != Errc::ok) return reserved;
  if (faults_ != nullptr) [[unlikely]] {
    const FaultOutcome met =
        faults_->decide({.from = endpoint.port->nic_address, .to = edge.nic_address, .can_wait = false});
    if (met.status != Errc::ok) {
      lose(*endpoint.port, edge, join);
      complete(told, met.status, Teller::owner);
      return Errc::ok;
    }
  }
  const Errc joined = this->join(*endpoint.port, edge, join);
  if (joined == Errc::no_resource) {
    abandon(told);
    return joined;
  }
  complete(told, joined, Teller::owner);
  return Errc::ok;
}

}  // namespace orrery::nic
