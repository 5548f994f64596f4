// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Initialisation, the interface, access control.
#include "lib/portals3/process.hpp"

#include <algorithm>

#include <unistd.h>

namespace orrery::portals3 {

namespace {

ptl_ni_limits_t limits_for(const ptl_ni_limits_t* desired) {
  ptl_ni_limits_t limits{.max_mes = 65535,
                         .max_mds = 65535,
                         .max_eqs = 1023,
                         .max_ac_index = static_cast<int>(kAccesses) - 1,
                         .max_pt_index = static_cast<int>(match::kMaxPortals) - 1,
                         .max_md_iovecs = 65536,
                         .max_me_list = 65535,
                         .max_getput_md = 65536};
  if (desired == nullptr) return limits;
  const auto lower = [](int wanted, int* limit) {
    if (wanted > 0) *limit = std::min(wanted, *limit);
  };
  lower(desired->max_mes, &limits.max_mes);
  lower(desired->max_mds, &limits.max_mds);
  lower(desired->max_eqs, &limits.max_eqs);
  lower(desired->max_ac_index, &limits.max_ac_index);
  lower(desired->max_pt_index, &limits.max_pt_index);
  lower(desired->max_md_iovecs, &limits.max_md_iovecs);
  lower(desired->max_me_list, &limits.max_me_list);
  lower(desired->max_getput_md, &limits.max_getput_md);
  return limits;
}

void open_interface(Process& process) {
  match::Session session(process.own());
  const match::View& view = session.view();
  match::Interface& shared = view.interface(kInterface);
  shared.options = match::kClassicInterface;
  shared.pid = process.pid();
  shared.nid = process.own_nid();
  shared.rank = match::kAny;
  shared.uid = getuid();
  shared.portals = static_cast<std::uint32_t>(process.limits.max_pt_index) + 1;
  shared.max_list = static_cast<std::uint32_t>(process.limits.max_me_list);
  shared.max_entries = static_cast<std::uint32_t>(process.limits.max_mes);
  shared.status[0] = 0;
  for (std::uint32_t i = 0; i < shared.portals; ++i) {
    view.portal(kInterface, i).allocated = 1;
    view.portal(kInterface, i).enabled = 1;
  }
  for (std::uint32_t i = 0; i < kAccesses; ++i) view.access(i).allows = 0;
  view.access(0) = {.allows = 1,
                    .source = {match::kAny, match::kAny},
                    .uid = shared.uid,
                    .jid = PTL_JID_ANY,
                    .portal = match::kAny};
  session.set(shared.open, 1u);
}

void close_interface(Process& process) {
  match::Session session(process.own());
  session.set(session.view().interface(kInterface).open, 0u);
  session.commit();
  classic::forget_descriptors(session);
  process.sources.forget_all();
  process.give_rings_of(session, kInterface);
  match::forget_interface(session, kInterface);
}

}  // namespace

}  // namespace orrery::portals3

using namespace orrery::portals3;

extern "C" {

int PtlInit(int* max_interfaces) {
  Process::get().initialised.fetch_add(1, std::memory_order_acq_rel);
  if (max_interfaces != nullptr) *max_interfaces = 1;
  return PTL_OK;
}

void PtlFini(void) {
  Process& process = Process::get();
  int count = process.initialised.load(std::memory_order_acquire);
  while (count > 0 && !process.initialised.compare_exchange_weak(count, count - 1)) {
  }
}

int PtlNIInit(ptl_interface_t iface, ptl_pid_t pid, ptl_ni_limits_t* desired, ptl_ni_limits_t* actual,
              ptl_handle_ni_t* ni_handle) {
  ORRERY_PORTALS3_NEEDS_INIT;
  if (iface != PTL_IFACE_DEFAULT) return PTL_IFACE_INVALID;
  if (ni_handle == nullptr) return PTL_SEGV;
  if (pid != PTL_PID_ANY && pid >= kPids - 1) return PTL_PID_INVALID;
  Process& process = Process::get();
  const std::lock_guard lock(process.mu);
  if (process.references != 0 && pid != PTL_PID_ANY && pid != process.pid()) return PTL_PID_INVALID;
  if (process.references == 0) {
    const int begun = process.begin(pid);
    if (begun != PTL_OK) return begun;
    process.limits = limits_for(desired);
    open_interface(process);
    process.open.store(true, std::memory_order_release);
  }
  ++process.references;
  if (actual != nullptr) *actual = process.limits;
  *ni_handle = kNiHandle;
  return PTL_OK;
}

int PtlNIFini(ptl_handle_ni_t ni_handle) {
  ORRERY_PORTALS3_NEEDS_NI(ni_handle);
  Process& process = Process::get();
  const std::lock_guard lock(process.mu);
  if (process.references == 0) return PTL_NI_INVALID;
  if (--process.references != 0) return PTL_OK;
  process.open.store(false, std::memory_order_release);
  close_interface(process);
  process.end();
  return PTL_OK;
}

int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register, ptl_sr_value_t* status) {
  ORRERY_PORTALS3_NEEDS_NI(ni_handle);
  if (status_register != PTL_SR_DROP_COUNT) return PTL_SR_INDEX_INVALID;
  if (status == nullptr) return PTL_SEGV;
  const match::Session session(Process::get().own());
  *status = static_cast<ptl_sr_value_t>(session.view().interface(kInterface).status[0]);
  return PTL_OK;
}

int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t* ni_handle) {
  ORRERY_PORTALS3_NEEDS_INIT;
  if (ni_handle == nullptr) return PTL_SEGV;
  if (!Process::get().open) return PTL_HANDLE_INVALID;
  bool valid = handle == kNiHandle || find_queue(handle) != 0;
  if (!valid) {
    const match::Session session(Process::get().own());
    valid = find_entry(session.view(), handle) != 0 || find_descriptor(session.view(), handle) != 0;
  }
  if (!valid) return PTL_HANDLE_INVALID;
  *ni_handle = kNiHandle;
  return PTL_OK;
}

int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t* uid) {
  ORRERY_PORTALS3_NEEDS_NI(ni_handle);
  if (uid == nullptr) return PTL_SEGV;
  *uid = Process::get().own().interface(kInterface).uid;
  return PTL_OK;
}

int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_id_t* id) {
  ORRERY_PORTALS3_NEEDS_NI(ni_handle);
  if (id == nullptr) return PTL_SEGV;
  *id = {Process::get().own_nid(), Process::get().pid()};
  return PTL_OK;
}

int PtlGetJid(ptl_handle_ni_t ni_handle, ptl_jid_t* jid) {
  ORRERY_PORTALS3_NEEDS_NI(ni_handle);
  if (jid == nullptr) return PTL_SEGV;
  *jid = Process::get().ranks.jid;
  return PTL_OK;
}

int PtlACEntry(ptl_handle_ni_t ni_handle, ptl_ac_index_t ac_index, ptl_process_id_t match_id, ptl_uid_t uid,
               ptl_jid_t jid, ptl_pt_index_t pt_index) {
  ORRERY_PORTALS3_NEEDS_NI(ni_handle);
  Process& process = Process::get();
  if (ac_index > static_cast<ptl_ac_index_t>(process.limits.max_ac_index)) return PTL_AC_INDEX_INVALID;
  if (pt_index != PTL_PT_INDEX_ANY && pt_index > static_cast<ptl_pt_index_t>(process.limits.max_pt_index))
    return PTL_PT_INDEX_INVALID;
  match::Session session(process.own());
  match::Access& access = session.view().access(ac_index);
  session.set(access.source.nid, match_id.nid);
  session.set(access.source.pid, match_id.pid);
  session.set(access.uid, uid);
  session.set(access.jid, jid);
  session.set(access.portal, pt_index);
  session.set(access.allows, 1u);
  return PTL_OK;
}

int PtlProgress(ptl_handle_any_t, ptl_time_t) {
  ORRERY_PORTALS3_NEEDS_INIT;
  if (!Process::get().open) return PTL_NI_INVALID;
  if (Process::get().clock() != nullptr) Process::get().runtime().nic().progress();
  return PTL_OK;
}

}  // extern "C"
