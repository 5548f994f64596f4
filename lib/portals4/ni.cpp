// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Initialisation, network interfaces, ranks.
#include "lib/portals4/process.hpp"

#include "emu/base/log.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace orrery::portals4 {

namespace {

// What an interface can give at most; PTL_LIM_* lower it.
ptl_size_t most(const char* name, ptl_size_t value) {
  const char* const set = ::secure_getenv(name);
  if (set == nullptr) return value;
  char* end = nullptr;
  errno = 0;
  const unsigned long long asked = std::strtoull(set, &end, 0);
  // strtoull takes a sign and spaces, and makes a large number of what is negative.
  if (*set < '0' || *set > '9' || *end != '\0' || errno == ERANGE) {
    log::error("{}={} is not accepted: expected a whole number, 0x perhaps before it; {} is used", name, set,
               value);
    return value;
  }
  return std::min<ptl_size_t>(asked, value);
}

int limit(int desired, int most_there_is) {
  return desired <= 0 ? most_there_is : std::min(desired, most_there_is);
}

}  // namespace

ptl_ni_limits_t limits_for(const ptl_ni_limits_t* desired) {
  const match::Shape shape;
  const auto pool = [](const char* name, std::uint32_t items) {
    return static_cast<int>(most(name, items - 1));
  };
  ptl_ni_limits_t limits{};
  limits.max_entries = pool("PTL_LIM_MAX_ENTRIES", shape.entries);
  limits.max_unexpected_headers = pool("PTL_LIM_MAX_UNEXPECTED_HEADERS", shape.headers);
  limits.max_mds = pool("PTL_LIM_MAX_MDS", 65536);
  limits.max_cts = pool("PTL_LIM_MAX_CTS", shape.counters);
  limits.max_eqs = pool("PTL_LIM_MAX_EQS", shape.queues);
  limits.max_pt_index = static_cast<int>(most("PTL_LIM_MAX_PT_INDEX", match::kMaxPortals - 1));
  limits.max_iovecs = static_cast<int>(most("PTL_LIM_MAX_IOVECS", 65536));
  limits.max_list_size = pool("PTL_LIM_MAX_LIST_SIZE", shape.entries);
  limits.max_triggered_ops = pool("PTL_LIM_MAX_TRIGGERED_OPS", shape.triggers);
  limits.max_msg_size = most("PTL_LIM_MAX_MSG_SIZE", kMostBytes);
  limits.max_atomic_size = most("PTL_LIM_MAX_ATOMIC_SIZE", kMostAtomicBytes);
  limits.max_fetch_atomic_size = most("PTL_LIM_MAX_FETCH_ATOMIC_SIZE", kMostAtomicBytes);
  limits.max_waw_ordered_size = most("PTL_LIM_MAX_WAW_ORDERED_SIZE", kMostBytes);
  limits.max_war_ordered_size = most("PTL_LIM_MAX_WAR_ORDERED_SIZE", kMostBytes);
  limits.max_volatile_size = most("PTL_LIM_MAX_VOLATILE_SIZE", kMostBytes);
  limits.features = PTL_TARGET_BIND_INACCESSIBLE | PTL_TOTAL_DATA_ORDERING;
  if (desired == nullptr) return limits;
  limits.max_entries = limit(desired->max_entries, limits.max_entries);
  limits.max_unexpected_headers = limit(desired->max_unexpected_headers, limits.max_unexpected_headers);
  limits.max_mds = limit(desired->max_mds, limits.max_mds);
  limits.max_cts = limit(desired->max_cts, limits.max_cts);
  limits.max_eqs = limit(desired->max_eqs, limits.max_eqs);
  limits.max_pt_index =
      desired->max_pt_index < 0 ? limits.max_pt_index : std::min(desired->max_pt_index, limits.max_pt_index);
  limits.max_iovecs = limit(desired->max_iovecs, limits.max_iovecs);
  limits.max_list_size = limit(desired->max_list_size, limits.max_list_size);
  limits.max_triggered_ops = limit(desired->max_triggered_ops, limits.max_triggered_ops);
  const auto bytes = [](ptl_size_t asked, ptl_size_t there) {
    return asked == 0 ? there : std::min(asked, there);
  };
  limits.max_msg_size = bytes(desired->max_msg_size, limits.max_msg_size);
  limits.max_atomic_size = bytes(desired->max_atomic_size, limits.max_atomic_size);
  limits.max_fetch_atomic_size = bytes(desired->max_fetch_atomic_size, limits.max_fetch_atomic_size);
  // A fetching atomic is an atomic first.
  limits.max_fetch_atomic_size = std::min(limits.max_fetch_atomic_size, limits.max_atomic_size);
  limits.max_waw_ordered_size = bytes(desired->max_waw_ordered_size, limits.max_waw_ordered_size);
  limits.max_war_ordered_size = bytes(desired->max_war_ordered_size, limits.max_war_ordered_size);
  limits.max_volatile_size = bytes(desired->max_volatile_size, limits.max_volatile_size);
  limits.features &= desired->features;
  return limits;
}

int interface_of(ptl_handle_ni_t handle, std::uint32_t* interface) {
  const Handle parts = open_handle(handle);
  Process& process = Process::get();
  if (parts.kind != static_cast<std::uint32_t>(Kind::ni) || parts.index != 0 || parts.generation != 0 ||
      process.interfaces[parts.interface].references == 0)
    return PTL_ARG_INVALID;
  *interface = parts.interface;
  return PTL_OK;
}

}  // namespace orrery::portals4

using namespace orrery::portals4;

extern "C" {

int PtlInit(void) {
  Process::get().initialised.fetch_add(1, std::memory_order_acq_rel);
  return PTL_OK;
}

void PtlFini(void) {
  Process& process = Process::get();
  int count = process.initialised.load(std::memory_order_acquire);
  while (count > 0 && !process.initialised.compare_exchange_weak(count, count - 1)) {
  }
  if (count == 1) process.aborting.store(0);
}

void PtlAbort(void) {
  Process& process = Process::get();
  if (process.initialised.load(std::memory_order_acquire) == 0 || !process.own()) return;
  process.aborting.store(1, std::memory_order_seq_cst);
  match::Header& header = process.own().header();
  header.bell.fetch_add(1, std::memory_order_seq_cst);
  orrery::futex_wake(header.bell, INT_MAX);
}

int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid, const ptl_ni_limits_t* desired,
              ptl_ni_limits_t* actual, ptl_handle_ni_t* ni_handle) {
  ORRERY_PORTALS_NEEDS_INIT;
  if (iface != PTL_IFACE_DEFAULT && iface != 0) return PTL_ARG_INVALID;
  if (ni_handle == nullptr || (options & ~15u) != 0) return PTL_ARG_INVALID;
  const bool matching = (options & PTL_NI_MATCHING) != 0;
  const bool logical = (options & PTL_NI_LOGICAL) != 0;
  if (matching == ((options & PTL_NI_NO_MATCHING) != 0) || logical == ((options & PTL_NI_PHYSICAL) != 0))
    return PTL_ARG_INVALID;
  if (pid != PTL_PID_ANY && pid > PTL_PID_MAX) return PTL_ARG_INVALID;
  Process& process = Process::get();
  const std::lock_guard lock(process.mu);
  const int signed_on = process.open(pid);
  if (signed_on != PTL_OK) return signed_on;
  const std::uint32_t index = (matching ? 0u : 1u) + (logical ? 0u : 2u);
  LocalInterface& local = process.interfaces[index];
  if (local.references++ == 0) {
    local.limits = limits_for(desired);
    local.map.clear();
    local.mapped = false;
    match::Session session(process.own());
    match::Interface& shared = session.view().interface(index);
    shared.options = options;
    shared.pid = process.pid();
    shared.nid = process.nid();
    shared.rank = match::kAny;
    shared.uid = getuid();
    shared.portals = static_cast<std::uint32_t>(local.limits.max_pt_index) + 1;
    shared.max_list = static_cast<std::uint32_t>(local.limits.max_list_size);
    shared.max_entries = static_cast<std::uint32_t>(local.limits.max_entries);
    shared.max_headers = static_cast<std::uint32_t>(local.limits.max_unexpected_headers);
    shared.max_triggers = static_cast<std::uint32_t>(local.limits.max_triggered_ops);
    shared.status[0] = shared.status[1] = shared.status[2] = 0;
    session.set(shared.open, 1u);
  }
  if (actual != nullptr) *actual = local.limits;
  *ni_handle = make_handle(Kind::ni, index, 0, 0);
  return PTL_OK;
}

int PtlNIFini(ptl_handle_ni_t ni_handle) {
  ORRERY_PORTALS_NEEDS_INIT;
  Process& process = Process::get();
  const std::lock_guard lock(process.mu);
  std::uint32_t index = 0;
  if (interface_of(ni_handle, &index) != PTL_OK) return PTL_ARG_INVALID;
  if (--process.interfaces[index].references != 0) return PTL_OK;
  {
    // What the program left goes with its interface.
    match::Session session(process.own());
    const match::View& view = session.view();
    session.set(view.interface(index).open, 0u);
    session.commit();
    process.give_rings_of(session, index);
    match::forget_interface(session, index);
  }
  forget_descriptors(index);
  if (!process.any_open()) process.close();
  return PTL_OK;
}

int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register, ptl_sr_value_t* status) {
  ORRERY_PORTALS_NEEDS_INIT;
  std::uint32_t index = 0;
  if (interface_of(ni_handle, &index) != PTL_OK || status == nullptr || status_register > 2)
    return PTL_ARG_INVALID;
  const match::Session session(Process::get().own());
  *status = session.view().interface(index).status[status_register];
  return PTL_OK;
}

int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t* ni_handle) {
  ORRERY_PORTALS_NEEDS_INIT;
  if (ni_handle == nullptr) return PTL_ARG_INVALID;
  const Handle parts = open_handle(handle);
  const ptl_handle_ni_t owner = make_handle(Kind::ni, parts.interface, 0, 0);
  std::uint32_t index = 0;
  if (interface_of(owner, &index) != PTL_OK) return PTL_ARG_INVALID;
  bool valid = false;
  switch (static_cast<Kind>(parts.kind)) {
    case Kind::ni:
      valid = handle == owner;
      break;
    case Kind::eq:
      valid = handle != PTL_EQ_NONE && find_queue(handle, &index);
      break;
    case Kind::ct:
      valid = handle != PTL_CT_NONE && find_counter(handle, &index);
      break;
    case Kind::md:
      valid = find_descriptor(handle) != nullptr;
      break;
    case Kind::le:
    case Kind::me: {
      const match::Session session(Process::get().own());
      const match::View& view = session.view();
      valid = parts.index != 0 && parts.index < view.header().entry_pool.fresh &&
              view.entry(parts.index).state != match::kFree &&
              (view.entry(parts.index).generation & 0x3ff) == parts.generation;
      break;
    }
    default:
      break;
  }
  if (!valid) return PTL_ARG_INVALID;
  *ni_handle = owner;
  return PTL_OK;
}

int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, const ptl_process_t* mapping) {
  ORRERY_PORTALS_NEEDS_INIT;
  Process& process = Process::get();
  const std::lock_guard lock(process.mu);
  std::uint32_t index = 0;
  if (interface_of(ni_handle, &index) != PTL_OK || mapping == nullptr || map_size == 0 ||
      map_size > UINT32_MAX)
    return PTL_ARG_INVALID;
  LocalInterface& local = process.interfaces[index];
  if ((process.own().interface(index).options & PTL_NI_LOGICAL) == 0) return PTL_ARG_INVALID;
  if (local.mapped) return PTL_IGNORED;
  local.map.assign(mapping, mapping + map_size);
  match::Session session(process.own());
  for (ptl_size_t rank = 0; rank < map_size; ++rank) {
    if (mapping[rank].phys.nid == process.nid() && mapping[rank].phys.pid == process.pid())
      session.set(session.view().interface(index).rank, static_cast<std::uint32_t>(rank));
  }
  local.mapped = true;
  return PTL_OK;
}

int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t* mapping,
              ptl_size_t* actual_map_size) {
  ORRERY_PORTALS_NEEDS_INIT;
  Process& process = Process::get();
  const std::lock_guard lock(process.mu);
  std::uint32_t index = 0;
  if (interface_of(ni_handle, &index) != PTL_OK) return PTL_ARG_INVALID;
  if ((map_size != 0 && mapping == nullptr) || (map_size == 0 && actual_map_size == nullptr))
    return PTL_ARG_INVALID;
  const LocalInterface& local = process.interfaces[index];
  if ((process.own().interface(index).options & PTL_NI_LOGICAL) == 0) return PTL_ARG_INVALID;
  if (!local.mapped) return PTL_NO_SPACE;
  if (actual_map_size != nullptr) *actual_map_size = local.map.size();
  std::copy_n(local.map.begin(), std::min<ptl_size_t>(map_size, local.map.size()), mapping);
  return PTL_OK;
}

int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t* uid) {
  ORRERY_PORTALS_NEEDS_INIT;
  std::uint32_t index = 0;
  if (interface_of(ni_handle, &index) != PTL_OK || uid == nullptr) return PTL_ARG_INVALID;
  *uid = Process::get().own().interface(index).uid;
  return PTL_OK;
}

int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t* id) {
  ORRERY_PORTALS_NEEDS_INIT;
  std::uint32_t index = 0;
  if (interface_of(ni_handle, &index) != PTL_OK || id == nullptr) return PTL_ARG_INVALID;
  const match::Interface& shared = Process::get().own().interface(index);
  id->phys.nid = shared.nid;
  id->phys.pid = shared.pid;
  return PTL_OK;
}

int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t* id) {
  ORRERY_PORTALS_NEEDS_INIT;
  std::uint32_t index = 0;
  if (interface_of(ni_handle, &index) != PTL_OK || id == nullptr) return PTL_ARG_INVALID;
  const match::Interface& shared = Process::get().own().interface(index);
  if ((shared.options & PTL_NI_PHYSICAL) != 0) return PtlGetPhysId(ni_handle, id);
  id->phys.pid = 0;
  id->rank = shared.rank;
  return PTL_OK;
}

int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2) {
  return handle1 == handle2 ? 1 : 0;
}

}  // extern "C"
