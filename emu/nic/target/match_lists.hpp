// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/target/match_unit.hpp"

#include <cstdint>

// The lists of a match unit: entries in the order of their linking, unexpected messages in the order of their
// arrival. Entries without wildcards stand in buckets by their bits, so that finding one costs no walk over
// the others; the rest stands in a list of its own for each portal and list. Parts of match_unit.cpp.
namespace orrery::nic::match {

void link_entry(Session& session, std::uint32_t index);
// Links an entry with wildcards next to `base`, or (0) at the list's beginning or end. Stamps do not
// matter in a list without entries in buckets.
void link_entry_at(Session& session, std::uint32_t index, std::uint32_t base, bool before);
void unlink_entry(Session& session, std::uint32_t index);
void free_entry(Session& session, std::uint32_t index);

// The first unexpected message, behind `after`, that an entry would have taken; 0: none.
std::uint32_t find_header(const View& view, const NewEntry& what, std::uint64_t local_offset,
                          std::uint32_t after = 0);
void link_header(Session& session, std::uint32_t index);
void unlink_header(Session& session, std::uint32_t index);
void free_header(Session& session, std::uint32_t index);

}  // namespace orrery::nic::match
