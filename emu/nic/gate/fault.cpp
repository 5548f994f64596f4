// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/gate/fault.hpp"

#include "emu/base/timed_path.hpp"
#include "emu/base/wait.hpp"
#include "emu/nic/nic.hpp"
#include "emu/nic/state/hazard.hpp"

#include <algorithm>
#include <random>

namespace orrery::nic {

namespace {

std::array<std::uint64_t, 2> name_of(const MemKey& key) {
  return {key.page, std::uint64_t{key.process} << 32 | std::uint64_t{key.generation} << 16 | key.index};
}

void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) {
  counter.fetch_add(by, std::memory_order_relaxed);
}

}  // namespace

// Not in the header, which nearly every source of the NIC reads.
struct FaultUnit::Rng {
  std::mt19937_64 random;
};

FaultUnit::FaultUnit(const FaultSpec& spec, std::int32_t pe, FaultCounters& counters)
    : spec_(spec),
      concerned_(spec.pes.empty() || std::find(spec.pes.begin(), spec.pes.end(), pe) != spec.pes.end()),
      counters_(counters),
      // Every PE its own sequence.
      rng_(new Rng{std::mt19937_64(spec.seed * 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(pe + 1))}) {}

FaultUnit::~FaultUnit() = default;

// REQUIRES: mu_ is held.
bool FaultUnit::happens(const FaultWhen& when) {
  if (when.operation != 0) return when.operation == operation_;
  return when.chance > 0 && std::uniform_real_distribution<>(0, 1)(rng_->random) < when.chance;
}

// REQUIRES: mu_ is held.
bool FaultUnit::is_dead(std::uint32_t address) const {
  return std::any_of(spec_.dead.begin(), spec_.dead.end(), [&](const DeadNode& node) {
    return node.nic_address == address && operation_ >= node.from;
  });
}

bool FaultUnit::is_cut(std::uint32_t from, std::uint32_t to) {
  const std::lock_guard lock(mu_);
  return concerned_ && (is_dead(from) || is_dead(to));
}

FaultOutcome FaultUnit::decide(const Query& query) {
  FaultOutcome met;
  if (!concerned_) return met;
  const std::lock_guard lock(mu_);
  ++operation_;
  if (is_dead(query.from) || is_dead(query.to)) {
    count(counters_.unreachable);
    met.status = Errc::unreachable;
    return met;
  }
  if (query.key.valid()) {
    if (happens(spec_.revoke)) revoked_.insert(name_of(query.key));
    if (revoked_.count(name_of(query.key)) != 0) {
      count(counters_.revoked);
      met.status = Errc::invalid_handle;
      return met;
    }
  }
  for (std::uint32_t left = std::max(query.tries, 1u);;) {
    --left;
    int crossed = 0;
    // The one operation that was named meets one error; by chance, each try may.
    while (crossed < kLinkTries && (spec_.link.operation == 0 || crossed == 0) && happens(spec_.link))
      ++crossed;
    met.link_errors += static_cast<std::uint32_t>(crossed);
    met.status = crossed == kLinkTries    ? Errc::unreachable
                 : happens(spec_.corrupt) ? Errc::corrupt
                 : happens(spec_.drop)    ? Errc::timeout
                                          : Errc::ok;
    if (met.status == Errc::corrupt) count(counters_.corrupted);
    if (met.status == Errc::timeout) count(counters_.dropped);
    if (met.status == Errc::unreachable) count(counters_.links_failed);
    if (met.status == Errc::ok || met.status == Errc::unreachable || left == 0) break;
    // A fault of one operation alone does not meet it again.
    if ((met.status == Errc::corrupt ? spec_.corrupt : spec_.drop).operation != 0) met.status = Errc::ok;
    count(counters_.retransmitted);
    ++met.retransmits;
    if (met.status == Errc::ok) break;
  }
  count(counters_.link_errors, met.link_errors);
  if (met.status == Errc::ok && query.can_wait && happens(spec_.delay)) {
    count(counters_.delayed);
    met.delay_ns = spec_.delay_ns;
  }
  return met;
}

// ---- the NIC's side ----

// What keeps an operation from being carried out now: a clock says when, or a fault that was asked for says
// whether. Ended with ok: nothing does.
ORRERY_TIMED_PATH Begun Nic::defer_or_fail(Endpoint& endpoint, const Request& request) {
  if (clock_ != nullptr) {
    post_timed(endpoint, request);
    return {Begun::Kind::accepted};
  }
  const FaultOutcome met = meet_faults(endpoint, request);
  if (met.status != Errc::ok) return Begun::ended(met.status);
  const Errc held = hold_back(request, met.delay_ns);
  if (held == Errc::not_done) return Begun::ended(Errc::ok);
  return {held == Errc::ok ? Begun::Kind::accepted : Begun::Kind::no_room};
}

ORRERY_TIMED_PATH FaultOutcome Nic::meet_faults(const Endpoint& endpoint, const Request& request) {
  const wire::VerbTraits& verb = wire::traits(request.op);
  const Mailbox* const box = verb.connected ? endpoint.mailbox.get() : nullptr;
  const FaultOutcome met =
      faults_->decide({.from = endpoint.port->nic_address,
                       .to = endpoint.remote_nic_address,
                       .key = verb.unit == wire::Unit::region ? request.remote : MemKey{},
                       .tries = box != nullptr && box->sends_again ? 1 + endpoint.port->max_retransmits : 1});
  endpoint.port->retransmitted.fetch_add(met.retransmits, std::memory_order_relaxed);
  if (met.link_errors != 0) {
    errors_.report({.domain = endpoint.port->domain,
                    .nic_address = endpoint.remote_nic_address,
                    .status = Errc::corrupt,
                    .corrected = true});
  }
  return met;
}

// Keeps the request for later when it is delayed, or has to stay behind one that is. ok: kept. not_done: it
// may go now. no_resource: neither.
Errc Nic::hold_back(const Request& request, std::int64_t delay_ns) {
  if (delay_ns == 0 && delays_.count.load(std::memory_order_acquire) == 0) return Errc::not_done;
  // Made before the lock, in vain when nothing is in its way: to read the program's memory may wait for
  // the thread that serves its faults, which may have to post an operation itself first.
  std::list<Delayed> kept;
  kept.push_back({.request = request});
  // The program may change its source once the post has returned, but that of a block transfer, whose event
  // says when: so the engine, which may get it when its time comes, has a source that outlives this record.
  if (wire::traits(request.op).payload && (request.flags & (kBlockTransfer | kLocalOffset)) == 0) {
    const auto* const from = reinterpret_cast<const std::byte*>(request.local_address);
    Delayed& one = kept.front();
    one.payload.assign(from, from + request.length);
    one.request.local_address = reinterpret_cast<std::uint64_t>(one.payload.data());
  }
  std::int64_t due = monotonic_ns() + delay_ns;
  {
    const std::lock_guard lock(delays_.mu);
    bool behind = false;
    for (const Delayed& before : delays_.list) {
      const bool ordered = before.request.peer == request.peer && (request.flags & kInOrder) != 0;
      const bool fenced = (request.flags & kFence) != 0 ||
                          ((request.flags & kBlockTransfer) != 0 && (before.request.flags & kFence) != 0);
      if (!ordered && !fenced) continue;
      behind = true;
      due = std::max(due, before.due_ns);
    }
    if (delay_ns == 0 && !behind) return Errc::not_done;
    if (delays_.list.size() >= DelayLine::kCapacity) return Errc::no_resource;
    auto place = delays_.list.end();
    while (place != delays_.list.begin() && std::prev(place)->due_ns > due) --place;
    kept.front().due_ns = due;
    delays_.list.splice(place, kept);
    retain(request.completion);
    delays_.count.fetch_add(1, std::memory_order_release);
  }
  if (view_.service().poller.load(std::memory_order_relaxed) == Poller::none) services_.ring_self();
  return Errc::ok;
}

// A message of a mailbox, or a credit, that finds no room on the wire goes when there is some, whatever its
// program does meanwhile: the mailbox has room for it. Of one mailbox's credits the last one says it all.
// `request` was reserved. What its peer gets later stays behind it (must_follow, and the fast path).
Errc Nic::hold(const Request& request) {
  const bool is_credit = request.op == Op::credit;
  std::list<Delayed> kept;
  kept.push_back({.request = request, .due_ns = monotonic_ns(), .is_held = true});
  Delayed& one = kept.front();
  if (is_credit) {
    const auto* const from = reinterpret_cast<const std::byte*>(request.local_address);
    one.payload.assign(from, from + request.length);
    one.request.local_address = reinterpret_cast<std::uint64_t>(one.payload.data());
  }
  const auto count_in = [&](std::int32_t by) {
    const std::lock_guard frames(frames_mu_);
    count(request.peer->in_flight, by);
  };
  count_in(1);
  {
    const std::lock_guard lock(delays_.mu);
    const auto replaces = [&](const Delayed& before) {
      return is_credit && before.request.op == Op::credit && before.is_held && !before.running &&
             before.request.peer == request.peer && before.request.remote_address == request.remote_address &&
             before.request.remote == request.remote;
    };
    const auto before = std::find_if(delays_.list.begin(), delays_.list.end(), replaces);
    if (before != delays_.list.end()) {
      before->payload.swap(one.payload);
      before->request.local_address = reinterpret_cast<std::uint64_t>(before->payload.data());
      count_in(-1);
      abandon(request.completion);
      return Errc::ok;
    }
    delays_.list.splice(delays_.list.end(), kept);
    retain(request.completion);
    delays_.count.fetch_add(1, std::memory_order_release);
  }
  if (view_.service().poller.load(std::memory_order_relaxed) == Poller::none) services_.ring_self();
  return Errc::ok;
}

// Carries out what is due. Returns whether anything is still held back.
bool Nic::run_delayed() {
  if (delays_.count.load(std::memory_order_acquire) == 0) return false;
  if (delays_.running.exchange(true, std::memory_order_acquire)) return true;
  const std::int64_t now = monotonic_ns();
  for (;;) {
    Delayed* first = nullptr;
    {
      const std::lock_guard lock(delays_.mu);
      if (delays_.list.empty() || delays_.list.front().due_ns > now) break;
      first = &delays_.list.front();
      first->running = true;
    }
    if (!carry_out(*first)) {
      const std::lock_guard lock(delays_.mu);
      first->running = false;
      break;
    }
    if (first->is_held) {
      const std::lock_guard frames(frames_mu_);
      count(first->request.peer->in_flight, -1);
    }
    std::list<Delayed> done;  // freed without the lock
    const std::lock_guard lock(delays_.mu);
    // Later ones with an earlier time may stand before it by now.
    const auto at = std::find_if(delays_.list.begin(), delays_.list.end(),
                                 [first](const Delayed& d) { return &d == first; });
    done.splice(done.end(), delays_.list, at);
    delays_.count.fetch_sub(1, std::memory_order_release);
  }
  delays_.running.store(false, std::memory_order_release);
  return delays_.count.load(std::memory_order_acquire) != 0;
}

// One delayed operation, now. False: there is no room for it on the wire, later.
bool Nic::carry_out(Delayed& d) {
  const Begun begun = route(d.request, kSharedHazardSlot);
  if (begun.kind == Begun::Kind::no_room) return false;
  if (begun.kind == Begun::Kind::ended) complete(d.request.completion, begun.status, Teller::other);
  release(d.request.completion);
  return true;
}

}  // namespace orrery::nic
