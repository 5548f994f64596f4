// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A job on several hosts finds itself together: where each process is reached by the wire between hosts, one
// key a host. The lowest rank of a host is its leader: it puts a record of all processes there under its own
// rank. A reader starts with rank 0's, and goes on with the lowest rank that no record has named yet,
// which can only be a leader. What the leader learned stands in the directory of its host, for all.
#include "emu/base/config.hpp"
#include "emu/base/log.hpp"
#include "emu/nic/host/runtime.hpp"
#include "emu/wire/ofi_wire.hpp"
#include "lib/pmi/host_record.hpp"
#include "lib/pmi/session.hpp"

#include <algorithm>
#include <span>

#include <dirent.h>
#include <sys/resource.h>

namespace orrery::pmi {

namespace {

std::string host_key(int leader) { return "orrery_w" + std::to_string(leader); }

// A connection takes a descriptor of each of its two ends, and no error tells of one that could not be had.
void warn_of_descriptors(std::size_t processes_elsewhere) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  std::size_t used = 0;
  DIR* const open = opendir("/proc/self/fd");
  if (open == nullptr) return;
  while (const dirent* const one = readdir(open)) used += one->d_name[0] != '.' ? 1 : 0;
  closedir(open);
  --used;  // `open` itself
  const std::size_t left = limit.rlim_cur > used ? limit.rlim_cur - used : 0;
  if (left >= processes_elsewhere) return;
  log::warn(
      "{} processes live on other hosts, and each that is spoken to takes a descriptor: {} of {} are left; "
      "raise the limit (ulimit -n)",
      processes_elsewhere, left, limit.rlim_cur);
}

}  // namespace

// The job's ranks that live on this host, ascending.
std::vector<int> Session::ranks_here() const {
  std::vector<int> ranks;
  for (const job::ProcessRef& process : job_->directory().live_processes()) {
    // Slots below the job's size are ranks; what runs besides a PE has another.
    const bool is_pe = job_->pes_with_slots() != 0 && process.index < static_cast<std::uint32_t>(size_);
    if (is_pe) ranks.push_back(static_cast<int>(process.index));
  }
  // In a directory that others share that is unknown; a job of one process needs no other.
  if (job_->pes_with_slots() == 0) {
    for (int rank = 0; rank < size_; ++rank) ranks.push_back(rank);
  }
  return ranks;
}

Status Session::join_hosts(const job::WireJob& job, bool placed) {
  job_->directory().set_wire_job(job);
  const auto runtime = nic::Runtime::of_process();
  if (!runtime.ok()) return runtime.code();
  const Status opened = runtime.value()->open_wire();
  if (!opened.ok()) return opened;
  // From now on every process of this host has said where it is reached.
  Status done = barrier();
  const std::vector<int> here = ranks_here();
  const bool leads = !here.empty() && here.front() == rank_;
  if (done.ok() && leads) done = put_host(here);
  if (done.ok()) done = barrier();
  if (done.ok() && leads) done = get_hosts(here);
  if (done.ok()) done = barrier();
  if (!done.ok()) return done;

  // Hosts are numbered in the order of their leaders; ours has the number that no other one has.
  std::vector<std::uint32_t> host(static_cast<std::size_t>(size_), 0);
  std::uint32_t hosts = 1;
  for (int rank = 0; rank < size_; ++rank) {
    std::uint32_t generation = 0;
    const auto number = job_->directory().remote_host_of(static_cast<std::uint32_t>(rank), &generation);
    host[static_cast<std::size_t>(rank)] = number;
    if (number == 0 && !std::binary_search(here.begin(), here.end(), rank)) {
      log::error("no record says where rank {} is", rank);
      return Errc::corrupt;
    }
    hosts = std::max(hosts, number);
  }
  std::uint32_t ours = 1;
  while (std::find(host.begin(), host.end(), ours) != host.end()) ++ours;
  log::info("host {} of {}: {} of {} PEs are here", ours, std::max(hosts, ours), here.size(), size_);
  if (leads) warn_of_descriptors(static_cast<std::size_t>(size_) - here.size());
  if (placed) return {};
  std::vector<job::PePlace> places;
  for (std::uint32_t number : host) {
    if (number == 0) number = ours;
    places.push_back({.nid = number, .nic_address = number, .node_index = number - 1});
  }
  job_->place(job::Placement(std::move(places)));
  return {};
}

Status Session::put_host(const std::vector<int>& here) {
  std::string record;
  for (const int rank : here) {
    const auto address = job_->directory().wire_address(static_cast<std::uint32_t>(rank));
    if (!address.ok()) {
      log::error("rank {} does not say where it is reached", rank);
      return address.code();
    }
    const HostEntryHead head{static_cast<std::uint32_t>(rank), address.value().generation,
                             static_cast<std::uint32_t>(address.value().bytes.size())};
    record.append(reinterpret_cast<const char*>(&head), sizeof head);
    record.append(reinterpret_cast<const char*>(address.value().bytes.data()), head.bytes);
  }
  return give(host_key(rank_), record);
}

Status Session::get_hosts(const std::vector<int>& here) {
  std::vector<bool> known(static_cast<std::size_t>(size_), false);
  std::uint32_t number = 0;
  for (int leader = 0; leader < size_; ++leader) {
    if (known[static_cast<std::size_t>(leader)]) continue;
    ++number;
    if (leader == rank_) {
      for (const int rank : here) known[static_cast<std::size_t>(rank)] = true;
      continue;
    }
    const auto record = get_bytes(host_key(leader), leader);
    if (record.code() == Errc::no_match) {
      log::error(
          "no process says that it is rank {} of {}: the launcher gave a rank twice, or the wrong size",
          leader, size_);
      return record.code();
    }
    if (!record.ok()) {
      log::error("the launcher does not hand out what rank {} says about its host: {}", leader,
                 errc_name(record.code()));
      return record.code();
    }
    std::string_view rest = record.value();
    while (!rest.empty()) {
      const auto entry = take_host_entry(&rest);
      if (!entry || entry->rank >= known.size() || known[entry->rank]) {
        log::error("what rank {} says about its host is malformed", leader);
        return Errc::corrupt;
      }
      known[entry->rank] = true;
      const std::span address(reinterpret_cast<const std::byte*>(entry->address.data()),
                              entry->address.size());
      const bool encrypts = config::text("ORRERY_ENCRYPT") == "on";
      if (wire::address_encrypts(address) != encrypts) {
        log::error("rank {} {} and this host {}: the processes of a job need the same ORRERY_ENCRYPT",
                   entry->rank, encrypts ? "does not encrypt" : "encrypts", encrypts ? "does" : "does not");
        return Errc::invalid_state;
      }
      const Status added = job_->directory().add_remote(
          {.index = entry->rank, .generation = entry->generation}, number, address);
      if (!added.ok()) return added;
    }
    if (!known[static_cast<std::size_t>(leader)]) return Errc::corrupt;
  }
  return {};
}

}  // namespace orrery::pmi
