// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/target/match_lists.hpp"

#include "emu/nic/target/match_find.hpp"

namespace orrery::nic::match {

void link_entry(Session& session, std::uint32_t index) {
  const View& view = session.view();
  Entry& entry = view.entry(index);
  PortalEntry& portal = view.portal(entry.interface, entry.portal);
  Bucket& bucket = view.bucket(bucket_of(entry.interface, entry.portal, entry.match_bits));
  std::uint32_t& first = entry.exact != 0 ? bucket.first[0] : portal.wild_first[entry.list];
  std::uint32_t& last = entry.exact != 0 ? bucket.last[0] : portal.wild_last[entry.list];
  session.set(view.header().stamp, view.header().stamp + 1);
  session.set(entry.stamp, view.header().stamp);
  session.set(entry.next, 0u);
  session.set(entry.previous, last);
  if (last == 0)
    session.set(first, index);
  else
    session.set(view.entry(last).next, index);
  session.set(last, index);
  session.set(entry.state, std::uint8_t{kLinked});
  session.set(portal.count[entry.list], portal.count[entry.list] + 1);
  if (entry.exact != 0) session.set(portal.exact_count[entry.list], portal.exact_count[entry.list] + 1);
}

void link_entry_at(Session& session, std::uint32_t index, std::uint32_t base, bool before) {
  const View& view = session.view();
  Entry& entry = view.entry(index);
  PortalEntry& portal = view.portal(entry.interface, entry.portal);
  std::uint32_t previous = portal.wild_last[entry.list];
  std::uint32_t next = 0;
  if (base != 0) {
    previous = before ? view.entry(base).previous : base;
    next = before ? base : view.entry(base).next;
  } else if (before) {
    previous = 0;
    next = portal.wild_first[entry.list];
  }
  session.set(entry.previous, previous);
  session.set(entry.next, next);
  session.set(previous == 0 ? portal.wild_first[entry.list] : view.entry(previous).next, index);
  session.set(next == 0 ? portal.wild_last[entry.list] : view.entry(next).previous, index);
  session.set(entry.state, std::uint8_t{kLinked});
  session.set(portal.count[entry.list], portal.count[entry.list] + 1);
}

void unlink_entry(Session& session, std::uint32_t index) {
  const View& view = session.view();
  Entry& entry = view.entry(index);
  PortalEntry& portal = view.portal(entry.interface, entry.portal);
  Bucket& bucket = view.bucket(bucket_of(entry.interface, entry.portal, entry.match_bits));
  std::uint32_t& first = entry.exact != 0 ? bucket.first[0] : portal.wild_first[entry.list];
  std::uint32_t& last = entry.exact != 0 ? bucket.last[0] : portal.wild_last[entry.list];
  session.set(entry.previous == 0 ? first : view.entry(entry.previous).next, entry.next);
  session.set(entry.next == 0 ? last : view.entry(entry.next).previous, entry.previous);
  session.set(entry.state, std::uint8_t{kUnlinked});
  session.set(portal.count[entry.list], portal.count[entry.list] - 1);
  if (entry.exact != 0) session.set(portal.exact_count[entry.list], portal.exact_count[entry.list] - 1);
}

void free_entry(Session& session, std::uint32_t index) {
  const View& view = session.view();
  Entry& entry = view.entry(index);
  Interface& interface = view.interface(entry.interface);
  session.set(entry.state, std::uint8_t{kFree});
  session.set(entry.generation, entry.generation + 1);
  session.set(interface.entries, interface.entries - 1);
  give_back(session, view.header().entry_pool, index,
            [&](std::uint32_t i) -> Entry& { return view.entry(i); });
}

void link_header(Session& session, std::uint32_t index) {
  const View& view = session.view();
  Unexpected& header = view.unexpected(index);
  PortalEntry& portal = view.portal(header.interface, header.portal);
  Bucket& bucket = view.bucket(bucket_of(header.interface, header.portal, header.match_bits));
  header.next = header.bucket_next = 0;
  header.previous = portal.header_last;
  header.bucket_previous = bucket.last[1];
  session.set(portal.header_last == 0 ? portal.header_first : view.unexpected(portal.header_last).next,
              index);
  session.set(portal.header_last, index);
  session.set(bucket.last[1] == 0 ? bucket.first[1] : view.unexpected(bucket.last[1]).bucket_next, index);
  session.set(bucket.last[1], index);
  session.set(portal.header_count, portal.header_count + 1);
}

void unlink_header(Session& session, std::uint32_t index) {
  const View& view = session.view();
  Unexpected& header = view.unexpected(index);
  PortalEntry& portal = view.portal(header.interface, header.portal);
  Bucket& bucket = view.bucket(bucket_of(header.interface, header.portal, header.match_bits));
  session.set(header.previous == 0 ? portal.header_first : view.unexpected(header.previous).next,
              header.next);
  session.set(header.next == 0 ? portal.header_last : view.unexpected(header.next).previous, header.previous);
  session.set(
      header.bucket_previous == 0 ? bucket.first[1] : view.unexpected(header.bucket_previous).bucket_next,
      header.bucket_next);
  session.set(header.bucket_next == 0 ? bucket.last[1] : view.unexpected(header.bucket_next).bucket_previous,
              header.bucket_previous);
  session.set(portal.header_count, portal.header_count - 1);
}

void free_header(Session& session, std::uint32_t index) {
  const View& view = session.view();
  Interface& interface = view.interface(view.unexpected(index).interface);
  session.set(interface.headers, interface.headers - 1);
  give_back(session, view.header().header_pool, index,
            [&](std::uint32_t i) -> Unexpected& { return view.unexpected(i); });
}

// The first unexpected message, behind `after`, that an entry would have taken.
std::uint32_t find_header(const View& view, const NewEntry& what, std::uint64_t local_offset,
                          std::uint32_t after) {
  const PortalEntry& portal = view.portal(what.interface, what.portal);
  if (portal.header_count == 0) return 0;
  const bool logical = is_logical(view, what.interface);
  const bool exact = what.ignore_bits == 0;
  std::uint32_t i = exact ? view.bucket(bucket_of(what.interface, what.portal, what.match_bits)).first[1]
                          : portal.header_first;
  if (after != 0) i = exact ? view.unexpected(after).bucket_next : view.unexpected(after).next;
  while (i != 0) {
    const Unexpected& header = view.unexpected(i);
    if (header.portal == what.portal && header.interface == what.interface &&
        ((what.match_bits ^ header.match_bits) & ~what.ignore_bits) == 0 &&
        source_matches(what.source, header.initiator, logical) &&
        ((what.options & kNoTruncate) == 0 ||
         place_in(what.options, what.length, local_offset, header.remote_offset, header.asked).moved ==
             header.asked))
      return i;
    i = exact ? header.bucket_next : header.next;
  }
  return 0;
}

}  // namespace orrery::nic::match
