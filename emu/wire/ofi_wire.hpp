// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/wire/fault_wire.hpp"
#include "emu/wire/frame.hpp"
#include "emu/wire/ofi_endpoint.hpp"
#include "emu/wire/ofi_stream.hpp"
#include "emu/wire/packet.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

// Packets to and from processes of other hosts, over libfabric. The frames, and what they promise, are
// docs/wire.md "Between hosts".
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

struct OfiWireOptions {
  std::string provider = "tcp;ofi_rxm";
  std::string interface;              // empty: the provider's first that is no loopback
  std::uint64_t job = 0;              // the job's number, the same for all of it
  AuthKey secret{};                   // the job's secret, likewise
  std::uint32_t rank = 0;             // our number in the job
  std::uint32_t frame_bytes = 65536;  // longest frame; the same for all of a job
  std::uint32_t frames = 512;         // frames under way to all peers together, at least 64
  std::uint32_t receives = 64;        // receive buffers, each of frame_bytes
  std::int64_t unreachable_after_ns = 10'000'000'000;
  std::int64_t retransmit_after_ns = 50'000'000;
  std::int64_t ack_after_ns = 1'000'000;  // how long an acknowledgement waits for a frame to travel with
  std::optional<FaultRates> faults;       // a bad link, for tests
};

struct OfiWireCounts {
  std::uint64_t frames_sent = 0;  // data frames, first time
  std::uint64_t frames_received = 0;
  std::uint64_t packets_sent = 0;
  std::uint64_t packets_delivered = 0;
  std::uint64_t acks_sent = 0;
  std::uint64_t retransmitted = 0;
  std::uint64_t peers_lost = 0;
  std::array<std::uint64_t, kRefusals> refused{};

  std::uint64_t refusals(Refusal cause) const { return refused[static_cast<std::size_t>(cause)]; }
};

// One process's end of the wire to all others: one libfabric endpoint, and what is under way to and from each
// peer. Threads: one at a time (the NIC's lock); only wait_fd() may be polled by another thread without it.
// Invariants: (1) what try_send() took arrives once, in order of its stream, or the peer is lost; (2)
// requests never keep answers waiting: they have streams of their own, and requests are delivered only while
// there is room for their answers, which the other side always takes; (3) nothing blocks. Usage: auto wire =
// OfiWire::open(options, sink, nullptr, &why);  wire->add_peer(3, address);
//        wire->try_send(3, header, payload);  wire->poll(16);
class OfiWire final : private OfiEvents {
 public:
  // Opens the endpoint; see OfiEndpoint::open for errors and `why`. `sink` and `loss` (may be null) outlive
  // the wire.
  static Result<std::unique_ptr<OfiWire>> open(const OfiWireOptions& options, Sink& sink, PeerLoss* loss,
                                               std::string* why);
  ~OfiWire();
  OfiWire(const OfiWire&) = delete;
  OfiWire& operator=(const OfiWire&) = delete;

  // What peers need to reach us, as bytes for the wire-up.
  std::vector<std::byte> address() const;

  // Makes the process with that address() known as `slot`. No byte is sent. corrupt: not an address, or not
  // for this provider; invalid_param: the slot or the process is known already, or it is ourselves.
  Status add_peer(ProcessSlot slot, std::span<const std::byte> address);

  // Takes a packet: copies it, sends it now or, when frames to that peer are on their way, with the next
  // packets, at the latest in the next poll(). header.payload_bytes and header.source need not be set: the
  // receiver's sink sees its own slot for us as source. A put or response with more payload than
  // max_payload() becomes several packets, each naming the whole operation, only the last one with kLast.
  // Outcomes: ok; not_done: no room now, nothing was taken, poll() and try again; size: too long; no_match:
  // no such peer; unreachable: lost. From inside deliver() only answers to the packet's source are sure to be
  // taken.
  Status try_send(ProcessSlot slot, const PacketHeader& header, std::span<const std::byte> payload);

  // Longest payload of one packet that is not cut.
  std::uint32_t max_payload() const {
    return static_cast<std::uint32_t>(options_.frame_bytes - kHostFrameHeaderBytes - kPacketHeaderBytes);
  }
  // Longest payload that try_send() takes.
  static constexpr std::size_t kLongestPayload = std::size_t{1} << 20;

  // Sends what waits, takes in what came and delivers it, keeps the timers. Returns the number of packets
  // delivered. REQUIRES: not called from deliver() or lost().
  int poll(int limit);

  // For a thread that wants to sleep on wait_fd(): sends all that waits, acknowledgements too. True: there is
  // nothing to do until the descriptor is readable or next_deadline_ns(), asked after this, has come. False:
  // poll() instead.
  bool prepare_to_sleep();
  int wait_fd() const { return endpoint_->wait_fd(); }
  // When poll() must be called at the latest, in monotonic_ns(); nothing: not before the descriptor is
  // readable.
  std::optional<std::int64_t> next_deadline_ns() const;

  // Says whether somebody waits for that peer: then its death is noticed although nothing is under way to it.
  void watch(ProcessSlot slot, bool on);
  bool is_lost(ProcessSlot slot) const;
  // Whether everything that was sent has been acknowledged.
  bool is_idle() const;

  const OfiWireCounts& counts() const { return counts_; }
  const std::string& provider() const { return endpoint_->provider(); }
  // What the bad link did, if there is one.
  FaultCounts fault_counts() const { return faults_ ? faults_->counts() : FaultCounts{}; }

  // Sends these bytes to a peer as they are, as a stranger could.
  Status send_raw_for_test(ProcessSlot slot, std::span<const std::byte> bytes);

 private:
  struct DomainKeys {
    std::uint16_t domain;
    AuthKey send;
    AuthKey receive;
  };
  struct Peer {
    ProcessSlot slot = 0;
    std::uint32_t rank = 0;
    std::uint64_t number = 0;  // the endpoint's name for it
    std::uint64_t incarnation = 0;
    std::vector<DomainKeys> keys;
    std::size_t next_key = 0;
    SendStream send[kStreams];
    ReceiveStream receive[kStreams];
    std::int64_t heard_ns = 0;          // last authentic frame
    std::int64_t waiting_since_ns = 0;  // since when there is something to acknowledge for it
    std::int64_t retry_ns = 0;          // when the oldest frame is sent again
    std::int64_t ack_due_ns = 0;        // 0: none
    std::uint32_t unacknowledged = 0;   // frames taken in since we last said so
    std::uint32_t backoff = 0;
    bool ack_now = false;
    bool paused = false;  // requests wait for room for their answers
    bool watched = false;
    bool lost = false;
    bool active = false;  // is in active_
  };

  // A frame is sent again after retransmit_after_ns, then after up to 2^kMostBackoff times that.
  static constexpr std::uint32_t kMostBackoff = 4;

  OfiWire(const OfiWireOptions& options, Sink& sink, PeerLoss* loss);
  // OfiEvents.
  void arrived(std::span<const std::byte> message) override;
  void sent(OfiOperation& operation) override;

  Peer* peer_at(ProcessSlot slot) const { return slot < peers_.size() ? peers_[slot].get() : nullptr; }
  const DomainKeys& keys_of(Peer& peer, std::uint16_t domain);
  void activate(Peer& peer);

  // Sending (ofi_wire.cpp).
  TxFrame* frame_for(Peer& peer, int stream, std::uint16_t domain, std::size_t bytes);
  void pump(Peer& peer, int stream, bool open_too);
  bool post(Peer& peer, TxFrame& frame, int stream);
  void resend(Peer& peer, TxFrame& frame, int stream);
  void send_ack(Peer& peer);
  void acknowledged_by_frame(Peer& peer);
  Status emit(std::uint64_t number, std::span<const std::byte> bytes);
  void emit_with_faults(Peer& peer, std::span<const std::byte> bytes);
  FrameHeader header_for(const Peer& peer, FrameKind kind) const;

  // Receiving (ofi_receive.cpp).
  void refuse(Refusal cause, std::uint32_t source);
  void take_acks(Peer& peer, const FrameHeader& header);
  void take_data(Peer& peer, const FrameHeader& header, std::span<const std::byte> frame);
  bool deliver(Peer& peer, int stream, std::span<const std::byte> frame);
  void deliver_kept(Peer& peer, int stream);
  bool has_answer_room(const Peer& peer) const;

  // Time (ofi_receive.cpp).
  void tick(Peer& peer);
  void lose(Peer& peer);
  bool has_work(const Peer& peer) const;

  // Constant after construction.
  const OfiWireOptions options_;
  Sink& sink_;
  PeerLoss* const loss_;
  const std::uint64_t incarnation_;

  std::unique_ptr<OfiEndpoint> endpoint_;
  std::unique_ptr<FramePool> pool_;
  std::unique_ptr<FaultWire> faults_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by slot
  std::unordered_map<std::uint32_t, Peer*> by_rank_;
  std::vector<Peer*> active_;
  std::int64_t now_ns_ = 0;
  int delivered_in_poll_ = 0;
  std::uint32_t logged_ = 0;  // bit per cause of refusal
  OfiWireCounts counts_;
};

}  // namespace orrery::wire
