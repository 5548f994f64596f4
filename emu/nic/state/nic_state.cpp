// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/state/nic_state.hpp"

#include "emu/base/check.hpp"
#include "emu/base/log.hpp"

#include <algorithm>
#include <bit>

namespace orrery::nic {

NicView NicView::create(void* base, const Geometry& geometry, std::uint32_t process_slot, std::int64_t pid,
                        bool strong_hazards) {
  ORRERY_CHECK(process_slot < kMaxProcesses, "process slot {}", process_slot);
  auto& header = *static_cast<NicHeader*>(base);
  header.magic = kNicMagic;
  header.version = kNicVersion;
  header.process_slot = process_slot;
  header.segment_bytes = geometry.segment_bytes();
  header.lanes_offset = kLanesOffset;
  header.lane_count = geometry.lane_count;
  header.lane_bytes = geometry.lane_bytes;
  header.arena_offset = kLanesOffset + geometry.lanes_bytes();
  header.arena_bytes = geometry.arena_bytes;
  header.pid = pid;
  // The header itself is such a place: mapped by the owner at this address.
  header.attach_word =
      (static_cast<std::uint64_t>(pid) << 32) ^ reinterpret_cast<std::uint64_t>(base) ^ kNicMagic;
  header.attach_word_address = reinterpret_cast<std::uint64_t>(&header.attach_word);
  header.strong_hazards = strong_hazards ? 1 : 0;
  std::copy(std::begin(kAreas), std::end(kAreas), header.areas);
  header.area_count = std::size(kAreas);
  header.stage.store(Stage::ready, std::memory_order_release);
  const auto view = open(base, header.segment_bytes);
  ORRERY_CHECK(view.ok(), "a segment that was just made does not open: {}", errc_name(view.code()));
  return view.value();
}

Result<NicView> NicView::open(void* base, std::uint64_t bytes) {
  if (base == nullptr || bytes < kLanesOffset) return Errc::corrupt;
  auto& header = *static_cast<NicHeader*>(base);
  // Acquire: pairs with the owner's release store; the fields below are complete.
  if (header.stage.load(std::memory_order_acquire) == Stage::empty) return Errc::not_done;
  if (header.magic != kNicMagic) return Errc::corrupt;
  if (const std::uint32_t version = header.version; version != kNicVersion) {
    log::error("process {} has a NIC segment of version {}: expected {}, as all processes of a job have",
               header.process_slot, version, kNicVersion);
    return Errc::unsupported;
  }
  if (header.area_count != std::size(kAreas)) return Errc::corrupt;
  for (std::size_t i = 0; i < std::size(kAreas); ++i) {
    const AreaRow& row = header.areas[i];
    if (row.kind != kAreas[i].kind || row.offset != kAreas[i].offset || row.bytes != kAreas[i].bytes)
      return Errc::corrupt;
  }
  // Read once: a hostile owner may change the words while we look.
  const std::uint64_t segment_bytes = header.segment_bytes;
  const std::uint64_t lanes_offset = header.lanes_offset;
  const std::uint32_t lane_count = header.lane_count;
  const std::uint32_t lane_bytes = header.lane_bytes;
  const std::uint64_t arena_offset = header.arena_offset;
  const std::uint64_t arena_bytes = header.arena_bytes;
  if (segment_bytes > bytes || lanes_offset != kLanesOffset) return Errc::corrupt;
  if (lane_count == 0 || lane_count > kMaxProcesses) return Errc::corrupt;
  if (lane_bytes < wire::kLaneControlBytes + wire::kMinLaneDataBytes || lane_bytes > (1u << 26))
    return Errc::corrupt;
  if (!std::has_single_bit(lane_bytes - wire::kLaneControlBytes)) return Errc::corrupt;
  if (arena_offset != lanes_offset + std::uint64_t{lane_count} * 2 * lane_bytes) return Errc::corrupt;
  if (arena_offset > segment_bytes || arena_bytes != segment_bytes - arena_offset) return Errc::corrupt;
  NicView view;
  view.base_ = static_cast<std::byte*>(base);
  view.lanes_offset_ = lanes_offset;
  view.lane_count_ = lane_count;
  view.lane_bytes_ = lane_bytes;
  view.arena_offset_ = arena_offset;
  view.arena_bytes_ = arena_bytes;
  return view;
}

}  // namespace orrery::nic
