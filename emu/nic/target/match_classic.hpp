// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/target/match_unit.hpp"

#include <cstdint>

// The rules of Portals 3 over a match unit: the same lists, entries and walk; what differs is here. An
// entry has at most one memory descriptor, which counts operations and goes with its last; a message that
// no descriptor takes is dropped without an answer; each descriptor has an event queue of its own, which
// gets the beginning and the end of each operation at both sides. As in match_unit.hpp every function
// changes the state of a Session that its caller holds.
namespace orrery::nic::match::classic {

// Events, in the interface's order: each operation's beginning, and + 1 its end.
enum Event : std::uint8_t {
  kGet = 0,
  kPut = 2,
  kGetPut = 4,
  kReply = 6,
  kSend = 8,
  kAcknowledged = 10,
  kUnlinked = 11,
};

// Options of a descriptor. DO NOT CHANGE THE VALUES: lib/portals3 asserts that they are the interface's.
enum Options : std::uint32_t {
  kAllowPut = 0x1,
  kAllowGet = 0x2,
  kManageRemote = 0x4,
  kTruncate = 0x8,
  kNoAck = 0x10,
  kPieces = 0x20,
  kMaxSize = 0x40,
  kNoStart = 0x80,
  kNoEnd = 0x100,
};

struct Memory {
  std::uint64_t start = 0;
  std::uint64_t length = 0;        // bytes
  std::uint64_t given_length = 0;  // as the program gave it
  std::uint32_t pieces = 0;
  std::int32_t threshold = 0;
  std::uint64_t max_size = 0;
  std::uint32_t options = 0;
  std::uint64_t user = 0;
  std::uint32_t queue = 0;
  std::uint32_t queue_handle = 0;
};

struct NewMatch {
  std::uint8_t interface = 0;
  std::uint32_t portal = 0;
  ProcessId source;
  std::uint64_t match_bits = 0;
  std::uint64_t ignore_bits = 0;
  bool unlinks = false;    // with its descriptor
  std::uint32_t base = 0;  // entry next to which it goes; 0: the portal's list
  bool before = false;
};

// ---- the target (match::accept and finish come here) ----
Verdict accept(Session& session, const Arrival& arrival);
void finish(Session& session, const Arrival& arrival, const Verdict& verdict, Fail outcome);

// Moves the bytes of a message to or from that address of the target; false: not now, and nothing has been
// moved. It runs under the lock (rule 4 of Session).
struct Mover {
  bool (*move)(void* what, std::uint64_t address, std::uint64_t bytes);
  void* what;
};
// What accept() and finish() do for a message that an entry takes which counts no operations and whose memory
// is one piece that nothing exchanges: in one change. `behind`: as quarters_behind() says before it. False:
// nothing has happened, and the message is one for accept().
bool deliver_shortly(Session& session, const Arrival& arrival, const Mover& mover, int* behind);

// Whether a queue holds no event, and no message is under way that will raise its first one there: one that
// an entry took before its program looked for it is not overlooked.
bool is_quiet(const Session& session, std::uint32_t queue);

// How far the reader of the entry's event queue is behind: quarters of its room that are taken, 2 or 3; 0:
// fewer, or all (events are being lost).
int quarters_behind(const Session& session, std::uint32_t entry);

// ---- entries and descriptors ----
// Errors: invalid_param (no such portal), no_resource, size (the list is too long).
Result<std::uint32_t> insert(Session& session, const NewMatch& what);
// The entry goes, and its descriptor. Errors: not_done (an operation is under way).
Status remove(Session& session, std::uint32_t entry);
// Gives the entry its memory. Errors: invalid_state (it has one).
Status attach(Session& session, std::uint32_t entry, const Memory& memory, bool unlinks);
// A descriptor without an entry: its index. Errors: no_resource.
Result<std::uint32_t> bind(Session& session, std::uint8_t interface, const Memory& memory, bool unlinks);
// The descriptor goes, and an entry that was inserted with `unlinks`. Errors: not_done (an operation is under
// way).
Status detach(Session& session, std::uint32_t index);
// Another memory, its local offset at 0. Errors: not_done (an operation is under way).
Status update(Session& session, std::uint32_t index, const Memory& memory);
// All descriptors go, before forget_interface(): what is still under way tells nothing any more.
void forget_descriptors(Session& session);
Memory memory_of(const View& view, std::uint32_t index);

// ---- the initiator's side of an operation ----
struct Side {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  std::uint32_t link = 0;
};
// What an event of the initiator says of the operation.
struct Report {
  ProcessId initiator;
  std::uint32_t uid = 0;
  std::uint32_t jid = 0;
  std::uint32_t portal = 0;
  std::uint64_t match_bits = 0;
  std::uint64_t asked = 0;
  std::uint64_t moved = 0;
  std::uint64_t offset = 0;
  std::uint64_t header_data = 0;
};
// Whether a descriptor may begin an operation: it has not had its last.
bool is_active(const View& view, std::uint32_t index);
// The operation holds the descriptor until let_go().
Side hold(Session& session, std::uint32_t index);
// Raises the beginning (`counts`: and takes one of its operations), or the end.
void begin(Session& session, const Side& side, Event event, const Report& report, bool counts);
void end(Session& session, const Side& side, Event event, const Report& report, Fail fail);
// An acknowledgement: nothing where the descriptor has had its last operation.
void acknowledge(Session& session, const Side& side, const Report& report);
void let_go(Session& session, const Side& side);

}  // namespace orrery::nic::match::classic
