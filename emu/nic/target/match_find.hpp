// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/target/match_unit.hpp"

#include <algorithm>
#include <cstdint>

// Which entry takes a message. In line: each message looks, under the lock of its target's match unit.
namespace orrery::nic::match {

// Where a message of `asked` bytes goes in an entry, and how much of it.
struct Place {
  std::uint64_t offset = 0;
  std::uint64_t moved = 0;
};
inline Place place_in(std::uint32_t options, std::uint64_t length, std::uint64_t local_offset,
                      std::uint64_t remote_offset, std::uint64_t asked) {
  const std::uint64_t offset = (options & kManageLocal) != 0 ? local_offset : remote_offset;
  return {offset, offset >= length ? 0 : std::min(asked, length - offset)};
}

inline std::uint32_t bucket_of(std::uint32_t interface, std::uint32_t portal, std::uint64_t bits) {
  std::uint64_t x = bits * 0x9e3779b97f4a7c15ULL + interface * kMaxPortals + portal;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9ULL;
  return static_cast<std::uint32_t>(x >> 40) % kBuckets;
}

inline bool source_matches(const ProcessId& wanted, const ProcessId& source, bool logical) {
  if (logical) return wanted.nid == kAny || wanted.nid == source.nid;
  return (wanted.nid == kAny || wanted.nid == source.nid) &&
         (wanted.pid == kPidAny || wanted.pid == kAny || wanted.pid == source.pid);
}

inline bool is_logical(const View& view, std::uint32_t interface) {
  return (view.interface(interface).options & 4u) != 0;
}

// Portals 3: an entry whose descriptor does not take the message is passed over.
inline bool descriptor_takes(const View& view, std::uint32_t index, const Arrival& arrival) {
  const Entry& entry = view.entry(index);
  const Descriptor& descriptor = view.descriptor(index);
  if (descriptor.attached == 0 || descriptor.threshold == 0 || descriptor.full != 0) return false;
  if (arrival.move != Move::put && (entry.options & kOpGet) == 0) return false;
  if (arrival.move != Move::get && (entry.options & kOpPut) == 0) return false;
  const std::uint64_t offset =
      (entry.options & kManageLocal) != 0 ? entry.local_offset : arrival.remote_offset;
  if (offset > entry.length) return false;
  return (entry.options & kNoTruncate) == 0 || arrival.length <= entry.length - offset;
}

[[gnu::always_inline]] inline bool entry_takes(const View& view, std::uint32_t index, const Arrival& arrival,
                                               bool logical) {
  const Entry& entry = view.entry(index);
  if (entry.state != kLinked) return false;
  if (((entry.match_bits ^ arrival.match_bits) & ~entry.ignore_bits) != 0) return false;
  if (!source_matches(entry.source, arrival.initiator, logical)) return false;
  if ((entry.options & kClassic) != 0) return descriptor_takes(view, index, arrival);
  if ((entry.options & kNoTruncate) == 0) return true;
  return place_in(entry.options, entry.length, entry.local_offset, arrival.remote_offset, arrival.length)
             .moved == arrival.length;
}

// The first entry of a list, in list order, that takes the message. Entries without wildcards stand in a
// bucket by their bits, others in a list of their own, each in order; the stamps say which of two came first.
[[gnu::always_inline]] inline std::uint32_t find_entry(const View& view, const PortalEntry& portal, List list,
                                                       const Arrival& arrival) {
  const bool logical = is_logical(view, arrival.interface);
  std::uint32_t found = 0;
  if (portal.exact_count[list] != 0) {
    const Bucket& bucket = view.bucket(bucket_of(arrival.interface, arrival.portal, arrival.match_bits));
    for (std::uint32_t i = bucket.first[0]; i != 0 && found == 0; i = view.entry(i).next) {
      const Entry& entry = view.entry(i);
      if (entry.portal == arrival.portal && entry.interface == arrival.interface && entry.list == list &&
          entry_takes(view, i, arrival, logical))
        found = i;
    }
  }
  const std::uint64_t before = found == 0 ? UINT64_MAX : view.entry(found).stamp;
  for (std::uint32_t i = portal.wild_first[list]; i != 0; i = view.entry(i).next) {
    const Entry& entry = view.entry(i);
    if (entry.stamp > before) break;
    if (entry_takes(view, i, arrival, logical)) return i;
  }
  return found;
}

}  // namespace orrery::nic::match
