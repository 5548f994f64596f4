// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "lib/gni/objects.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

// A queue of small messages into which any connected peer may put (GNI_Dqueue calls): as many channels of the
// NIC (emu/nic/message/channel.hpp) as its entries need, and a page that names them, which peers read when
// they connect. docs/messages.md has the picture.
namespace orrery::gni {

// Threads: one at a time, as for everything of its NIC handle.
// Invariants: (1) messages of one sender are handed over in the order of their puts, whichever channel took
// them; (2) a message that was accepted was taken by a buffer of its receiver, but for one that is still in
// flight.
class DestinationQueue {
 public:
  static constexpr std::uint32_t kMaxEntries = nic::kMaxChannels / 2 * nic::kMaxReceives;
  static constexpr std::uint32_t kMaxMessage = 65536;  // bytes

  // Errors: invalid_param, no_resource, no_memory.
  static Result<std::unique_ptr<DestinationQueue>> make(Attachment& attachment,
                                                        const gni_dqueue_in_attr_t& attrs);
  ~DestinationQueue();
  DestinationQueue(const DestinationQueue&) = delete;
  DestinationQueue& operator=(const DestinationQueue&) = delete;

  gni_dqueue_out_attr_t describe() const;
  // Errors: not_done (a message is in flight, or a buffer is being filled).
  Errc close();
  // All or none. Errors: invalid_param (not what such a queue says of itself), no_resource (more peers than
  // asked for), unreachable.
  Errc connect(std::span<const gni_dqueue_out_attr_t> peers);
  // Errors: no_match, size, not_done (no room), unreachable (the peer is gone).
  Errc put(std::uint32_t address, std::uint32_t instance, std::span<const std::byte> data);
  // Errors: not_done (nothing came), invalid_state (called by the callback).
  Errc progress();
  // Whether the callback is being called: the queue must outlive that.
  bool in_callback() const { return in_callback_; }

  std::uint64_t handle = 0;
  Attachment* attachment() { return &attachment_; }

 private:
  // The first bytes of the queue's memory, for its peers.
  struct Directory {
    std::uint64_t mark = 0;
    std::uint32_t count = 0;
    std::uint32_t stride = 0;
    struct Name {
      std::uint16_t index = 0;
      std::uint16_t generation = 0;
    };
    std::array<Name, nic::kMaxChannels> channels{};
  };
  static_assert(sizeof(Directory) <= nic::kPageBytes && sizeof(Directory) % 4 == 0);
  // In front of every message. A peer's bytes.
  struct Header {
    std::uint32_t mark = 0;
    std::uint32_t bytes = 0;
    std::uint32_t address = 0;
    std::uint32_t instance = 0;
    std::uint64_t stream = 0;  // of its sender's queue, which may have had others before
    std::uint64_t number = 0;  // of its messages to this queue, from 0
  };
  using PeerName = std::pair<std::uint32_t, std::uint32_t>;  // NIC address, instance
  struct Peer {
    std::vector<nic::MemKey> channels;
    std::uint32_t message_bytes = 0;
    std::size_t next = 0;  // the channel that took the last one
    std::uint64_t sent = 0;
    std::unique_ptr<nic::Endpoint> endpoint;
  };
  // What came from one sender out of turn.
  struct Inbox {
    std::uint64_t next = 0;
    std::map<std::uint64_t, std::vector<std::byte>> early;
  };
  struct Ready {
    PeerName from;
    std::vector<std::byte> bytes;
  };

  DestinationQueue(Attachment& attachment, const gni_dqueue_in_attr_t& attrs);
  Errc open();
  Result<Peer> read_directory(const gni_dqueue_out_attr_t& peer);
  Errc carry(nic::Endpoint& endpoint, nic::Request request, std::optional<std::int64_t> deadline_ns);
  std::optional<Errc> landed();
  void collect();
  std::uint64_t stride() const;
  std::uint64_t memory_bytes() const;
  std::unique_ptr<nic::Endpoint> endpoint_to(std::uint32_t address) const;

  Attachment& attachment_;
  nic::Nic& nic_;
  const std::uint32_t entries_;
  const std::uint32_t message_bytes_;
  const std::uint32_t most_peers_;
  const std::uint64_t stream_;
  const gni_dqueue_cb_func callback_;
  void* const context_;
  nic::Port* port_ = nullptr;  // of its own: that a queue is full is no error that kills a process
  std::byte* memory_ = nullptr;
  nic::MemKey region_;
  nic::CompletionQueue* arrivals_ = nullptr;
  nic::CompletionQueue* outcomes_ = nullptr;
  std::vector<nic::ChannelName> channels_;
  std::map<PeerName, Peer> peers_;
  std::map<std::pair<PeerName, std::uint64_t>, Inbox> inboxes_;  // by sender and stream
  std::deque<Ready> ready_;
  std::unique_ptr<nic::Endpoint> self_;
  std::vector<std::byte> staging_;
  bool flying_ = false;  // staging_ is still being read, and outcomes_ has not said how that ended
  bool in_callback_ = false;
};

inline DestinationQueue* find(gni_dqueue_handle_t handle) {
  return static_cast<DestinationQueue*>(
      handles().find(HandleKind::dqueue, reinterpret_cast<std::uint64_t>(handle)));
}

}  // namespace orrery::gni
