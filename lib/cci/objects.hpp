// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "cci.h"
#include "emu/base/timer_wheel.hpp"
#include "emu/base/unique_fd.hpp"
#include "emu/base/units.hpp"
#include "emu/memory/cross_attach.hpp"
#include "emu/memory/peer_memory.hpp"
#include "lib/cci/frame.hpp"
#include "lib/cci/segment.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

// What an endpoint is made of. All of it is guarded by the endpoint's lock.
namespace orrery::cci {

class Endpoint;
struct Connection;
struct Op;

inline constexpr std::uint32_t kNoBuffer = UINT32_MAX;
inline constexpr std::uint32_t kNoPlace = UINT32_MAX;
// Claims of the endpoint itself, for messages that come by a socket.
inline constexpr std::uint32_t kOwnClaim = 0x3fffffff;

// A singly linked list of what has a member `next`.
template <typename T>
struct List {
  T* head = nullptr;
  T* tail = nullptr;
  void push(T* item) {
    item->next = nullptr;
    (head == nullptr ? head : tail->next) = item;
    tail = item;
  }
  T* pop() {
    T* const item = head;
    if (item != nullptr) head = item->next;
    return item;
  }
  // Whether it was there. Takes as long as there are items before it.
  bool remove(T* item) {
    T* before = nullptr;
    for (T* each = head; each != nullptr; before = each, each = each->next) {
      if (each != item) continue;
      (before == nullptr ? head : before->next) = item->next;
      if (tail == item) tail = before;
      return true;
    }
    return false;
  }
};

// An event as the client sees it, first, and what returning it gives back.
struct Event {
  alignas(8) std::byte shown[40] = {};
  Endpoint* endpoint = nullptr;
  Event* next = nullptr;
  Connection* request = nullptr;  // of a connection request that is not decided yet
  Connection* of = nullptr;       // the connection that it names, which stays until it is returned
  std::uint32_t buffer = kNoBuffer;
  bool receives = false;  // counts as a receive buffer
  bool sends = false;     // counts as a send buffer
  alignas(8) std::byte bytes[kInlineBytes] = {};
  std::vector<std::byte> data;  // of a connection request

  template <typename T>
  void show(const T& what) {
    static_assert(sizeof(T) <= sizeof shown);
    new (shown) T(what);
  }
  cci_event_type type() const { return *reinterpret_cast<const cci_event_type*>(shown); }
  inline void names(Connection* connection);
};

// A time limit of an operation, a connection's handshake, its keepalive, or the listeners' pause.
struct Limit : Timer {
  enum class Of : std::uint8_t { operation, handshake, keepalive, listeners };
  Limit(Of kind, void* what) : of(kind), object(what) {}
  const Of of;
  void* const object;
};

enum class OpKind : std::uint8_t { message, write, read };

// A send or RMA that did not end in the call that asked for it.
struct Op {
  Op* next = nullptr;
  Connection* connection = nullptr;
  void* context = nullptr;
  int flags = 0;
  OpKind kind = OpKind::message;
  bool started = false;    // RMA by frames: under way
  bool data_done = false;  // RMA: the data is in place, what is left is the message
  bool done = false;       // blocking: ended, with `status`
  cci_status status = CCI_SUCCESS;
  Limit limit{Limit::Of::operation, this};  // of its time
  std::uint64_t number = 0;                 // of the message or the operation, as frames name it
  const std::byte* message = nullptr;
  std::uint32_t message_bytes = 0;
  std::vector<std::byte> copy;  // what `message` points to, unless the client keeps it
  std::byte* local = nullptr;
  std::uint64_t remote = 0;  // registration: generation << 32 | index
  std::uint64_t remote_offset = 0;
  std::uint64_t length = 0;
  std::uint64_t moved = 0;  // bytes of it that were sent or have come
};

// A peer's segment, its doorbell, and whether its memory can be attached to: shared by all connections to it.
struct PeerSegment {
  std::unique_ptr<Segment> segment;
  UniqueFd doorbell;
  memory::CrossAttach attach;
  bool attaches = false;
  bool asked = false;                          // its memory file
  std::unique_ptr<memory::PeerMemory> memory;  // null: not by the file
};

enum class ConnectionState : std::uint8_t {
  greeting,   // a peer has connected and not said what it wants
  requested,  // the client decides
  accepting,  // accepted, the other side is to say how
  dialling,   // connecting the socket
  waiting,    // asked, not answered
  open,
  lost,   // the peer is gone; the client still has the handle
  ended,  // the client has none any more; the peer may still write into the ring
};

// What a connection needs only while messages or frames of it are under way by its socket.
struct Connection {
  struct cci_connection shown {};  // first
  Endpoint* owner = nullptr;
  ConnectionState state = ConnectionState::greeting;
  bool shared = false;
  bool client = false;
  bool same_user = false;  // by the Unix socket
  bool known = false;      // the client of the library has the handle
  bool active = false;     // in the list of rings that are looked at
  bool in_row = false;     // the last look at its ring found a message
  bool blocked = false;    // in the list of those with operations that wait
  bool stalled = false;    // no buffer for the next message: the socket is not read
  bool owes_ack = false;   // in the list
  bool keyed = false;
  bool said_busy = false;
  bool peer_busy = false;  // the peer said that it has no buffer
  bool heard = false;      // something came since the last look
  bool released = false;   // goes when no event names it any more
  std::uint8_t rma_failed = 0;
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  std::uint32_t place = 0;         // among the endpoint's connections
  std::uint32_t events = 0;        // that name it and were not returned
  std::uint32_t send_timeout = 0;  // microseconds
  std::uint32_t keepalive = 0;     // microseconds
  std::int64_t heard_ns = 0;
  std::int64_t pinged_ns = 0;
  Limit handshake{Limit::Of::handshake, this};
  Limit alive{Limit::Of::keepalive, this};

  // Shared memory.
  std::shared_ptr<PeerSegment> peer;
  ConnectionRing* in = nullptr;
  ConnectionRing* out = nullptr;
  std::uint64_t in_head = 0;
  std::uint64_t out_tail = 0;
  std::uint64_t out_head = 0;  // as last seen
  std::uint32_t peer_slot = 0;
  std::uint32_t peer_generation = 0;

  // Under a clock.
  std::uint32_t clock_place = kNoPlace;  // of the peer among the PEs
  Picos arrives_until;                   // everything posted so far has arrived

  // The socket.
  UniqueFd socket;
  std::uint32_t interest = 0;  // epoll events
  FrameReader reader;
  wire::AuthKey write_key{};
  std::uint64_t frames_sent = 0;
  std::vector<std::byte> partial;   // of a frame that has not come whole
  std::vector<std::byte> outgoing;  // that the socket did not take
  std::vector<UniqueFd> descriptors;
  Hello mine, theirs;
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_taken = 0;
  std::uint64_t operations = 0;
  List<Op> queue;                  // not sent yet
  List<Op> unacked;                // sent, not acknowledged
  std::vector<std::byte> request;  // data of the connection request, until it is sent
};

inline bool is_reliable(const Connection& connection) {
  return connection.shown.attribute <= CCI_CONN_ATTR_RU;
}

inline void Event::names(Connection* connection) {
  of = connection;
  ++connection->events;
}

}  // namespace orrery::cci
