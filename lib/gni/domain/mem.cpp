// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/domain/limits.hpp"
#include "lib/gni/domain/mem_handle.hpp"
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

// What both registering calls ask of their common arguments. SUCCESS: one of the domain's registrations is
// taken.
gni_return_t check(gni_nic_handle_t nic_hndl, gni_cq_handle_t dst_cq_hndl, std::uint32_t flags,
                   std::uint32_t vmdh_index, const gni_mem_handle_t* mem_hndl, Checked* checked) {
  checked->attachment = find(nic_hndl);
  if (checked->attachment == nullptr || mem_hndl == nullptr || (flags & ~kMemFlags) != 0)
    return GNI_RC_INVALID_PARAM;
  if (dst_cq_hndl != nullptr) {
    const Cq* const cq = find(dst_cq_hndl);
    if (cq == nullptr || cq->attachment != checked->attachment) return GNI_RC_INVALID_PARAM;
    checked->queue = cq->queue;
  }
  // Physical addresses are the kernel's.
  if ((flags & (GNI_MEM_PHYS_CONT | GNI_MEM_PHYS_SEGMENTS)) != 0) return GNI_RC_PERMISSION_ERROR;
  if ((flags & GNI_MEM_USE_VMDH) != 0) {
    const std::lock_guard lock(checked->attachment->registrations_lock);
    const std::vector<std::uint32_t>& reserved = checked->attachment->vmdh;
    if (reserved.empty()) return GNI_RC_ERROR_RESOURCE;
    if (vmdh_index >= reserved.size()) return GNI_RC_INVALID_PARAM;
    if (reserved[vmdh_index] != 0) return GNI_RC_ERROR_RESOURCE;
  }
  return take(*checked->attachment, Resource::mdd) ? GNI_RC_SUCCESS : GNI_RC_ERROR_RESOURCE;
}

gni_mem_handle_t handle_of(const Registration& made) {
  const gni_mem_handle_t handle = mem_handle::make(made.key);
  return made.attributes == 0 ? handle : mem_handle::with_attributes(handle, made.attributes);
}

// Where the registration is and what it was asked to be. A handle tells GART and clone as asked: neither is
// more than a way of the hardware's to keep the entry.
Registration registration_of(std::uint64_t address, std::uint64_t length, std::uint32_t flags,
                             std::uint32_t vmdh_index) {
  Registration made{.address = address, .length = length};
  if ((flags & GNI_MEM_USE_VMDH) != 0) {
    made.vmdh = vmdh_index;
    made.attributes |= mem_handle::kAttrVmdh;
  }
  if ((flags & GNI_MEM_USE_GART) != 0) made.attributes |= mem_handle::kAttrGart;
  if ((flags & GNI_MEM_MDD_CLONE) != 0) made.attributes |= mem_handle::kAttrClone;
  return made;
}

std::uint8_t region_flags(std::uint32_t flags) {
  return (flags & GNI_MEM_READ_ONLY) != 0 ? std::uint8_t{nic::kReadOnly} : std::uint8_t{0};
}

// What the client gets of a registration, or why it gets none.
gni_return_t keep(Attachment& attachment, const Result<nic::MemKey>& key, Registration made,
                  gni_mem_handle_t* mem_hndl) {
  if (!key.ok()) {
    give(attachment, Resource::mdd);
    return return_of(key.code());
  }
  const std::lock_guard lock(attachment.registrations_lock);
  if (attachment.regions.empty()) attachment.regions.resize(nic::kMaxRegions);
  made.key = key.value();
  if (made.vmdh != UINT32_MAX) attachment.vmdh[made.vmdh] = made.key.index + 1u;
  attachment.regions[made.key.index] = made;
  *mem_hndl = handle_of(made);
  return GNI_RC_SUCCESS;
}

}  // namespace

}  // namespace orrery::gni

using orrery::gni::Attachment;
using orrery::gni::find;
using orrery::gni::return_of;
namespace mem_handle = orrery::gni::mem_handle;

extern "C" {

gni_return_t GNI_MemRegister(gni_nic_handle_t nic_hndl, uint64_t address, uint64_t length,
                             gni_cq_handle_t dst_cq_hndl, uint32_t flags, uint32_t vmdh_index,
                             gni_mem_handle_t* mem_hndl) {
  orrery::gni::Checked checked;
  const gni_return_t good = orrery::gni::check(nic_hndl, dst_cq_hndl, flags, vmdh_index, mem_hndl, &checked);
  if (good != GNI_RC_SUCCESS) return good;
  const auto key = checked.attachment->nic->register_region(*checked.attachment->port, address, length,
                                                            orrery::gni::region_flags(flags), checked.queue);
  return orrery::gni::keep(*checked.attachment, key,
                           orrery::gni::registration_of(address, length, flags, vmdh_index), mem_hndl);
}

gni_return_t GNI_MemRegisterSegments(gni_nic_handle_t nic_hndl, gni_mem_segment_t* mem_segments,
                                     uint32_t segments_cnt, gni_cq_handle_t dst_cq_hndl, uint32_t flags,
                                     uint32_t vmdh_index, gni_mem_handle_t* mem_hndl) {
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
  orrery::gni::Checked checked;
  const gni_return_t good = orrery::gni::check(nic_hndl, dst_cq_hndl, flags, vmdh_index, mem_hndl, &checked);
  if (good != GNI_RC_SUCCESS) return good;
  const auto key = checked.attachment->nic->register_segments(
      *checked.attachment->port, segments, orrery::gni::region_flags(flags), checked.queue);
  return orrery::gni::keep(*checked.attachment, key,
                           orrery::gni::registration_of(0, total, flags, vmdh_index), mem_hndl);
}

gni_return_t GNI_MemDeregister(gni_nic_handle_t nic_hndl, gni_mem_handle_t* mem_hndl) {
  Attachment* const attachment = find(nic_hndl);
  if (attachment == nullptr || mem_hndl == nullptr) return GNI_RC_INVALID_PARAM;
  const auto key = mem_handle::key_of(*mem_hndl);
  {
    const std::lock_guard lock(attachment->registrations_lock);
    if (key.index >= attachment->regions.size()) return GNI_RC_INVALID_PARAM;
    orrery::gni::Registration& ours = attachment->regions[key.index];
    if (!ours.key.valid() || !(ours.key == key)) return GNI_RC_INVALID_PARAM;
    if (ours.vmdh != UINT32_MAX) attachment->vmdh[ours.vmdh] = 0;
    ours = {};
  }
  orrery::gni::give(*attachment, orrery::gni::Resource::mdd);
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

gni_return_t GNI_SetMddResources(gni_nic_handle_t nic_hndl, uint32_t num_entries) {
  Attachment* const attachment = find(nic_hndl);
  if (attachment == nullptr || num_entries == 0) return GNI_RC_INVALID_PARAM;
  const std::lock_guard lock(attachment->registrations_lock);
  if (!attachment->vmdh.empty()) return GNI_RC_INVALID_STATE;
  if (num_entries > orrery::gni::limit_of(*attachment, orrery::gni::Resource::mdd))
    return GNI_RC_ERROR_RESOURCE;
  attachment->vmdh.resize(num_entries);
  return GNI_RC_SUCCESS;
}

// A handle names its process, so which attachment made it is this process's to know; entries of a peer are
// not seen from here.
gni_return_t GNI_RebuildMemHndl(gni_mem_handle_t* src_mem_hndl, uint32_t vmdh_index,
                                gni_mem_handle_t* dst_mem_hndl) {
  if (src_mem_hndl == nullptr || dst_mem_hndl == nullptr || !mem_handle::well_formed(*src_mem_hndl) ||
      (mem_handle::attributes(*src_mem_hndl) & mem_handle::kAttrVmdh) == 0)
    return GNI_RC_INVALID_PARAM;
  const auto key = mem_handle::key_of(*src_mem_hndl);
  bool found = false;
  orrery::gni::handles().for_each(orrery::gni::HandleKind::nic, [&](void* object) {
    const Attachment& attachment = *static_cast<Attachment*>(object);
    const std::lock_guard lock(attachment.registrations_lock);
    if (found || vmdh_index >= attachment.vmdh.size() || key.index >= attachment.regions.size() ||
        !(attachment.regions[key.index].key == key) || attachment.vmdh[vmdh_index] == 0)
      return;
    *dst_mem_hndl = orrery::gni::handle_of(attachment.regions[attachment.vmdh[vmdh_index] - 1]);
    found = true;
  });
  return found ? GNI_RC_SUCCESS : GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_MemQueryHndls(gni_nic_handle_t nic_hndl, int fd, gni_mem_handle_t* mem_hndl,
                               uint64_t* address, uint64_t* length) {
  if (mem_hndl == nullptr || address == nullptr || length == nullptr) return GNI_RC_INVALID_PARAM;
  if (fd != -1) {
    // Registrations end with their attachment: what a held domain keeps is its name.
    return orrery::gni::is_held(fd) ? GNI_RC_NO_MATCH : GNI_RC_INVALID_PARAM;
  }
  const Attachment* const attachment = find(nic_hndl);
  if (attachment == nullptr) return GNI_RC_INVALID_PARAM;
  std::size_t next = 0;
  if (!mem_handle::is_none(*mem_hndl)) {
    const auto last = mem_handle::key_of(*mem_hndl);
    if (!mem_handle::well_formed(*mem_hndl) || last.process != attachment->nic->self())
      return GNI_RC_INVALID_PARAM;
    next = last.index + 1u;
  }
  const std::lock_guard lock(attachment->registrations_lock);
  const auto& regions = attachment->regions;
  while (next < regions.size() && !regions[next].key.valid()) ++next;
  if (next >= regions.size()) return GNI_RC_NO_MATCH;
  *mem_hndl = orrery::gni::handle_of(regions[next]);
  *address = regions[next].address;
  *length = regions[next].length;
  return GNI_RC_SUCCESS;
}

}  // extern "C"
