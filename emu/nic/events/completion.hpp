// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/state/request.hpp"
#include "emu/wire/packet.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

// The sinks that are told how an operation ended. The carrier of an operation (a packet in flight, a
// descriptor of the block transfer engine, a delayed or a timed operation) holds a copy of its Completion,
// and calls complete() once when the operation is over.
namespace orrery::nic {

class CompletionQueue;
struct Completion;
struct Port;

// How an operation ended.
struct Ending {
  Errc status = Errc::ok;
  // Of an operation that travelled as packets: its header, and where the answer's bytes are. Live for the
  // call.
  const wire::PacketHeader* header = nullptr;
  const std::byte* answer = nullptr;
};

// A sink that is no completion queue: a transaction of many parts, an engine, or an exchange of
// datagrams.
class Listener {
 public:
  // Any thread, with locks of the NIC held: must neither block nor post. The listener itself may be gone as
  // soon as it has let its owner know: the NIC does not touch it afterwards.
  virtual void ended(const Completion& completion, const Ending& ending) = 0;

 protected:
  ~Listener() = default;
};

// A value: one cache line, copied by each carrier of the operation. Each member that is set is a sink;
// all of them are told, in the order of kSinks (completion.cpp).
struct Completion {
  static constexpr std::uint32_t kNoTransaction = UINT32_MAX;

  CompletionQueue* queue = nullptr;            // gets `events`, or an event of a failure that asked for none
  EventKind kind = EventKind::post;            // of its events: post or message_sent
  std::uint8_t events = 0;                     // kLocalEvent, kGlobalEvent
  std::uint16_t target = 0;                    // slot of the process that the operation is for
  std::uint32_t transaction = kNoTransaction;  // the operation's name in the queue (reserve())
  std::uint32_t value = 0;                     // user value of its events, or the message's id
  std::uint32_t nic_address = 0;               // of the target, in reports of errors
  void* context = nullptr;              // handed back by CompletionQueue::completed(), or the listener's own
  const Port* port = nullptr;           // through which it was posted; told of failures
  std::atomic<bool>* broken = nullptr;  // set by a failure: the mailbox of its connection
  Listener* listener = nullptr;
  std::atomic<std::uint32_t>* in_flight = nullptr;  // counts operations that outlive their post (retain())

  // Whether any sink is told of an operation that went well; else it may be sent and forgotten.
  bool tells_of_success() const { return events != 0 || listener != nullptr; }
  bool has_transaction() const { return transaction != kNoTransaction; }
};
static_assert(sizeof(Completion) == 64);

// Which thread tells of an end, and so which of a queue's rings takes the event.
enum class Teller : std::uint8_t {
  owner,         // the thread that uses the queue: its private ring, at once
  owner_behind,  // the same, but behind events that are in the shared ring already
  other,         // any thread: the shared ring; no transaction can be opened for a failure
};

// Gives the operation a name in its queue, if it asks for events. Not blocking; the queue's thread.
// Errors: invalid_param (events, but no queue), no_resource (the queue's transactions are used up).
Errc reserve(Completion& completion);
// Gives it back: the operation was not accepted. The queue's thread.
void abandon(const Completion& completion);

// Tells all sinks how the operation ended. Once for each operation that was accepted. A failure that asked
// for no event is told to the queue all the same, where the caller may open a transaction. Not blocking.
void complete(const Completion& completion, const Ending& ending, Teller teller);
inline void complete(const Completion& completion, Errc status, Teller teller) {
  complete(completion, Ending{.status = status}, teller);
}

// For an operation that outlives its post: what it will tell stays until release(), which comes after
// complete() and is the last that is done for the operation. Any thread.
void retain(const Completion& completion);
void release(const Completion& completion);

}  // namespace orrery::nic
