// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Trees whose VCEs lie where their children cannot map them: contributions and results as packets. The owner
// of a VCE puts a child's contribution into the very slot that the child would have written, so that
// everything else is as in collective_engine.cpp.
#include "emu/nic/collective/collective_packets.hpp"

#include "emu/nic/collective/collective_engine.hpp"
#include "emu/nic/events/port.hpp"
#include "emu/nic/events/ports.hpp"
#include "emu/nic/transport/transport.hpp"

#include <algorithm>
#include <bit>

namespace orrery::nic {

namespace ce_packet {

namespace {

// What no version of ours says counts as a tree that cannot be.
CeStatus known(CeStatus status) {
  switch (status) {
    case CeStatus::ok:
    case CeStatus::unexpected:
    case CeStatus::duplicate:
    case CeStatus::child_invalid:
    case CeStatus::inconsistent:
    case CeStatus::protection:
    case CeStatus::id_mismatch:
    case CeStatus::unreachable:
      return status;
  }
  return CeStatus::unexpected;
}

void put_value(const CeValue& value, wire::PacketHeader* header) {
  header->operand[0] = value.operand[0];
  header->operand[1] = value.operand[1];
  header->event_data = value.reduction;
  header->aux = ce_meta(value);
}

CeValue value_of(const wire::PacketHeader& header) {
  CeValue value;
  value.operand[0] = header.operand[0];
  value.operand[1] = header.operand[1];
  value.reduction = header.event_data;
  set_ce_meta(value, header.aux);
  value.status = known(value.status);
  // A command that does not exist cannot agree with any other.
  if (!ce_command_exists(value.command) && value.status == CeStatus::ok)
    value.status = CeStatus::inconsistent;
  return value;
}

}  // namespace

wire::PacketHeader header_of(const Join& join) {
  wire::PacketHeader header;
  header.verb = wire::Verb::join;
  header.domain = join.domain;
  header.key_index = static_cast<std::uint16_t>(join.vce);
  header.key_generation = static_cast<std::uint16_t>(join.child);
  header.address = join.turn;
  header.match_bits = token(join.from);
  put_value(join.value, &header);
  return header;
}

Join join_of(const wire::PacketHeader& header) {
  return {.domain = header.domain,
          .vce = header.key_index,
          .child = header.key_generation,
          .turn = header.address,
          .value = value_of(header),
          .from = token_of(header.match_bits)};
}

wire::PacketHeader header_of(const Release& release) {
  wire::PacketHeader header;
  header.verb = wire::Verb::release;
  header.key_index = static_cast<std::uint16_t>(release.lane);
  header.address = release.turn;
  header.match_bits = token(release.to);
  put_value(release.value, &header);
  return header;
}

Release release_of(const wire::PacketHeader& header) {
  return {.turn = header.address,
          .lane = header.key_index,
          .value = value_of(header),
          .to = token_of(header.match_bits)};
}

}  // namespace ce_packet

namespace {

constexpr std::size_t kMaxArrivals = 65'536;

constexpr CeStatus status_of(Errc why) {
  return why == Errc::permission ? CeStatus::protection : CeStatus::unreachable;
}

}  // namespace

// Whether the state of its VCEs can be looked at from here.
bool CollectiveEngine::is_mapped(const Peer& owner) const {
  return owner.link.process.slot == self_ || (!owner.link.by_wire && !by_packets_);
}

// ---- packets come ----

// On the delivering thread, which may hold the NIC's locks: nothing is done here.
Errc CollectiveEngine::take(const wire::PacketHeader& header) {
  const std::lock_guard lock(arrivals_mu_);
  if (arrivals_.size() >= kMaxArrivals) return Errc::no_resource;
  arrivals_.push_back({header, Errc::ok});
  arrivals_count_.store(static_cast<std::uint32_t>(arrivals_.size()), std::memory_order_release);
  pending_.ask_for_polls(Pending::kMoves);
  return Errc::ok;
}

// A join or release of ours: how it ends is told to ended().
Errc CollectiveEngine::send(Peer& peer, const wire::PacketHeader& header) {
  return transport_.send_packet(peer, header, {}, {.listener = this});
}

void CollectiveEngine::ended(const Completion&, const Ending& ending) {
  if (ending.status == Errc::ok) return;
  const std::lock_guard lock(arrivals_mu_);
  arrivals_.push_back({*ending.header, ending.status});
  arrivals_count_.store(static_cast<std::uint32_t>(arrivals_.size()), std::memory_order_release);
  pending_.ask_for_polls(Pending::kMoves);
}

// Does what the packets that have come say, and answers waiters here. Returns whether some still wait.
bool CollectiveEngine::handle_packets(bool service) {
  if (arrivals_count_.load(std::memory_order_acquire) == 0 &&
      waiter_count_.load(std::memory_order_relaxed) == 0)
    return false;
  const std::unique_lock lock(packets_mu_, std::try_to_lock);
  if (!lock.owns_lock()) return true;
  std::vector<Arrival> arrivals;
  {
    const std::lock_guard arrivals_lock(arrivals_mu_);
    arrivals.swap(arrivals_);
    arrivals_count_.store(0, std::memory_order_relaxed);
  }
  for (const Arrival& arrival : arrivals) {
    if (arrival.failed != Errc::ok)
      handle_failure(arrival.header, arrival.failed, service);
    else if (arrival.header.verb == wire::Verb::join)
      handle_join(arrival.header);
    else
      handle_release(arrival.header.source, ce_packet::release_of(arrival.header), service);
  }
  answer_waiters();
  return !waiters_.empty();
}

// REQUIRES: packets_mu_ is held.
void CollectiveEngine::handle_join(const wire::PacketHeader& header) {
  const ce_packet::Join join = ce_packet::join_of(header);
  Waiter waiter{.source = header.source,
                .to = join.from,
                .vce = join.vce % kVces,
                .lane = static_cast<std::uint32_t>(join.value.reduction % kCeLanes),
                .turn = join.turn};
  const bool contributes = join.turn != ce_packet::kNoTurn && join.turn != ce_packet::kBroken;
  const auto refuse = [&](CeStatus why) {
    if (!contributes) return;
    waiter.refused = join.value;
    waiter.refused->status = why;
    add_waiter(waiter);
  };
  // A parent that names a child of this host, by a number that is by chance one of our VCEs'.
  if (join.turn == ce_packet::kNoTurn && (join.value.operand[0] & ce_packet::kOfInstance) != 0 &&
      !ports_.has(join.domain, static_cast<std::uint32_t>(join.value.operand[0])))
    return;
  VceState& vce = own(waiter.vce);
  const std::uint64_t control = vce.control.load(std::memory_order_acquire);
  const std::uint16_t generation = vce_control::generation(control);
  if (join.vce >= kVces || vce_control::stage(control) == VceStage::free) return refuse(CeStatus::unexpected);
  if (vce_control::domain(control) != join.domain) return refuse(CeStatus::protection);
  if (join.child >= kCeChildren || (vce_control::stage(control) == VceStage::configured &&
                                    (vce.children.load(std::memory_order_relaxed) >> join.child & 1) == 0))
    return refuse(CeStatus::child_invalid);
  // The VCE's owner watches each process that joins (attend).
  const auto process = services_.process_in(header.source);
  // What a child said before it died counts, if it was known.
  const std::uint64_t claim = vce.claims[join.child].load(std::memory_order_acquire);
  if (!process.ok() && (claim == 0 || ce_claim::process(claim).slot != header.source)) return;
  const CePath::Level here{nullptr, &vce, generation, 0};
  if (process.ok() && !claim_for(vce, join.child, process.value())) return refuse(CeStatus::duplicate);
  if (join.turn == ce_packet::kBroken) return break_tree(here, join.value.status);
  if (!contributes) return;
  const auto turn_in = [&](int parity) {
    return ce_tag::turn(
        vce.slots[waiter.lane][parity][join.child].pair[0].tag.load(std::memory_order_relaxed), generation);
  };
  const std::uint64_t last = std::max(turn_in(0), turn_in(1));
  waiter.turn = join.turn == ce_packet::kNextTurn ? last + 1 : join.turn;
  waiter.generation = generation;
  // One that is too far ahead would write over what is still looked at; one of the past is done with.
  if (waiter.turn != last + 1) return refuse(CeStatus::duplicate);
  publish(vce.slots[waiter.lane][waiter.turn & 1][join.child], generation, waiter.turn,
          join.from.is_vce ? join.value : ce_normal(join.value));
  add_waiter(waiter);
}

// REQUIRES: packets_mu_ is held.
void CollectiveEngine::add_waiter(const Waiter& waiter) {
  waiters_.push_back(waiter);
  waiter_count_.store(static_cast<std::uint32_t>(waiters_.size()), std::memory_order_relaxed);
  // Its siblings of this host wake us when they join.
  own(waiter.vce).modes.fetch_or(kCeOwnerActs, std::memory_order_seq_cst);
}

// Tells the waiters for a reduction that is over. REQUIRES: packets_mu_ is held.
void CollectiveEngine::answer_waiters() {
  std::erase_if(waiters_, [this](Waiter& waiter) {
    CeValue value;
    if (waiter.refused) {
      value = *waiter.refused;
    } else {
      VceState& vce = own(waiter.vce);
      const std::uint64_t control = vce.control.load(std::memory_order_acquire);
      CePath* path = nullptr;
      {
        const std::lock_guard lock(mu_);
        if (owned_[waiter.vce].used) path = owned_[waiter.vce].path;
      }
      if (vce_control::generation(control) != waiter.generation ||
          vce_control::stage(control) == VceStage::free) {
        value.status = CeStatus::unexpected;
      } else {
        if (path == nullptr) return false;  // not configured yet
        Record record;
        record.path = path;
        record.turn = waiter.turn;
        record.lane = waiter.lane;
        if (!follow(record, true)) {
          const auto why = trouble(record);
          if (!why) return false;
          if (!follow(record, true)) record.value.status = *why;
        }
        value = record.value;
      }
    }
    return release_to(waiter, value);
  });
  waiter_count_.store(static_cast<std::uint32_t>(waiters_.size()), std::memory_order_relaxed);
}

// False: there is no room on the wire, later.
bool CollectiveEngine::release_to(const Waiter& waiter, const CeValue& value) {
  const auto process = services_.process_in(waiter.source);
  if (!process.ok()) return true;
  const auto peer = peers_.connect(process.value());
  if (!peer.ok()) return true;
  return send(*peer.value(),
              ce_packet::header_of(ce_packet::Release{
                  .turn = waiter.turn, .lane = waiter.lane, .value = value, .to = waiter.to})) !=
         Errc::no_resource;
}

// REQUIRES: packets_mu_ is held.
void CollectiveEngine::handle_release(wire::ProcessSlot source, const ce_packet::Release& release,
                                      bool service) {
  if (!release.to.is_vce) {
    if (release.to.index >= kRecords) return;
    Record& record = records_[release.to.index];
    record.lock.lock();
    if (record.armed.load(std::memory_order_relaxed) && record.owner != nullptr &&
        record.owner->link.process.slot == source && record.serial == release.to.generation) {
      record.value = release.value;
      finish(record, service);
      record.armed.store(false, std::memory_order_relaxed);
    }
    record.lock.unlock();
    return;
  }
  if (release.to.index >= kVces || release.lane >= kCeLanes) return;
  VceState& vce = own(release.to.index);
  const std::uint16_t generation = vce_control::generation(vce.control.load(std::memory_order_acquire));
  {
    const std::lock_guard lock(mu_);
    const Owned& owned = owned_[release.to.index];
    if (!owned.used || owned.up_owner == nullptr || owned.up_owner->link.process.slot != source ||
        (generation & 0x7fff) != release.to.generation || release.turn > owned.sent_up[release.lane])
      return;
  }
  publish(vce.results[release.lane][release.turn & 1], generation, release.turn, release.value);
}

// A packet of ours got nowhere. REQUIRES: packets_mu_ is held.
void CollectiveEngine::handle_failure(const wire::PacketHeader& header, Errc why, bool service) {
  if (header.verb != wire::Verb::join) return;  // a child that is gone: it is missed by its VCE
  const ce_packet::Join join = ce_packet::join_of(header);
  if (join.turn == ce_packet::kNoTurn || join.turn == ce_packet::kBroken) return;
  CeValue value = join.value;
  value.status = status_of(why);
  if (!join.from.is_vce) {
    if (join.from.index >= kRecords) return;
    // Another thread may be taking the record for its next contribution. That one's serial number is another,
    // so that handle_release() leaves it alone.
    Record& record = records_[join.from.index];
    record.lock.lock();
    const Peer* const owner = record.owner;
    record.lock.unlock();
    if (owner == nullptr) return;
    return handle_release(owner->link.process.slot, {.turn = 0, .lane = 0, .value = value, .to = join.from},
                          service);
  }
  if (join.from.index >= kVces) return;
  VceState& vce = own(join.from.index);
  break_tree({nullptr, &vce, vce_control::generation(vce.control.load(std::memory_order_acquire)), 0},
             value.status);
}

// ---- packets go ----

// Tells our name to a VCE that is reached by packets; with `instance`, if its owner has opened that.
void CollectiveEngine::introduce(const Port& port, const CeEdge& edge,
                                 std::optional<std::uint32_t> instance) {
  ce_packet::Join news{
      .domain = port.domain, .vce = edge.id & (kVces - 1), .child = edge.child, .turn = ce_packet::kNoTurn};
  if (instance) news.value.operand[0] = ce_packet::kOfInstance | *instance;
  (void)send(*edge.owner, ce_packet::header_of(news));
}

// A contribution to a VCE that is reached by packets. As join().
Errc CollectiveEngine::join_by_packet(const Port& port, CeEdge& edge, const CeJoin& join) {
  const auto lane = static_cast<std::uint32_t>(join.value.reduction % kCeLanes);
  std::uint32_t index = 0;
  const auto taken = take_record(
      [&](const Record& one) {
        return one.owner == edge.owner && one.edge_id == edge.id && one.child == edge.child &&
               one.lane == lane;
      },
      join.value.reduction, &index);
  if (taken != Errc::ok) {
    if (taken == Errc::no_resource) return taken;
    CeValue value = join.value;
    value.status = CeStatus::duplicate;
    write_result(join, value);
    return taken == Errc::invalid_state ? Errc::duplicate : taken;
  }
  Record& record = records_[index];  // and ours: it is locked
  record.port = &port;
  record.path = nullptr;
  record.owner = edge.owner;
  record.edge_id = edge.id;
  record.serial = static_cast<std::uint16_t>((record.serial + 1) & 0x7fff);
  record.lane = lane;
  record.child = edge.child;
  record.join = join;
  record.usual = false;
  record.entry = nullptr;
  record.value = join.value;
  std::atomic_ref<std::uint64_t>(join.result[0]).store(join.pending, std::memory_order_relaxed);
  record.missing.store(nullptr, std::memory_order_relaxed);
  record.service_looks.store(0, std::memory_order_relaxed);
  const ce_packet::Join packet{.domain = port.domain,
                               .vce = edge.id & (kVces - 1),
                               .child = edge.child,
                               .turn = ce_packet::kNextTurn,
                               .value = join.value,
                               .from = {false, record.serial, static_cast<std::uint16_t>(index)}};
  const Errc sent = send(*edge.owner, ce_packet::header_of(packet));
  const bool going = sent == Errc::not_done;
  if (going) record.armed.store(true, std::memory_order_relaxed);
  record.lock.unlock();
  if (!going) {
    if (sent == Errc::no_resource) return sent;
    CeValue value = join.value;
    value.status = CeStatus::unreachable;
    write_result(join, value);
    return sent;
  }
  note_used(index);
  beat_heart();
  return Errc::ok;
}

void CollectiveEngine::lose(const Port& port, CeEdge& edge, const CeJoin& join) {
  if (edge.path == nullptr && edge.owner == nullptr) attach(port, edge);
  if (edge.path != nullptr) break_tree(edge.path->levels[0], CeStatus::unreachable);
  if (edge.owner != nullptr) {
    ce_packet::Join news{
        .domain = port.domain, .vce = edge.id & (kVces - 1), .child = edge.child, .turn = ce_packet::kBroken};
    news.value.status = CeStatus::unreachable;
    (void)send(*edge.owner, ce_packet::header_of(news));
  }
  CeValue value = join.value;
  value.status = CeStatus::unreachable;
  write_result(join, value);
}

// Contributions of a VCE of ours to its parent, which is reached by packets: what its own children have come
// to, turn by turn; and that it is broken. Returns whether one is under way. REQUIRES: mu_ is held.
bool CollectiveEngine::send_up(std::uint32_t index, Owned& owned, CeStatus broken) {
  VceState& vce = own(index);
  const std::uint16_t generation = vce_control::generation(vce.control.load(std::memory_order_relaxed));
  ce_packet::Join join{
      .domain = owned.port->domain,
      .vce = owned.up_id & (kVces - 1),
      .child = owned.up_child,
      .from = {true, static_cast<std::uint16_t>(generation & 0x7fff), static_cast<std::uint16_t>(index)}};
  if (broken != CeStatus::ok && !owned.told_parent) {
    join.turn = ce_packet::kBroken;
    join.value.status = broken;
    owned.told_parent = send(*owned.up_owner, ce_packet::header_of(join)) != Errc::no_resource;
    return true;
  }
  bool busy = false;
  const std::uint32_t children = vce.children.load(std::memory_order_relaxed);
  const auto first = static_cast<std::uint32_t>(std::countr_zero(children)) % kCeChildren;
  for (std::uint32_t lane = 0; lane < kCeLanes; ++lane) {
    const std::uint64_t turn = owned.sent_up[lane] + 1;
    const std::uint64_t tag = ce_tag::make(generation, turn);
    if (vce.slots[lane][turn & 1][first].pair[0].tag.load(std::memory_order_acquire) != tag) continue;
    busy = true;
    // The levels below the parent are one: ours.
    Record record;
    record.path = owned.path;
    record.turn = turn;
    record.lane = lane;
    (void)follow(record, true);
    if (record.level == 0) continue;  // a contribution is missing
    join.turn = turn;
    join.value = record.value;
    const Errc sent = send(*owned.up_owner, ce_packet::header_of(join));
    if (sent == Errc::no_resource) continue;
    owned.sent_up[lane] = turn;
    // The way up is gone, or was refused for what a peer put on it: no result can come down, and a thread
    // that waits for one here would wait for ever.
    if (sent != Errc::not_done) break_tree({nullptr, &vce, generation, 0}, status_of(sent));
  }
  return busy;
}

// Of every VCE of ours that is whole; what is broken is attend()'s.
void CollectiveEngine::send_up_all() {
  const std::unique_lock lock(mu_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (std::uint32_t left = up_by_packet_.load(std::memory_order_relaxed); left != 0; left &= left - 1) {
    const auto vce = static_cast<std::uint32_t>(std::countr_zero(left));
    if (owned_[vce].path != nullptr) (void)send_up(vce, owned_[vce], CeStatus::ok);
  }
}

}  // namespace orrery::nic
