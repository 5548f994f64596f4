// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Frames that arrive, and what they do to this NIC's state. A thread of the program that polls takes them in
// passing; the service thread does it when no other thread looks.
#include "emu/base/log.hpp"
#include "emu/nic/target/amo_cache.hpp"
#include "emu/nic/target/execute.hpp"
#include "emu/nic/target/match_packets.hpp"
#include "emu/nic/transport/refusal.hpp"
#include "emu/nic/transport/transport.hpp"

#include <algorithm>
#include <bit>

namespace orrery::nic {

using wire::answer_has_data;

namespace {
bool names_space(const NicView& nic, const wire::PacketHeader& header) {
  return header.key_index < kMaxRegions &&
         (control::flags(nic.region(header.key_index).control.load(std::memory_order_relaxed)) & kSpace) != 0;
}
}  // namespace

// Applies one packet of a process whose last one is in `from`. `out`: the answer's payload, in `buffer`.
// REQUIRES: requests_mu_ is held.
Errc Transport::apply(Parts& from, const wire::Packet& packet, std::uint32_t max_part,
                      std::span<std::byte> buffer, std::span<std::byte>* out) {
  const wire::PacketHeader& header = packet.header;
  const wire::VerbTraits& verb = wire::traits(header.verb);
  const bool brings_data = answer_has_data(header);
  Errc status = Errc::ok;
  *out = {};
  // A packet asks for no more than a packet's worth of work.
  const bool in_parts = verb.answer != wire::Answer::status;
  if (in_parts && (header.part_bytes > max_part || header.part_bytes > buffer.size())) {
    status = Errc::corrupt;
  } else if (brings_data) {
    *out = buffer.first(header.part_bytes);
  }
  // The parts of one operation follow each other. After one that failed the rest is not done: the last part
  // would tell of data that is not there.
  if (header.offset == 0)
    from.failed = Errc::ok;
  else if (header.transaction == from.transaction && status == Errc::ok)
    status = from.failed;
  if (status == Errc::ok && verb.unit == wire::Unit::engine) [[unlikely]] {
    status = hooks_.to_engine(header);
  } else if (status == Errc::ok && verb.unit == wire::Unit::match) [[unlikely]] {
    // Acquire: what the server is made of.
    match::PacketServer* const server = match_server_.load(std::memory_order_acquire);
    std::fill(out->begin(), out->end(), std::byte{0});
    status = server == nullptr ? Errc::invalid_handle : server->serve(header, packet.payload, *out);
  } else if (status == Errc::ok) {
    const Target target{view_, &identity_};
    const auto carry_out = [&](const Target& where) {
      return run_guarded(services_, [&] { return execute(where, header, packet.payload, *out); });
    };
    status = carry_out(target);
    // A page that faults: of memory that is gone, or that its owner has protected since it was registered,
    // which is no matter to a device. Of a whole address space the protection decides.
    if (status == Errc::bounds && verb.copies && !names_space(view_, header)) [[unlikely]]
      status = carry_out({.nic = view_, .memory = &identity_, .is_protected = true});
    from.failed = status;
  }
  from.transaction = header.transaction;
  if (status != Errc::ok) *out = {};
  return status;
}

void Transport::deliver(const wire::Packet& packet) {
  const wire::PacketHeader& header = packet.header;
  if (header.source >= kMaxProcesses) return;
  Inbound& from = inbound_[header.source];
  if (!from.open) return;
  std::span<std::byte> out;
  const Errc status = apply(from.parts, packet, from.responses.max_payload(), payloads_->lane_answer, &out);
  if ((header.flags & wire::kWantsResponse) == 0) {
    if (status != Errc::ok) [[unlikely]]
      count_refusal(header, status);
    return;
  }
  wire::PacketHeader answer;
  answer.verb = wire::Verb::response;
  answer.source = self_;
  answer.transaction = header.transaction;
  answer.status = static_cast<std::uint8_t>(status);
  answer.offset = header.offset;
  answer.payload_bytes = static_cast<std::uint32_t>(out.size());
  if (!from.responses.try_send(answer, out).ok()) {
    // An initiator that has more answers due than the lane holds broke the protocol.
    log::warn("process {}: its response lane is full, so its requests are no longer served", header.source);
    refuse(from);
  }
}

// REQUIRES: requests_mu_ is held.
void Transport::refuse(Inbound& from) {
  from.open = false;
  from.requests.refuse();
}

bool Transport::poll_requests(bool must_look) {
  // Refuses what claims to come from another process than the lane's.
  struct Checked final : wire::Sink {
    Transport& transport;
    std::uint32_t source;
    Checked(Transport& t, std::uint32_t s) : transport(t), source(s) {}
    void deliver(const wire::Packet& packet) override {
      if (packet.header.source == source) return transport.deliver(packet);
      log::warn("process {}: a frame of its lane says that it comes from {}", source, packet.header.source);
      transport.refuse(transport.inbound_[source]);
    }
    bool deliver_line(const wire::ShortFrame& frame) override {
      return frame.source == source && transport.take_short_put(transport.inbound_[source], frame);
    }
  };
  if (view_.service().lane_changes.load(std::memory_order_acquire) == 0) return false;
  if (!must_look && pending_.nothing_arrived()) return false;
  std::unique_lock lock(requests_mu_, std::defer_lock);
  if (must_look)
    lock.lock();
  else if (!lock.try_lock())
    return false;
  find_lanes();
  bool any = false;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Inbound& from = inbound_[lanes_[i]];
    if (!from.open || !from.requests.ready()) continue;
    Checked sink(*this, lanes_[i]);
    if (from.requests.poll(sink, kFramesPerPoll) > 0) any = true;
    if (i < pending_.next_frames.size())
      pending_.next_frames[i].store(from.requests.next(), std::memory_order_relaxed);
  }
  return any;
}

// Opens the lanes that came into use since the last time. REQUIRES: requests_mu_ is held.
void Transport::find_lanes() {
  ServiceState& service = view_.service();
  const std::uint32_t changes = service.lane_changes.load(std::memory_order_acquire);
  if (changes == lanes_seen_) return;
  lanes_seen_ = changes;
  for (std::uint32_t group = 0; group < kMaxProcesses / 64; ++group) {
    std::uint64_t bits = service.active_lanes[group].load(std::memory_order_acquire);
    for (; bits != 0; bits &= bits - 1) {
      const std::uint32_t source = group * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      if (source >= view_.lane_count()) continue;
      Inbound& from = inbound_[source];
      if (from.opened) continue;
      from.requests = wire::RingConsumer(view_.request_lane(source), view_.lane_bytes());
      from.responses = wire::RingProducer(view_.response_lane(source), view_.lane_bytes());
      from.opened = true;
      from.open = true;
      if (lanes_.size() < pending_.next_frames.size())
        pending_.next_frames[lanes_.size()].store(from.requests.next(), std::memory_order_relaxed);
      lanes_.push_back(static_cast<std::uint16_t>(source));
    }
  }
  pending_.next_frames_for.store(lanes_.size() <= pending_.next_frames.size() ? changes : 0,
                                 std::memory_order_release);
}

// The target's end: what apply() would do with a put of one line without an answer. False: nothing was
// done, and apply() decides. REQUIRES: requests_mu_ is held.
bool Transport::take_short_put(Inbound& from, const wire::ShortFrame& frame) {
  if (frame.verb != wire::Verb::put || (frame.flags & ~wire::kWantsRemoteEvent) != wire::kLast ||
      frame.key_index >= kMaxRegions)
    return false;
  const MrtEntry& entry = view_.region(frame.key_index);
  // Acquire: pairs with the publication of the entry.
  const std::uint64_t word = entry.control.load(std::memory_order_acquire);
  if ((control::flags(word) & kSegmented) != 0 || AmoCache(view_).is_lazy() ||
      check_access(entry, word, frame.key_generation, frame.domain, frame.address, frame.payload_bytes,
                   true) != Errc::ok)
    return false;
  const auto store = [](void* argument) {
    const auto& put = *static_cast<const wire::ShortFrame*>(argument);
    store_bytes(reinterpret_cast<std::byte*>(put.address), put.payload, put.payload_bytes);
    return Errc::ok;
  };
  if (services_.guarded(store, const_cast<wire::ShortFrame*>(&frame)) != Errc::ok) return false;
  from.parts = {.transaction = frame.transaction, .failed = Errc::ok};
  if ((frame.flags & wire::kWantsRemoteEvent) != 0)
    raise_remote_event(view_, word, EventKind::remote, frame.event_data);
  return true;
}

void Transport::count_refusal(const wire::PacketHeader& header, Errc status) {
  auto& word = error_state(view_).refusals[header.source].newest;
  // The word is ours alone to write.
  word.store(refusal::next(word.load(std::memory_order_relaxed), header.domain, status),
             std::memory_order_release);
}

void Transport::flush_amo_cache(std::uint64_t begin, std::uint64_t end) {
  struct Work {
    Transport* transport;
    std::uint64_t begin, end;
  } work{this, begin, end};
  // Frames are applied under this lock, and with them everything that a lazy cache does.
  const std::lock_guard lock(requests_mu_);
  // Each page that is not there any more loses the entry that it was found by, so this ends.
  while (services_.guarded(
             [](void* argument) {
               const auto* w = static_cast<Work*>(argument);
               AmoCache(w->transport->view_).flush(w->transport->identity_, w->begin, w->end);
               return Errc::ok;
             },
             &work) != Errc::ok) {
  }
}

void Transport::await_application() { const std::lock_guard lock(requests_mu_); }

}  // namespace orrery::nic
