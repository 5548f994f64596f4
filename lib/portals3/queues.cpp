// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Event queues.
#include "lib/common/match_wait.hpp"
#include "lib/portals3/process.hpp"

#include <algorithm>
#include <optional>

namespace orrery::portals3 {

std::uint32_t find_queue(ptl_handle_eq_t handle) {
  const Handle parts = open_handle(handle);
  const match::View view = Process::get().own();
  if (!view || !Process::get().open || !parts.is(Kind::eq) || parts.index == 0 ||
      parts.index >= view.header().queue_pool.capacity)
    return 0;
  const match::EventQueue& queue = view.queue(parts.index);
  return queue.used != 0 && (queue.generation & 0xfff) == parts.generation ? parts.index : 0;
}

void translate(std::uint32_t queue, const match::EventRecord& record, std::uint64_t sequence,
               ptl_event_t* event) {
  event->type = static_cast<ptl_event_kind_t>(record.type);
  event->initiator = {record.initiator.nid, record.initiator.pid};
  event->uid = record.uid;
  event->jid = record.jid;
  event->pt_index = record.portal;
  event->match_bits = record.match_bits;
  event->rlength = record.asked;
  event->mlength = record.moved;
  event->offset = record.remote_offset;
  event->md_handle = make_handle(Kind::md, record.descriptor >> 17, record.descriptor & 0x1ffff);
  event->md.start = reinterpret_cast<void*>(record.start);
  event->md.length = record.length;
  event->md.threshold = record.threshold;
  event->md.max_size = record.max_size;
  event->md.options = record.options;
  event->md.user_ptr = reinterpret_cast<void*>(record.user);
  event->md.eq_handle = make_handle(Kind::eq, Process::get().own().queue(queue).generation, queue);
  event->hdr_data = record.header_data;
  event->link = record.link;
  event->ni_fail_type = record.fail == match::kDelivered ? PTL_NI_OK : PTL_NI_FAIL;
  event->sequence = static_cast<ptl_seq_t>(sequence);
}

namespace {

// A queue that its program asked to be short holds more: what one NIC sends another is much in a scheduler's
// time slice.
constexpr std::uint64_t kLeastCapacity = 1024;

int take(std::uint32_t index, ptl_event_t* event) {
  match::EventRecord record;
  std::uint64_t sequence = 0;
  const match::Took took = match::take(Process::get().own(), index, &record, &sequence);
  if (took == match::Took::empty) return PTL_EQ_EMPTY;
  translate(index, record, sequence, event);
  return took == match::Took::event ? PTL_OK : PTL_EQ_DROPPED;
}

}  // namespace

}  // namespace orrery::portals3

using namespace orrery::portals3;

extern "C" {

int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_eq_handler_t handler,
               ptl_handle_eq_t* eq_handle) {
  ORRERY_PORTALS3_NEEDS_NI(ni_handle);
  if (eq_handle == nullptr) return PTL_SEGV;
  if (count == 0) {
    *eq_handle = PTL_EQ_NONE;
    return PTL_OK;
  }
  Process& process = Process::get();
  const match::View view = process.own();
  if (count > view.header().ring_bytes / sizeof(match::EventSlot)) return PTL_NO_SPACE;
  const std::uint64_t capacity = std::max(count + match::kSpareSlots, kLeastCapacity);
  std::uint32_t index = 0;
  {
    match::Session session(view);
    if (view.header().queue_pool.in_use >= static_cast<std::uint32_t>(process.limits.max_eqs))
      return PTL_NO_SPACE;
    index = process.open_queue(session, capacity, kInterface);
    if (index == 0) return PTL_NO_SPACE;
    *eq_handle = make_handle(Kind::eq, view.queue(index).generation, index);
  }
  if (handler != PTL_EQ_HANDLER_NONE) process.serve(index, handler);
  return PTL_OK;
}

int PtlEQFree(ptl_handle_eq_t eq_handle) {
  ORRERY_PORTALS3_NEEDS_INIT;
  const std::uint32_t index = find_queue(eq_handle);
  if (index == 0) return PTL_EQ_INVALID;
  Process& process = Process::get();
  process.serve_no_more(index);
  process.close_queue(index);
  return PTL_OK;
}

int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t* event) {
  ORRERY_PORTALS3_NEEDS_INIT;
  const std::uint32_t index = find_queue(eq_handle);
  if (index == 0) return PTL_EQ_INVALID;
  if (event == nullptr) return PTL_SEGV;
  const int found = take(index, event);
  if (found != PTL_EQ_EMPTY || Process::get().clock() == nullptr) return found;
  orrery::common::look_in_vain(Process::get(), &Process::get().own().queue(index));
  return take(index, event);
}

int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t* event) {
  ORRERY_PORTALS3_NEEDS_INIT;
  const std::uint32_t index = find_queue(eq_handle);
  if (index == 0) return PTL_EQ_INVALID;
  if (event == nullptr) return PTL_SEGV;
  int code = PTL_EQ_EMPTY;
  orrery::common::wait_for_match(Process::get(), std::nullopt, [&] {
    code = take(index, event);
    return code != PTL_EQ_EMPTY;
  });
  return code;
}

int PtlEQPoll(ptl_handle_eq_t* eq_handles, int size, ptl_time_t timeout, ptl_event_t* event, int* which) {
  ORRERY_PORTALS3_NEEDS_INIT;
  if (eq_handles == nullptr || event == nullptr || which == nullptr) return PTL_SEGV;
  if (size <= 0) return PTL_EQ_INVALID;
  std::vector<std::uint32_t> indexes(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < indexes.size(); ++i) {
    indexes[i] = find_queue(eq_handles[i]);
    if (indexes[i] == 0) return PTL_EQ_INVALID;
  }
  int code = PTL_EQ_EMPTY;
  const auto look = [&] {
    for (std::size_t i = 0; i < indexes.size(); ++i) {
      code = take(indexes[i], event);
      if (code == PTL_EQ_EMPTY) continue;
      *which = static_cast<int>(i);
      return true;
    }
    return false;
  };
  if (look()) return code;
  if (timeout == 0) {
    orrery::common::look_in_vain(Process::get(), &indexes);
    (void)look();
    return code;
  }
  const std::optional<std::uint32_t> limit =
      timeout == PTL_TIME_FOREVER ? std::nullopt : std::optional<std::uint32_t>(timeout);
  (void)orrery::common::wait_for_match(Process::get(), limit, look);
  return code;
}

}  // extern "C"
