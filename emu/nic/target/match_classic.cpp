// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/target/match_classic.hpp"

#include "emu/nic/target/match_find.hpp"
#include "emu/nic/target/match_lists.hpp"

#include <algorithm>

namespace orrery::nic::match::classic {

namespace {

Event event_of(Move move) {
  switch (move) {
    case Move::get:
      return kGet;
    case Move::put:
      return kPut;
    default:
      return kGetPut;
  }
}

void raise_one(Session& session, std::uint32_t index, std::uint8_t type, std::uint32_t link,
               const Report& report, Fail fail) {
  const Entry& entry = session.view().entry(index);
  const Descriptor& descriptor = session.view().descriptor(index);
  if (descriptor.queue == 0) return;
  EventRecord event{};
  event.type = type;
  event.start = entry.start;
  event.user = descriptor.user;
  event.header_data = report.header_data;
  event.match_bits = report.match_bits;
  event.asked = report.asked;
  event.moved = report.moved;
  event.remote_offset = report.offset;
  event.initiator = report.initiator;
  event.uid = report.uid;
  event.jid = report.jid;
  event.portal = report.portal;
  event.fail = fail;
  event.descriptor = (descriptor.generation & 0xfff) << 17 | index;
  event.link = link;
  event.options = descriptor.options;
  event.threshold = descriptor.threshold;
  event.length = descriptor.given_length;
  event.max_size = descriptor.max_size;
  raise(session, descriptor.queue, event);
}

void raise_start(Session& session, std::uint32_t index, Event event, std::uint32_t link,
                 const Report& report) {
  if ((session.view().descriptor(index).options & kNoStart) == 0)
    raise_one(session, index, event, link, report, kDelivered);
}

void raise_end(Session& session, std::uint32_t index, Event event, std::uint32_t link, const Report& report,
               Fail fail) {
  if ((session.view().descriptor(index).options & kNoEnd) == 0 || fail != kDelivered)
    raise_one(session, index, static_cast<std::uint8_t>(event + 1), link, report, fail);
}

std::uint32_t next_link(Session& session) {
  std::uint64_t& stamp = session.view().header().stamp;
  session.set(stamp, stamp + 1);
  return static_cast<std::uint32_t>(stamp);
}

void take_one(Session& session, Descriptor& descriptor) {
  if (descriptor.threshold > 0) session.set(descriptor.threshold, descriptor.threshold - 1);
}

// The descriptor goes; the entry that it was attached to stays.
void drop(Session& session, std::uint32_t index) {
  Descriptor& descriptor = session.view().descriptor(index);
  session.set(descriptor.attached, std::uint8_t{0});
  session.set(descriptor.generation, descriptor.generation + 1);
  if (descriptor.bound == 0) return;
  session.set(descriptor.bound, std::uint8_t{0});
  free_entry(session, index);
}

// The descriptor goes, and an entry that is to go with it.
void drop_with_entry(Session& session, std::uint32_t index) {
  const Descriptor& descriptor = session.view().descriptor(index);
  const bool with_entry = descriptor.bound == 0 && descriptor.entry_unlinks != 0;
  drop(session, index);
  if (!with_entry) return;
  unlink_entry(session, index);
  free_entry(session, index);
}

// After the last operation of a descriptor that unlinks itself.
void unlink_if_done(Session& session, std::uint32_t index) {
  const Entry& entry = session.view().entry(index);
  const Descriptor& descriptor = session.view().descriptor(index);
  if (descriptor.attached == 0 || descriptor.unlinks == 0 || entry.in_flight != 0) return;
  if (descriptor.threshold != 0 && descriptor.full == 0) return;
  raise_one(session, index, kUnlinked, 0, {}, kDelivered);
  drop_with_entry(session, index);
}

// The interface was closed while operations were under way: the entry goes with the last of them.
void free_if_closed(Session& session, std::uint32_t index) {
  const Entry& entry = session.view().entry(index);
  Descriptor& descriptor = session.view().descriptor(index);
  if (entry.state != match::kUnlinked || entry.in_flight != 0 || descriptor.attached != 0) return;
  session.set(descriptor.bound, std::uint8_t{0});
  free_entry(session, index);
}

void fill(Session& session, std::uint32_t index, const Memory& memory) {
  Entry& entry = session.view().entry(index);
  Descriptor& descriptor = session.view().descriptor(index);
  std::uint32_t options = kClassic;
  if ((memory.options & kAllowPut) != 0) options |= kOpPut;
  if ((memory.options & kAllowGet) != 0) options |= kOpGet;
  if ((memory.options & kManageRemote) == 0) options |= kManageLocal;
  if ((memory.options & kTruncate) == 0) options |= kNoTruncate;
  if ((memory.options & kNoAck) != 0) options |= kAckDisable;
  session.set(entry.options, options);
  session.set(entry.start, memory.start);
  session.set(entry.length, memory.length);
  session.set(entry.pieces, memory.pieces);
  session.set(entry.local_offset, std::uint64_t{0});
  session.set(descriptor.user, memory.user);
  session.set(descriptor.max_size, memory.max_size);
  session.set(descriptor.given_length, memory.given_length);
  session.set(descriptor.threshold, memory.threshold);
  session.set(descriptor.options, memory.options);
  session.set(descriptor.queue, memory.queue);
  session.set(descriptor.queue_handle, memory.queue_handle);
  session.set(descriptor.full, std::uint8_t{0});
}

std::uint32_t new_entry(Session& session, std::uint8_t interface) {
  const View& view = session.view();
  Interface& shared = view.interface(interface);
  if (shared.entries >= shared.max_entries) return 0;
  const std::uint32_t index =
      allocate(session, view.header().entry_pool, [&](std::uint32_t i) -> Entry& { return view.entry(i); });
  if (index == 0) return 0;
  session.set(shared.entries, shared.entries + 1);
  Entry& entry = view.entry(index);
  entry.interface = interface;
  entry.list = kPriority;
  entry.exact = 0;
  entry.in_flight = entry.held = 0;
  entry.counter = 0;
  entry.uid = kAny;
  entry.min_free = 0;
  entry.options = kClassic;
  session.set(entry.state, std::uint8_t{match::kUnlinked});
  Descriptor& descriptor = view.descriptor(index);
  session.set(descriptor.attached, std::uint8_t{0});
  session.set(descriptor.bound, std::uint8_t{0});
  return index;
}

bool may_enter(const View& view, const Arrival& arrival) {
  if (arrival.access >= view.header().access_count) return false;
  const Access& access = view.access(arrival.access);
  const auto is = [](std::uint32_t wanted, std::uint32_t given) { return wanted == kAny || wanted == given; };
  return access.allows != 0 && is(access.source.nid, arrival.initiator.nid) &&
         (is(access.source.pid, arrival.initiator.pid) || access.source.pid == kPidAny) &&
         is(access.uid, arrival.uid) && is(access.jid, arrival.jid) && is(access.portal, arrival.portal);
}

// Whether the beginning of a message is one of the events that its descriptor wants none of.
bool begins_silently(const Descriptor& descriptor) {
  return descriptor.queue != 0 && (descriptor.options & kNoStart) != 0;
}

Report report_of(const Arrival& arrival, const Verdict& verdict) {
  return {.initiator = arrival.initiator,
          .uid = arrival.uid,
          .jid = arrival.jid,
          .portal = arrival.portal,
          .match_bits = arrival.match_bits,
          .asked = arrival.length,
          .moved = verdict.moved,
          .offset = verdict.offset,
          .header_data = arrival.header_data};
}

}  // namespace

// ---- the target ----

Verdict accept(Session& session, const Arrival& arrival) {
  const View& view = session.view();
  Interface& interface = view.interface(arrival.interface);
  const auto drop_it = [&] {
    session.set(interface.status[0], interface.status[0] + 1);
    return Verdict{.fail = kDropped};
  };
  if (arrival.portal >= interface.portals || !may_enter(view, arrival)) return drop_it();
  const std::uint32_t index =
      find_entry(view, view.portal(arrival.interface, arrival.portal), kPriority, arrival);
  if (index == 0) return drop_it();
  Entry& entry = view.entry(index);
  Descriptor& descriptor = view.descriptor(index);
  const Place place =
      place_in(entry.options, entry.length, entry.local_offset, arrival.remote_offset, arrival.length);
  const Verdict verdict{.entry = index,
                        .start = entry.start,
                        .pieces = entry.pieces,
                        .offset = place.offset,
                        .moved = place.moved,
                        .no_ack = (entry.options & kAckDisable) != 0,
                        .in_flight = true,
                        .link = next_link(session)};
  session.set(entry.in_flight, entry.in_flight + 1);
  if (begins_silently(descriptor)) {
    std::uint32_t& untold = view.queue(descriptor.queue).untold;
    session.set(untold, untold + 1);
  }
  take_one(session, descriptor);
  session.set(entry.local_offset, entry.local_offset + place.moved);
  if ((descriptor.options & kMaxSize) != 0 &&
      (entry.local_offset > entry.length || entry.length - entry.local_offset < descriptor.max_size))
    session.set(descriptor.full, std::uint8_t{1});
  raise_start(session, index, event_of(arrival.move), verdict.link, report_of(arrival, verdict));
  return verdict;
}

void finish(Session& session, const Arrival& arrival, const Verdict& verdict, Fail outcome) {
  Entry& entry = session.view().entry(verdict.entry);
  session.set(entry.in_flight, entry.in_flight - 1);
  Report report = report_of(arrival, verdict);
  if (outcome != kDelivered) report.moved = 0;
  const Descriptor& descriptor = session.view().descriptor(verdict.entry);
  if (descriptor.attached != 0) {
    // 0: the program has ended the queue meanwhile, and a new one has its place.
    if (std::uint32_t& untold = session.view().queue(descriptor.queue).untold;
        begins_silently(descriptor) && untold != 0)
      session.set(untold, untold - 1);
    raise_end(session, verdict.entry, event_of(arrival.move), verdict.link, report, outcome);
  }
  unlink_if_done(session, verdict.entry);
  free_if_closed(session, verdict.entry);
}

bool deliver_shortly(Session& session, const Arrival& arrival, const Mover& mover, int* behind) {
  constexpr std::uint32_t kExchanged = kOpPut | kOpGet;
  const View& view = session.view();
  if (arrival.interface >= kInterfaces) return false;
  const Interface& interface = view.interface(arrival.interface);
  if (interface.open == 0 || (interface.options & kClassicInterface) == 0 ||
      arrival.portal >= interface.portals || !may_enter(view, arrival))
    return false;
  const std::uint32_t index =
      find_entry(view, view.portal(arrival.interface, arrival.portal), kPriority, arrival);
  if (index == 0) return false;
  Entry& entry = view.entry(index);
  const Descriptor& descriptor = view.descriptor(index);
  if (entry.pieces != 0 || (entry.options & kExchanged) == kExchanged || descriptor.threshold >= 0 ||
      (descriptor.options & kMaxSize) != 0)
    return false;
  const Place place =
      place_in(entry.options, entry.length, entry.local_offset, arrival.remote_offset, arrival.length);
  if (place.moved != 0 && !mover.move(mover.what, entry.start + place.offset, place.moved)) return false;
  *behind = quarters_behind(session, index);
  session.set(entry.local_offset, entry.local_offset + place.moved);
  const std::uint32_t link = next_link(session);
  const Report report = report_of(arrival, {.offset = place.offset, .moved = place.moved});
  raise_start(session, index, event_of(arrival.move), link, report);
  raise_end(session, index, event_of(arrival.move), link, report, kDelivered);
  return true;
}

bool is_quiet(const Session& session, std::uint32_t queue) {
  EventQueue& it = session.view().queue(queue);
  return events_waiting(it) == 0 && it.untold == 0;
}

int quarters_behind(const Session& session, std::uint32_t entry) {
  const std::uint32_t index = session.view().descriptor(entry).queue;
  if (index == 0) return 0;
  EventQueue& queue = session.view().queue(index);
  const std::uint64_t half = queue.capacity / 2;
  if (queue.tail - std::max(queue.known_head, queue.floor) < half) return 0;
  const std::uint64_t waiting = events_waiting(queue);
  if (waiting < half || waiting + kSpareSlots >= queue.capacity) return 0;
  return waiting < half + half / 2 ? 2 : 3;
}

// ---- entries and descriptors ----

Result<std::uint32_t> insert(Session& session, const NewMatch& what) {
  const View& view = session.view();
  Interface& interface = view.interface(what.interface);
  if (what.portal >= interface.portals) return Errc::invalid_param;
  if (view.portal(what.interface, what.portal).count[kPriority] >= interface.max_list) return Errc::size;
  const std::uint32_t index = new_entry(session, what.interface);
  if (index == 0) return Errc::no_resource;
  Entry& entry = view.entry(index);
  entry.match_bits = what.match_bits;
  entry.ignore_bits = what.ignore_bits;
  entry.source = what.source;
  entry.portal = static_cast<std::uint16_t>(what.portal);
  session.set(view.descriptor(index).entry_unlinks, static_cast<std::uint8_t>(what.unlinks ? 1 : 0));
  link_entry_at(session, index, what.base, what.before);
  return index;
}

Status remove(Session& session, std::uint32_t index) {
  const Entry& entry = session.view().entry(index);
  if (entry.in_flight != 0) return Errc::not_done;
  if (session.view().descriptor(index).attached != 0) drop(session, index);
  unlink_entry(session, index);
  free_entry(session, index);
  return {};
}

Status attach(Session& session, std::uint32_t index, const Memory& memory, bool unlinks) {
  Descriptor& descriptor = session.view().descriptor(index);
  if (descriptor.attached != 0) return Errc::invalid_state;
  fill(session, index, memory);
  session.set(descriptor.unlinks, static_cast<std::uint8_t>(unlinks ? 1 : 0));
  session.set(descriptor.attached, std::uint8_t{1});
  return {};
}

Result<std::uint32_t> bind(Session& session, std::uint8_t interface, const Memory& memory, bool unlinks) {
  const std::uint32_t index = new_entry(session, interface);
  if (index == 0) return Errc::no_resource;
  session.set(session.view().descriptor(index).bound, std::uint8_t{1});
  (void)attach(session, index, memory, unlinks);
  return index;
}

Status detach(Session& session, std::uint32_t index) {
  if (session.view().entry(index).in_flight != 0) return Errc::not_done;
  drop_with_entry(session, index);
  return {};
}

Status update(Session& session, std::uint32_t index, const Memory& memory) {
  if (session.view().entry(index).in_flight != 0) return Errc::not_done;
  fill(session, index, memory);
  return {};
}

void forget_descriptors(Session& session) {
  const View& view = session.view();
  for (std::uint32_t i = 1; i < view.header().entry_pool.fresh; ++i) {
    Descriptor& descriptor = view.descriptor(i);
    session.set(descriptor.generation, descriptor.generation + 1);
    session.set(descriptor.attached, std::uint8_t{0});
    session.commit_if_long();
  }
}

Memory memory_of(const View& view, std::uint32_t index) {
  const Entry& entry = view.entry(index);
  const Descriptor& descriptor = view.descriptor(index);
  return {.start = entry.start,
          .length = entry.length,
          .given_length = descriptor.given_length,
          .pieces = entry.pieces,
          .threshold = descriptor.threshold,
          .max_size = descriptor.max_size,
          .options = descriptor.options,
          .user = descriptor.user,
          .queue = descriptor.queue,
          .queue_handle = descriptor.queue_handle};
}

// ---- the initiator ----

bool is_active(const View& view, std::uint32_t index) {
  const Descriptor& descriptor = view.descriptor(index);
  return descriptor.attached != 0 && descriptor.threshold != 0;
}

Side hold(Session& session, std::uint32_t index) {
  Entry& entry = session.view().entry(index);
  session.set(entry.in_flight, entry.in_flight + 1);
  return {index, session.view().descriptor(index).generation, next_link(session)};
}

void begin(Session& session, const Side& side, Event event, const Report& report, bool counts) {
  raise_start(session, side.index, event, side.link, report);
  if (counts) take_one(session, session.view().descriptor(side.index));
}

void end(Session& session, const Side& side, Event event, const Report& report, Fail fail) {
  if (session.view().descriptor(side.index).attached == 0) return;  // the interface was closed
  raise_end(session, side.index, event, side.link, report, fail);
}

void acknowledge(Session& session, const Side& side, const Report& report) {
  Descriptor& descriptor = session.view().descriptor(side.index);
  if (descriptor.attached == 0 || descriptor.threshold == 0 || descriptor.queue == 0) return;
  take_one(session, descriptor);
  raise_one(session, side.index, kAcknowledged, side.link, report, kDelivered);
}

void let_go(Session& session, const Side& side) {
  Entry& entry = session.view().entry(side.index);
  session.set(entry.in_flight, entry.in_flight - 1);
  unlink_if_done(session, side.index);
  free_if_closed(session, side.index);
}

}  // namespace orrery::nic::match::classic
