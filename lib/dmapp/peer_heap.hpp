// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

namespace orrery::dmapp {

// Where this process can load and store the byte at `address` of a PE's symmetric heap; for the calling PE
// `address` itself. Null: `address` is not in the heap, the PE is on another host, its heap is not in its
// memory file, or every access has to go by the NIC (a machine's clock, faults). A heap that is longer than a
// window of the NIC is mapped in pieces: null, too, for an address in no block of the heap, or in one that
// lies in two pieces. Neither the end of the PE nor dmapp_finalize takes the mapping away; a child by fork
// does not have it. The first call for a PE reads a word of it. Any thread.
// For lib/shmem, which this library exports it to.
[[gnu::visibility("default")]] void* peer_heap_address(const void* address, int pe);

}  // namespace orrery::dmapp
