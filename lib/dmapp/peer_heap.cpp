// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/dmapp/peer_heap.hpp"

#include "emu/nic/transport/peer.hpp"
#include "lib/dmapp/issue.hpp"

namespace orrery::dmapp {

namespace {

constexpr auto kHeap = static_cast<std::size_t>(SegKind::heap);

// Where the heap begins here; null: nowhere.
std::byte* map_heap_of(Context& context, const Place& begin, std::uint64_t bytes) {
  // The NIC maps a process at the first access.
  std::uint64_t word = 0;
  Issue issue(context, Mode::blocking);
  issue.start(begin, Context::get_request(begin, &word, sizeof word));
  if (issue.finish() != DMAPP_RC_SUCCESS) return nullptr;
  nic::Peer* const peer = begin.target->endpoint.peer;
  if (peer == nullptr || peer->link.by_wire) return nullptr;
  if (peer->link.same_address_space) return reinterpret_cast<std::byte*>(begin.address);
  if (peer->link.memory == nullptr) return nullptr;
  const nic::Run run = peer->link.memory->find(begin.address);
  return run.holds(begin.address, bytes) ? run.at(begin.address) : nullptr;
}

}  // namespace

void* peer_heap_address(const void* address, int pe) {
  Context* const context = here();
  if (context == nullptr || pe < 0 || pe >= context->npes()) return nullptr;
  World& world = context->world();
  const Region& heap = world.card(pe).regions[kHeap];
  const std::uint64_t offset = reinterpret_cast<std::uint64_t>(address) - heap.base;
  if (offset >= heap.bytes) return nullptr;
  if (pe == world.pe()) return const_cast<void*>(address);  // NOLINT: the caller may write to it
  if (world.card(pe).heap_in_file == 0 || world.nic().clock() != nullptr || world.nic().has_faults())
    return nullptr;
  const Place begin = context->find_heap(pe);
  Target& target = *begin.target;
  if (!target.looked_for_heap) {
    target.looked_for_heap = true;
    target.heap_here = map_heap_of(*context, begin, heap.bytes);
  }
  return target.heap_here == nullptr ? nullptr : target.heap_here + offset;
}

}  // namespace orrery::dmapp
