// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/shmem/job.hpp"

#include "emu/base/log.hpp"
#include "emu/base/wait.hpp"
#include "emu/memory/symmetric_heap.hpp"
#include "emu/nic/host/runtime.hpp"
#include "lib/dmapp/heap_size.hpp"
#include "lib/dmapp/peer_heap.hpp"
#include "lib/shmem/access.hpp"
#include "lib/shmem/environment.hpp"
#include "lib/shmem/life.hpp"
#include "lib/shmem/profiling.hpp"
#include "lib/shmem/team.hpp"
#include "lib/shmem/wait.hpp"

#include "include/pmi/pmi.h"
#include "include/shmem/shmem.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

// Start, end, and what a PE is told about itself and others.
namespace orrery::shmem {

Job g_job;

namespace {

bool g_registered = false;
bool g_exiting = false;  // by shmem_global_exit, or by fail()

void end_job() {
  g_job.up = false;
  g_job.ended = true;
  end_teams();
  (void)dmapp_finalize();
}

// A program that returns from main makes shmem_finalize's call so. One that ends by an error does not wait
// for the others.
void at_exit(int status, void*) {
  if (g_job.up && !g_exiting && status == 0) shmem_finalize();
}

Region region_of(const dmapp_seg_desc_t& segment) {
  return {.begin = reinterpret_cast<std::uint64_t>(segment.addr), .bytes = segment.len, .segment = segment};
}

// Why has been said by this PE, or by the one that speaks for all.
[[noreturn]] void end_by_error() {
  g_exiting = true;
  PMI_Abort(1, "");
  std::abort();
}

void start(const char* call, int level) {
  if (g_job.up) return;
  if (g_job.ended) fail(call, "%s", "shmem_finalize has been called: OpenSHMEM cannot be started again");
  read_environment();
  dmapp_rma_attrs_ext_t attributes;
  (void)dmapp_get_rma_attrs_ext(&attributes);
  attributes.max_concurrency = level == SHMEM_THREAD_MULTIPLE ? DMAPP_MAX_THREADS_UNLIMITED : 1;
  dmapp_jobinfo_t info;
  if (const dmapp_return_t rc = dmapp_init_ext(&attributes, &attributes);
      rc != DMAPP_RC_SUCCESS || dmapp_get_jobinfo(&info) != DMAPP_RC_SUCCESS) {
    if (dmapp::heap_refused()) end_by_error();
    fail(call, "%s", "no NIC or no job; the lines above say why");
  }
  g_job.pe = info.pe;
  g_job.npes = info.npes;
  g_job.level = level;
  g_job.heap = region_of(info.sheap_seg);
  g_job.data = region_of(info.data_seg);
  const auto runtime = nic::Runtime::of_process();
  g_job.clocked = runtime.ok() && runtime.value()->nic().clock() != nullptr;
  g_job.up = true;
  start_teams();
  if (!g_registered) {
    g_registered = true;
    on_exit(at_exit, nullptr);
  }
}

}  // namespace

void fail(const char* call, const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  log::error("{}: {}", call, static_cast<const char*>(text));
  end_by_error();
}

namespace {

// Whether it lies in the heap or in the static variables.
bool is_symmetric(const void* address, std::uint64_t bytes) {
  const auto lies_in = [&](const Region& region) {
    const std::uint64_t offset = reinterpret_cast<std::uint64_t>(address) - region.begin;
    return offset <= region.bytes && bytes <= region.bytes - offset;
  };
  return lies_in(g_job.heap) || lies_in(g_job.data);
}

[[noreturn]] void fail_not_symmetric(const char* call, const void* address, std::uint64_t bytes, int pe) {
  const auto end = [](const Region& region) { return region.begin + region.bytes; };
  fail(call,
       "%llu bytes at %p of PE %d are not symmetric: expected the symmetric heap (%#llx to %#llx) or the "
       "program's "
       "static variables (%#llx to %#llx)",
       static_cast<unsigned long long>(bytes), address, pe, static_cast<unsigned long long>(g_job.heap.begin),
       static_cast<unsigned long long>(end(g_job.heap)), static_cast<unsigned long long>(g_job.data.begin),
       static_cast<unsigned long long>(end(g_job.data)));
}

}  // namespace

void must_be_symmetric(const char* call, const void* address, std::uint64_t bytes) {
  must_be_up(call);
  if (bytes != 0 && !is_symmetric(address, bytes)) fail_not_symmetric(call, address, bytes, g_job.pe);
}

void fail_request(const char* call, dmapp_return_t rc, const void* address, std::uint64_t bytes, int pe) {
  must_be_up(call);
  if (pe < 0 || pe >= g_job.npes) fail(call, "PE %d: expected 0 to %d", pe, g_job.npes - 1);
  if (rc == DMAPP_RC_INVALID_PARAM && is_symmetric(address, bytes))
    fail(call, "the local buffer of %llu bytes is a null pointer", static_cast<unsigned long long>(bytes));
  if (rc == DMAPP_RC_NOT_FOUND || rc == DMAPP_RC_INVALID_PARAM) fail_not_symmetric(call, address, bytes, pe);
  if (rc == DMAPP_RC_ALIGNMENT_ERROR)
    fail(call, "address %p is not aligned to its %llu bytes", address,
         static_cast<unsigned long long>(bytes));
  if (rc == DMAPP_RC_TRANSACTION_ERROR && pe != g_job.pe && has_just_ended(pe))
    fail(call, "%llu bytes at %p of PE %d: the PE has ended", static_cast<unsigned long long>(bytes), address,
         pe);
  const char* why = "";
  (void)dmapp_explain_error(rc, &why);
  fail(call, "%llu bytes at %p of PE %d: %s", static_cast<unsigned long long>(bytes), address, pe, why);
}

bool is_taken_at_once(std::uint64_t bytes) {
  dmapp_rma_attrs_t attributes;
  return dmapp_get_rma_attrs(&attributes) == DMAPP_RC_SUCCESS && bytes < attributes.offload_threshold;
}

void put_away_clocked(const char* call, void* dest, const void* source, std::uint64_t bytes, int pe) {
  if (is_taken_at_once(bytes)) {
    put_nbi(call, dest, source, bytes, pe);
  } else {
    put(call, dest, source, bytes, pe);
  }
}

void give_way() {
  (void)dmapp_progress();
  yield_cpu();
}

}  // namespace orrery::shmem

using orrery::shmem::fail;
using orrery::shmem::g_job;
using orrery::shmem::must_be_up;

extern "C" {

SHMEM_NAMES_JOB_(ORRERY_PROFILED)
ORRERY_PROFILED(global_exit)

void shmem_init(void) { orrery::shmem::start("shmem_init", SHMEM_THREAD_SINGLE); }

int shmem_init_thread(int requested, int* provided) {
  if (requested < SHMEM_THREAD_SINGLE || requested > SHMEM_THREAD_MULTIPLE) {
    orrery::log::error("shmem_init_thread: level {}: expected {} (SINGLE) to {} (MULTIPLE)", requested,
                       SHMEM_THREAD_SINGLE, SHMEM_THREAD_MULTIPLE);
    return -1;
  }
  orrery::shmem::start("shmem_init_thread", requested);
  if (provided != nullptr) *provided = g_job.level;
  return 0;
}

void shmem_query_thread(int* provided) {
  must_be_up("shmem_query_thread");
  if (provided != nullptr) *provided = g_job.level;
}

void start_pes(int /*npes*/) { orrery::shmem::start("start_pes", SHMEM_THREAD_SINGLE); }

void shmem_finalize(void) {
  if (!g_job.up) return;
  shmem_barrier_all();
  orrery::shmem::end_job();
}

void shmem_global_exit(int status) {
  orrery::shmem::g_exiting = true;
  std::fflush(nullptr);
  PMI_Abort(status, "shmem_global_exit");
  std::_Exit(status);
}

int shmem_my_pe(void) {
  must_be_up("shmem_my_pe");
  return g_job.pe;
}
int shmem_n_pes(void) {
  must_be_up("shmem_n_pes");
  return g_job.npes;
}
int _my_pe(void) { return shmem_my_pe(); }
int my_pe(void) { return shmem_my_pe(); }
int _num_pes(void) { return shmem_n_pes(); }
int num_pes(void) { return shmem_n_pes(); }
int shmem_num_pes(void) { return shmem_n_pes(); }

int shmem_pe_accessible(int pe) {
  must_be_up("shmem_pe_accessible");
  return pe >= 0 && pe < g_job.npes ? 1 : 0;
}

int shmem_addr_accessible(const void* addr, int pe) {
  must_be_up("shmem_addr_accessible");
  const auto at = reinterpret_cast<std::uint64_t>(addr);
  const bool symmetric = at - g_job.heap.begin < g_job.heap.bytes || at - g_job.data.begin < g_job.data.bytes;
  return symmetric && shmem_pe_accessible(pe) != 0 ? 1 : 0;
}

void* shmem_ptr(const void* dest, int pe) {
  must_be_up("shmem_ptr");
  if (shmem_addr_accessible(dest, pe) == 0) return nullptr;
  return pe == g_job.pe ? const_cast<void*>(dest) : orrery::dmapp::peer_heap_address(dest, pe);
}

void shmem_info_get_version(int* major, int* minor) {
  if (major != nullptr) *major = SHMEM_MAJOR_VERSION;
  if (minor != nullptr) *minor = SHMEM_MINOR_VERSION;
}

void shmem_info_get_name(char* name) {
  if (name != nullptr) std::strncpy(name, SHMEM_VENDOR_STRING, SHMEM_MAX_NAME_LEN);
}

void shmem_pcontrol(int level, ...) {
  if (level < 0)
    orrery::log::warn("shmem_pcontrol: level {}: expected 0 or more; nothing is profiled here", level);
}

void shmem_clear_cache_inv(void) {}
void shmem_set_cache_inv(void) {}
void shmem_clear_cache_line_inv(void* /*dest*/) {}
void shmem_set_cache_line_inv(void* /*dest*/) {}
void shmem_udcflush(void) {}
void shmem_udcflush_line(void* /*dest*/) {}

}  // extern "C"
