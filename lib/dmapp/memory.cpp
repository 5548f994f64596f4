// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/log.hpp"
#include "lib/dmapp/context.hpp"

#include <algorithm>
#include <cstring>

// The symmetric heap and registered memory.
namespace orrery::dmapp {

namespace {

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

void* allocate(World& world, std::uint64_t size) {
  const auto block = world.heap().allocate(size);
  if (block.ok()) return reinterpret_cast<void*>(block.value());
  if (size != 0) {
    const auto stats = world.heap().stats();
    log::error(
        "symmetric heap: no room for {} bytes: {} of {} are in use, the longest free block has {}; "
        "{}={} sets its size",
        size, stats.in_use, world.own(SegKind::heap).bytes, stats.largest_free, world.heap_size().variable,
        world.heap_size().shown());
  }
  return nullptr;
}

dmapp_return_t enter(World& world, void* addr, std::uint64_t length, dmapp_seg_desc_t* segment) {
  const std::uint64_t at = address_of(addr);
  const nic::Port& port = *world.signed_on().port;
  auto key = world.nic().register_region(port, at, length, 0, nullptr);
  if (key.code() == Errc::permission)
    key = world.nic().register_region(port, at, length, nic::kReadOnly, nullptr);
  if (!key.ok()) {
    log::error("dmapp_mem_register of {} bytes at {:#x}: {}", length, at, errc_name(key.code()));
    return return_of(key.code());
  }
  *segment = seg::make(SegKind::memory, world.pe(), at, length, key.value());
  return DMAPP_RC_SUCCESS;
}

// A range without memory: a name that leads nowhere.
dmapp_seg_desc_t reserved(const World& world, void* addr, std::uint64_t length) {
  return seg::make(SegKind::memory, world.pe(), address_of(addr), length,
                   {.index = 0, .generation = 0, .process = static_cast<std::uint16_t>(world.nic().self())});
}

bool is_ours(const World& world, const dmapp_seg_desc_t& segment) {
  return segment.opaque[0] == seg::tag(SegKind::memory) && seg::well_formed(segment) &&
         segment.opaque[1] == static_cast<std::uint64_t>(world.pe());
}

}  // namespace
}  // namespace orrery::dmapp

using orrery::dmapp::World;
namespace seg = orrery::dmapp::seg;

extern "C" {

void* dmapp_sheap_malloc(size_t size) {
  World* const world = World::current();
  return world == nullptr ? nullptr : orrery::dmapp::allocate(*world, size);
}

void dmapp_sheap_free(void* ptr) {
  World* const world = World::current();
  if (world == nullptr || ptr == nullptr) return;
  if (!world->heap().free(orrery::dmapp::address_of(ptr)).ok())
    orrery::log::error("dmapp_sheap_free({}): no block of the symmetric heap begins there; it is left alone",
                       ptr);
}

void* dmapp_sheap_realloc(void* ptr, size_t size) {
  World* const world = World::current();
  if (world == nullptr) return nullptr;
  if (ptr == nullptr) return orrery::dmapp::allocate(*world, size);
  if (size == 0) {
    dmapp_sheap_free(ptr);
    return nullptr;
  }
  // Where it is, if that can be: so a block may be cut in a heap that has no room for a second one.
  if (world->heap().resize(orrery::dmapp::address_of(ptr), size).ok()) return ptr;
  const auto before = world->heap().size_of(orrery::dmapp::address_of(ptr));
  if (!before.ok()) {
    orrery::log::error("dmapp_sheap_realloc({}): no block of the symmetric heap begins there", ptr);
    return nullptr;
  }
  void* const block = orrery::dmapp::allocate(*world, size);
  if (block == nullptr) return nullptr;
  std::memcpy(block, ptr, std::min<std::uint64_t>(size, before.value()));
  dmapp_sheap_free(ptr);
  return block;
}

dmapp_return_t dmapp_sheap_stats(dmapp_sheap_stats_t* stats) {
  World* const world = World::current();
  if (world == nullptr || stats == nullptr) return DMAPP_RC_INVALID_PARAM;
  const auto now = world->heap().stats();
  *stats = {};
  stats->size = world->own(orrery::dmapp::SegKind::heap).bytes;
  stats->in_use = now.in_use;
  stats->high_water = now.high_water;
  stats->blocks = now.blocks;
  stats->largest_free = now.largest_free;
  return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_mem_register(void* addr, uint64_t length, dmapp_seg_desc_t* segment) {
  World* const world = World::current();
  if (world == nullptr || addr == nullptr || length == 0 || segment == nullptr) return DMAPP_RC_INVALID_PARAM;
  return orrery::dmapp::enter(*world, addr, length, segment);
}

dmapp_return_t dmapp_mem_unregister(dmapp_seg_desc_t* segment) {
  World* const world = World::current();
  if (world == nullptr || segment == nullptr || !seg::well_formed(*segment)) return DMAPP_RC_INVALID_PARAM;
  if (!orrery::dmapp::is_ours(*world, *segment)) return DMAPP_RC_NOT_FOUND;
  const auto key = seg::key_of(segment->opaque[2]);
  if (key.generation == 0) return DMAPP_RC_SUCCESS;  // reserved alone
  return world->nic().deregister(key).ok() ? DMAPP_RC_SUCCESS : DMAPP_RC_NOT_FOUND;
}

dmapp_return_t dmapp_segdesc_compare(dmapp_seg_desc_t* a, dmapp_seg_desc_t* b, int* flag) {
  if (World::current() == nullptr || a == nullptr || b == nullptr || flag == nullptr ||
      !seg::well_formed(*a) || !seg::well_formed(*b))
    return DMAPP_RC_INVALID_PARAM;
  // Kind and PE, not the name of the registration: the same memory may be registered several times.
  *flag =
      a->addr == b->addr && a->len == b->len && a->opaque[0] == b->opaque[0] && a->opaque[1] == b->opaque[1]
          ? 1
          : 0;
  return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_mem_reserve(void* addr, uint64_t length, uint64_t flags, dmapp_seg_desc_t* segment) {
  World* const world = World::current();
  if (world == nullptr || addr == nullptr || length == 0 || flags != 0 || segment == nullptr ||
      orrery::dmapp::address_of(addr) + length < length)
    return DMAPP_RC_INVALID_PARAM;
  *segment = orrery::dmapp::reserved(*world, addr, length);
  return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_mem_update(void* addr, uint64_t length, uint64_t flags, dmapp_seg_desc_t* segment) {
  World* const world = World::current();
  if (world == nullptr || addr == nullptr || length == 0 || flags != 0 || segment == nullptr ||
      !seg::well_formed(*segment))
    return DMAPP_RC_INVALID_PARAM;
  if (!orrery::dmapp::is_ours(*world, *segment)) return DMAPP_RC_NOT_FOUND;
  const auto before = seg::key_of(segment->opaque[2]);
  const dmapp_return_t rc = orrery::dmapp::enter(*world, addr, length, segment);
  if (rc == DMAPP_RC_SUCCESS && before.generation != 0) (void)world->nic().deregister(before);
  return rc;
}

}  // extern "C"
