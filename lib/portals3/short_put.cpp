// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The short way of a put, and what all operations have in common.
#include "lib/portals3/message.hpp"

#include <array>
#include <ctime>

namespace orrery::portals3 {

namespace {

match::Move move_of(Kind3 kind) {
  switch (kind) {
    case Kind3::put:
      return match::Move::put;
    case Kind3::get:
      return match::Move::get;
    default:
      return match::Move::fetch_atomic;  // reads and writes
  }
}

constexpr ptl_size_t kShort = 256;

// The bytes of a short put.
struct ShortPut {
  Peer* target = nullptr;
  std::array<std::byte, kShort> bytes;

  static bool move(void* put, std::uint64_t address, std::uint64_t length) {
    const auto* const self = static_cast<ShortPut*>(put);
    return self->target->memory->try_put(address, self->bytes.data(), length) == Errc::ok;
  }
};

}  // namespace

match::Arrival arrival_of(Kind3 kind, const To& to, ptl_size_t length) {
  const Process& process = Process::get();
  const match::Interface& own = process.own().interface(kInterface);
  match::Arrival arrival;
  arrival.move = move_of(kind);
  arrival.interface = kInterface;
  arrival.portal = to.portal;
  arrival.uid = own.uid;
  arrival.jid = process.ranks.jid;
  arrival.initiator = {own.nid, own.pid};
  arrival.match_bits = to.bits;
  arrival.remote_offset = to.offset;
  arrival.length = length;
  arrival.header_data = to.header_data;
  arrival.access = to.access;
  return arrival;
}

void give_reader_time(const Peer& peer, int quarters) {
  if (peer.self || Process::get().clock() != nullptr) return;
  const timespec pause{0, quarters < 3 ? 100'000 : 1'000'000};
  nanosleep(&pause, nullptr);
}

bool put_shortly(const Part& part, const To& to) {
  Process& process = Process::get();
  if (process.clock() != nullptr || is_wild(to.target)) return false;
  ShortPut put;
  ptl_size_t length = 0;
  if (!process.sources.copy(part, put.bytes.data(), kShort, &length)) return false;
  put.target = process.find_target(to.target);
  if (put.target == nullptr || put.target->memory == nullptr) return false;
  int behind = 0;
  {
    match::Session session(put.target->match);
    if (!classic::deliver_shortly(session, arrival_of(Kind3::put, to, length), {ShortPut::move, &put},
                                  &behind))
      return false;
  }
  if (behind != 0) give_reader_time(*put.target, behind);
  return true;
}

}  // namespace orrery::portals3
