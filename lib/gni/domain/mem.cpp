// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/domain/limits.hpp"
#include "lib/gni/domain/mem_handle.hpp"
#include "lib/gni/objects.hpp"
#include "lib/gni/raw_value.hpp"
#include "lib/gni/status.hpp"

#include <algorithm>
#include <limits>
#include <utility>

// Registration of memory.
namespace orrery::gni {

namespace {

constexpr std::uint32_t kMemFlags =
    GNI_MEM_READ_ONLY | GNI_MEM_USE_VMDH | GNI_MEM_USE_GART | GNI_MEM_PHYS_CONT | GNI_MEM_PHYS_SEGMENTS |
    GNI_MEM_STRICT_PI_ORDERING | GNI_MEM_PI_FLUSH | GNI_MEM_MDD_CLONE | GNI_MEM_RELAXED_PI_ORDERING |
    GNI_MEM_RESERVE_REGION | GNI_MEM_UPDATE_REGION | GNI_MEM_MDD_SHARED | GNI_MEM_MDD_DEDICATED;

constexpr std::uint64_t kMostPages = 0x0fff'ffff;  // that a handle can say
constexpr std::uint32_t kMaxSegments = 1u << 20;   // of one registration: 16 MiB of the NIC's own memory

struct Checked {
  Attachment* attachment = nullptr;
  nic::CompletionQueue* queue = nullptr;
};

// What both registering calls ask of their common arguments. SUCCESS: one of the domain's registrations is
// taken, unless GNI_MEM_UPDATE_REGION changes one that is there.
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
  // The entry of an update is there already.
  if ((flags & GNI_MEM_UPDATE_REGION) != 0) return GNI_RC_SUCCESS;
  if ((flags & GNI_MEM_USE_VMDH) != 0) {
    const std::lock_guard lock(checked->attachment->registrations_lock);
    const std::vector<std::uint32_t>& reserved = checked->attachment->vmdh;
    if (reserved.empty()) return GNI_RC_ERROR_RESOURCE;
    if (vmdh_index >= reserved.size()) return GNI_RC_INVALID_PARAM;
    if (reserved[vmdh_index] != 0) return GNI_RC_ERROR_RESOURCE;
  }
  return take(*checked->attachment, Resource::mdd) ? GNI_RC_SUCCESS : GNI_RC_ERROR_RESOURCE;
}

constexpr std::uint64_t page_of(std::uint64_t address) { return address / nic::kPageBytes; }

// A held region's handle names it by number (mem_handle.hpp): that of its reserved entry, which counts from
// the region's start and has no page, or that of its entry of the table.
nic::MemKey number_of(const Registration& made, const nic::Nic& nic) {
  const bool is_virtual = made.vmdh != UINT32_MAX;
  const std::uint64_t pages = page_of(made.address + made.length - 1) - page_of(made.address) + 1;
  return {.page = is_virtual ? 0 : page_of(made.address),
          .page_count = static_cast<std::uint32_t>(std::min(pages, kMostPages)),
          .index = static_cast<std::uint16_t>(is_virtual ? made.vmdh : made.entry),
          .process = nic.self(),
          .flags = static_cast<std::uint8_t>(made.flags | (is_virtual ? nic::kVirtual : 0))};
}

gni_mem_handle_t handle_of(const Registration& made, const nic::Nic& nic) {
  const gni_mem_handle_t handle = mem_handle::make(made.is_held ? number_of(made, nic) : made.key);
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
  *mem_hndl = handle_of(made, *attachment.nic);
  return GNI_RC_SUCCESS;
}

// The place of what a handle of this process names, or kMaxRegions. REQUIRES: registrations_lock is held.
std::uint32_t place_of(const Attachment& attachment, const gni_mem_handle_t& handle) {
  const nic::MemKey key = mem_handle::key_of(handle);
  std::uint32_t place = key.index;
  if (key.is_number() && (key.flags & nic::kVirtual) != 0) {
    if (key.index >= attachment.vmdh.size() || attachment.vmdh[key.index] == 0) return nic::kMaxRegions;
    place = attachment.vmdh[key.index] - 1;
  }
  if (place >= attachment.regions.size() || !attachment.regions[place].exists()) return nic::kMaxRegions;
  const Registration& ours = attachment.regions[place];
  const bool is_it = key.is_number() ? key.process == 0 || key.process == attachment.nic->self()
                                     : !ours.is_held && ours.key == key;
  return is_it ? place : nic::kMaxRegions;
}

// Registers the live part of a held region anew: the range from the first to the last byte of what was live
// and [begin, end). REQUIRES: one thread per region.
gni_return_t make_live(Attachment& attachment, std::uint32_t place, std::uint64_t begin, std::uint64_t end,
                       nic::CompletionQueue* queue) {
  Registration made;
  {
    const std::lock_guard lock(attachment.registrations_lock);
    made = attachment.regions[place];
  }
  const std::uint64_t first = made.key.valid() ? std::min(made.live_begin, begin) : begin;
  const std::uint64_t last = made.key.valid() ? std::max(made.live_end, end) : end;
  if (made.key.valid()) (void)attachment.nic->deregister(made.key);
  const auto key = attachment.nic->register_region(
      *attachment.port, first, last - first, made.flags, queue,
      {.index = made.entry, .reserved_as = made.vmdh + 1, .base = made.address});
  const std::lock_guard lock(attachment.registrations_lock);
  Registration& kept = attachment.regions[place];
  kept.key = key.ok() ? key.value() : nic::MemKey{};
  kept.live_begin = first;
  kept.live_end = last;
  return return_of(key.code());
}

void let_go(Attachment& attachment, std::uint32_t place) {
  Registration gone;
  {
    const std::lock_guard lock(attachment.registrations_lock);
    gone = std::exchange(attachment.regions[place], {});
    if (gone.vmdh != UINT32_MAX) attachment.vmdh[gone.vmdh] = 0;
  }
  if (gone.key.valid()) (void)attachment.nic->deregister(gone.key);
  if (gone.is_held) attachment.nic->regions().table().let_go(gone.entry);
  give(attachment, Resource::mdd);
}

// GNI_MEM_RESERVE_REGION, GNI_MEM_USE_VMDH: an entry now, and unless it is only reserved, its memory. The
// checks have taken a registration.
gni_return_t hold_region(const Checked& checked, const Registration& asked, std::uint32_t flags,
                         gni_cq_handle_t queue, gni_mem_handle_t* mem_hndl) {
  Attachment& attachment = *checked.attachment;
  if (asked.length == 0 || asked.address + asked.length < asked.address) {
    give(attachment, Resource::mdd);
    return GNI_RC_INVALID_PARAM;
  }
  const bool is_virtual = asked.vmdh != UINT32_MAX;
  // Peers find a reserved entry fastest where its number says.
  const auto entry = attachment.nic->regions().table().hold(
      static_cast<std::uint16_t>(is_virtual ? asked.vmdh : nic::kMaxRegions));
  if (!entry.ok()) {
    give(attachment, Resource::mdd);
    return return_of(entry.code());
  }
  Registration made = asked;
  made.is_held = true;
  made.entry = entry.value();
  made.flags = region_flags(flags);
  made.queue = queue;
  {
    const std::lock_guard lock(attachment.registrations_lock);
    if (attachment.regions.empty()) attachment.regions.resize(nic::kMaxRegions);
    attachment.regions[made.entry] = made;
    if (is_virtual) attachment.vmdh[made.vmdh] = made.entry + 1u;
  }
  if ((flags & GNI_MEM_RESERVE_REGION) == 0) {
    const gni_return_t live =
        make_live(attachment, made.entry, made.address, made.address + made.length, checked.queue);
    if (live != GNI_RC_SUCCESS) {
      let_go(attachment, made.entry);
      return live;
    }
  }
  *mem_hndl = handle_of(made, *attachment.nic);
  return GNI_RC_SUCCESS;
}

// GNI_MEM_UPDATE_REGION: memory of a region that was reserved, which the handle names.
gni_return_t update_region(const Checked& checked, std::uint64_t address, std::uint64_t length,
                           std::uint32_t vmdh_index, gni_mem_handle_t* mem_hndl) {
  Attachment& attachment = *checked.attachment;
  Registration ours;
  std::uint32_t place = nic::kMaxRegions;
  {
    const std::lock_guard lock(attachment.registrations_lock);
    if (!mem_handle::is_none(*mem_hndl))
      place = place_of(attachment, *mem_hndl);
    else if (vmdh_index < attachment.vmdh.size() && attachment.vmdh[vmdh_index] != 0)
      place = attachment.vmdh[vmdh_index] - 1;
    if (place == nic::kMaxRegions) return GNI_RC_INVALID_PARAM;
    Registration& kept = attachment.regions[place];
    // Reserved before its memory was there, and that came to be elsewhere: the region starts there.
    if (kept.is_held && !kept.key.valid() && length <= kept.length &&
        (address < kept.address || address - kept.address > kept.length - length))
      kept.address = address;
    ours = kept;
  }
  if (!ours.is_held) return GNI_RC_INVALID_PARAM;
  if (length == 0 || address < ours.address || address - ours.address > ours.length ||
      length > ours.length - (address - ours.address))
    return GNI_RC_INVALID_PARAM;
  nic::CompletionQueue* queue = checked.queue;
  if (const Cq* const kept = find(ours.queue); queue == nullptr && kept != nullptr) queue = kept->queue;
  const gni_return_t live = make_live(attachment, place, address, address + length, queue);
  if (live == GNI_RC_SUCCESS) *mem_hndl = handle_of(ours, *attachment.nic);
  return live;
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
  if ((flags & GNI_MEM_UPDATE_REGION) != 0)
    return orrery::gni::update_region(checked, address, length, vmdh_index, mem_hndl);
  if ((flags & (GNI_MEM_RESERVE_REGION | GNI_MEM_USE_VMDH)) != 0) {
    return orrery::gni::hold_region(checked, orrery::gni::registration_of(address, length, flags, vmdh_index),
                                    flags, dst_cq_hndl, mem_hndl);
  }
  const auto key = checked.attachment->nic->register_region(*checked.attachment->port, address, length,
                                                            orrery::gni::region_flags(flags), checked.queue);
  return orrery::gni::keep(*checked.attachment, key,
                           orrery::gni::registration_of(address, length, flags, vmdh_index), mem_hndl);
}

gni_return_t GNI_MemRegisterSegments(gni_nic_handle_t nic_hndl, gni_mem_segment_t* mem_segments,
                                     uint32_t segments_cnt, gni_cq_handle_t dst_cq_hndl, uint32_t flags,
                                     uint32_t vmdh_index, gni_mem_handle_t* mem_hndl) {
  if (mem_segments == nullptr || segments_cnt == 0 ||
      (flags & (GNI_MEM_RESERVE_REGION | GNI_MEM_UPDATE_REGION)) != 0)
    return GNI_RC_INVALID_PARAM;
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
  const auto key = checked.attachment->nic->regions().register_segments(
      *checked.attachment->port, segments, orrery::gni::region_flags(flags), checked.queue);
  return orrery::gni::keep(*checked.attachment, key,
                           orrery::gni::registration_of(0, total, flags, vmdh_index), mem_hndl);
}

gni_return_t GNI_MemDeregister(gni_nic_handle_t nic_hndl, gni_mem_handle_t* mem_hndl) {
  Attachment* const attachment = find(nic_hndl);
  if (attachment == nullptr || mem_hndl == nullptr) return GNI_RC_INVALID_PARAM;
  std::uint32_t place = orrery::nic::kMaxRegions;
  {
    const std::lock_guard lock(attachment->registrations_lock);
    place = orrery::gni::place_of(*attachment, *mem_hndl);
  }
  if (place == orrery::nic::kMaxRegions) return GNI_RC_INVALID_PARAM;
  orrery::gni::let_go(*attachment, place);
  return GNI_RC_SUCCESS;
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

// A number for a number: the handle of a reserved entry says nothing more, so that those of peers can be
// rebuilt too.
gni_return_t GNI_RebuildMemHndl(gni_mem_handle_t* src_mem_hndl, uint32_t vmdh_index,
                                gni_mem_handle_t* dst_mem_hndl) {
  if (src_mem_hndl == nullptr || dst_mem_hndl == nullptr || !mem_handle::well_formed(*src_mem_hndl) ||
      (mem_handle::attributes(*src_mem_hndl) & mem_handle::kAttrVmdh) == 0)
    return GNI_RC_INVALID_PARAM;
  if (vmdh_index >= orrery::nic::kMaxRegions) return GNI_RC_INVALID_PARAM;
  *dst_mem_hndl = mem_handle::with_index(*src_mem_hndl, static_cast<std::uint16_t>(vmdh_index));
  return GNI_RC_SUCCESS;
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
    if (last.is_number()) {
      const std::lock_guard lock(attachment->registrations_lock);
      next = orrery::gni::place_of(*attachment, *mem_hndl) + std::size_t{1};
    }
  }
  const std::lock_guard lock(attachment->registrations_lock);
  const auto& regions = attachment->regions;
  while (next < regions.size() && !regions[next].exists()) ++next;
  if (next >= regions.size()) return GNI_RC_NO_MATCH;
  *mem_hndl = orrery::gni::handle_of(regions[next], *attachment->nic);
  *address = regions[next].address;
  *length = regions[next].length;
  return GNI_RC_SUCCESS;
}

}  // extern "C"
