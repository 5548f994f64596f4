// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/target/datagram_state.hpp"

#include <algorithm>
#include <climits>

namespace orrery::nic {

namespace {

constexpr std::uint64_t kNoOrder = UINT64_MAX;

bool is_known(const wire::PacketHeader& header) {
  return header.command == static_cast<std::uint8_t>(DatagramCommand::bound) ||
         header.command == static_cast<std::uint8_t>(DatagramCommand::wildcard);
}

// How well a post meets the packet's: 0 not at all, 1 as a wildcard, 2 as one bound back, or one bound to the
// wildcard that the packet is.
int fit(const DatagramPost& post, const wire::PacketHeader& header) {
  if (post.domain.load(std::memory_order_relaxed) != header.domain) return 0;
  if (post.out_bytes.load(std::memory_order_relaxed) > kDatagramBytes) return 0;  // its owner wrote nonsense
  const bool wildcard = post.wildcard.load(std::memory_order_relaxed) != 0;
  const bool is_back = !wildcard && post.to.load(std::memory_order_relaxed) == header.event_data;
  if (header.command == static_cast<std::uint8_t>(DatagramCommand::wildcard)) return is_back ? 2 : 0;
  if (post.from.load(std::memory_order_relaxed) != header.operand[0]) return 0;
  if (wildcard) return 1;
  return is_back ? 2 : 0;
}

}  // namespace

std::optional<DatagramMeeting> find_meeting(const NicView& target, const wire::PacketHeader& header,
                                            std::uint32_t not_index) {
  DatagramState& state = datagrams_of(target);
  const std::uint32_t count = std::min(state.count.load(std::memory_order_acquire), kMaxDatagrams);
  // The best of those that are pending or asking: an older one that is asking keeps its place.
  std::optional<DatagramMeeting> best;
  std::optional<DatagramMeeting> busy;
  int best_fit = 0;
  std::uint64_t best_order = kNoOrder;
  for (std::uint32_t i = 0; i < count; ++i) {
    const DatagramPost& post = state.posts[i];
    // Sequentially consistent: of two that post at the same time, each publishes before it looks here.
    const std::uint64_t word = post.word.load(std::memory_order_seq_cst);
    const PostState at = post_word::state(word);
    if (!post_word::waits(at) || i == not_index) continue;
    const int how = fit(post, header);
    if (how == 0) continue;
    if (at == PostState::claimed) {
      busy = DatagramMeeting{i, word};
      continue;
    }
    const std::uint64_t order = post.order.load(std::memory_order_relaxed);
    if (how < best_fit || (how == best_fit && order >= best_order)) continue;
    best = DatagramMeeting{i, word};
    best_fit = how;
    best_order = order;
  }
  return best ? best : busy;
}

bool end_post(const NicView& nic, DatagramPost& post, std::uint64_t expected, PostState end) {
  DatagramState& state = datagrams_of(nic);
  // Release: a thread that sees the end sees the partner's bytes. Sequentially consistent: either a waiter,
  // which announces itself before it looks, sees the end, or we see the waiter.
  if (!post.word.compare_exchange_strong(expected, post_word::with(expected, end), std::memory_order_seq_cst))
    return false;
  if (state.waiters.load(std::memory_order_seq_cst) != 0) {
    state.signal.fetch_add(1, std::memory_order_release);
    futex_wake(state.signal, INT_MAX);
  }
  return true;
}

Errc execute_datagram(const NicView& target, const wire::PacketHeader& header,
                      std::span<const std::byte> payload, wire::ProcessSlot claimer, std::uint32_t generation,
                      DatagramReply* reply, DatagramMeeting* busy, std::uint32_t not_index) {
  if (!is_known(header)) return Errc::illegal_op;
  if (payload.size() > kDatagramBytes) return Errc::size;
  for (;;) {
    const auto meeting = find_meeting(target, header, not_index);
    if (!meeting) return Errc::not_done;
    if (post_word::state(meeting->word) != PostState::pending) {
      *busy = *meeting;
      return Errc::no_resource;
    }
    DatagramPost& post = datagrams_of(target).posts[meeting->index];
    // The lines that will be read and written come while the claim is on its way.
    __builtin_prefetch(post.out);
    __builtin_prefetch(post.in, 1);
    std::uint64_t expected = meeting->word;
    const std::uint64_t claimed = post_word::claimed(expected, claimer, generation);
    // Acquire: its bytes. The serial in the word makes this the very post that was looked at.
    if (!post.word.compare_exchange_strong(expected, claimed, std::memory_order_seq_cst)) continue;
    const std::uint32_t bytes =
        std::min<std::uint32_t>(post.out_bytes.load(std::memory_order_relaxed), kDatagramBytes);
    reply->partner = post.from.load(std::memory_order_relaxed);
    reply->bytes = bytes;
    std::memcpy(reply->data, post.out, bytes);
    if (!payload.empty()) std::memcpy(post.in, payload.data(), payload.size());
    post.in_bytes.store(static_cast<std::uint16_t>(payload.size()), std::memory_order_relaxed);
    post.partner.store(header.event_data, std::memory_order_relaxed);
    if (end_post(target, post, claimed, PostState::completed)) return Errc::ok;
    // Another process took us for dead and gave the post back: not ours any more.
  }
}

Errc execute_datagram_packet(const NicView& nic, const wire::PacketHeader& header,
                             std::span<const std::byte> payload, std::span<std::byte> out) {
  if (out.size() < sizeof(DatagramReply)) return Errc::size;
  DatagramReply reply;
  DatagramMeeting busy;
  const Errc met = execute_datagram(nic, header, payload, post_word::kOwner, 0, &reply, &busy);
  if (met == Errc::ok) std::memcpy(out.data(), &reply, sizeof reply);
  return met;
}

}  // namespace orrery::nic
