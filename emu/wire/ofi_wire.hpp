// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/wire/fault_wire.hpp"
#include "emu/wire/frame.hpp"
#include "emu/wire/hello.hpp"
#include "emu/wire/host_wire.hpp"
#include "emu/wire/ofi_endpoint.hpp"
#include "emu/wire/ofi_stream.hpp"
#include "emu/wire/packet.hpp"
#include "emu/wire/seal.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

// Packets to and from processes of other hosts, over libfabric. The frames, and what they promise, are
// docs/wire.md "Between hosts".
namespace orrery::wire {

struct OfiWireOptions {
  std::string provider = "tcp;ofi_rxm";
  std::string interface;              // empty: the provider's first that is no loopback
  bool other_hosts = false;           // whether peers live on other hosts
  std::uint64_t job = 0;              // the job's number, the same for all of it
  AuthKey secret{};                   // the job's secret, likewise
  std::uint32_t rank = 0;             // our number in the job
  std::uint32_t frame_bytes = 65536;  // longest frame; the same for all of a job
  std::uint32_t frames = 512;         // frames under way to all peers together, at least 64
  std::uint32_t receives = 64;        // receive buffers, each of frame_bytes
  std::int64_t unreachable_after_ns = 10'000'000'000;
  std::int64_t retransmit_after_ns = 50'000'000;
  std::int64_t ack_after_ns = 1'000'000;  // how long an acknowledgement waits for a frame to travel with
  bool encrypt = false;                   // every frame (seal.hpp); the same for all of a job
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

// Whether the process at this address, as OfiWire::address() gave it, encrypts.
bool address_encrypts(std::span<const std::byte> address);

// One process's end of the wire to all others: one libfabric endpoint, and what is under way to and from each
// peer. Threads: one at a time (the NIC's lock); only wait_fd() may be polled by another thread without it.
// Invariants: (1) what try_send() took arrives once, in order of its stream, or the peer is lost; (2)
// requests never keep answers waiting: they have streams of their own, and requests are delivered only while
// there is room for their answers, which the other side always takes; (3) nothing blocks.
// Usage: auto wire = OfiWire::open(options, sink, nullptr, &why);  wire.value()->add_peer(3, address);
//        wire.value()->try_send(3, header, payload);  wire.value()->poll(16);
class OfiWire final : public HostWire, private OfiEvents, private OfiGreeter {
 public:
  // Opens the endpoint; see OfiEndpoint::open for errors and `why`. `sink` and `loss` (may be null) outlive
  // the wire.
  static Result<std::unique_ptr<OfiWire>> open(const OfiWireOptions& options, Sink& sink, PeerLoss* loss,
                                               std::string* why);
  ~OfiWire() override;
  OfiWire(const OfiWire&) = delete;
  OfiWire& operator=(const OfiWire&) = delete;

  // What peers need to reach us, as bytes for the wire-up.
  std::vector<std::byte> address() const;

  // Asked about frames of processes that are not known here; may be null. Outlives the wire.
  void set_addresses(PeerAddresses* addresses) { addresses_ = addresses; }

  Status add_peer(ProcessSlot slot, std::span<const std::byte> address) override;
  void drop_peer(ProcessSlot slot, std::span<const std::byte> address) override;

  // A packet that is alone goes at once; behind frames in flight it waits for the next packets,
  // at the latest for the next poll(). A put or response with more payload than max_payload() becomes several
  // packets, each naming the whole operation, only the last one with kLast.
  // The answer "ok" without payload, given from inside deliver(), is no packet: the acknowledgement says it,
  // with the next frame to that peer, at the latest in the next poll(); the other end makes the answer of it.
  Status try_send(ProcessSlot slot, const PacketHeader& header, std::span<const std::byte> payload) override;

  Status try_send_in_place(ProcessSlot slot, const PacketHeader& header,
                           std::span<const std::byte> payload) override;
  std::uint32_t longest_in_place() const override { return longest_in_place_; }

  std::uint32_t max_payload() const override {
    return static_cast<std::uint32_t>(options_.frame_bytes - kHostFrameHeaderBytes - kPacketHeaderBytes);
  }
  // Longest payload that try_send() takes.
  static constexpr std::size_t kLongestPayload = std::size_t{1} << 20;

  int poll(int limit) override;
  bool prepare_to_sleep() override;
  int wait_fd() const { return endpoint_->wait_fd(); }
  std::optional<std::int64_t> next_deadline_ns() const override;
  bool has_unsent(ProcessSlot slot) const override;
  void watch(ProcessSlot slot, bool on) override;
  bool is_lost(ProcessSlot slot) const;
  bool is_idle() const override;

  const OfiWireCounts& counts() const { return counts_; }
  // Connections whose other end did not prove to be of the job.
  std::uint64_t strangers() const { return endpoint_->strangers(); }
  const std::string& provider() const { return endpoint_->provider(); }
  bool on_loopback() const { return endpoint_->on_loopback(); }
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
    std::unique_ptr<Sealer> seals, unseals;  // null: not needed yet
    std::uint64_t sealed = 0;                // messages encrypted for it so far
    std::uint64_t nonce = 0;                 // of our last hello
    std::uint64_t greeted = 0;               // its hellos up to this one are void
    SendStream send[kStreams];
    ReceiveStream receive[kStreams];
    std::uint64_t acks_sent = 0;        // frames that only acknowledge, so far
    std::uint64_t ack_heard = 0;        // the latest one of the peer
    std::int64_t heard_ns = 0;          // last authentic frame that was not there before
    bool heard = false;                 // there was one
    std::int64_t waiting_since_ns = 0;  // since when there is something to acknowledge for it
    std::int64_t retry_ns = 0;          // when the oldest frame is retransmitted
    std::int64_t ack_due_ns = 0;        // 0: none
    std::uint32_t unacknowledged = 0;   // frames taken in since we last said so
    std::uint32_t backoff = 0;
    bool ack_now = false;
    bool paused = false;        // requests wait for room for their answers
    bool answers_wait = false;  // an acknowledgement that answers goes with the next frame or poll
    // The first request whose answer was not "ok", and all requests after it, are acknowledged only when the
    // peer has acknowledged those answers.
    std::uint64_t held_request = 0;  // its frame; 0: none
    std::uint64_t held_answer = 0;   // frame of the last such answer
    // Packets of ours, by transaction and offset, that were answered otherwise than by acknowledgement.
    std::vector<std::pair<std::uint32_t, std::uint64_t>> answered;
    bool refused = false;  // the provider had no room for the last frame
    bool watched = false;
    bool lost = false;
    bool active = false;  // is in active_
  };

  // A frame's bytes in their order, which may lie in several places.
  using Parts = std::array<std::span<const std::byte>, OfiEndpoint::kMostParts>;

  // What a frame acknowledged whose packets were delivered first: the next poll() or frame takes it in.
  struct LateAcks {
    Peer* peer = nullptr;  // null: none
    std::array<std::uint64_t, kStreams> through{};
  };

  // Ranks are slots.
  static constexpr std::uint32_t kHighestRank = UINT16_MAX;
  // How old the time may be: nothing here is timed to less than 100 us.
  static constexpr std::uint64_t kClockTicks = 8192;
  // A frame is retransmitted after retransmit_after_ns, then after up to 2^kMostBackoff times that.
  static constexpr std::uint32_t kMostBackoff = 4;
  // Of one whose payload is read in place: the longest operation of the usual kind in one.
  static constexpr std::uint32_t kLongestFrame = (1u << 20) + kHostFrameHeaderBytes + kPacketHeaderBytes;

  OfiWire(const OfiWireOptions& options, Sink& sink, PeerLoss* loss);
  // OfiEvents.
  void arrived(std::span<const std::byte> message) override;
  void sent(OfiOperation& operation) override;
  // OfiGreeter (ofi_greet.cpp).
  std::vector<std::byte> hello_to(std::uint64_t peer) override;
  std::optional<Greeted> greeted(std::span<const std::byte> hello) override;
  bool answered(std::uint64_t peer, std::span<const std::byte> answer) override;
  AuthKey key_of_hellos(const Peer& peer, bool from_us) const;
  Peer* peer_of_number(std::uint64_t number) const;
  Peer* greeter_of(const Hello& hello, std::span<const std::byte> bytes);

  Peer* peer_at(ProcessSlot slot) const { return slot < peers_.size() ? peers_[slot].get() : nullptr; }
  Peer* peer_of_rank(std::uint32_t rank) const { return rank < by_rank_.size() ? by_rank_[rank] : nullptr; }
  const DomainKeys& keys_of(Peer& peer, std::uint16_t domain);
  void activate(Peer& peer);
  void forget(Peer& peer);
  Peer* peer_of_frame(const FrameHeader& header, std::span<const std::byte> frame);

  // Sending (ofi_wire.cpp).
  TxFrame* frame_for(Peer& peer, int stream, std::uint16_t domain, std::size_t bytes);
  std::size_t reserved_frames(int stream) const;
  static std::uint64_t most_frames(int stream);
  std::uint64_t under_way(const Peer& peer, int stream) const;
  bool has_room(const Peer& peer, int stream, std::size_t frames) const;
  void pump(Peer& peer, int stream, bool open_too);
  bool answer_by_ack(Peer& peer, const PacketHeader& header, std::span<const std::byte> payload) const;
  bool post(Peer& peer, TxFrame& frame, int stream);
  void resend(Peer& peer, TxFrame& frame, int stream);
  void send_ack(Peer& peer);
  void acknowledged_by_frame(Peer& peer);
  Status emit(std::uint64_t number, std::span<const std::byte> bytes);
  [[gnu::noinline]] void emit_with_faults(Peer& peer, const Parts& parts);
  FrameHeader header_for(const Peer& peer, FrameKind kind) const;

  // Encrypting (ofi_seal.cpp).
  Sealer* sealer_of(Peer& peer, bool from_us);
  bool seal(Peer& peer, std::span<const std::byte> frame, std::span<std::byte> out);
  Status send_sealed(Peer& peer, TxFrame& frame, std::span<const std::byte> bytes, bool* injected);
  std::span<const std::byte> unsealed(std::span<const std::byte> bytes);

  // Receiving (ofi_receive.cpp).
  void take_frame(std::span<const std::byte> frame);
  void refuse(Refusal cause, std::uint32_t source);
  static bool may_wait(const Peer& peer, const FrameHeader& header);
  void settle_acks();
  void hear(Peer& peer);
  void take_acks(Peer& peer, const std::array<Ack, kStreams>& acks);
  void take_as_answers(Peer& peer, const TxFrame& frame);
  void take_as_answer(Peer& peer, const PacketHeader& request);
  void keep_payload_of(Peer& peer, const PacketHeader& answer);
  void take_data(Peer& peer, const FrameHeader& header, std::span<const std::byte> frame);
  bool deliver(Peer& peer, int stream, std::span<const std::byte> frame);
  void deliver_kept(Peer& peer, int stream);
  bool has_answer_room(const Peer& peer) const;

  // Time (ofi_receive.cpp).
  void tick(Peer& peer);
  void void_all(Peer& peer);
  void lose(Peer& peer);
  std::string never_heard(const Peer& peer) const;
  bool has_work(const Peer& peer) const;

  // Constant after construction.
  const OfiWireOptions options_;
  Sink& sink_;
  PeerLoss* const loss_;
  PeerAddresses* addresses_ = nullptr;
  const std::uint64_t incarnation_;

  std::unique_ptr<OfiEndpoint> endpoint_;
  std::unique_ptr<FramePool> pool_;
  std::unique_ptr<FaultWire> faults_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by slot
  std::vector<Peer*> by_rank_;                // null: no peer
  std::vector<Peer*> active_;
  std::uint32_t longest_in_place_ = 0;
  std::int64_t now_ns_ = 0;          // some microseconds ago at most, while a thread polls
  std::uint64_t clock_read_at_ = 0;  // rough_ticks() of now_ns_
  LateAcks late_;
  const PacketHeader* delivering_ = nullptr;  // the request that the sink has now
  bool delivers_last_ = false;                // and no other of its frame comes after it
  int delivered_in_poll_ = 0;
  int found_in_poll_ = 0;          // by the endpoint, in the last one
  bool postpone_ticks_ = false;    // the last poll left the peers' timers to the next one
  std::uint32_t logged_ = 0;       // bit per cause of refusal
  std::uint64_t hellos_ = 0;       // of ours, so far
  bool said_differs_ = false;      // that a peer's encryption is not ours
  std::vector<std::byte> opened_;  // the frame that is being taken in, decrypted
  OfiWireCounts counts_;
};

}  // namespace orrery::wire
