// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/wire/ofi_wire.hpp"

#include "emu/base/check.hpp"
#include "emu/base/log.hpp"
#include "emu/base/wait.hpp"
#include "emu/job/random.hpp"

#include <algorithm>
#include <cstring>

namespace orrery::wire {

namespace {

// An address of ours: this, then libfabric's.
struct AddressHead {
  std::uint32_t magic;
  std::uint32_t crc;  // of all that follows it
  std::uint64_t incarnation;
  std::uint32_t rank;
  std::uint32_t frame_bytes;     // both sides must agree
  std::uint32_t gathered_bytes;  // likewise
  std::uint32_t flags;           // likewise
};
static_assert(sizeof(AddressHead) == 32);
constexpr std::uint32_t kAddressMagic = 0x4152524f;  // "ORRA"
constexpr std::uint32_t kEncrypts = 1;               // of flags

// Packets that cannot be cut: they are one thing to the NIC.
bool can_be_cut(Verb verb) { return verb == Verb::put || verb == Verb::response; }

// What fills a payload up that is sent from where it lies.
constexpr std::array<std::byte, kPacketAlign> kPadding{};

}  // namespace

OfiWire::OfiWire(const OfiWireOptions& options, Sink& sink, PeerLoss* loss)
    : options_(options), sink_(sink), loss_(loss), incarnation_(job::random_nonzero()) {}

OfiWire::~OfiWire() = default;

Result<std::unique_ptr<OfiWire>> OfiWire::open(const OfiWireOptions& options, Sink& sink, PeerLoss* loss,
                                               std::string* why) {
  if (options.frame_bytes < 1024 || options.frames < 64 || options.receives == 0) {
    *why = "frames of at least 1024 bytes, 64 of them, and a receive buffer are needed";
    return Errc::invalid_param;
  }
  if (options.encrypt && !Sealer::is_usable(why)) return Errc::unsupported;
  std::unique_ptr<OfiWire> wire(new OfiWire(options, sink, loss));
  const std::uint32_t encrypts = options.encrypt ? 1 : 0;
  auto endpoint = OfiEndpoint::open(
      {.provider = options.provider,
       .interface = options.interface,
       .message_bytes = static_cast<std::uint32_t>(options.frame_bytes + encrypts * kSealBytes),
       .gathered_bytes = options.encrypt ? 0 : kLongestFrame,
       .receives = options.receives,
       .sends = options.frames * (1 + encrypts),
       .other_hosts = options.other_hosts,
       .greeter = wire.get()},
      why);
  if (!endpoint.ok()) return endpoint.code();
  wire->endpoint_ = std::move(endpoint).value();
  wire->pool_ = std::make_unique<FramePool>(*wire->endpoint_, options.frames, options.encrypt);
  if (options.faults) wire->faults_ = std::make_unique<FaultWire>(*options.faults);
  wire->now_ns_ = monotonic_ns();
  if (const std::uint32_t gathered = wire->endpoint_->longest_gathered(); gathered != 0) {
    // A bad link sends copies of whole frames, from the pool.
    const std::size_t frame = options.faults ? options.frame_bytes : gathered;
    wire->longest_in_place_ = static_cast<std::uint32_t>(
        (frame - kHostFrameHeaderBytes - kPacketHeaderBytes) / kPacketAlign * kPacketAlign);
  }
  return wire;
}

std::vector<std::byte> OfiWire::address() const {
  const std::vector<std::byte> inner = endpoint_->address();
  AddressHead head{kAddressMagic,
                   0,
                   incarnation_,
                   options_.rank,
                   options_.frame_bytes,
                   endpoint_->longest_gathered(),
                   options_.encrypt ? kEncrypts : 0};
  std::vector<std::byte> bytes(sizeof head + inner.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  if (!inner.empty()) std::memcpy(bytes.data() + sizeof head, inner.data(), inner.size());
  head.crc = crc32c(std::span<const std::byte>(bytes).subspan(offsetof(AddressHead, incarnation)));
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}

bool address_encrypts(std::span<const std::byte> address) {
  AddressHead head;
  if (address.size() < sizeof head) return false;
  std::memcpy(&head, address.data(), sizeof head);
  return (head.flags & kEncrypts) != 0;
}

Status OfiWire::add_peer(ProcessSlot slot, std::span<const std::byte> address) {
  AddressHead head;
  if (address.size() < sizeof head) return Errc::corrupt;
  std::memcpy(&head, address.data(), sizeof head);
  if (head.magic != kAddressMagic ||
      head.crc != crc32c(address.subspan(offsetof(AddressHead, incarnation)))) {
    return Errc::corrupt;
  }
  if ((head.flags != 0) != options_.encrypt) {
    if (!said_differs_)
      log::error("wire: process {} {}, this one {}: the processes of a job need the same ORRERY_ENCRYPT",
                 head.rank, head.flags != 0 ? "encrypts" : "does not encrypt",
                 options_.encrypt ? "does" : "does not");
    said_differs_ = true;
    return Errc::corrupt;
  }
  if (head.frame_bytes != options_.frame_bytes || head.gathered_bytes != endpoint_->longest_gathered()) {
    log::warn(
        "wire: process {} takes frames of {} bytes and gathered ones of {}, this one of {} and {}: their "
        "hosts "
        "need the same ORRERY_ variables and the same libfabric",
        head.rank, head.frame_bytes, head.gathered_bytes, options_.frame_bytes,
        endpoint_->longest_gathered());
    return Errc::corrupt;
  }
  if (head.rank == options_.rank || head.rank > kHighestRank) return Errc::invalid_param;
  Peer* const before = peer_at(slot);
  if (peer_of_rank(head.rank) != before) return Errc::invalid_param;
  if (before != nullptr && before->incarnation == head.incarnation) return Errc::invalid_param;
  const auto number = endpoint_->insert(address.subspan(sizeof head));
  if (!number.ok()) return number.code();
  auto peer = std::make_unique<Peer>();
  peer->slot = slot;
  peer->rank = head.rank;
  peer->number = number.value();
  peer->incarnation = head.incarnation;
  // A later life of the process: its frames are no continuation of the earlier one's.
  if (before != nullptr) forget(*before);
  if (by_rank_.size() <= head.rank) by_rank_.resize(head.rank + 1u);
  by_rank_[head.rank] = peer.get();
  if (peers_.size() <= slot) peers_.resize(slot + 1u);
  peers_[slot] = std::move(peer);
  return {};
}

void OfiWire::forget(Peer& peer) {
  if (!peer.lost) void_all(peer);
  endpoint_->forget(peer.number);
  std::erase(active_, &peer);
}

void OfiWire::drop_peer(ProcessSlot slot, std::span<const std::byte> address) {
  Peer* const peer = peer_at(slot);
  AddressHead head;
  if (peer == nullptr || peer->lost || address.size() < sizeof head) return;
  std::memcpy(&head, address.data(), sizeof head);
  if (head.incarnation == peer->incarnation) void_all(*peer);
}

const OfiWire::DomainKeys& OfiWire::keys_of(Peer& peer, std::uint16_t domain) {
  for (const DomainKeys& keys : peer.keys) {
    if (keys.domain == domain) return keys;
  }
  const DomainKeys keys{domain,
                        derive_key(options_.secret, {options_.job, incarnation_, peer.incarnation, domain}),
                        derive_key(options_.secret, {options_.job, peer.incarnation, incarnation_, domain})};
  // Bounded: a stranger may name any domain.
  constexpr std::size_t kMostKeys = 8;
  if (peer.keys.size() < kMostKeys) return peer.keys.emplace_back(keys);
  return peer.keys[peer.next_key++ % kMostKeys] = keys;
}

void OfiWire::activate(Peer& peer) {
  if (peer.active) return;
  peer.active = true;
  active_.push_back(&peer);
}

FrameHeader OfiWire::header_for(const Peer& peer, FrameKind kind) const {
  FrameHeader header;
  header.kind = kind;
  header.job = options_.job;
  header.source = options_.rank;
  header.target = peer.rank;
  for (std::size_t s = 0; s < kStreams; ++s)
    header.acks[s] = {peer.receive[s].delivered, peer.receive[s].present};
  if (peer.held_request == 0) [[likely]]
    return header;
  // Those from there on are here, and no more is said of them.
  Ack& ack = header.acks[0];
  const std::uint64_t held = ack.through - (peer.held_request - 1);
  ack.through = peer.held_request - 1;
  ack.beyond = held >= kFrameWindow ? UINT64_MAX : ack.beyond << held | ((std::uint64_t{1} << held) - 1);
  return header;
}

void OfiWire::acknowledged_by_frame(Peer& peer) {
  peer.unacknowledged = 0;
  peer.ack_due_ns = 0;
  peer.ack_now = false;
  peer.answers_wait = false;
}

// The frame that the next packet of `bytes` goes into: the open one or a new one; nullptr when there is no
// room.
TxFrame* OfiWire::frame_for(Peer& peer, int stream, std::uint16_t domain, std::size_t bytes) {
  SendStream& s = peer.send[stream];
  if (TxFrame* const open = s.open()) {
    if (open->domain == domain && open->size + bytes <= options_.frame_bytes && open->packets < UINT16_MAX) {
      return open;
    }
    open->closed = true;
  }
  if (s.outstanding() >= kStreamFrames) return nullptr;
  TxFrame* const frame = pool_->take();
  if (frame == nullptr) return nullptr;
  if (under_way(peer, 0) + under_way(peer, 1) == 0) {
    // The posting thread may not have polled for long.
    peer.waiting_since_ns = rough_ticks() - clock_read_at_ > kClockTicks ? monotonic_ns() : now_ns_;
    peer.retry_ns = peer.waiting_since_ns + options_.retransmit_after_ns;
  }
  frame->domain = domain;
  frame->sequence = s.next;
  s.at(s.next++) = frame;
  activate(peer);
  return frame;
}

// Requests leave frames for answers.
std::size_t OfiWire::reserved_frames(int stream) const { return stream == 0 ? options_.frames / 4 : 0; }
std::uint64_t OfiWire::most_frames(int stream) { return stream == 0 ? kStreamFrames / 2 : kStreamFrames; }
bool OfiWire::has_room(const Peer& peer, int stream, std::size_t frames) const {
  return pool_->free() >= frames + reserved_frames(stream) &&
         peer.send[stream].outstanding() + frames <= most_frames(stream);
}

// Frames that the peer is not known to have.
std::uint64_t OfiWire::under_way(const Peer& peer, int stream) const {
  const SendStream& s = peer.send[stream];
  if (late_.peer != &peer) return s.outstanding();
  return s.next - std::max(s.first, late_.through[static_cast<std::size_t>(stream)] + 1);
}

Status OfiWire::try_send(ProcessSlot slot, const PacketHeader& header, std::span<const std::byte> payload) {
  Peer* const peer = peer_at(slot);
  if (peer == nullptr) return Errc::no_match;
  if (peer->lost) return Errc::unreachable;
  const std::size_t part_limit = max_payload();
  if (payload.size() > part_limit && (payload.size() > kLongestPayload || !can_be_cut(header.verb)))
    return Errc::size;
  const int stream = header.verb == Verb::response ? 1 : 0;
  if (stream == 1 && answer_by_ack(*peer, header, payload)) return {};
  SendStream& s = peer->send[stream];

  // All or nothing, so room for all of it is there first. Requests leave frames for answers.
  const std::size_t frames = payload.size() < part_limit ? 1 : payload.size() / part_limit + 1;
  if (frames + reserved_frames(stream) > options_.frames || frames > most_frames(stream)) return Errc::size;
  if (!has_room(*peer, stream, frames)) return Errc::not_done;

  // Instead of the acknowledgement, which says otherwise and is to come later.
  const bool instead_of_ack =
      stream == 1 && delivering_ != nullptr && (delivering_->flags & kAnsweredByAck) != 0;
  if (instead_of_ack && peer->held_request == 0) peer->held_request = peer->receive[0].delivered + 1;

  // An answer goes when its request's frame is delivered: then it says that too.
  const bool later = stream == 1 && delivering_ != nullptr && delivering_->source == slot;
  // Goes at once and alone, unless more answers follow for the same frame.
  const bool goes_short = under_way(*peer, stream) == 0 && (!later || delivers_last_) &&
                          std::max(options_.rank, peer->rank) <= UINT16_MAX &&
                          fits_short_frame(header, payload);

  std::size_t at = 0;
  do {
    const std::size_t part = std::min(part_limit, payload.size() - at);
    // One that is short takes no other packet.
    TxFrame* const frame =
        frame_for(*peer, stream, header.domain, goes_short ? options_.frame_bytes : packet_bytes(part));
    ORRERY_CHECK(frame != nullptr, "no frame although {} are free", pool_->free());
    PacketHeader of_part = header;
    if (stream == 0 && (header.flags & kWantsResponse) != 0 && !answer_has_data(header))
      of_part.flags |= kAnsweredByAck;
    if (instead_of_ack) of_part.flags |= kAnsweredByAck;
    frame->asks = frame->asks || (of_part.flags & kAnsweredByAck) != 0;
    if (part < payload.size()) {
      of_part.offset += at;
      of_part.part_bytes = part;
      if (at + part < payload.size()) of_part.flags &= static_cast<std::uint16_t>(~kLast);
    }
    if (goes_short) {
      const std::span room(frame->bytes, kShortHostFrameBytes + kShortHostFrameTail);
      frame->size = static_cast<std::uint32_t>(write_short_packet(room, of_part, payload));
      frame->is_short = frame->closed = true;
    } else {
      const std::size_t bytes = packet_bytes(part);
      write_packet({frame->bytes + frame->size, bytes}, of_part, payload.subspan(at, part));
      frame->size += static_cast<std::uint32_t>(bytes);
    }
    ++frame->packets;
    ++counts_.packets_sent;
    at += part;
  } while (at < payload.size());
  if (instead_of_ack) peer->held_answer = s.next - 1;
  // Alone on its way: now, for latency. Behind others: with more, for the rate.
  if (!later || !goes_short) pump(*peer, stream, !later && under_way(*peer, stream) == 1);
  return {};
}

Status OfiWire::try_send_in_place(ProcessSlot slot, const PacketHeader& header,
                                  std::span<const std::byte> payload) {
  Peer* const peer = peer_at(slot);
  if (peer == nullptr) return Errc::no_match;
  if (peer->lost) return Errc::unreachable;
  if (header.verb != Verb::put || payload.size() > longest_in_place_) return Errc::size;
  constexpr int kStream = 0;
  if (!has_room(*peer, kStream, 1)) return Errc::not_done;
  // A frame of its own: no packet fits behind it.
  TxFrame* const frame = frame_for(*peer, kStream, header.domain, options_.frame_bytes);
  ORRERY_CHECK(frame != nullptr, "no frame although {} are free", pool_->free());
  PacketHeader whole = header;
  if ((header.flags & kWantsResponse) != 0) whole.flags |= kAnsweredByAck;
  frame->asks = (whole.flags & kAnsweredByAck) != 0;
  write_packet_header({frame->bytes + frame->size, kPacketHeaderBytes}, whole,
                      static_cast<std::uint32_t>(payload.size()));
  frame->size += kPacketHeaderBytes;
  frame->in_place = payload;
  frame->packets = 1;
  frame->closed = true;
  ++counts_.packets_sent;
  pump(*peer, kStream, false);
  return {};
}

// True: the acknowledgement of the request that is being delivered is the answer. False: send it.
bool OfiWire::answer_by_ack(Peer& peer, const PacketHeader& header,
                            std::span<const std::byte> payload) const {
  if (delivering_ == nullptr || (delivering_->flags & kAnsweredByAck) == 0) return false;
  if (header.status != 0 || !payload.empty()) return false;
  peer.answers_wait = true;
  return true;
}

// Sends what the window allows, the open frame only when `open_too`.
void OfiWire::pump(Peer& peer, int stream, bool open_too) {
  SendStream& s = peer.send[stream];
  while (s.unsent != s.next && s.window_is_open()) {
    TxFrame& frame = *s.at(s.unsent);
    if (!frame.closed) {
      if (!open_too && frame.size + packet_bytes(0) <= options_.frame_bytes) break;
      frame.closed = true;
    }
    peer.refused = !post(peer, frame, stream);
    if (peer.refused) break;
    ++counts_.frames_sent;
    ++s.unsent;
  }
}

// Hands a closed frame to the provider. False when that has no room.
bool OfiWire::post(Peer& peer, TxFrame& frame, int stream) {
  const std::span<std::byte> bytes(frame.bytes, frame.size);
  const Parts parts{bytes, frame.in_place,
                    std::span(kPadding).first(frame.whole_size() - frame.size - frame.in_place.size())};
  if (frame.body_crc == 0 && !frame.is_short) {
    frame.body_crc = crc32c(bytes.subspan(kHostFrameHeaderBytes));
    if (!frame.in_place.empty()) frame.body_crc = crc32c(parts[2], crc32c(parts[1], frame.body_crc));
  }
  FrameHeader header = header_for(peer, FrameKind::data);
  header.stream = static_cast<Stream>(stream);
  header.domain = frame.domain;
  header.packets = frame.packets;
  header.body_bytes = static_cast<std::uint32_t>(frame.whole_size() - kHostFrameHeaderBytes);
  header.sequence = frame.sequence;
  header.body_crc = frame.body_crc;
  const AuthKey& key = keys_of(peer, frame.domain).send;
  if (frame.is_short)
    seal_short_frame(bytes, header, key);
  else
    write_frame_header(bytes, header, key);
  if (faults_) [[unlikely]] {
    emit_with_faults(peer, parts);
  } else {
    const bool is_whole = frame.in_place.empty();
    bool injected = is_whole && bytes.size() <= endpoint_->longest_injected();
    const std::span used(parts.data(), parts[2].empty() ? 2 : 3);
    const Status status = options_.encrypt ? send_sealed(peer, frame, bytes, &injected)
                          : injected       ? endpoint_->inject(peer.number, bytes)
                          : is_whole       ? endpoint_->send(peer.number, bytes, frame.operation)
                                           : endpoint_->send_parts(peer.number, used, frame.operation);
    if (status.code() == Errc::not_done) return false;
    // A refused send is a lost frame: it is sent again until the peer counts as lost.
    frame.posted = status.ok() && !injected;
  }
  frame.sent_ns = now_ns_;
  const bool is_silent = frame.is_short && (header.acks[0].beyond | header.acks[1].beyond) != 0;
  if (!is_silent) acknowledged_by_frame(peer);
  return true;
}

void OfiWire::resend(Peer& peer, TxFrame& frame, int stream) {
  if (frame.posted) return;  // has not left yet
  // It may have been refused because the program wrote into it after it was summed: what is sent from now on
  // does not change.
  frame.keep_payload();
  if (post(peer, frame, stream)) ++counts_.retransmitted;
}

void OfiWire::send_ack(Peer& peer) {
  std::array<std::byte, kHostFrameHeaderBytes> bytes;
  FrameHeader header = header_for(peer, FrameKind::ack);
  header.sequence = ++peer.acks_sent;
  write_frame_header(bytes, header, keys_of(peer, 0).send);
  std::array<std::byte, kHostFrameHeaderBytes + kSealBytes> sealed;
  if (faults_) {
    emit_with_faults(peer, {{bytes, {}, {}}});
  } else if (options_.encrypt && !seal(peer, bytes, sealed)) {
    return;
  } else if (!emit(peer.number, options_.encrypt ? std::span<const std::byte>(sealed) : bytes).ok()) {
    return;  // next time
  }
  ++counts_.acks_sent;
  acknowledged_by_frame(peer);
}

// Sends a copy of `bytes` without a completion.
Status OfiWire::emit(std::uint64_t number, std::span<const std::byte> bytes) {
  if (bytes.size() <= endpoint_->longest_injected()) return endpoint_->inject(number, bytes);
  TxFrame* const frame = pool_->take();
  if (frame == nullptr) return Errc::not_done;
  std::memcpy(frame->bytes, bytes.data(), bytes.size());
  const Status status = endpoint_->send(number, {frame->bytes, bytes.size()}, frame->operation);
  frame->posted = status.ok();
  pool_->drop(frame);
  return status;
}

void OfiWire::emit_with_faults(Peer& peer, const Parts& parts) {
  std::vector<std::byte> whole;
  for (const auto part : parts) whole.insert(whole.end(), part.begin(), part.end());
  if (options_.encrypt) {
    std::vector<std::byte> sealed(whole.size() + kSealBytes);
    if (!seal(peer, whole, sealed)) return;
    whole = std::move(sealed);
  }
  faults_->pass(static_cast<std::uint32_t>(peer.number), whole, now_ns_,
                [this](std::uint32_t to, std::span<const std::byte> frame) { (void)emit(to, frame); });
}

Status OfiWire::send_raw_for_test(ProcessSlot slot, std::span<const std::byte> bytes) {
  Peer* const peer = peer_at(slot);
  if (peer == nullptr || bytes.size() > options_.frame_bytes) return Errc::invalid_param;
  return emit(peer->number, bytes);
}

void OfiWire::sent(OfiOperation& operation) {
  static_assert(offsetof(TxFrame, operation) == 0);
  auto& frame = reinterpret_cast<TxFrame&>(operation);
  frame.posted = false;
  if (frame.loose) pool_->give(&frame);
}

bool OfiWire::has_unsent(ProcessSlot slot) const {
  const Peer* const peer = peer_at(slot);
  return peer != nullptr && peer->refused;
}

void OfiWire::watch(ProcessSlot slot, bool on) {
  Peer* const peer = peer_at(slot);
  if (peer == nullptr || peer->lost) return;
  if (on && !peer->watched) peer->heard_ns = monotonic_ns();
  peer->watched = on;
  if (on) activate(*peer);
}

bool OfiWire::is_lost(ProcessSlot slot) const {
  const Peer* const peer = peer_at(slot);
  return peer != nullptr && peer->lost;
}

bool OfiWire::is_idle() const {
  // A peer that owes an acknowledgement owes an answer.
  return std::all_of(active_.begin(), active_.end(), [](const Peer* peer) {
    return peer->send[0].outstanding() + peer->send[1].outstanding() == 0 && peer->ack_due_ns == 0 &&
           !peer->ack_now && !peer->answers_wait;
  });
}

}  // namespace orrery::wire
