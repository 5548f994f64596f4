// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// OfiWire's hellos: they name the peer of a connection.
#include "emu/job/random.hpp"
#include "emu/wire/ofi_wire.hpp"

#include <algorithm>

namespace orrery::wire {

AuthKey OfiWire::key_of_hellos(const Peer& peer, bool from_us) const {
  const std::uint64_t from = from_us ? incarnation_ : peer.incarnation;
  const std::uint64_t to = from_us ? peer.incarnation : incarnation_;
  return hello_key(options_.secret, {.job = options_.job, .from = from, .to = to, .domain = 0});
}

OfiWire::Peer* OfiWire::peer_of_number(std::uint64_t number) const {
  const auto found = std::find_if(peers_.begin(), peers_.end(), [number](const auto& peer) {
    return peer != nullptr && peer->number == number;
  });
  return found == peers_.end() ? nullptr : found->get();
}

std::vector<std::byte> OfiWire::hello_to(std::uint64_t number) {
  Peer* const peer = peer_of_number(number);
  if (peer == nullptr) return {};
  peer->nonce = job::random_nonzero();
  const auto bytes = write_hello({.job = options_.job,
                                  .source = options_.rank,
                                  .target = peer->rank,
                                  .from = incarnation_,
                                  .to = peer->incarnation,
                                  .nonce = peer->nonce,
                                  .counter = ++hellos_},
                                 key_of_hellos(*peer, true));
  return {bytes.begin(), bytes.end()};
}

// Whom an authentic hello is from; null when it was refused. One that is not known, or not in this life,
// may have been published since.
OfiWire::Peer* OfiWire::greeter_of(const Hello& hello, std::span<const std::byte> bytes) {
  for (const bool asked : {false, true}) {
    Peer* const peer = peer_of_rank(hello.source);
    if (peer != nullptr && peer->incarnation == hello.from) {
      if (hello_is_right(bytes, key_of_hellos(*peer, false))) return peer;
      refuse(Refusal::tag, hello.source);
      return nullptr;
    }
    if (asked || addresses_ == nullptr || hello.source > kHighestRank) break;
    const std::vector<std::byte> address = addresses_->address_of(hello.source);
    if (address.empty() || !add_peer(static_cast<ProcessSlot>(hello.source), address).ok()) break;
  }
  refuse(Refusal::source, hello.source);
  return nullptr;
}

std::optional<OfiGreeter::Greeted> OfiWire::greeted(std::span<const std::byte> bytes) {
  const auto refused = [this](Refusal cause, std::uint32_t source) {
    refuse(cause, source);
    return std::nullopt;
  };
  const auto hello = read_hello(bytes);
  if (!hello) return refused(Refusal::magic, UINT32_MAX);
  if (hello->job != options_.job) return refused(Refusal::job, hello->source);
  if (hello->target != options_.rank || hello->to != incarnation_)
    return refused(Refusal::target, hello->source);
  Peer* const peer = greeter_of(*hello, bytes);
  if (peer == nullptr) return std::nullopt;
  if (peer->lost) {
    ++counts_.refused[static_cast<std::size_t>(Refusal::source)];
    return std::nullopt;
  }
  // One that was taken before, or that its sender has given up.
  if (hello->counter <= peer->greeted) return refused(Refusal::duplicate, hello->source);
  peer->greeted = hello->counter;
  const auto answer =
      write_hello_answer({.nonce = hello->nonce, .counter = hellos_}, key_of_hellos(*peer, true));
  return Greeted{.peer = peer->number,
                 .we_go_first = options_.rank < peer->rank,
                 .answer = {answer.begin(), answer.end()}};
}

bool OfiWire::answered(std::uint64_t number, std::span<const std::byte> bytes) {
  Peer* const peer = peer_of_number(number);
  if (peer == nullptr) return false;
  const auto answer = read_hello_answer(bytes, key_of_hellos(*peer, false));
  if (!answer || answer->nonce != peer->nonce) {
    refuse(Refusal::tag, peer->rank);
    return false;
  }
  peer->greeted = std::max(peer->greeted, answer->counter);
  return true;
}

}  // namespace orrery::wire
