// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/wire/packet.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// What the NIC sees of a wire to other hosts; ofi_wire.hpp is the real one.
namespace orrery::wire {

// Hears of peers that are gone.
class PeerLoss {
 public:
  // Nothing from `peer` for so long that it counts as dead: everything under way to it is void, try_send()
  // says unreachable from now on, and nothing of it is delivered any more. Called from poll(), once per peer.
  virtual void lost(ProcessSlot peer) = 0;

 protected:
  ~PeerLoss() = default;
};

// Knows where processes are reached that have not been added yet.
class PeerAddresses {
 public:
  // The address of process `rank` of the job, for add_peer() in the slot of that number; empty: none. Called
  // from poll(), when a frame came that says it is from there. Not blocking.
  virtual std::vector<std::byte> address_of(std::uint32_t rank) = 0;

 protected:
  ~PeerAddresses() = default;
};

// What a NIC gives to a wire between hosts at a time.
inline constexpr std::size_t kLongestWirePart = std::size_t{1} << 16;

// One process's end of a wire to processes that share no memory with it. Threads: one at a time (the NIC's
// lock). What try_send() took arrives once, in order among requests and among answers, or the peer is lost.
class HostWire {
 public:
  virtual ~HostWire() = default;

  // Makes the process with that address known as `slot`; a later life of one that is known already replaces
  // it. No byte is sent. Errors: corrupt (not an address, or not for this provider), invalid_param (the slot
  // or the process is known already, or it is ourselves).
  virtual Status add_peer(ProcessSlot slot, std::span<const std::byte> address) = 0;
  // The process that was added with this address is known to be dead: what is in flight to it is void, and
  // no completion is reported.
  virtual void drop_peer(ProcessSlot slot, std::span<const std::byte> address) = 0;

  // Takes a packet: copies it, sends it now or with the next ones, at the latest in the next poll().
  // header.payload_bytes and header.source need not be set: the receiver's sink sees its own slot for us as
  // source. Outcomes: ok; not_done: no room now, nothing was taken, poll() and try again; size: too long;
  // no_match: no such peer; unreachable: lost. From inside deliver() only answers to the packet's source are
  // sure to be taken.
  virtual Status try_send(ProcessSlot slot, const PacketHeader& header,
                          std::span<const std::byte> payload) = 0;
  // As try_send(), for a put whose payload is not copied, but read where it lies until the answer comes: it
  // must be there, and should not change, until then. A payload that changes is copied and sent again: it
  // arrives late, as it was at one moment. size: longer than longest_in_place().
  virtual Status try_send_in_place(ProcessSlot slot, const PacketHeader& header,
                                   std::span<const std::byte> payload) = 0;
  // Longest payload that try_send_in_place() takes; 0 where it is no gain.
  virtual std::uint32_t longest_in_place() const = 0;
  // Longest payload of one packet that is not cut.
  virtual std::uint32_t max_payload() const = 0;

  // Sends what waits, takes in what came and delivers it, keeps the timers. Returns the number of packets
  // delivered. REQUIRES: not called from deliver() or lost().
  virtual int poll(int limit) = 0;
  // For a thread that wants to sleep until the wire's descriptor is readable: sends all that waits. True:
  // there is nothing to do until then, or until next_deadline_ns(), asked after this. False: poll() instead.
  virtual bool prepare_to_sleep() = 0;
  // When poll() must be called at the latest, in monotonic_ns(); nothing: not before the descriptor is
  // readable.
  virtual std::optional<std::int64_t> next_deadline_ns() const = 0;

  // Whether the provider had no room for a frame, or no connection yet: then it goes at the next poll(),
  // which is to be soon (next_deadline_ns()).
  virtual bool has_unsent(ProcessSlot slot) const = 0;

  // Says whether a caller waits for that peer: then its death is noticed although nothing is in flight to it.
  virtual void watch(ProcessSlot slot, bool on) = 0;
  // Whether everything that was sent has been acknowledged, and everything that came too.
  virtual bool is_idle() const = 0;
};

}  // namespace orrery::wire
