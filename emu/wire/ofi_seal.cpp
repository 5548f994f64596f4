// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// OfiWire's encryption: every frame to and from a peer, when the job is to encrypt.
#include "emu/base/log.hpp"
#include "emu/wire/ofi_wire.hpp"

#include <array>
#include <cstring>

namespace orrery::wire {

// The sealer of one direction, made when it is first needed; null when it cannot be had.
Sealer* OfiWire::sealer_of(Peer& peer, bool from_us) {
  std::unique_ptr<Sealer>& sealer = from_us ? peer.seals : peer.unseals;
  if (sealer != nullptr) return sealer.get();
  const std::uint64_t from = from_us ? incarnation_ : peer.incarnation;
  const std::uint64_t to = from_us ? peer.incarnation : incarnation_;
  std::string why;
  auto opened = Sealer::open(
      seal_key(options_.secret, {.job = options_.job, .from = from, .to = to, .domain = 0}), from_us, &why);
  if (!opened.ok()) {
    log::error("wire: process {} cannot be spoken to: {}", peer.rank, why);
    return nullptr;
  }
  sealer = std::move(opened).value();
  return sealer.get();
}

// Encrypts `frame` into `out`, kSealBytes longer. A frame that is sent again gets another nonce.
bool OfiWire::seal(Peer& peer, std::span<const std::byte> frame, std::span<std::byte> out) {
  Sealer* const sealer = sealer_of(peer, true);
  return sealer != nullptr &&
         sealer->seal({.source = options_.rank, .target = peer.rank, .counter = ++peer.sealed}, frame, out);
}

// As endpoint_->send() and inject(), of the frame encrypted. Sets `injected` when nothing will be reported.
Status OfiWire::send_sealed(Peer& peer, TxFrame& frame, std::span<const std::byte> bytes, bool* injected) {
  const std::size_t size = bytes.size() + kSealBytes;
  std::array<std::byte, 512> small;
  *injected = size <= endpoint_->longest_injected() && size <= small.size();
  const std::span<std::byte> out(*injected ? small.data() : frame.sealed, size);
  if (!seal(peer, bytes, out)) return Errc::unreachable;
  return *injected ? endpoint_->inject(peer.number, out) : endpoint_->send(peer.number, out, frame.operation);
}

// The frame in `bytes`, in opened_; empty when it was refused. A sender that is not known, or not in this
// life, may have been published since.
std::span<const std::byte> OfiWire::unsealed(std::span<const std::byte> bytes) {
  const auto head = read_seal_head(bytes);
  const auto refused = [&](Refusal cause) {
    refuse(cause, head ? head->source : UINT32_MAX);
    return std::span<const std::byte>();
  };
  if (!head) return refused(Refusal::magic);
  if (head->target != options_.rank) return refused(Refusal::target);
  const std::size_t size = bytes.size() - kSealBytes;
  if (opened_.size() < size) opened_.resize(size);
  const std::span<std::byte> frame = std::span(opened_).first(size);
  Refusal why = Refusal::source;
  for (const bool asked : {false, true}) {
    if (Peer* const peer = peer_of_rank(head->source)) {
      Sealer* const sealer = sealer_of(*peer, false);
      if (sealer != nullptr && sealer->unseal(bytes, frame)) return frame;
      why = Refusal::tag;
    }
    if (asked || addresses_ == nullptr || head->source > kHighestRank) break;
    const std::vector<std::byte> address = addresses_->address_of(head->source);
    if (address.empty() || !add_peer(static_cast<ProcessSlot>(head->source), address).ok()) break;
  }
  return refused(why);
}

}  // namespace orrery::wire
