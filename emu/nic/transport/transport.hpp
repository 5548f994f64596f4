// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/memory/regions.hpp"
#include "emu/nic/state/address_map.hpp"
#include "emu/nic/state/lock_rank.hpp"
#include "emu/nic/transport/hot_memory.hpp"
#include "emu/nic/transport/inbound.hpp"
#include "emu/nic/transport/outstanding.hpp"
#include "emu/nic/transport/peer.hpp"
#include "emu/nic/transport/peers.hpp"
#include "emu/nic/transport/pending.hpp"
#include "emu/wire/host_wire.hpp"
#include "emu/wire/ring_wire.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace orrery::nic {

struct Endpoint;
class Ports;
struct Request;

namespace match {
class PacketServer;
}

// What leaves a NIC as packets and what arrives as packets: by the lanes in the segments of one host, by the
// wire between hosts. The packets that arrive are applied to this NIC's state by the thread that takes them
// in.
//
// Threads: any. serve calls, may_sleep_on_wire(), peer_died() and add_wire_peer(): the service thread. Locks:
// `frames`, the outbound side with the outstanding requests and the wire; `requests`, the inbound side.
// Invariants: (1) each request that was taken is told its end once, whatever becomes of the peer; (2) an
// initiator has never more answers due than its lane holds; (3) program memory is touched under these locks
// only while a frame is applied, or sent.
// Usage: transport.send(request);
//        transport.poll_responses();
//        transport.poll_requests(false);
class Transport final : private wire::Sink, private wire::PeerLoss {
 public:
  // Where packets go that are no access to memory.
  struct Hooks {
    std::function<Errc(const wire::PacketHeader&)> to_engine;           // the collective engine's
    std::function<void(const wire::PacketHeader&)> note_datagram_from;  // under the lock of frames
  };
  // `grants`: frames without an answer may go again without a second look (no clock, no faults).
  Transport(HostServices& services, Pending& pending, wire::ProcessSlot self, PeerTable& peers, Ports& ports,
            Regions& regions, HotMemory& hot, bool grants, Hooks hooks);
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  // ---- out ----
  // Sends a request as packets. `silent_by`: the endpoint whose frames get no answer, if the operation may be
  // one; its port's thread posts it. not_done: it is on its way. Errors: no_resource (try again),
  // unreachable, corrupt (one side found bad bytes in the lanes).
  Errc send(const Request& request, Endpoint* silent_by = nullptr);
  // Sends once more what the endpoint's last frame was allowed. not_done: it has to take the slow path.
  // REQUIRES: the endpoint's peer is that of the request's key.
  Errc send_granted(Endpoint& endpoint, const Request& request);
  // One packet of the NIC's own: a half of a datagram exchange with its `payload`, or a join or release, of
  // which the sender waits for no more than that it is taken. Its end is told under the lock of frames. As
  // send().
  Errc send_packet(Peer& peer, const wire::PacketHeader& header, std::span<const std::byte> payload,
                   const Completion& completion);
  // Whether frames to the peer are still under way.
  bool has_in_flight(Peer& peer) {
    return peer.in_flight.load(std::memory_order_relaxed) != 0 && is_in_flight_now(peer);
  }
  bool waits_for_room(const Peer& peer);               // a request to it is not all in frames yet
  void count_in_flight(Peer& peer, std::int32_t by);   // of an operation that is kept elsewhere
  bool all_taken_out();                                // the peers have taken all frames without an answer
  std::vector<std::uint32_t> open_requests();          // names of those that are on their way
  void drop_ended(std::vector<std::uint32_t>& names);  // those that have ended
  // Returns whether a process of this host owes an answer.
  bool poll_responses();
  // What found no room in a lane yet is in this process's memory alone: it goes now, if the peers live and
  // make room, for at most a second. The process ends after it, perhaps above a call that holds a lock.
  void send_the_rest();
  // What is under way to the peer ends in `status`. No more goes to it.
  void fail(Peer& peer, Errc status);
  // Tells the error log of refused frames that had no answer.
  void collect_refusals();

  // ---- in ----
  // Applies frames that came by the lanes; returns whether any did. Another thread that is at it is left to
  // it, unless this one `must_look` for itself.
  bool poll_requests(bool must_look);
  void await_application();  // returns when no frame is being applied that was before the call
  void flush_amo_cache(std::uint64_t begin = 0, std::uint64_t end = UINT64_MAX);
  // Carries out packets of Verb::match from now on; lives as long as the NIC.
  void serve_match_unit(match::PacketServer& server) { match_server_.store(&server); }

  // ---- the wire between hosts ----
  wire::Sink& wire_sink() { return wire_end_; }  // what a HostWire is made with
  wire::PeerLoss& wire_loss() { return *this; }
  void use_wire(wire::HostWire& wire);  // from now on; it outlives this
  bool has_wire() const { return wire_.load(std::memory_order_relaxed) != nullptr; }
  // Errors: HostWire::add_peer's.
  Status add_wire_peer(wire::ProcessSlot slot, std::span<const std::byte> address);
  void poll_wire(bool must_look);  // returns at once while another thread polls, unless `must_look`
  // Whether the service thread may sleep on the wire's descriptor. Lowers `wakes_at_ns` to when it must look.
  bool may_sleep_on_wire(std::atomic<std::int64_t>& wakes_at_ns);
  bool wire_is_drained();  // whether all that was sent has been acknowledged. Moves it along

 private:
  // The NIC as a HostWire sees it.
  struct WireEnd final : wire::Sink {
    Transport& transport;
    explicit WireEnd(Transport& t) : transport(t) {}
    void deliver(const wire::Packet& packet) override { transport.deliver_from_wire(packet); }
  };

  // frames_out.cpp
  void open_lanes(Peer& peer);
  bool pump(Peer& peer);
  static void keep_rest(Outstanding& outstanding);
  bool has_unsent(const Peer& peer) const;
  // frames_in.cpp
  void deliver(const wire::Packet& packet) override;
  Errc apply(Parts& from, const wire::Packet& packet, std::uint32_t max_part, std::span<std::byte> buffer,
             std::span<std::byte>* out);
  bool take_short_put(Inbound& from, const wire::ShortFrame& frame);
  void find_lanes();
  static void refuse(Inbound& from);
  void count_refusal(const wire::PacketHeader& header, Errc status);
  // wire_frames.cpp
  void deliver_from_wire(const wire::Packet& packet);
  void lost(wire::ProcessSlot peer) override { wire_losses_.push_back(peer); }
  // outstanding_answers.cpp
  void take_response(Peer& peer, const wire::Packet& packet);
  int take_responses(Peer& peer);
  void end_outstanding(std::uint32_t name, Outstanding& outstanding);
  bool drain_predecessors_responses(Peer& peer);
  // unacknowledged.cpp
  bool is_in_flight_now(Peer& peer);
  bool try_send_unacknowledged(Endpoint& endpoint, const Request& request);
  static void note_unacknowledged(Peer& peer, Endpoint& endpoint);
  void keep_frame_grant(Endpoint& endpoint, const Request& request);
  void settle_unacknowledged(Peer& peer);
  void look_for_refusals(Peer& peer);

  HostServices& services_;
  Pending& pending_;
  const NicView view_;
  const wire::ProcessSlot self_;
  PeerTable& peers_;
  Ports& ports_;
  Regions& regions_;
  HotMemory& hot_;
  const bool grants_;
  const Hooks hooks_;
  IdentityMap identity_;
  std::atomic<match::PacketServer*> match_server_{nullptr};

  QuickLock<LockRank::requests> requests_mu_;
  std::array<Inbound, kMaxProcesses> inbound_;   // guarded by requests_mu_
  std::array<Parts, kMaxProcesses> wire_parts_;  // guarded by requests_mu_
  std::vector<std::uint16_t> lanes_;  // those of inbound_ that were opened, guarded by requests_mu_
  std::uint32_t lanes_seen_ = 0;      // lane_changes as of lanes_, guarded by requests_mu_

  QuickLock<LockRank::frames> frames_mu_;
  std::vector<Peer*> lane_peers_;               // peers with open lanes, guarded by frames_mu_
  std::vector<Peer*> wire_peers_;               // peers that the wire has connected, guarded by frames_mu_
  std::vector<wire::ProcessSlot> wire_losses_;  // not yet told to the service thread, guarded by frames_mu_
  OutstandingTable outstanding_;                // guarded by frames_mu_
  // Called under frames_mu_; takes requests_mu_ for what it delivers.
  std::atomic<wire::HostWire*> wire_{nullptr};
  WireEnd wire_end_{*this};
  const std::unique_ptr<PayloadRoom> payloads_{new PayloadRoom};
};

}  // namespace orrery::nic
