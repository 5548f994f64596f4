// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Event queues and counters, and waiting for them.
#include "lib/common/match_wait.hpp"
#include "lib/portals4/process.hpp"

#include <cstring>
#include <optional>

namespace orrery::portals4 {

bool find_queue(ptl_handle_eq_t handle, std::uint32_t* index) {
  *index = 0;
  if (handle == PTL_EQ_NONE) return true;
  const Handle parts = open_handle(handle);
  const match::View& view = Process::get().own();
  if (!view || parts.kind != static_cast<std::uint32_t>(Kind::eq) || parts.index == 0 ||
      parts.index >= view.header().queue_pool.capacity)
    return false;
  const match::EventQueue& queue = view.queue(parts.index);
  if (queue.used == 0 || queue.interface != parts.interface) return false;
  *index = parts.index;
  return true;
}

namespace {

// The counter of a handle; null: none that is live.
match::Counter* counter_of(Process& process, ptl_handle_ct_t handle) {
  const Handle parts = open_handle(handle);
  const match::View& view = process.own();
  if (!view || parts.kind != static_cast<std::uint32_t>(Kind::ct) || parts.index == 0 ||
      parts.index >= view.header().counter_pool.capacity)
    return nullptr;
  match::Counter& counter = view.counter(parts.index);
  return counter.shown_interface == parts.interface + 1 ? &counter : nullptr;
}

ptl_ct_event_t value_of(match::Counter& counter) {
  // Acquire: what was delivered before the count is visible.
  return {std::atomic_ref<std::uint64_t>(counter.shown_success).load(std::memory_order_acquire),
          std::atomic_ref<std::uint64_t>(counter.shown_failure).load(std::memory_order_acquire)};
}

}  // namespace

bool find_counter(ptl_handle_ct_t handle, std::uint32_t* index) {
  *index = 0;
  if (handle == PTL_CT_NONE) return true;
  if (counter_of(Process::get(), handle) == nullptr) return false;
  *index = open_handle(handle).index;
  return true;
}

namespace {

// A handle that names a live counter, not "none".
bool live_counter(ptl_handle_ct_t handle, std::uint32_t* index) {
  return find_counter(handle, index) && *index != 0;
}
bool live_queue(ptl_handle_eq_t handle, std::uint32_t* index) {
  return find_queue(handle, index) && *index != 0;
}

ptl_ct_event_t value_of(std::uint32_t index) { return value_of(Process::get().own().counter(index)); }

void translate(const match::EventRecord& record, ptl_event_t* event) {
  event->start = reinterpret_cast<void*>(record.start);
  event->user_ptr = reinterpret_cast<void*>(record.user);
  event->hdr_data = record.header_data;
  event->match_bits = record.match_bits;
  event->rlength = record.asked;
  event->mlength = record.moved;
  event->remote_offset = record.remote_offset;
  event->uid = record.uid;
  event->initiator.phys.nid = record.initiator.nid;  // or the rank
  event->initiator.phys.pid = record.initiator.pid;
  event->type = record.type;
  event->ptl_list = record.list;
  event->pt_index = record.portal;
  event->ni_fail_type = record.fail;
  event->atomic_operation = record.operation;
  event->atomic_type = record.datatype;
}

// A counter that this thread watches while it sleeps; ends with the scope.
class Watch {
 public:
  Watch() = default;
  ~Watch() {
    if (counter_ == 0) return;
    match::Session session(Process::get().own());
    match::unwatch(session, counter_);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void begin(std::uint32_t counter, std::uint64_t test) {
    match::Session session(Process::get().own());
    if (match::watch(session, counter, test)) counter_ = counter;
  }
  // The counter's value, or what it was when the test came true.
  ptl_ct_event_t value_of(std::uint32_t counter) const {
    const ptl_ct_event_t now = portals4::value_of(counter);
    match::Counter& watched = Process::get().own().counter(counter);
    // Looked at after the value: one that reaches the test is the first that does, while this says not yet.
    if (counter_ != counter ||
        std::atomic_ref<std::uint64_t>(watched.watched).load(std::memory_order_acquire) != 0)
      return now;
    const match::Session session(Process::get().own());
    if (watched.seen_success + watched.seen_failure == 0) return now;  // freed meanwhile
    return {watched.seen_success, watched.seen_failure};
  }

 private:
  std::uint32_t counter_ = 0;
};

int get(std::uint32_t index, ptl_event_t* event) {
  const match::View& view = Process::get().own();
  match::EventRecord record;
  match::Took took = match::take(view, index, &record);
  if (took == match::Took::empty && match::has_untold_stops(view)) {
    {
      match::Session session(view);
      match::tell_stops(session, index);
    }
    took = match::take(view, index, &record);
  }
  if (took == match::Took::empty) return PTL_EQ_EMPTY;
  translate(record, event);
  return took == match::Took::event ? PTL_OK : PTL_EQ_DROPPED;
}

// Calls look() until it says something, the time is up, or the program is aborted.
template <typename Look, typename BeforeLong>
int wait_for(ptl_time_t timeout, int timed_out, Look look, BeforeLong before_long) {
  Process& process = Process::get();
  int code = PTL_OK;
  const auto found = [&] {
    run_due(process.self());  // the process that raised the counter may have died before it got there
    return look(&code);
  };
  if (process.aborting.load(std::memory_order_seq_cst) == 0) {
    if (found()) return code;
    if (timeout == 0) {
      orrery::common::look_in_vain(Process::get(), &timed_out);
      return found() ? code : timed_out;
    }
  }
  process.waiters.fetch_add(1, std::memory_order_seq_cst);
  int result = -1;
  const auto done = [&] {
    if (process.aborting.load(std::memory_order_seq_cst) != 0)
      result = PTL_ABORTED;
    else if (found())
      result = code;
    return result >= 0;
  };
  const std::optional<std::uint32_t> limit =
      timeout == PTL_TIME_FOREVER ? std::nullopt : std::optional<std::uint32_t>(timeout);
  if (!common::wait_for_match(process, limit, done, before_long)) result = timed_out;
  if (process.waiters.fetch_sub(1, std::memory_order_seq_cst) == 1 && result == PTL_ABORTED)
    process.aborting.store(0, std::memory_order_seq_cst);
  return result;
}
template <typename Look>
int wait_for(ptl_time_t timeout, int timed_out, Look look) {
  return wait_for(timeout, timed_out, look, [] {});
}

}  // namespace

}  // namespace orrery::portals4

using namespace orrery::portals4;

extern "C" {

int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t* eq_handle) {
  ORRERY_PORTALS_NEEDS_INIT;
  std::uint32_t interface = 0;
  if (interface_of(ni_handle, &interface) != PTL_OK || eq_handle == nullptr || count == 0)
    return PTL_ARG_INVALID;
  Process& process = Process::get();
  const std::lock_guard lock(process.mu);
  const match::View& view = process.own();
  if (count > view.header().ring_bytes / sizeof(match::EventSlot)) return PTL_NO_SPACE;
  const std::uint64_t capacity = count + match::kSpareSlots;
  match::Session session(view);
  int in_use = 0;
  for (std::uint32_t i = 1; i < view.header().queue_pool.fresh; ++i)
    in_use += view.queue(i).used != 0 && view.queue(i).interface == interface ? 1 : 0;
  if (in_use >= process.interfaces[interface].limits.max_eqs) return PTL_NO_SPACE;
  const std::uint32_t index = process.open_queue(session, capacity, interface);
  if (index == 0) return PTL_NO_SPACE;
  *eq_handle = make_handle(Kind::eq, interface, 0, index);
  return PTL_OK;
}

int PtlEQFree(ptl_handle_eq_t eq_handle) {
  ORRERY_PORTALS_NEEDS_INIT;
  std::uint32_t index = 0;
  if (!live_queue(eq_handle, &index)) return PTL_ARG_INVALID;
  Process::get().close_queue(index);
  return PTL_OK;
}

int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t* event) {
  ORRERY_PORTALS_NEEDS_INIT;
  std::uint32_t index = 0;
  if (!live_queue(eq_handle, &index) || event == nullptr) return PTL_ARG_INVALID;
  Process& process = Process::get();
  if (match::has_due(process.own())) run_due(process.self());
  const int found = get(index, event);
  if (found != PTL_EQ_EMPTY || process.clock() == nullptr) return found;
  orrery::common::look_in_vain(process, &process.own().queue(index));
  run_due(process.self());
  return get(index, event);
}

int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t* event) {
  ORRERY_PORTALS_NEEDS_INIT;
  std::uint32_t index = 0;
  if (!live_queue(eq_handle, &index) || event == nullptr) return PTL_ARG_INVALID;
  return wait_for(PTL_TIME_FOREVER, PTL_EQ_EMPTY, [&](int* code) {
    *code = get(index, event);
    return *code != PTL_EQ_EMPTY;
  });
}

int PtlEQPoll(const ptl_handle_eq_t* eq_handles, unsigned int size, ptl_time_t timeout, ptl_event_t* event,
              unsigned int* which) {
  ORRERY_PORTALS_NEEDS_INIT;
  if (eq_handles == nullptr || size == 0 || event == nullptr || which == nullptr) return PTL_ARG_INVALID;
  std::vector<std::uint32_t> indexes(size);
  for (unsigned int i = 0; i < size; ++i) {
    if (!live_queue(eq_handles[i], &indexes[i])) return PTL_ARG_INVALID;
  }
  return wait_for(timeout, PTL_EQ_EMPTY, [&](int* code) {
    for (unsigned int i = 0; i < size; ++i) {
      *code = get(indexes[i], event);
      if (*code == PTL_EQ_EMPTY) continue;
      *which = i;
      return true;
    }
    return false;
  });
}

int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t* ct_handle) {
  ORRERY_PORTALS_NEEDS_INIT;
  std::uint32_t interface = 0;
  if (interface_of(ni_handle, &interface) != PTL_OK || ct_handle == nullptr) return PTL_ARG_INVALID;
  Process& process = Process::get();
  const match::View& view = process.own();
  match::Session session(view);
  int in_use = 0;
  for (std::uint32_t i = 1; i < view.header().counter_pool.fresh; ++i)
    in_use += view.counter(i).used != 0 && view.counter(i).interface == interface ? 1 : 0;
  if (in_use >= process.interfaces[interface].limits.max_cts) return PTL_NO_SPACE;
  const std::uint32_t index =
      match::allocate(session, view.header().counter_pool,
                      [&](std::uint32_t i) -> match::Counter& { return view.counter(i); });
  if (index == 0) return PTL_NO_SPACE;
  match::Counter& counter = view.counter(index);
  counter.success = counter.failure = 0;
  counter.shown_success = counter.shown_failure = 0;
  counter.interface = interface;
  counter.first = counter.last = 0;
  counter.watched = counter.seen_success = counter.seen_failure = 0;
  session.set(counter.used, 1u);
  session.set(counter.shown_interface, interface + 1);
  *ct_handle = make_handle(Kind::ct, interface, 0, index);
  return PTL_OK;
}

int PtlCTFree(ptl_handle_ct_t ct_handle) {
  ORRERY_PORTALS_NEEDS_INIT;
  std::uint32_t index = 0;
  if (!live_counter(ct_handle, &index)) return PTL_ARG_INVALID;
  const match::View& view = Process::get().own();
  match::Session session(view);
  match::cancel(session, index);
  match::Counter& counter = view.counter(index);
  session.set(counter.used, 0u);
  session.set(counter.shown_interface, 0u);
  session.set(counter.generation, counter.generation + 1);
  match::give_back(session, view.header().counter_pool, index,
                   [&](std::uint32_t i) -> match::Counter& { return view.counter(i); });
  session.wake_later();
  return PTL_OK;
}

int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle) {
  ORRERY_PORTALS_NEEDS_INIT;
  std::uint32_t index = 0;
  if (!live_counter(ct_handle, &index)) return PTL_ARG_INVALID;
  match::Session session(Process::get().own());
  match::cancel(session, index);
  return PTL_OK;
}

int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t* event) {
  ORRERY_PORTALS_NEEDS_INIT;
  Process& process = Process::get();
  match::Counter* const counter = counter_of(process, ct_handle);
  if (counter == nullptr || event == nullptr) return PTL_ARG_INVALID;
  orrery::common::look_in_vain(process, counter);
  if (match::has_due(process.own())) run_due(process.self());
  *event = value_of(*counter);
  return PTL_OK;
}

int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t* event) {
  ORRERY_PORTALS_NEEDS_INIT;
  std::uint32_t index = 0;
  if (!live_counter(ct_handle, &index) || event == nullptr) return PTL_ARG_INVALID;
  Watch watch;
  return wait_for(
      PTL_TIME_FOREVER, PTL_CT_NONE_REACHED,
      [&](int* code) {
        std::uint32_t still = 0;
        if (!live_counter(ct_handle, &still)) {
          *code = PTL_ABORTED;  // freed meanwhile
          return true;
        }
        *event = watch.value_of(index);
        return event->success >= test || event->failure != 0;
      },
      [&] { watch.begin(index, test); });
}

int PtlCTPoll(const ptl_handle_ct_t* ct_handles, const ptl_size_t* tests, unsigned int size,
              ptl_time_t timeout, ptl_ct_event_t* event, unsigned int* which) {
  ORRERY_PORTALS_NEEDS_INIT;
  if (ct_handles == nullptr || tests == nullptr || size == 0 || event == nullptr || which == nullptr)
    return PTL_ARG_INVALID;
  std::vector<std::uint32_t> indexes(size);
  for (unsigned int i = 0; i < size; ++i) {
    if (!live_counter(ct_handles[i], &indexes[i])) return PTL_ARG_INVALID;
  }
  std::vector<Watch> watches(size);
  return wait_for(
      timeout, PTL_CT_NONE_REACHED,
      [&](int*) {
        for (unsigned int i = 0; i < size; ++i) {
          const ptl_ct_event_t value = watches[i].value_of(indexes[i]);
          if (value.success < tests[i] && value.failure == 0) continue;
          *event = value;
          *which = i;
          return true;
        }
        return false;
      },
      [&] {
        for (unsigned int i = 0; i < size; ++i) watches[i].begin(indexes[i], tests[i]);
      });
}

int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct) {
  ORRERY_PORTALS_NEEDS_INIT;
  std::uint32_t index = 0;
  if (!live_counter(ct_handle, &index)) return PTL_ARG_INVALID;
  {
    match::Session session(Process::get().own());
    match::set_counter(session, index, new_ct.success, new_ct.failure);
  }
  run_due(Process::get().self());
  return PTL_OK;
}

int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment) {
  ORRERY_PORTALS_NEEDS_INIT;
  std::uint32_t index = 0;
  if (!live_counter(ct_handle, &index) || (increment.success != 0 && increment.failure != 0))
    return PTL_ARG_INVALID;
  {
    match::Session session(Process::get().own());
    match::count(session, index, increment.success, increment.failure);
  }
  run_due(Process::get().self());
  return PTL_OK;
}

}  // extern "C"
