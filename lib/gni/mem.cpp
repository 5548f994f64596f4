// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/mem_handle.hpp"
#include "lib/gni/objects.hpp"
#include "lib/gni/raw_value.hpp"
#include "lib/gni/status.hpp"

#include <limits>

// Registration of memory.
namespace orrery::gni {

namespace {

constexpr std::uint32_t kMemFlags =
    GNI_MEM_READ_ONLY | GNI_MEM_USE_VMDH | GNI_MEM_USE_GART | GNI_MEM_PHYS_CONT | GNI_MEM_PHYS_SEGMENTS |
    GNI_MEM_STRICT_PI_ORDERING | GNI_MEM_PI_FLUSH | GNI_MEM_MDD_CLONE | GNI_MEM_RELAXED_PI_ORDERING |
    GNI_MEM_RESERVE_REGION | GNI_MEM_UPDATE_REGION | GNI_MEM_MDD_SHARED | GNI_MEM_MDD_DEDICATED;

constexpr std::uint32_t kMaxSegments = 1u << 20;  // of one registration: 16 MiB of the NIC's own memory

struct Checked {
  Attachment* attachment = nullptr;
  nic::CompletionQueue* queue = nullptr;
};

// What both registering calls ask of their common arguments.
gni_return_t check(gni_nic_handle_t nic_hndl, gni_cq_handle_t dst_cq_hndl, std::uint32_t flags,
                   const gni_mem_handle_t* mem_hndl, Checked* checked) {
  checked->attachment = find(nic_hndl);
  if (checked->attachment == nullptr || mem_hndl == nullptr || (flags & ~kMemFlags) != 0)
    return GNI_RC_INVALID_PARAM;
  if (dst_cq_hndl != nullptr) {
    const Cq* const cq = find(dst_cq_hndl);
    if (cq == nullptr || cq->attachment != checked->attachment) return GNI_RC_INVALID_PARAM;
    checked->queue = cq->queue;
  }
  // Physical addresses are the kernel's. No entries are set aside: a registration by VMDH index finds none.
  if ((flags & (GNI_MEM_PHYS_CONT | GNI_MEM_PHYS_SEGMENTS)) != 0) return GNI_RC_PERMISSION_ERROR;
  if ((flags & GNI_MEM_USE_VMDH) != 0) return GNI_RC_ERROR_RESOURCE;
  return GNI_RC_SUCCESS;
}

std::uint8_t region_flags(std::uint32_t flags) {
  return (flags & GNI_MEM_READ_ONLY) != 0 ? std::uint8_t{nic::kReadOnly} : std::uint8_t{0};
}

void keep(Attachment& attachment, const nic::MemKey& key, gni_mem_handle_t* mem_hndl) {
  if (attachment.regions.empty()) attachment.regions.resize(nic::kMaxRegions);
  attachment.regions[key.index] = key;
  *mem_hndl = mem_handle::make(key);
}

}  // namespace

}  // namespace orrery::gni

using orrery::gni::Attachment;
using orrery::gni::find;
using orrery::gni::return_of;
namespace mem_handle = orrery::gni::mem_handle;

extern "C" {

gni_return_t GNI_MemRegister(gni_nic_handle_t nic_hndl, uint64_t address, uint64_t length,
                             gni_cq_handle_t dst_cq_hndl, uint32_t flags, uint32_t /*vmdh_index*/,
                             gni_mem_handle_t* mem_hndl) {
  orrery::gni::Checked checked;
  const gni_return_t good = orrery::gni::check(nic_hndl, dst_cq_hndl, flags, mem_hndl, &checked);
  if (good != GNI_RC_SUCCESS) return good;
  const auto key = checked.attachment->nic->register_region(*checked.attachment->port, address, length,
                                                            orrery::gni::region_flags(flags), checked.queue);
  if (!key.ok()) return return_of(key.code());
  orrery::gni::keep(*checked.attachment, key.value(), mem_hndl);
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_MemRegisterSegments(gni_nic_handle_t nic_hndl, gni_mem_segment_t* mem_segments,
                                     uint32_t segments_cnt, gni_cq_handle_t dst_cq_hndl, uint32_t flags,
                                     uint32_t /*vmdh_index*/, gni_mem_handle_t* mem_hndl) {
  orrery::gni::Checked checked;
  const gni_return_t good = orrery::gni::check(nic_hndl, dst_cq_hndl, flags, mem_hndl, &checked);
  if (good != GNI_RC_SUCCESS) return good;
  if (mem_segments == nullptr || segments_cnt == 0) return GNI_RC_INVALID_PARAM;
  if (segments_cnt > orrery::gni::kMaxSegments) return GNI_RC_ERROR_RESOURCE;
  std::vector<orrery::nic::Segment> segments;
  segments.reserve(segments_cnt);
  std::uint64_t total = 0;
  for (std::uint32_t i = 0; i < segments_cnt; ++i) {
    if (mem_segments[i].length > std::numeric_limits<std::uint64_t>::max() - total)
      return GNI_RC_INVALID_PARAM;
    total += mem_segments[i].length;
    segments.push_back({mem_segments[i].address, mem_segments[i].length});
  }
  const auto key = checked.attachment->nic->register_segments(
      *checked.attachment->port, segments, orrery::gni::region_flags(flags), checked.queue);
  if (!key.ok()) return return_of(key.code());
  orrery::gni::keep(*checked.attachment, key.value(), mem_hndl);
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_MemDeregister(gni_nic_handle_t nic_hndl, gni_mem_handle_t* mem_hndl) {
  Attachment* const attachment = find(nic_hndl);
  if (attachment == nullptr || mem_hndl == nullptr) return GNI_RC_INVALID_PARAM;
  const auto key = mem_handle::key_of(*mem_hndl);
  if (key.index >= attachment->regions.size()) return GNI_RC_INVALID_PARAM;
  auto& ours = attachment->regions[key.index];
  if (!ours.valid() || !(ours == key)) return GNI_RC_INVALID_PARAM;
  ours = {};
  return return_of(attachment->nic->deregister(key));
}

gni_return_t GNI_MemHndlQueryAttr(gni_mem_handle_t* mem_hndl, gni_mem_handle_attr_t attr, int* yesno) {
  if (mem_hndl == nullptr || yesno == nullptr || !mem_handle::well_formed(*mem_hndl))
    return GNI_RC_INVALID_PARAM;
  const std::uint32_t which = orrery::gni::raw_value(attr);
  if (which < GNI_MEMHNDL_ATTR_READONLY || which > GNI_MEMHNDL_ATTR_CLONE) return GNI_RC_INVALID_PARAM;
  *yesno = (mem_handle::attributes(*mem_hndl) >> (which - 1) & 1) != 0 ? 1 : 0;
  return GNI_RC_SUCCESS;
}

}  // extern "C"
