// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/dmapp/peer_heap.hpp"

#include "emu/nic/transport/peer.hpp"
#include "lib/dmapp/issue.hpp"

namespace orrery::dmapp {

namespace {

constexpr auto kHeap = static_cast<std::size_t>(SegKind::heap);

// Looks for the PE's heap, and notes in its Target what there is of it here.
void look_for_heap(Context& context, const Place& begin, std::uint64_t bytes) {
  Target& target = *begin.target;
  target.looked_for_heap = true;
  // The NIC maps a process at the first access.
  std::uint64_t word = 0;
  Issue issue(context, Mode::blocking);
  issue.start(begin, Context::get_request(begin, &word, sizeof word));
  if (issue.finish() != DMAPP_RC_SUCCESS) return;
  nic::Peer* const peer = target.endpoint.peer;
  if (peer == nullptr || peer->link.by_wire) return;
  if (peer->link.same_address_space) {
    target.heap_here = reinterpret_cast<std::byte*>(begin.address);
    return;
  }
  if (peer->link.memory == nullptr) return;
  const nic::Run run = peer->link.memory->find(begin.address);
  if (run.holds(begin.address, bytes)) {
    target.heap_here = run.at(begin.address);
  } else {
    target.heap_in_pieces = true;
  }
}

// Where the byte at `offset` of a heap in pieces is, if the block that it lies in is in one of them. The
// heaps have the same blocks at the same places, so that this PE's own books tell.
void* find_in_pieces(World& world, const Place& begin, std::uint64_t offset) {
  const std::uint64_t own = world.own(SegKind::heap).base;
  const auto block = world.heap().block_at(own + offset);
  if (!block.ok()) return nullptr;
  const nic::Run run = begin.target->endpoint.peer->link.memory->find(begin.address + offset);
  const std::uint64_t first = begin.address + (block.value().begin - own);
  return run.here != nullptr && run.holds(first, block.value().bytes) ? run.at(begin.address + offset)
                                                                      : nullptr;
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
  if (!target.looked_for_heap) look_for_heap(*context, begin, heap.bytes);
  if (target.heap_in_pieces) return find_in_pieces(world, begin, offset);
  return target.heap_here == nullptr ? nullptr : target.heap_here + offset;
}

}  // namespace orrery::dmapp
