// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Ranks: from the program, the environment, or the launcher.
#include "lib/portals3/process.hpp"

#include "emu/base/log.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include <arpa/inet.h>
#include <p3rt/p3rt.h>

namespace orrery::portals3 {

namespace {

// A number, decimal or 0x..., or an IPv4 address in its usual form.
bool parse(std::string_view text, std::uint32_t* value) {
  if (text.find('.') != std::string_view::npos) {
    in_addr address{};
    if (inet_aton(std::string(text).c_str(), &address) == 0) return false;
    *value = ntohl(address.s_addr);
    return true;
  }
  int base = 10;
  if (text.substr(0, 2) == "0x") {
    base = 16;
    text.remove_prefix(2);
  }
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, *value, base);
  return parsed.ec == std::errc{} && parsed.ptr == end && !text.empty();
}

bool take_map(const char* name, std::vector<std::uint32_t>* map) {
  const char* const set = ::secure_getenv(name);
  if (set == nullptr) return true;
  std::string_view rest = set;
  for (;;) {
    const std::size_t colon = rest.find(':');
    std::uint32_t value = 0;
    if (!parse(rest.substr(0, colon), &value)) {
      log::error("{}={}: expected numbers or IPv4 addresses with ':' between them", name, set);
      return false;
    }
    map->push_back(value);
    if (colon == std::string_view::npos) return true;
    rest.remove_prefix(colon + 1);
  }
}

bool take_number(const char* name, std::uint32_t* value, bool* given) {
  const char* const set = ::secure_getenv(name);
  *given = set != nullptr;
  if (set == nullptr || parse(set, value)) return true;
  log::error("{}={}: expected a number", name, set);
  return false;
}

}  // namespace

bool take_ranks_from_environment(Ranks* ranks) {
  std::uint32_t rank = 0;
  bool given = false;
  bool has_jid = false;
  std::uint32_t jid = 0;
  std::vector<std::uint32_t> nids;
  std::vector<std::uint32_t> pids;
  if (!take_number("PTL_MY_RID", &rank, &given) || !take_number("PTL_MY_JID", &jid, &has_jid) ||
      !take_map("PTL_NIDMAP", &nids) || !take_map("PTL_PIDMAP", &pids))
    return false;
  if (has_jid) ranks->jid = jid;
  if (given) {
    if (nids.empty() || nids.size() != pids.size() || rank >= nids.size()) {
      log::error(
          "PTL_MY_RID={}: PTL_NIDMAP has {} entries, PTL_PIDMAP {}; expected as many in both, and more than "
          "the rank",
          rank, nids.size(), pids.size());
      return false;
    }
    ranks->rank = static_cast<int>(rank);
    ranks->size = static_cast<int>(nids.size());
    ranks->nids = std::move(nids);
    ranks->pids = std::move(pids);
    return true;
  }
  const auto job = job::Job::of_process();
  const bool launched = job.ok() && job.value()->rank() >= 0 && job.value()->size() > 0;
  ranks->rank = launched ? job.value()->rank() : 0;
  ranks->size = launched ? job.value()->size() : 1;
  return true;
}

}  // namespace orrery::portals3

using namespace orrery::portals3;

namespace {

int set_map(std::vector<std::uint32_t>* to, const std::uint32_t* map, int size) {
  if (map == nullptr || size <= 0) return PTL_FAIL;
  to->assign(map, map + size);
  return PTL_OK;
}

// Of a rank that was not given a place: the launcher's, by this library's rule for pids.
ptl_process_id_t id_of(Process& process, std::size_t rank) {
  const Ranks& ranks = process.ranks;
  ptl_process_id_t id{};
  id.pid = rank < ranks.pids.size() ? ranks.pids[rank] : static_cast<ptl_pid_t>(rank + 1);
  if (rank == static_cast<std::size_t>(ranks.rank)) id.pid = process.pid();
  if (rank < ranks.nids.size()) {
    id.nid = ranks.nids[rank];
    return id;
  }
  const orrery::job::Placement& placement = process.runtime().job().placement();
  id.nid = rank < placement.pe_count() ? placement.of_pe(static_cast<std::uint32_t>(rank)).nic_address
                                       : process.nid();
  return id;
}

}  // namespace

extern "C" {

int PtlSetRank(ptl_handle_ni_t, int rank, int size) {
  ORRERY_PORTALS3_NEEDS_INIT;
  Process& process = Process::get();
  const std::lock_guard lock(process.mu);
  if (rank == -1 && size == -1) return take_ranks_from_environment(&process.ranks) ? PTL_OK : PTL_FAIL;
  if (rank < 0 || size <= 0 || rank >= size) return PTL_FAIL;
  process.ranks.rank = rank;
  process.ranks.size = size;
  return PTL_OK;
}

int PtlSetNIDMap(ptl_handle_ni_t, ptl_nid_t* map, int size) {
  ORRERY_PORTALS3_NEEDS_INIT;
  Process& process = Process::get();
  const std::lock_guard lock(process.mu);
  return set_map(&process.ranks.nids, map, size);
}

int PtlSetPIDMap(ptl_handle_ni_t, ptl_pid_t* map, int size) {
  ORRERY_PORTALS3_NEEDS_INIT;
  Process& process = Process::get();
  const std::lock_guard lock(process.mu);
  return set_map(&process.ranks.pids, map, size);
}

int PtlSetJID(ptl_handle_ni_t, ptl_jid_t jid) {
  ORRERY_PORTALS3_NEEDS_INIT;
  Process& process = Process::get();
  const std::lock_guard lock(process.mu);
  process.ranks.jid = jid;
  return PTL_OK;
}

int PtlGetRank(ptl_handle_ni_t ni_handle, unsigned int* rank, unsigned int* size) {
  ORRERY_PORTALS3_NEEDS_NI(ni_handle);
  if (rank == nullptr || size == nullptr) return PTL_SEGV;
  *rank = static_cast<unsigned int>(Process::get().ranks.rank);
  *size = static_cast<unsigned int>(Process::get().ranks.size);
  return PTL_OK;
}

int PtlGetRankId(ptl_handle_ni_t ni_handle, unsigned int rank, ptl_process_id_t* id) {
  ORRERY_PORTALS3_NEEDS_NI(ni_handle);
  if (id == nullptr) return PTL_SEGV;
  Process& process = Process::get();
  if (rank >= static_cast<unsigned int>(process.ranks.size)) return PTL_PROCESS_INVALID;
  *id = id_of(process, rank);
  return PTL_OK;
}

int PtlGetNIDMap(ptl_handle_ni_t ni_handle, ptl_nid_t* map, int size) {
  ORRERY_PORTALS3_NEEDS_NI(ni_handle);
  Process& process = Process::get();
  if (map == nullptr) return PTL_SEGV;
  if (size < 0 || size > process.ranks.size) return PTL_FAIL;
  for (int rank = 0; rank < size; ++rank) map[rank] = id_of(process, static_cast<std::size_t>(rank)).nid;
  return PTL_OK;
}

int PtlGetPIDMap(ptl_handle_ni_t ni_handle, ptl_pid_t* map, int size) {
  ORRERY_PORTALS3_NEEDS_NI(ni_handle);
  Process& process = Process::get();
  if (map == nullptr) return PTL_SEGV;
  if (size < 0 || size > process.ranks.size) return PTL_FAIL;
  for (int rank = 0; rank < size; ++rank) map[rank] = id_of(process, static_cast<std::size_t>(rank)).pid;
  return PTL_OK;
}

}  // extern "C"
