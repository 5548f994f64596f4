// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Portal table entries, list entries, memory descriptors.
#include "lib/portals4/process.hpp"

#include <array>

namespace orrery::portals4 {

static_assert(
    PTL_IOVEC == match::kIovec && PTL_ME_OP_PUT == match::kOpPut && PTL_ME_OP_GET == match::kOpGet &&
    PTL_ME_USE_ONCE == match::kUseOnce && PTL_ME_UNEXPECTED_HDR_DISABLE == match::kNoUnexpectedHeader &&
    PTL_ME_EVENT_LINK_DISABLE == match::kNoLinkEvent && PTL_ME_EVENT_COMM_DISABLE == match::kNoCommEvent &&
    PTL_ME_EVENT_FLOWCTRL_DISABLE == match::kNoFlowControlEvent &&
    PTL_ME_EVENT_SUCCESS_DISABLE == match::kNoSuccessEvent &&
    PTL_ME_EVENT_OVER_DISABLE == match::kNoOverflowEvent &&
    PTL_ME_EVENT_UNLINK_DISABLE == match::kNoUnlinkEvent && PTL_ME_EVENT_CT_COMM == match::kCountComm &&
    PTL_ME_EVENT_CT_OVERFLOW == match::kCountOverflow && PTL_ME_EVENT_CT_BYTES == match::kCountBytes &&
    PTL_ME_MANAGE_LOCAL == match::kManageLocal && PTL_ME_NO_TRUNCATE == match::kNoTruncate &&
    PTL_ME_MAY_ALIGN == match::kMayAlign && PTL_ME_LOCAL_INC_UH_RLENGTH == match::kUnexpectedByLength &&
    PTL_ME_ACK_DISABLE == match::kAckDisable);
static_assert(PTL_PT_ONLY_USE_ONCE == match::kOnlyUseOnce && PTL_PT_ONLY_TRUNCATE == match::kOnlyTruncate &&
              PTL_PT_FLOWCTRL == match::kFlowControl && PTL_PT_ALLOC_DISABLED == match::kAllocDisabled);
static_assert(PTL_NI_LOGICAL == 4);  // match_unit.cpp's is_logical

std::array<MemoryDescriptor, kMostDescriptors> g_descriptors;

namespace {

constexpr std::int64_t kUnlinkPatienceNs = 500'000'000;
// How long messages under way into a portal are waited for while none of them ends: longer than one takes.
constexpr std::int64_t kDisablePatienceNs = 5'000'000'000;
// How long a message may be under way before its mover is looked at: longer than most take.
constexpr std::int64_t kMoverPatienceNs = 1'000'000;

// The processes whose deaths this one has asked to be told of, by slot: generation + 1.
std::array<std::atomic<std::uint64_t>, nic::kMaxProcesses> g_watched;

// Messages into this process whose movers have died end as undeliverable. Those of movers that live go on,
// but when one of these dies this process hears of it.
void end_messages_of_the_dead() {
  Process& process = Process::get();
  const match::View view = process.own();
  const auto name_of = [](std::uint64_t mover) {
    return nic::ProcessName{static_cast<wire::ProcessSlot>(match::slot_of(mover)),
                            match::generation_of(mover)};
  };
  const auto is_gone = [&](std::uint64_t mover) { return !process.runtime().alive(name_of(mover)); };
  bool some = false;
  const std::uint32_t fresh =
      std::atomic_ref(view.header().flight_pool.fresh).load(std::memory_order_relaxed);
  for (std::uint32_t i = 1; i < fresh; ++i) {
    const std::uint64_t mover =
        std::atomic_ref(match::flight_of(view, i).mover).load(std::memory_order_relaxed);
    const std::uint32_t slot = match::slot_of(mover);
    if (mover == 0 || mover == process.mover() || slot >= nic::kMaxProcesses) continue;
    const std::uint64_t generation = std::uint64_t{match::generation_of(mover)} + 1;
    // Relaxed: it saves a second watch, which would do no harm.
    if (g_watched[slot].exchange(generation, std::memory_order_relaxed) != generation)
      process.runtime().watch(name_of(mover));
    some = some || is_gone(mover);
  }
  if (!some) return;
  match::Session session(view);
  match::end_flights(session, is_gone);
}

std::mutex g_descriptors_mu;
std::vector<std::uint32_t> g_free_descriptors;  // guarded by g_descriptors_mu
std::uint32_t g_fresh_descriptor = 0;
std::array<int, match::kInterfaces> g_descriptors_in_use{};

// The bytes of a list of pieces. False: more pieces than the interface takes, or no list.
bool total_of(std::uint32_t interface, const void* start, ptl_size_t count, ptl_size_t* bytes) {
  const LocalInterface& local = Process::get().interfaces[interface];
  if (count > static_cast<ptl_size_t>(local.limits.max_iovecs) || (count != 0 && start == nullptr))
    return false;
  *bytes = 0;
  const auto* pieces = static_cast<const ptl_iovec_t*>(start);
  for (ptl_size_t i = 0; i < count; ++i) {
    if (pieces[i].iov_base == nullptr && pieces[i].iov_len != 0) return false;
    *bytes += pieces[i].iov_len;
  }
  return true;
}

int code_of(Errc code) {
  switch (code) {
    case Errc::ok:
      return PTL_OK;
    case Errc::no_resource:
      return PTL_NO_SPACE;
    case Errc::size:
      return PTL_LIST_TOO_LONG;
    case Errc::not_done:
      return PTL_IN_USE;
    default:
      return PTL_ARG_INVALID;
  }
}

struct EntryArguments {
  void* start;
  ptl_size_t length;
  ptl_handle_ct_t counter;
  ptl_uid_t uid;
  unsigned int options;
};

int fill(ptl_handle_ni_t ni, ptl_pt_index_t portal, const EntryArguments& from, bool matching, void* user,
         match::NewEntry* entry) {
  std::uint32_t index = 0;
  if (interface_of(ni, &index) != PTL_OK) return PTL_ARG_INVALID;
  const match::View& view = Process::get().own();
  const match::Interface& shared = view.interface(index);
  if (((shared.options & PTL_NI_MATCHING) != 0) != matching || portal >= shared.portals ||
      view.portal(index, portal).allocated == 0)
    return PTL_ARG_INVALID;
  const unsigned int allowed = matching ? PTL_ME_APPEND_OPTIONS_MASK : PTL_LE_APPEND_OPTIONS_MASK;
  if ((from.options & ~allowed) != 0) return PTL_ARG_INVALID;
  // PTL_PT_ONLY_USE_ONCE and PTL_PT_ONLY_TRUNCATE are hints: an entry may do otherwise.
  std::uint32_t counter = 0;
  if (!find_counter(from.counter, &counter) || !is_of(from.counter, index)) return PTL_ARG_INVALID;
  ptl_size_t bytes = from.length;
  if ((from.options & PTL_IOVEC) != 0) {
    if (!total_of(index, from.start, from.length, &bytes)) return PTL_ARG_INVALID;
    entry->pieces = static_cast<std::uint32_t>(from.length);
  }
  entry->interface = static_cast<std::uint8_t>(index);
  entry->portal = portal;
  entry->options = from.options;
  entry->start = reinterpret_cast<std::uint64_t>(from.start);
  entry->length = bytes;
  entry->uid = from.uid;
  entry->counter = counter;
  entry->user = reinterpret_cast<std::uint64_t>(user);
  entry->ignore_bits = UINT64_MAX;
  return PTL_OK;
}

void fill_match(const ptl_me_t& me, match::NewEntry* entry) {
  entry->match_bits = me.match_bits;
  entry->ignore_bits = me.ignore_bits;
  entry->min_free = me.min_free;
  const bool logical = (Process::get().own().interface(entry->interface).options & PTL_NI_LOGICAL) != 0;
  entry->source = logical ? match::ProcessId{me.match_id.rank, 0}
                          : match::ProcessId{me.match_id.phys.nid, me.match_id.phys.pid};
}

int append(Kind kind, match::NewEntry* entry, ptl_list_t list, ptl_handle_any_t* handle) {
  if (list > PTL_OVERFLOW_LIST || handle == nullptr) return PTL_ARG_INVALID;
  entry->list = static_cast<match::List>(list);
  Process& process = Process::get();
  Errc code = Errc::ok;
  {
    match::Session session(process.own());
    const auto appended = match::append(session, *entry);
    code = appended.code();
    if (appended.ok())
      *handle = make_handle(kind, entry->interface, appended.value().generation, appended.value().entry);
  }
  run_due(process.self());
  return code_of(code);
}

int unlink(Kind kind, ptl_handle_any_t handle) {
  const Handle parts = open_handle(handle);
  std::uint32_t index = 0;
  if (parts.kind != static_cast<std::uint32_t>(kind) ||
      interface_of(make_handle(Kind::ni, parts.interface, 0, 0), &index) != PTL_OK)
    return PTL_ARG_INVALID;
  // A message that is on its way into the entry is there in a moment, unless its initiator was stopped.
  const std::int64_t began = monotonic_ns();
  for (;;) {
    if (monotonic_ns() - began > kMoverPatienceNs) end_messages_of_the_dead();
    bool on_its_way = false;
    {
      match::Session session(Process::get().own());
      if (parts.index == 0 || parts.index >= session.view().header().entry_pool.fresh) return PTL_ARG_INVALID;
      const match::Entry& entry = session.view().entry(parts.index);
      if ((entry.generation & 0x3ff) != parts.generation || entry.interface != parts.interface)
        return PTL_ARG_INVALID;
      const Errc code = match::unlink(session, parts.index, entry.generation).code();
      on_its_way = code == Errc::not_done && entry.in_flight != 0;
      if (!on_its_way) return code_of(code);
      if (monotonic_ns() - began > kUnlinkPatienceNs) {
        match::keep(session, parts.index, entry.generation);
        return PTL_IN_USE;
      }
    }
    yield_cpu();
  }
}

int search(match::NewEntry* entry, ptl_search_op_t operation) {
  if (operation > PTL_SEARCH_DELETE) return PTL_ARG_INVALID;
  Process& process = Process::get();
  Errc code = Errc::ok;
  {
    match::Session session(process.own());
    code = match::search(session, *entry, operation == PTL_SEARCH_DELETE).code();
  }
  run_due(process.self());
  return code_of(code);
}

int portal_of(ptl_handle_ni_t ni, ptl_pt_index_t portal, std::uint32_t* interface) {
  if (interface_of(ni, interface) != PTL_OK) return PTL_ARG_INVALID;
  const match::View& view = Process::get().own();
  if (portal >= view.interface(*interface).portals || view.portal(*interface, portal).allocated == 0)
    return PTL_ARG_INVALID;
  return PTL_OK;
}

// Waits until no message is under way into a portal that was stopped. A message's bytes are moved by its
// initiator or by the service thread, never by the thread that waits here; under a clock no time passes in
// between. A message of an initiator that died is ended here; the patience is for one that was stopped.
void let_arrive(std::uint32_t interface, ptl_pt_index_t index) {
  constexpr std::int64_t kPauseNs = 100'000;
  FutexWord pause{0};  // real time under any clock
  const match::View view = Process::get().own();
  match::PortalEntry& portal = view.portal(interface, index);
  std::int64_t last_end = monotonic_ns();
  std::uint32_t under_way = UINT32_MAX;
  for (;;) {
    std::uint32_t now = std::atomic_ref(portal.in_flight).load(std::memory_order_relaxed);
    if (now == 0) {
      // The change that ended the last one stands, with its event, once the lock can be had.
      const match::Session session(view);
      now = portal.in_flight;
      if (now == 0) return;
    }
    if (std::atomic_ref(portal.enabled).load(std::memory_order_relaxed) != 0) return;  // by another thread
    const std::int64_t time = monotonic_ns();
    if (now < under_way) last_end = time;
    under_way = now;
    if (time - last_end > kDisablePatienceNs) return;
    if (time - last_end < kMoverPatienceNs) {
      yield_cpu();
    } else {
      end_messages_of_the_dead();
      futex_wait_for(pause, 0, kPauseNs);
    }
  }
}

int set_enabled(ptl_handle_ni_t ni, ptl_pt_index_t portal, std::uint32_t enabled) {
  std::uint32_t interface = 0;
  if (portal_of(ni, portal, &interface) != PTL_OK) return PTL_ARG_INVALID;
  {
    match::Session session(Process::get().own());
    session.set(session.view().portal(interface, portal).enabled, enabled);
  }
  if (enabled == 0) let_arrive(interface, portal);
  return PTL_OK;
}

}  // namespace

namespace {
void release(std::uint32_t index) {
  MemoryDescriptor& descriptor = g_descriptors[index];
  descriptor.state.fetch_add(1, std::memory_order_acq_rel);
  --g_descriptors_in_use[descriptor.interface];
  g_free_descriptors.push_back(index);
}
}  // namespace

void forget_descriptors(std::uint32_t interface) {
  const std::lock_guard lock(g_descriptors_mu);
  for (std::uint32_t i = 0; i < g_fresh_descriptor; ++i) {
    if ((g_descriptors[i].state.load(std::memory_order_relaxed) & 1) != 0 &&
        g_descriptors[i].interface == interface)
      release(i);
  }
}

}  // namespace orrery::portals4

using namespace orrery::portals4;

extern "C" {

int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq_handle,
               ptl_pt_index_t pt_index_req, ptl_pt_index_t* pt_index) {
  ORRERY_PORTALS_NEEDS_INIT;
  std::uint32_t interface = 0;
  if (interface_of(ni_handle, &interface) != PTL_OK || pt_index == nullptr ||
      (options & ~PTL_PT_ALLOC_OPTIONS_MASK) != 0)
    return PTL_ARG_INVALID;
  std::uint32_t queue = 0;
  if (!find_queue(eq_handle, &queue) || !is_of(eq_handle, interface)) return PTL_ARG_INVALID;
  if ((options & PTL_PT_FLOWCTRL) != 0 && queue == 0) return PTL_PT_EQ_NEEDED;
  match::Session session(Process::get().own());
  const auto opened = match::open_portal(session, interface, pt_index_req, options, queue);
  if (opened.ok()) {
    *pt_index = opened.value();
    return PTL_OK;
  }
  switch (opened.code()) {
    case orrery::Errc::no_resource:
      return PTL_PT_FULL;
    case orrery::Errc::invalid_state:
      return PTL_PT_IN_USE;
    default:
      return PTL_ARG_INVALID;
  }
}

int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) {
  ORRERY_PORTALS_NEEDS_INIT;
  std::uint32_t interface = 0;
  if (portal_of(ni_handle, pt_index, &interface) != PTL_OK) return PTL_ARG_INVALID;
  end_messages_of_the_dead();
  match::Session session(Process::get().own());
  const auto closed = match::close_portal(session, interface, pt_index);
  return closed.code() == orrery::Errc::not_done ? PTL_PT_IN_USE : code_of(closed.code());
}

int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) {
  ORRERY_PORTALS_NEEDS_INIT;
  return set_enabled(ni_handle, pt_index, 0);
}

int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) {
  ORRERY_PORTALS_NEEDS_INIT;
  return set_enabled(ni_handle, pt_index, 1);
}

int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t* md, ptl_handle_md_t* md_handle) {
  ORRERY_PORTALS_NEEDS_INIT;
  std::uint32_t interface = 0;
  if (interface_of(ni_handle, &interface) != PTL_OK || md == nullptr || md_handle == nullptr ||
      (md->options & ~PTL_MD_OPTIONS_MASK) != 0)
    return PTL_ARG_INVALID;
  match::Binding binding{};
  if (!find_queue(md->eq_handle, &binding.queue) || !find_counter(md->ct_handle, &binding.counter) ||
      !is_of(md->eq_handle, interface) || !is_of(md->ct_handle, interface))
    return PTL_ARG_INVALID;
  binding.start = reinterpret_cast<std::uint64_t>(md->start);
  binding.length = md->length;
  binding.options = md->options;
  if ((md->options & PTL_IOVEC) != 0) {
    if (!total_of(interface, md->start, md->length, &binding.length)) return PTL_ARG_INVALID;
    binding.pieces = static_cast<std::uint32_t>(md->length);
  }
  const std::lock_guard lock(g_descriptors_mu);
  if (g_descriptors_in_use[interface] >= Process::get().interfaces[interface].limits.max_mds)
    return PTL_NO_SPACE;
  std::uint32_t index = g_fresh_descriptor;
  if (!g_free_descriptors.empty()) {
    index = g_free_descriptors.back();
    g_free_descriptors.pop_back();
  } else if (g_fresh_descriptor == kMostDescriptors) {
    return PTL_NO_SPACE;
  } else {
    ++g_fresh_descriptor;
  }
  MemoryDescriptor& descriptor = g_descriptors[index];
  descriptor.interface = interface;
  descriptor.binding = binding;
  // Release: a thread that sees it in use sees its binding.
  const std::uint32_t state = descriptor.state.fetch_add(1, std::memory_order_release) + 1;
  ++g_descriptors_in_use[interface];
  *md_handle = make_handle(Kind::md, interface, state >> 1, index);
  return PTL_OK;
}

int PtlMDRelease(ptl_handle_md_t md_handle) {
  ORRERY_PORTALS_NEEDS_INIT;
  const std::lock_guard lock(g_descriptors_mu);
  if (find_descriptor(md_handle) == nullptr) return PTL_ARG_INVALID;
  release(open_handle(md_handle).index);
  return PTL_OK;
}

int PtlLEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t* le, ptl_list_t ptl_list,
                void* user_ptr, ptl_handle_le_t* le_handle) {
  ORRERY_PORTALS_NEEDS_INIT;
  if (le == nullptr) return PTL_ARG_INVALID;
  match::NewEntry entry;
  const int filled = fill(ni_handle, pt_index, {le->start, le->length, le->ct_handle, le->uid, le->options},
                          false, user_ptr, &entry);
  return filled != PTL_OK ? filled : append(Kind::le, &entry, ptl_list, le_handle);
}

int PtlLEUnlink(ptl_handle_le_t le_handle) {
  ORRERY_PORTALS_NEEDS_INIT;
  return unlink(Kind::le, le_handle);
}

int PtlLESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t* le,
                ptl_search_op_t ptl_search_op, void* user_ptr) {
  ORRERY_PORTALS_NEEDS_INIT;
  if (le == nullptr) return PTL_ARG_INVALID;
  match::NewEntry entry;
  const int filled = fill(ni_handle, pt_index, {le->start, le->length, le->ct_handle, le->uid, le->options},
                          false, user_ptr, &entry);
  return filled != PTL_OK ? filled : search(&entry, ptl_search_op);
}

int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t* me, ptl_list_t ptl_list,
                void* user_ptr, ptl_handle_me_t* me_handle) {
  ORRERY_PORTALS_NEEDS_INIT;
  if (me == nullptr) return PTL_ARG_INVALID;
  match::NewEntry entry;
  const int filled = fill(ni_handle, pt_index, {me->start, me->length, me->ct_handle, me->uid, me->options},
                          true, user_ptr, &entry);
  if (filled != PTL_OK) return filled;
  fill_match(*me, &entry);
  return append(Kind::me, &entry, ptl_list, me_handle);
}

int PtlMEUnlink(ptl_handle_me_t me_handle) {
  ORRERY_PORTALS_NEEDS_INIT;
  return unlink(Kind::me, me_handle);
}

int PtlMESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t* me,
                ptl_search_op_t ptl_search_op, void* user_ptr) {
  ORRERY_PORTALS_NEEDS_INIT;
  if (me == nullptr) return PTL_ARG_INVALID;
  match::NewEntry entry;
  const int filled = fill(ni_handle, pt_index, {me->start, me->length, me->ct_handle, me->uid, me->options},
                          true, user_ptr, &entry);
  if (filled != PTL_OK) return filled;
  fill_match(*me, &entry);
  return search(&entry, ptl_search_op);
}

}  // extern "C"
