// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The target's side of messages that come by frame, and the thread that carries out the triggers they make
// due.
#include "lib/portals4/frame_server.hpp"

#include "emu/base/start_thread.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

namespace orrery::portals4 {

namespace {

// Messages that one peer may have open at a time.
constexpr std::size_t kMostOpen = 256;
constexpr std::int64_t kReapNs = 200'000'000;

template <typename T>
bool take(std::span<const std::byte>& from, T* to) {
  if (from.size() < sizeof(T)) return false;
  std::memcpy(to, from.data(), sizeof(T));
  from = from.subspan(sizeof(T));
  return true;
}

// Whether an offer says what can be, before any of it is used.
bool is_sound(const match::Offer& offer, std::uint64_t bytes) {
  if (offer.kind > static_cast<std::uint8_t>(match::OpKind::swap)) return false;
  const auto kind = static_cast<match::OpKind>(offer.kind);
  if (offer.interface >= match::kInterfaces || offer.portal >= match::kMaxPortals ||
      offer.length > kMostBytes || bytes > offer.length || (kind == match::OpKind::get && bytes != 0))
    return false;
  if (!is_atomic(kind)) return true;
  const std::uint32_t size = size_of(offer.datatype);
  const bool known = kind == match::OpKind::swap ? is_swap(offer.operation, offer.datatype)
                                                 : is_simple(offer.operation, offer.datatype);
  return known && offer.length % size == 0 && offer.length <= kMostAtomicBytes;
}

}  // namespace

FrameServer& FrameServer::get() {
  static auto* const server = new FrameServer;  // outlives exit handlers of the program
  return *server;
}

void FrameServer::start(std::uint32_t pid) {
  pid_.store(pid, std::memory_order_release);
  Process::get().runtime().nic().transport().serve_match_unit(*this);
}

void FrameServer::stop() { pid_.store(match::kAny, std::memory_order_release); }

Errc FrameServer::serve(const wire::PacketHeader& header, std::span<const std::byte> payload,
                        std::span<std::byte> answer) {
  match::StepHead head;
  if (answer.size() < sizeof(match::StepAnswer) || !take(payload, &head)) return Errc::corrupt;
  const std::uint32_t pid = pid_.load(std::memory_order_acquire);
  if (pid == match::kAny) return Errc::no_match;
  match::StepAnswer said;
  const std::span<std::byte> room = answer.subspan(sizeof said);
  Errc status = Errc::corrupt;
  {
    const std::lock_guard lock(mu_);
    const auto step = static_cast<match::Step>(head.step);
    if (step == match::Step::who) {
      status = head.token == pid ? Errc::ok : Errc::no_match;
    } else if (step == match::Step::open) {
      status = open(header.source, payload, room, &said);
    } else {
      const auto found = open_.find(head.token);
      if (found == open_.end() || found->second.source.slot != header.source) return Errc::invalid_handle;
      status = go_on(head, found->second, payload, room, &said);
      if (step == match::Step::finish) open_.erase(found);
    }
  }
  if (status == Errc::ok) std::memcpy(answer.data(), &said, sizeof said);
  if (match::has_due(Process::get().own())) ring();
  return status;
}

Errc FrameServer::open(wire::ProcessSlot source, std::span<const std::byte> payload,
                       std::span<std::byte> room, match::StepAnswer* said) {
  match::Offer offer;
  if (!take(payload, &offer) || !is_sound(offer, payload.size())) return Errc::corrupt;
  if (offer.pid != pid_.load(std::memory_order_relaxed)) return Errc::no_match;
  Process& process = Process::get();
  Open message;
  message.kind = static_cast<match::OpKind>(offer.kind);
  std::memcpy(message.operand, offer.operand, sizeof message.operand);
  match::Arrival& arrival = message.arrival;
  arrival.move = move_of(message.kind);
  arrival.interface = offer.interface;
  arrival.operation = offer.operation;
  arrival.datatype = offer.datatype;
  arrival.portal = offer.portal;
  arrival.uid = offer.uid;
  arrival.initiator = offer.initiator;
  arrival.match_bits = offer.match_bits;
  arrival.remote_offset = offer.remote_offset;
  arrival.length = offer.length;
  arrival.header_data = offer.header_data;
  // What would stay open needs room for it before its entry is taken.
  const bool may_stay = offer.length > payload.size() || offer.length > room.size();
  if (may_stay) {
    const auto of_source = std::count_if(open_.begin(), open_.end(),
                                         [&](const auto& one) { return one.second.source.slot == source; });
    if (static_cast<std::size_t>(of_source) >= kMostOpen) return Errc::no_resource;
    const auto name = process.runtime().process_in(source);
    if (!name.ok()) return Errc::unreachable;
    message.source = name.value();
  }
  {
    match::Session session(process.own());
    message.verdict = match::accept(session, arrival);  // reap() ends it when its initiator dies
  }
  const match::Verdict& verdict = message.verdict;
  said->fail = verdict.fail;
  if (verdict.fail != match::kDelivered) return Errc::ok;
  said->moved = verdict.moved;
  said->offset = verdict.offset;
  said->list = verdict.list;
  said->no_ack = verdict.no_ack ? 1 : 0;
  const bool leaves = message.kind != match::OpKind::get;
  Errc status = Errc::ok;
  bool whole = true;
  if (leaves) {
    const auto here = payload.first(std::min<std::uint64_t>(payload.size(), verdict.moved));
    if (is_atomic(message.kind)) message.bytes.resize(verdict.moved);
    status = put_part(message, 0, here);
    whole = here.size() == verdict.moved;
    if (status == Errc::ok && whole && is_atomic(message.kind)) status = apply_atomic(message);
  }
  if (returns(message.kind) && whole && status == Errc::ok) {
    status = get_part(message, 0, room, said);
    whole = said->bytes == verdict.moved;
  }
  if (whole || status != Errc::ok) {
    said->fail = fail_of(status);
    finish(message, static_cast<match::Fail>(said->fail));
    return Errc::ok;
  }
  said->token = ++last_token_;
  open_.emplace(last_token_, std::move(message));
  ring();  // the thread looks after those whose initiator dies
  return Errc::ok;
}

Errc FrameServer::go_on(const match::StepHead& head, Open& message, std::span<const std::byte> payload,
                        std::span<std::byte> room, match::StepAnswer* said) {
  const std::uint64_t moved = message.verdict.moved;
  switch (static_cast<match::Step>(head.step)) {
    case match::Step::put_part:
      if (message.kind == match::OpKind::get || message.applied || head.offset > moved ||
          payload.size() > moved - head.offset)
        return Errc::corrupt;
      return put_part(message, head.offset, payload);
    case match::Step::get_part:
      if (message.kind == match::OpKind::put || message.kind == match::OpKind::atomic ||
          head.offset > moved || (is_atomic(message.kind) && !message.applied))
        return Errc::corrupt;
      return get_part(message, head.offset, room, said);
    case match::Step::apply:
      if (!is_atomic(message.kind) || message.applied) return Errc::corrupt;
      return apply_atomic(message);
    case match::Step::finish:
      finish(message, head.fail <= match::kSegv ? static_cast<match::Fail>(head.fail) : match::kSegv);
      return Errc::ok;
    default:
      return Errc::corrupt;
  }
}

Errc FrameServer::put_part(Open& message, std::uint64_t at, std::span<const std::byte> bytes) {
  if (is_atomic(message.kind)) {
    std::copy(bytes.begin(), bytes.end(), message.bytes.begin() + static_cast<std::ptrdiff_t>(at));
    return Errc::ok;
  }
  Peer& self = Process::get().self();
  const match::Verdict& verdict = message.verdict;
  std::vector<Range> there;
  if (!ranges_of(self, verdict.start, verdict.pieces, verdict.offset + at, bytes.size(), &there))
    return Errc::bounds;
  return write(self, there, bytes.data());
}

Errc FrameServer::get_part(Open& message, std::uint64_t at, std::span<std::byte> room,
                           match::StepAnswer* said) {
  Peer& self = Process::get().self();
  const match::Verdict& verdict = message.verdict;
  const std::uint64_t bytes = std::min<std::uint64_t>(room.size(), verdict.moved - at);
  said->bytes = static_cast<std::uint32_t>(bytes);
  if (is_atomic(message.kind)) {
    std::copy_n(message.bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes, room.begin());
    return Errc::ok;
  }
  std::vector<Range> there;
  if (!ranges_of(self, verdict.start, verdict.pieces, verdict.offset + at, bytes, &there))
    return Errc::bounds;
  return read(self, there, room.data());
}

// What was there before takes the place of the operands.
Errc FrameServer::apply_atomic(Open& message) {
  Peer& self = Process::get().self();
  const match::Verdict& verdict = message.verdict;
  message.applied = true;
  std::vector<Range> there;
  if (!ranges_of(self, verdict.start, verdict.pieces, verdict.offset, verdict.moved, &there))
    return Errc::bounds;
  return change_atomically(self, there, message.arrival.operation, message.arrival.datatype,
                           reinterpret_cast<const std::byte*>(message.operand), &message.bytes);
}

void FrameServer::finish(Open& message, match::Fail fail) {
  match::Session session(Process::get().own());
  match::finish(session, message.arrival, message.verdict, fail);
}

// ---- the thread ----

void FrameServer::ring() {
  std::call_once(started_, [this] { start_detached_thread("orrery-frames", [this] { run(); }); });
  bell_.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(bell_, 1);
}

// Ends messages whose initiator has died. Returns whether any are left.
bool FrameServer::reap() {
  const std::lock_guard lock(mu_);
  for (auto one = open_.begin(); one != open_.end();) {
    if (Process::get().runtime().alive(one->second.source)) {
      ++one;
      continue;
    }
    finish(one->second, match::kUndeliverable);
    one = open_.erase(one);
  }
  return !open_.empty();
}

void FrameServer::run() {
  mark_runtime_thread();
  Process& process = Process::get();
  for (;;) {
    const std::uint32_t bell = bell_.load(std::memory_order_seq_cst);
    if (pid_.load(std::memory_order_acquire) != match::kAny) run_due(process.self());
    if (reap())
      futex_wait_for(bell_, bell, kReapNs);
    else
      futex_wait(bell_, bell, std::nullopt);
  }
}

}  // namespace orrery::portals4
