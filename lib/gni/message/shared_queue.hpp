// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "lib/gni/message/queue_membership.hpp"
#include "lib/gni/objects.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

// The message queue that the instances of a node share, as each of them holds it: a channel of the NIC
// (emu/nic/message/channel.hpp) whose buffers take messages from all senders, and the table of the instances
// to which messages may be sent. docs/messages.md has the picture.
namespace orrery::gni {

// What a buffer of a channel takes. The bytes are a peer's and are checked.
struct QueuedHeader {
  static constexpr std::uint16_t kMark = 0x714d;
  enum Kind : std::uint8_t { kMessage = 1, kConnect = 2, kDisconnect = 3 };
  std::uint16_t mark = 0;
  std::uint8_t kind = 0;
  std::uint8_t tag = 0;
  std::uint16_t bytes = 0;  // that follow
  std::uint16_t unused = 0;
  std::uint32_t sender_instance = 0;
  std::uint32_t sender_address = 0;
};
static_assert(sizeof(QueuedHeader) == 16);

// One instance of a node, by its channel.
struct QueueMember {
  std::uint32_t instance = 0;
  nic::MemKey channel;
};

// Threads: one at a time, as for everything of its NIC handle.
// Invariants: (1) at most one message is in flight: the next waits until its outcome is known; (2) a message
// is in the sender's queue of events exactly once, after its receiver has it; (3) every posted buffer is
// either ready, being filled, or named by an event that was not taken.
class SharedQueue {
 public:
  // Errors: as GNI_MsgqInit. Blocks until all instances of the node are there.
  static Result<std::unique_ptr<SharedQueue>> join(Attachment& attachment, const gni_msgq_attr_t& attrs,
                                                   Cq* source, gni_msgq_rcv_cb_func* callback,
                                                   void* callback_data);
  ~SharedQueue();
  SharedQueue(const SharedQueue&) = delete;
  SharedQueue& operator=(const SharedQueue&) = delete;

  // ok; not_done: something is in flight, a sender is filling a buffer, or an instance has not seen yet that
  // all have joined.
  Errc leave();
  bool idle() { return settle(); }

  // Errors: invalid_state (connected already), invalid_param (our own node), no_resource.
  Errc describe(std::uint32_t address, gni_msgq_ep_attr_t* attrs, std::uint32_t* bytes);
  // Errors: no_match (describe() was not called for it), invalid_state, invalid_param (not what such a queue
  // says of itself), no_resource (an instance of this node takes no messages).
  Errc connect(std::uint32_t address, const gni_msgq_ep_attr_t& attrs);
  // Errors: no_match, not_done.
  Errc disconnect(std::uint32_t address);

  struct Outgoing {
    std::span<const std::byte> header;
    std::span<const std::byte> data;
    std::uint32_t id = 0;
    std::uint8_t tag = 0;
  };
  // Errors: no_match (not connected to that instance), size, not_done (no buffer), no_resource (the source
  // queue's requests are used up), unreachable.
  Errc send(std::uint32_t address, std::uint32_t instance, const Outgoing& message);

  // Hands messages to the callback until there are none (ok) or it asks to stop (not_done).
  // Errors: invalid_param (a wait, of a queue that does not block).
  Errc progress(std::uint32_t timeout_ms);
  // Whether the callback is being called: the queue must outlive that.
  bool in_callback() const { return in_callback_; }

  // Whether attributes make sense, and what a queue of them takes.
  static bool valid(const gni_msgq_attr_t& attrs);
  static std::uint64_t bytes_of(const gni_msgq_attr_t& attrs);

  std::uint64_t handle = 0;
  Attachment* attachment() { return &attachment_; }

 private:
  static constexpr std::uint32_t kStride = 192;  // of buffers: header and longest message, in whole lines
  struct Connection {
    bool described = false;
    std::uint32_t expected = 0;  // members of a connected node; 0: not connected
    std::vector<QueueMember> members;
    std::unique_ptr<nic::Endpoint> endpoint;
  };
  struct Arrived {
    QueuedHeader header;
    std::array<std::byte, GNI_MSGQ_MSG_SZ_MAX> bytes;
  };
  // A message that left, until it is known what became of it.
  struct Outstanding {
    nic::Endpoint* endpoint = nullptr;
    nic::MemKey channel;
    std::uint32_t length = 0;
    std::uint32_t transaction = nic::CompletionQueue::kNone;  // of the source queue
    std::uint32_t id = 0;
    bool posted = false;
    alignas(8) std::array<std::byte, kStride> bytes{};
  };

  SharedQueue(Attachment& attachment, const gni_msgq_attr_t& attrs, Cq* source,
              gni_msgq_rcv_cb_func* callback, void* callback_data);
  Errc open();
  Errc publish();
  Errc await_members();
  std::unique_ptr<nic::Endpoint> make_endpoint(std::uint32_t address) const;
  const QueueMember* find_member(std::uint32_t address, std::uint32_t instance);
  Errc launch(nic::Endpoint& endpoint, const nic::MemKey& channel, const QueuedHeader& header,
              const Outgoing& message, std::uint32_t transaction);
  Errc attempt();
  std::optional<Errc> outcome();
  void give_up(Errc why);
  bool settle();
  Errc tell_members(const QueuedHeader& header, std::span<const std::byte> bytes);
  bool collect();
  void take_in(const Arrived& arrived);
  void learn(const Arrived& arrived);
  bool wait_for_any(std::uint32_t timeout_ms);

  Attachment& attachment_;
  nic::Nic& nic_;
  const gni_msgq_attr_t attrs_;
  Cq* const source_;  // may be null
  gni_msgq_rcv_cb_func* const callback_;
  void* const callback_data_;
  // Of its own: that no buffer was ready is no error of the client's, and does not kill it.
  nic::Port* port_ = nullptr;
  std::byte* memory_ = nullptr;
  nic::MemKey region_;
  nic::CompletionQueue* arrivals_ = nullptr;
  nic::CompletionQueue* outcomes_ = nullptr;
  std::optional<nic::ChannelName> channel_;
  QueueMembership* membership_ = nullptr;  // the attachment's
  std::vector<QueueMember> here_;          // the instances of this node
  std::unique_ptr<nic::Endpoint> here_endpoint_;
  std::map<std::uint32_t, Connection> connections_;  // by NIC address
  std::deque<Arrived> arrived_;                      // user messages that were not handed over yet
  Outstanding flight_;
  bool flying_ = false;
  bool in_callback_ = false;
};

inline SharedQueue* find(gni_msgq_handle_t handle) {
  return static_cast<SharedQueue*>(handles().find(HandleKind::msgq, reinterpret_cast<std::uint64_t>(handle)));
}

}  // namespace orrery::gni
