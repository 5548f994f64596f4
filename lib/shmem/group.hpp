// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "lib/shmem/combine.hpp"
#include "lib/shmem/team.hpp"

#include <cstddef>
#include <cstdint>

// Collectives of a set of PEs, by a set of DMAPP's where the set has one, else by puts, gets and the set's
// words. Collective; every PE of the set is in at most one at a time. Nothing of the set is in use when
// they return but what is said.
namespace orrery::shmem::group {

// Returns when all members have called. By words: log2(size) rounds.
void sync(const Set& set);
// From the member `root` to all others; the root's own dest is not touched. A binomial tree.
void broadcast(const Set& set, void* dest, const void* source, std::size_t bytes, int root);
// Member i's bytes go to place i, or behind those of the members before it.
void fcollect(const Set& set, void* dest, const void* source, std::size_t bytes);
void collect(const Set& set, void* dest, const void* source, std::size_t bytes);
// Block i of each goes to member i. Strides are in elements of `width` bytes.
void alltoall(const Set& set, void* dest, const void* source, std::size_t bytes);
void alltoalls(const Set& set, void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
               std::size_t nelems, std::size_t width);

// dest of every member gets the combination of all sources, the same in all and in every run. Up to 64 bytes
// go by a reduction of DMAPP's where it has one; others up and down a binomial tree. dest may be source.
void reduce(const Set& set, void* dest, const void* source, std::size_t nelems, std::size_t width,
            const Reduction& reduction);

// The combination of the sources of the members up to this one, with it or without it (zeros in the first
// member). Goes from member to member. dest may be source.
void scan(const Set& set, void* dest, const void* source, std::size_t nelems, std::size_t width,
          Combine combine, bool inclusive);

}  // namespace orrery::shmem::group
