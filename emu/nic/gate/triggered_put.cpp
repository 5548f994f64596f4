// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Puts that wait for a counter, and counters of peers: this process carries out what waits in another's
// segment as if the other had, where the memory of both ends is mapped here.
#include "emu/nic/gate/triggered_put.hpp"

#include "emu/nic/events/completion.hpp"
#include "emu/nic/events/port.hpp"
#include "emu/nic/state/access.hpp"
#include "emu/nic/state/hazard.hpp"
#include "emu/nic/state/thread_word.hpp"
#include "emu/nic/target/amo_cache.hpp"
#include "emu/nic/target/execute.hpp"

#include <mutex>

namespace orrery::nic {

namespace {

// More is the owner's: the lock of its triggers is held meanwhile.
constexpr std::uint64_t kMostBytes = 64 << 10;

template <typename Put>
class PutBy final : public trigger::Carrier {
 public:
  explicit PutBy(Put put) : put_(put) {}
  Errc put(const TriggerRecord& record) override { return put_(record); }

 private:
  Put put_;
};

// Counts the end of a put that its owner has posted.
class CountEnd final : public Listener {
 public:
  CountEnd(Triggered& triggered, CounterName counter, CounterValue by)
      : triggered_(triggered), counter_(counter), by_(by) {}
  void ended(const Completion&, const Ending& ending) override {
    (void)triggered_.add(counter_, ending.status == Errc::ok ? by_ : CounterValue{0, 1}, true);
    delete this;
  }

 private:
  Triggered& triggered_;
  const CounterName counter_;
  const CounterValue by_;
};

}  // namespace

Triggered::Triggered(HostServices& services, Pending& pending, wire::ProcessSlot self, PeerTable& peers,
                     Router& router, Initiator& initiator, bool anywhere)
    : services_(services),
      pending_(pending),
      view_(pending.view),
      self_(self),
      peers_(peers),
      router_(router),
      initiator_(initiator),
      anywhere_(anywhere),
      unit_(view_, {[this] { pending_.ask_for_polls(Pending::kHoldsBack); },
                    [this](const TriggerRecord& record) { return put_of_ours(record); }}) {}

Status Triggered::post_put(CounterName trigger, std::uint64_t threshold, Endpoint& endpoint,
                           const Request& request, CounterName counter, CounterValue by) {
  if (request.op != Op::put || request.completion.listener != nullptr ||
      (request.flags & (kLocalEvent | kGlobalEvent | kBlockTransfer)) != 0)
    return Errc::invalid_param;
  if (!endpoint.bound) return Errc::invalid_state;
  if (counter.valid() && counter::find(view_, counter) == nullptr) return Errc::invalid_handle;
  const auto attempt = [this, &endpoint, request, counter, by] {
    Request posted = request;
    CountEnd* const end = counter.valid() ? new CountEnd(*this, counter, by) : nullptr;
    posted.completion.listener = end;
    const Errc status = initiator_.post(endpoint, posted);
    if (status == Errc::ok) return true;
    delete end;
    if (status == Errc::no_resource) return false;
    (void)add(counter, {0, 1}, true);
    return true;
  };
  TriggerRecord record{};
  // What asks for more than bytes is the owner's to post: an event cannot be raised a second time.
  record.kind = TriggerKind::own;
  Peer* peer = nullptr;
  if (request.flags == 0 && request.local.valid() && !request.remote.is_number() &&
      ((request.local.flags | request.remote.flags) & kSegmented) == 0 &&
      peers_.behind(endpoint.remote_nic_address, request.remote.process, &peer) == Errc::ok) {
    record.kind = TriggerKind::put;
    record.target_generation = peer->link.process.generation;
  }
  record.counter = counter;
  record.value = by;
  record.source = request.local_address;
  record.source_key = request.local;
  record.target = request.remote_address;
  record.target_key = request.remote;
  record.length = request.length;
  record.domain = endpoint.port->domain;
  return unit_.post_put(trigger, threshold, record, attempt);
}

// Stores the bytes of a put that waited in the segment of `owner`. `unknown`: its target has not been
// connected to. not_done: it cannot be done from here.
Errc Triggered::put_for(Peer& owner, const TriggerRecord& record, bool* unknown) {
  const std::uint32_t place = thread_hazard_slot();
  const MemKey& from = record.source_key;
  const MemKey& to = record.target_key;
  if (!anywhere_ || record.length > kMostBytes || place == kSharedHazardSlot || from.index >= kMaxRegions ||
      to.process >= kMaxProcesses)
    return Errc::not_done;
  Peer* const target = peers_.find(to.process);
  if (target == nullptr || target->link.process != ProcessName{to.process, record.target_generation}) {
    *unknown = true;
    return Errc::not_done;
  }
  // Two registrations of one process: the thread's word there names the target's.
  std::unique_lock shared(router_.shared_hazard(), std::defer_lock);
  const bool both_in_one = target == &owner;
  const bool same_entry = both_in_one && from.index == to.index;
  if (both_in_one && !same_entry) shared.lock();
  MrtEntry& entry = owner.link.nic.region(from.index);
  const HazardGuard guard(owner.hazard(shared.owns_lock() ? kSharedHazardSlot : place), from.index,
                          owner.link.strong_hazards);
  const std::uint64_t word = announced_word(entry);
  if (const Errc access =
          check_access(entry, word, from.generation, record.domain, record.source, record.length, false);
      access != Errc::ok)
    return access;
  AddressMap* const memory = owner.link.same_address_space ? &identity_ : owner.link.memory.get();
  if (memory == nullptr || (control::flags(word) & kSuspended) != 0 || AmoCache(owner.link.nic).is_lazy() ||
      (control::state(word) != RegionState::direct && !owner.link.same_address_space))
    return Errc::not_done;
  const Run run = memory->find(record.source);
  if (record.length != 0 && !run.holds(record.source, record.length)) return Errc::not_done;
  if (same_entry && (control::flags(word) & (kSpace | kSegmented)) == 0 &&
      run.holds(record.target, record.length)) {
    if (target->dead.load(std::memory_order_relaxed)) return Errc::unreachable;
    const Errc access =
        check_access(entry, word, to.generation, record.domain, record.target, record.length, true);
    if (access == Errc::ok) store_bytes(run.at(record.target), run.at(record.source), record.length);
    return access;
  }
  Request request;
  request.local_address = reinterpret_cast<std::uint64_t>(run.at(record.source));
  request.remote = to;
  request.remote_address = record.target;
  request.length = record.length;
  request.peer = target;
  request.domain = record.domain;
  // Where both ends are in one registration this announces the same word, and clears it when all is done.
  return router_.try_direct(request, place);
}

Errc Triggered::put_of_ours(const TriggerRecord& record) {
  // Not connected to: this process posts it as it posts others.
  bool unknown = false;
  Peer* const self = peers_.find(self_);
  return self != nullptr ? put_for(*self, record, &unknown) : Errc::not_done;
}

Errc Triggered::add(CounterName name, CounterValue by, bool within) {
  const Counted counted = counter::add(view_, name, by);
  if (counted.fires) [[unlikely]] {
    if (!within)
      unit_.run(TriggerUnit::Look::at_signals);
    else if (view_.service().poller.load(std::memory_order_seq_cst) == Poller::none)
      services_.ring_self();
  }
  return counted.status;
}

Errc Triggered::add(ProcessName owner, CounterName name, CounterValue by) {
  Peer* peer = owner.slot < kMaxProcesses ? peers_.find(owner.slot) : nullptr;
  if (peer == nullptr || peer->link.process != owner) {
    const auto connected = peers_.connect(owner);
    if (!connected.ok()) return connected.code();
    peer = connected.value();
  }
  if (peer->link.by_wire) return Errc::unsupported;
  const NicView& nic = peer->link.nic;
  const Counted counted = counter::count(nic, name, by);
  if (!counted.fires) [[likely]]
    return counted.status;
  ProcessName wanted{kMaxProcesses, 0};
  PutBy carrier([&](const TriggerRecord& record) {
    bool unknown = false;
    const Errc status = put_for(*peer, record, &unknown);
    if (unknown) wanted = {record.target_key.process, record.target_generation};
    return status;
  });
  bool left = trigger::fire(nic, carrier, name.index);
  if (left && wanted.slot < kMaxProcesses && peers_.connect(wanted).ok())
    left = trigger::fire(nic, carrier, name.index);
  if (left) {
    // Release: the owner that sees it sees the count.
    counters_of(nic).fired.fetch_add(1, std::memory_order_release);
    if (sleeps(*peer)) services_.ring(owner);
  }
  return counted.status;
}

}  // namespace orrery::nic
