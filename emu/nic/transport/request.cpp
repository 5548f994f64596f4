// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/transport/request.hpp"

#include "emu/base/timed_path.hpp"
#include "emu/nic/target/amo_unit.hpp"

namespace orrery::nic {

ORRERY_TIMED_PATH wire::PacketHeader header_of(const Request& request, wire::ProcessSlot self) {
  wire::PacketHeader header;
  header.verb = request.op;
  if (wire::traits(request.op).answer == wire::Answer::fetched) {
    header.part_bytes = request.length;
    if (amo::fetches(request.command)) header.flags |= wire::kFetching;
  }
  header.command = request.command;
  if ((request.flags & kRemoteEvent) != 0) header.flags |= wire::kWantsRemoteEvent;
  if ((request.remote.flags & kAtTarget) != 0) [[unlikely]]
    header.flags |= wire::kByNumber | ((request.remote.flags & kVirtual) != 0 ? wire::kVirtualNumber : 0);
  header.source = self;
  header.domain = request.domain;
  header.key_index = request.remote.index;
  header.key_generation = request.remote.generation;
  header.address = request.remote_address;
  header.length = request.length;
  header.event_data = request.op == Op::cq_write ? request.cq_data : request.remote_event_data;
  header.operand[0] = request.operand[0];
  header.operand[1] = request.operand[1];
  if ((request.flags & kSyncFlag) != 0) {
    header.flags |= wire::kHasSyncFlag;
    header.aux = request.sync_address;
    header.operand[0] = request.sync_value;
  }
  return header;
}

}  // namespace orrery::nic
