// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/target/match_unit.hpp"
#include "emu/wire/packet.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

// The packets of Verb::match, for match units that the initiator cannot map. Each is one packet with one
// answer. The payload begins with a StepHead; `length` and `part_bytes` of the packet's header say how long
// the answer is, which begins with a StepAnswer.
namespace orrery::nic::match {

// DO NOT CHANGE THE VALUES: they are on the wire. Append only.
enum class Step : std::uint8_t {
  who = 0,       // whether the process has this pid. Payload: StepHead alone, `token` is the pid
  open = 1,      // finds the entry. Payload: StepHead, Offer, the first bytes that the initiator sends
  put_part = 2,  // bytes for [offset, ...) of an open message
  get_part = 3,  // asks for [offset, ...) of an open message, as many as the answer has room for
  apply = 4,     // all bytes of an atomic are there: carries it out
  finish = 5,    // all parts were answered: raises the target's events. `fail`: what went wrong, if anything
};

struct StepHead {
  std::uint64_t token = 0;  // of the open message, from the answer to open
  std::uint64_t offset = 0;
  std::uint8_t step = 0;
  std::uint8_t fail = 0;
  std::uint8_t reserved[6] = {};
};
static_assert(sizeof(StepHead) == 24);

// A message as its initiator offers it.
struct Offer {
  std::uint64_t match_bits = 0;
  std::uint64_t remote_offset = 0;
  std::uint64_t length = 0;
  std::uint64_t header_data = 0;
  ProcessId initiator;
  std::uint32_t pid = 0;  // that it is for
  std::uint32_t portal = 0;
  std::uint32_t uid = 0;
  std::uint8_t kind = 0;  // OpKind: put, get, atomic, fetch_atomic, swap
  std::uint8_t interface = 0;
  std::uint8_t operation = 0;
  std::uint8_t datatype = 0;
  std::uint8_t operand[kMaxSwapBytes] = {};
};
static_assert(sizeof(Offer) == 88);

struct StepAnswer {
  std::uint64_t token = 0;  // 0: the message is over, the target's events are raised
  std::uint64_t moved = 0;  // bytes that the entry takes or gives
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;  // that follow here
  std::uint8_t fail = 0;
  std::uint8_t list = 0;
  std::uint8_t no_ack = 0;
  std::uint8_t reserved = 0;
};
static_assert(sizeof(StepAnswer) == 32);

// What carries out such packets: the library whose match unit it is.
class PacketServer {
 public:
  // `answer` is zeroed. Called with locks of the NIC held: must neither block nor post. The bytes come from a
  // peer and are checked. Errors are the packet's: corrupt (not as above), no_match (another pid),
  // invalid_handle (no such message), no_resource (too many open messages), bounds, unreachable.
  virtual Errc serve(const wire::PacketHeader& header, std::span<const std::byte> payload,
                     std::span<std::byte> answer) = 0;

 protected:
  ~PacketServer() = default;
};

}  // namespace orrery::nic::match
