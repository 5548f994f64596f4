// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// OfiWire's receiving half and its timers.
#include "emu/base/log.hpp"
#include "emu/base/wait.hpp"
#include "emu/wire/ofi_wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

namespace orrery::wire {

namespace {

// A receiver says what it has at the latest after so many frames: a quarter of the window, so that a sender
// that streams never stops for it.
constexpr std::uint32_t kFramesPerAck = kFrameWindow / 4;
// A long frame counts as so many of them.
constexpr std::uint32_t kLongFrameCounts = 4;
constexpr std::uint32_t kHugeFrameCounts = 8;
// A frame is taken for lost when this many later ones are there...
constexpr int kLaterFrames = 3;
// ...and it has been under way for so long: what is sent again now is not sent again at once.
constexpr std::int64_t kResendGap = 2'000'000;
// What the provider or the pool had no room for is tried again so soon.
constexpr std::int64_t kNextTry = 1'000'000;
// More packets than a window of frames holds.
constexpr std::size_t kMostAnswered = kFrameWindow * 1024;
// A watched peer is asked for a sign of life this often within the time after which it counts as lost.
constexpr std::int64_t kSignsOfLife = 4;
// Source of a frame whose header could not be read.
constexpr std::uint32_t kUnread = UINT32_MAX;

}  // namespace

void OfiWire::refuse(Refusal cause, std::uint32_t source) {
  ++counts_.refused[static_cast<std::size_t>(cause)];
  // What retransmission does by itself is no news.
  if (cause == Refusal::duplicate || cause == Refusal::window) return;
  const std::uint32_t bit = std::uint32_t{1} << static_cast<int>(cause);
  if ((logged_ & bit) != 0) return;
  logged_ |= bit;
  log::warn("wire: dropped a frame that says it is from process {}: {} (counted from now on, not logged)",
            source, refusal_name(cause));
}

void OfiWire::arrived(std::span<const std::byte> message) {
  if (!options_.encrypt) [[likely]]
    return take_frame(message);
  if (const auto frame = unsealed(message); !frame.empty()) take_frame(frame);
}

void OfiWire::take_frame(std::span<const std::byte> frame) {
  FrameHeader header;
  if (const auto refusal = read_frame_header(frame, header)) return refuse(*refusal, kUnread);
  if (header.job != options_.job) return refuse(Refusal::job, header.source);
  if (header.target != options_.rank) return refuse(Refusal::target, header.source);
  Peer* const known = peer_of_frame(header, frame);
  if (known == nullptr) return;
  Peer& peer = *known;
  if (const auto refusal = check_body(frame, header)) return refuse(*refusal, header.source);
  // A replay is no sign of life: data that is new says so in take_data().
  if (header.kind == FrameKind::ack && header.sequence > peer.ack_heard) {
    peer.ack_heard = header.sequence;
    hear(peer);
  }
  settle_acks();
  if (header.kind == FrameKind::data && may_wait(peer, header)) {
    late_ = {.peer = &peer, .through = {header.acks[0].through, header.acks[1].through}};
    return take_data(peer, header, frame);
  }
  take_acks(peer, header.acks);
  if (header.kind == FrameKind::data) take_data(peer, header, frame);
}

void OfiWire::hear(Peer& peer) {
  peer.heard_ns = now_ns_;
  peer.heard = true;
}

// Whether the acknowledgements in a frame may wait until its packets are in the program's hands. They may if
// they are in order and of frames that were sent, and one frame of ours is all that awaits them.
bool OfiWire::may_wait(const Peer& peer, const FrameHeader& header) {
  std::uint64_t outstanding = 0;
  for (int i = 0; i < kStreams; ++i) {
    const SendStream& s = peer.send[i];
    outstanding += s.outstanding();
    if (header.acks[i].through >= s.unsent || header.acks[i].beyond != 0) return false;
  }
  return outstanding == 1;
}

void OfiWire::settle_acks() {
  if (late_.peer == nullptr) return;
  const LateAcks late = std::exchange(late_, {});
  take_acks(*late.peer, {Ack{late.through[0], 0}, Ack{late.through[1], 0}});
}

// The peer that an authentic frame is from; null when it was refused. One that is not known, or whose tag is
// not the known one's, may have been published since.
OfiWire::Peer* OfiWire::peer_of_frame(const FrameHeader& header, std::span<const std::byte> frame) {
  Refusal why = Refusal::source;
  for (const bool asked : {false, true}) {
    why = Refusal::source;
    if (Peer* const found = peer_of_rank(header.source)) {
      Peer& peer = *found;
      why = Refusal::tag;
      if (tag_is_right(frame, keys_of(peer, header.domain).receive)) {
        if (!peer.lost) return &peer;
        // Its last words, after it left or was given up, which is known already.
        ++counts_.refused[static_cast<std::size_t>(Refusal::source)];
        return nullptr;
      }
    }
    if (asked || addresses_ == nullptr || header.source > kHighestRank) break;
    const std::vector<std::byte> address = addresses_->address_of(header.source);
    if (address.empty() || !add_peer(static_cast<ProcessSlot>(header.source), address).ok()) break;
  }
  refuse(why, header.source);
  return nullptr;
}

void OfiWire::take_acks(Peer& peer, const std::array<Ack, kStreams>& acks) {
  bool progress = false;
  for (int i = 0; i < kStreams; ++i) {
    SendStream& s = peer.send[i];
    const Ack& ack = acks[static_cast<std::size_t>(i)];
    if (ack.through >= s.unsent) continue;  // acknowledges what was never sent
    while (s.first <= ack.through) {
      TxFrame* const frame = s.at(s.first++);
      progress = true;
      if (i == 0 && frame->asks) take_as_answers(peer, *frame);
      pool_->drop(frame);
    }
    // An old acknowledgement that was overtaken says nothing about what lies beyond.
    if (ack.through + 1 != s.first || ack.beyond == 0) continue;
    const std::uint64_t top = std::min<std::uint64_t>(
        ack.through + static_cast<std::uint64_t>(std::bit_width(ack.beyond)), s.unsent - 1);
    for (std::uint64_t sequence = s.first; sequence <= top; ++sequence) {
      TxFrame& frame = *s.at(sequence);
      if ((ack.beyond >> (sequence - ack.through - 1) & 1) != 0) {
        frame.held = true;
      } else if (!frame.held && sequence + kLaterFrames <= top && now_ns_ - frame.sent_ns > kResendGap) {
        resend(peer, frame, i);
      }
    }
  }
  if (!progress) return;
  if (peer.held_request != 0 && peer.send[1].first > peer.held_answer) {
    peer.held_request = 0;
    peer.ack_now = true;
    activate(peer);
  }
  peer.backoff = 0;
  peer.retry_ns = now_ns_ + options_.retransmit_after_ns;
}

// The other end has delivered a frame of ours: an answer for each packet that it has not answered itself.
void OfiWire::take_as_answers(Peer& peer, const TxFrame& frame) {
  const std::span<const std::byte> bytes(frame.bytes, frame.size);
  if (!frame.in_place.empty())
    return take_as_answer(peer, packet_header_at(bytes.subspan(kHostFrameHeaderBytes)));
  PacketReader reader(bytes, 0);
  while (const auto packet = reader.next()) take_as_answer(peer, packet->header);
}

void OfiWire::take_as_answer(Peer& peer, const PacketHeader& request) {
  if ((request.flags & kAnsweredByAck) == 0) return;
  if (!peer.answered.empty()) [[unlikely]] {
    const auto found =
        std::find(peer.answered.begin(), peer.answered.end(), std::pair(request.transaction, request.offset));
    if (found != peer.answered.end()) {
      peer.answered.erase(found);
      return;
    }
  }
  Packet answer;
  answer.header.verb = Verb::response;
  answer.header.source = peer.slot;
  answer.header.domain = request.domain;
  answer.header.transaction = request.transaction;
  answer.header.offset = request.offset;
  sink_.deliver(answer);
}

// An answer that comes before the acknowledgement ends the program's operation while the request may have to
// be sent again.
void OfiWire::keep_payload_of(Peer& peer, const PacketHeader& answer) {
  SendStream& s = peer.send[0];
  for (std::uint64_t sequence = s.first; sequence < s.unsent; ++sequence) {
    TxFrame& frame = *s.at(sequence);
    if (frame.in_place.empty()) continue;
    const PacketHeader request =
        packet_header_at(std::span<const std::byte>(frame.bytes, frame.size).subspan(kHostFrameHeaderBytes));
    if (request.transaction == answer.transaction) frame.keep_payload();
  }
}

void OfiWire::take_data(Peer& peer, const FrameHeader& header, std::span<const std::byte> frame) {
  const int stream = static_cast<int>(header.stream);
  ReceiveStream& r = peer.receive[stream];
  activate(peer);
  // The sender is behind: it did not hear our acknowledgement.
  if (header.sequence <= r.delivered) {
    peer.ack_now = true;
    return refuse(Refusal::duplicate, header.source);
  }
  if (header.sequence - r.delivered > kFrameWindow) return refuse(Refusal::window, header.source);
  if (r.has(header.sequence)) {
    peer.ack_now = true;
    return refuse(Refusal::duplicate, header.source);
  }
  hear(peer);
  ++counts_.frames_received;
  if (header.sequence == r.delivered + 1 && deliver(peer, stream, frame)) {
    r.advance();
  } else {
    r.keep(header.sequence, frame);
    // A gap: let the sender know what it need not send again.
    peer.ack_now = peer.ack_now || header.sequence != r.delivered + 1;
  }
  deliver_kept(peer, stream);
  // As many of each size before an acknowledgement as make up the same share of the window.
  peer.unacknowledged += frame.size() <= kLongFrameBytes   ? 1
                         : frame.size() <= kHugeFrameBytes ? kLongFrameCounts
                                                           : kHugeFrameCounts;
  if (peer.unacknowledged >= kFramesPerAck) peer.ack_now = true;
  if (peer.ack_due_ns == 0) peer.ack_due_ns = now_ns_ + options_.ack_after_ns;
  if (stream == 0 && under_way(peer, 1) == 1) pump(peer, 1, true);
}

void OfiWire::deliver_kept(Peer& peer, int stream) {
  ReceiveStream& r = peer.receive[stream];
  while ((r.present & 1) != 0) {
    std::vector<std::byte>& frame = r.slot(r.delivered + 1);
    if (!deliver(peer, stream, frame)) return;
    frame = {};
    r.advance();
  }
}

// Whether the answers to one request, however long, can be taken.
bool OfiWire::has_answer_room(const Peer& peer) const {
  const std::size_t frames = std::min<std::size_t>(kLongestPayload / max_payload() + 2, options_.frames / 8);
  return pool_->free() >= frames && peer.send[1].outstanding() + frames <= kStreamFrames;
}

// Delivers the packets of a frame, from where it was left. False: the rest must wait for room for answers.
bool OfiWire::deliver(Peer& peer, int stream, std::span<const std::byte> frame) {
  ReceiveStream& r = peer.receive[stream];
  PacketReader reader(frame, r.resume_at);
  while (!reader.done()) {
    if (stream == 0 && !has_answer_room(peer)) [[unlikely]] {
      r.resume_at = reader.position();
      peer.paused = true;
      return false;
    }
    auto packet = reader.next();
    packet->header.source = peer.slot;
    ++delivered_in_poll_;
    ++counts_.packets_delivered;
    if (stream == 0) {
      delivering_ = &packet->header;
      delivers_last_ = reader.done();
    } else if ((packet->header.flags & kAnsweredByAck) != 0) {
      if (peer.answered.size() < kMostAnswered)
        peer.answered.emplace_back(packet->header.transaction, packet->header.offset);
      keep_payload_of(peer, packet->header);
    }
    sink_.deliver(*packet);
    delivering_ = nullptr;
  }
  return true;
}

int OfiWire::poll(int limit) {
  delivered_in_poll_ = 0;
  const std::int64_t last_poll_ns = now_ns_;
  // The clock costs a tenth of a look that finds nothing: it is read every few microseconds.
  const std::uint64_t ticks = rough_ticks();
  if (ticks - clock_read_at_ > kClockTicks) {
    clock_read_at_ = ticks;
    now_ns_ = monotonic_ns();
  }
  // A process that did not look for long cannot tell a silent peer from its own absence. Longer than any
  // timer of ours.
  const std::int64_t absent = now_ns_ - last_poll_ns - (options_.retransmit_after_ns << (kMostBackoff + 1));
  if (absent > 0) [[unlikely]] {
    for (Peer* const peer : active_) {
      peer->waiting_since_ns += absent;
      peer->heard_ns += absent;
    }
  }
  for (Peer* const peer : active_) {
    if (peer->answers_wait) send_ack(*peer);
  }
  settle_acks();
  found_in_poll_ = endpoint_->poll(*this, limit);
  if (faults_ && faults_->holds_any()) {
    faults_->release(now_ns_,
                     [this](std::uint32_t to, std::span<const std::byte> frame) { (void)emit(to, frame); });
  }
  // One message is in the program's hands first; what it leaves to do has time until the next poll.
  postpone_ticks_ = found_in_poll_ == 1 && !postpone_ticks_;
  if (postpone_ticks_) return delivered_in_poll_;
  for (std::size_t i = 0; i < active_.size();) {
    Peer& peer = *active_[i];
    tick(peer);
    if (has_work(peer)) {
      ++i;
      continue;
    }
    peer.active = false;
    active_[i] = active_.back();
    active_.pop_back();
  }
  return delivered_in_poll_;
}

bool OfiWire::prepare_to_sleep() {
  settle_acks();
  for (Peer* const peer : active_) {
    for (int s = 0; s < kStreams; ++s) pump(*peer, s, true);
    if (peer->ack_due_ns != 0 || peer->ack_now || peer->answers_wait) send_ack(*peer);
  }
  // Not every provider's fi_trywait sees completions that were not taken.
  return found_in_poll_ == 0 && endpoint_->may_sleep();
}

void OfiWire::tick(Peer& peer) {
  if (peer.paused) {
    peer.paused = false;
    deliver_kept(peer, 0);
  }
  const std::uint64_t outstanding = peer.send[0].outstanding() + peer.send[1].outstanding();
  if (outstanding != 0) {
    for (const int stream : {1, 0}) {
      if (peer.send[stream].unsent != peer.send[stream].next) pump(peer, stream, true);
    }
    if (now_ns_ - std::max(peer.waiting_since_ns, peer.heard_ns) > options_.unreachable_after_ns)
      return lose(peer);
    if (now_ns_ >= peer.retry_ns) {
      for (int i = 0; i < kStreams; ++i) {
        // The oldest in any case: the answer to it says what else is missing.
        SendStream& s = peer.send[i];
        if (s.first != s.unsent) resend(peer, *s.at(s.first), i);
      }
      peer.backoff = std::min(peer.backoff + 1, kMostBackoff);
      peer.retry_ns = now_ns_ + (options_.retransmit_after_ns << peer.backoff);
    }
  } else if (peer.watched && now_ns_ - peer.heard_ns > options_.unreachable_after_ns / kSignsOfLife) {
    // A frame without packets: it must be acknowledged like any other.
    if (frame_for(peer, 0, 0, 0) != nullptr) pump(peer, 0, true);
  }
  if (peer.ack_now || (peer.ack_due_ns != 0 && now_ns_ >= peer.ack_due_ns)) send_ack(peer);
}

void OfiWire::void_all(Peer& peer) {
  // What it said before counts.
  if (late_.peer == &peer) settle_acks();
  peer.lost = true;
  peer.watched = false;
  peer.refused = false;
  peer.paused = false;
  acknowledged_by_frame(peer);
  peer.held_request = 0;
  peer.answered.clear();
  for (SendStream& s : peer.send) {
    for (; s.first != s.next; ++s.first) pool_->drop(s.at(s.first));
    s.unsent = s.next;
  }
  for (ReceiveStream& r : peer.receive) {
    r.present = 0;
    for (auto& kept : r.kept) kept = {};
  }
}

// What a user may look after when no connection has ever come about.
std::string OfiWire::never_heard(const Peer& peer) const {
  return fmt::format(
      "; nothing ever came from it, at {}: a firewall, the wrong interface, or no descriptors left there "
      "(ORRERY_INTERFACE, ulimit -n)",
      endpoint_->text_of(peer.number));
}

void OfiWire::lose(Peer& peer) {
  void_all(peer);
  ++counts_.peers_lost;
  log::warn("wire: process {} did not answer for {} ms; it counts as dead{}", peer.rank,
            options_.unreachable_after_ns / 1'000'000, peer.heard ? std::string() : never_heard(peer));
  if (loss_ != nullptr) loss_->lost(peer.slot);
}

bool OfiWire::has_work(const Peer& peer) const {
  return peer.send[0].outstanding() + peer.send[1].outstanding() != 0 || peer.ack_due_ns != 0 ||
         peer.ack_now || peer.answers_wait || peer.paused || peer.watched;
}

std::optional<std::int64_t> OfiWire::next_deadline_ns() const {
  std::optional<std::int64_t> first;
  const auto consider = [&](std::int64_t at) { first = first ? std::min(*first, at) : at; };
  for (const Peer* const peer : active_) {
    for (const SendStream& s : peer->send) {
      if (s.unsent != s.next && s.window_is_open()) consider(now_ns_ + kNextTry);
    }
    if (peer->paused || peer->ack_now || peer->answers_wait) consider(now_ns_ + kNextTry);
    if (peer->ack_due_ns != 0) consider(peer->ack_due_ns);
    if (peer->send[0].outstanding() + peer->send[1].outstanding() != 0) {
      consider(peer->retry_ns);
    } else if (peer->watched) {
      consider(peer->heard_ns + options_.unreachable_after_ns / kSignsOfLife);
    }
  }
  if (faults_ && faults_->holds_any()) consider(now_ns_ + kNextTry);
  if (endpoint_->wake_at_ns() != 0) consider(endpoint_->wake_at_ns());
  return first;
}

}  // namespace orrery::wire
