// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/model/operation.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

// What one NIC can ask another to do: one row for each, which every part of the NIC reads. A new operation is
// an enumerator, a row, and its rule in emu/nic/target/execute.cpp.
namespace orrery::wire {

// DO NOT CHANGE THE VALUES: they are on the wire. Append only, and add a row to kVerbTable.
enum class Verb : std::uint8_t {
  none = 0,
  put = 1,        // store the payload
  get = 2,        // send back the bytes
  amo = 3,        // one atomic memory operation of the AMO unit
  cq_write = 4,   // an event and nothing else
  send = 5,       // to a receive buffer that the target posted
  datagram = 6,   // one half of a datagram exchange, or its withdrawal
  message = 7,    // into a mailbox (SMSG)
  credit = 8,     // a mailbox's consumer gives room back
  join = 9,       // a child's contribution to a reduction
  release = 10,   // a reduction's result on its way down
  match = 11,     // one step of a message to a match unit
  response = 64,  // the answer to any of them
};

// Whose rule at the target it is.
enum class Unit : std::uint8_t { none, region, buffers, exchange, engine, match };

// What the answer to a request that went well carries.
enum class Answer : std::uint8_t {
  status,   // nothing else
  fetched,  // bytes, if the packet is marked kFetching
  data,     // bytes
};

struct VerbTraits {
  Unit unit = Unit::none;  // none: no peer may ask for it
  bool addressed = false;  // names memory of the target, which is checked
  bool writes = false;     // changes that memory
  bool payload = false;    // bytes of the initiator travel with it
  Answer answer = Answer::status;
  bool copies = false;         // moves bytes and does nothing else: the kernel may do it
  bool may_be_silent = false;  // may be sent and forgotten when its end is not reported
  bool is_event = false;       // what it does at the target is its event
  bool connected = false;      // belongs to a connection of mailboxes, which a failure breaks
  // What a clock asks the machine's model for; of an AMO emu/nic/gate/timed.cpp says more.
  model::Op price = model::Op::fma_put;
  model::Op block_price = model::Op::bte_put;      // by the block transfer engine
  model::Op launch_price = model::Op::launch_put;  // by FMA Launch
  bool uncontended = false;                        // rides on other packets
};

inline constexpr std::size_t kVerbs = 12;  // but response, which is none's

inline constexpr std::array<VerbTraits, kVerbs> kVerbTable = {{
    {},  // none
    {.unit = Unit::region,
     .addressed = true,
     .writes = true,
     .payload = true,
     .copies = true,
     .may_be_silent = true},  // put
    {.unit = Unit::region,
     .addressed = true,
     .answer = Answer::data,
     .copies = true,
     .price = model::Op::fma_get,
     .block_price = model::Op::bte_get,
     .launch_price = model::Op::fma_get},  // get
    {.unit = Unit::region,
     .addressed = true,
     .writes = true,
     .answer = Answer::fetched,
     .price = model::Op::amo},  // amo
    {.unit = Unit::region,
     .may_be_silent = true,
     .is_event = true,
     .price = model::Op::cq_write,
     .block_price = model::Op::cq_write,
     .launch_price = model::Op::cq_write},  // cq_write
    {.unit = Unit::buffers,
     .payload = true,
     .is_event = true,
     .price = model::Op::send,
     .block_price = model::Op::send,
     .launch_price = model::Op::send},                 // send
    {.unit = Unit::exchange, .answer = Answer::data},  // datagram
    {.unit = Unit::region,
     .addressed = true,
     .writes = true,
     .payload = true,
     .copies = true,
     .connected = true,
     .price = model::Op::message,
     .block_price = model::Op::message,
     .launch_price = model::Op::message},  // message
    {.unit = Unit::region,
     .addressed = true,
     .writes = true,
     .payload = true,
     .copies = true,
     .may_be_silent = true,
     .connected = true,
     .price = model::Op::launch_put,
     .block_price = model::Op::launch_put,
     .uncontended = true},                          // credit
    {.unit = Unit::engine},                         // join
    {.unit = Unit::engine},                         // release
    {.unit = Unit::match, .answer = Answer::data},  // match
}};

// The row of a verb; none's for any byte that is no verb.
constexpr const VerbTraits& traits(Verb verb) {
  const auto row = static_cast<std::size_t>(verb);
  return kVerbTable[row < kVerbs ? row : 0];
}

// Whether a peer may send it.
constexpr bool is_known(Verb verb) { return traits(verb).unit != Unit::none || verb == Verb::response; }

}  // namespace orrery::wire
