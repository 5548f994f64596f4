// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/cores.hpp"

#include "emu/base/log.hpp"
#include "emu/base/unique_fd.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <hwloc.h>
#include <sched.h>
#include <unistd.h>

namespace orrery::job {

namespace {

// Owns a loaded topology.
class Topology {
 public:
  Topology() {
    if (hwloc_topology_init(&handle_) != 0) {
      handle_ = nullptr;
    } else if (hwloc_topology_load(handle_) != 0) {
      hwloc_topology_destroy(handle_);
      handle_ = nullptr;
    }
  }
  ~Topology() {
    if (handle_ != nullptr) hwloc_topology_destroy(handle_);
  }
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;
  hwloc_topology_t get() const { return handle_; }

 private:
  hwloc_topology_t handle_ = nullptr;
};

std::string read_text(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return {};
  std::string text(4096, '\0');
  const auto length = ::read(fd.get(), text.data(), text.size());
  text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return text;
}

// The tightest cpu.max on the way from our cgroup (version 2) to the root, in CPUs; 0 = none.
double cgroup_quota() {
  const std::string groups = read_text("/proc/self/cgroup");
  const auto at = groups.find("0::");
  if (at == std::string::npos) return 0;
  std::string path = groups.substr(at + 3, groups.find('\n', at) - at - 3);
  double tightest = 0;
  while (true) {
    const std::string limit = read_text("/sys/fs/cgroup" + path + "/cpu.max");
    const double quota = parse_cpu_max(limit);
    if (quota > 0 && (tightest == 0 || quota < tightest)) tightest = quota;
    const auto slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return tightest;
    path.resize(slash);
  }
}

}  // namespace

double parse_cpu_max(std::string_view text) {
  // "max 100000" or "150000 100000": microseconds of CPU time per period of microseconds.
  std::uint64_t quota = 0;
  std::uint64_t period = 0;
  const auto space = text.find(' ');
  if (space == std::string_view::npos) return 0;
  const auto first = std::from_chars(text.data(), text.data() + space, quota);
  const auto second = std::from_chars(text.data() + space + 1, text.data() + text.size(), period);
  if (first.ec != std::errc{} || second.ec != std::errc{} || period == 0) return 0;
  return static_cast<double>(quota) / static_cast<double>(period);
}

std::uint32_t AllowedCores::usable() const {
  if (cpu_quota <= 0) return std::max(threads, 1u);
  return std::max(std::min(threads, static_cast<std::uint32_t>(cpu_quota)), 1u);
}

AllowedCores allowed_cores() {
  AllowedCores allowed;
  allowed.cpu_quota = cgroup_quota();
  const Topology topology;
  if (topology.get() == nullptr) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    allowed.cores = allowed.threads = static_cast<std::uint32_t>(std::max(online, 1l));
    return allowed;
  }
  hwloc_bitmap_t mine = hwloc_bitmap_alloc();
  if (hwloc_get_cpubind(topology.get(), mine, HWLOC_CPUBIND_PROCESS) != 0) hwloc_bitmap_fill(mine);
  hwloc_bitmap_and(mine, mine, hwloc_topology_get_allowed_cpuset(topology.get()));
  allowed.threads = static_cast<std::uint32_t>(std::max(hwloc_bitmap_weight(mine), 1));
  std::uint32_t cores = 0;
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_CORE, core)) != nullptr;) {
    if (hwloc_bitmap_intersects(core->cpuset, mine)) ++cores;
  }
  allowed.cores = cores == 0 ? allowed.threads : cores;
  const int nodes = hwloc_bitmap_weight(hwloc_topology_get_allowed_nodeset(topology.get()));
  allowed.numa_nodes = static_cast<std::uint32_t>(std::max(nodes, 1));
  hwloc_bitmap_free(mine);
  return allowed;
}

std::uint32_t parent_threads() {
  cpu_set_t cpus;
  if (sched_getaffinity(getppid(), sizeof cpus, &cpus) != 0) return 0;
  return static_cast<std::uint32_t>(CPU_COUNT(&cpus));
}

WaitBudget wait_budget_for(std::uint32_t pes, std::uint32_t cores) {
  if (cores == 0 || pes == 0) return {};
  if (pes > cores) return {.spins = 0, .yields = 20};
  return {.spins = 2000, .yields = 100};
}

Status bind_to_core(std::uint32_t index) {
  const Topology topology;
  if (topology.get() == nullptr) return Errc::system;
  hwloc_bitmap_t mine = hwloc_bitmap_alloc();
  if (hwloc_get_cpubind(topology.get(), mine, HWLOC_CPUBIND_PROCESS) != 0) hwloc_bitmap_fill(mine);
  hwloc_bitmap_and(mine, mine, hwloc_topology_get_allowed_cpuset(topology.get()));
  std::vector<hwloc_obj_t> cores;
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_CORE, core)) != nullptr;) {
    if (hwloc_bitmap_intersects(core->cpuset, mine)) cores.push_back(core);
  }
  int rc = -1;
  if (!cores.empty()) {
    hwloc_bitmap_and(mine, mine, cores[index % cores.size()]->cpuset);
    rc = hwloc_set_cpubind(topology.get(), mine, HWLOC_CPUBIND_THREAD);
    if (rc == 0 && hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_NUMANODE) > 1) {
      rc = hwloc_set_membind(topology.get(), mine, HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_THREAD);
    }
  }
  const int error = errno;
  hwloc_bitmap_free(mine);
  if (rc == 0) return {};
  log::error("no binding to core {}: {}", index, std::strerror(error));
  return Errc::system;
}

Status bind_memory_here(void* address, std::size_t bytes) {
  const Topology topology;
  if (topology.get() == nullptr || hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_NUMANODE) < 2)
    return {};
  hwloc_bitmap_t here = hwloc_bitmap_alloc();
  int rc = hwloc_get_last_cpu_location(topology.get(), here, HWLOC_CPUBIND_THREAD);
  if (rc == 0) rc = hwloc_set_area_membind(topology.get(), address, bytes, here, HWLOC_MEMBIND_BIND, 0);
  const int error = errno;
  hwloc_bitmap_free(here);
  if (rc == 0) return {};
  log::error("{} bytes at {} cannot be placed on this thread's memory: {}", bytes, address,
             std::strerror(error));
  return Errc::system;
}

}  // namespace orrery::job
