// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/hosts/host_probe.hpp"

#include "emu/base/unique_fd.hpp"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <linux/membarrier.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::tool {

namespace {

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string why() { return std::strerror(errno); }

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

Feature userfaultfd_feature() {
  Feature feature{"userfaultfd", false, "",
                  "adopts memory without losing writes; else pages are write-protected"};
  bool full = true;
  UniqueFd fd(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK)));
  if (!fd.valid()) {
    full = false;
    fd.reset(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY)));
  }
  uffdio_api api{};
  api.api = UFFD_API;
  if (!fd.valid() || ioctl(fd.get(), UFFDIO_API, &api) != 0) {
    feature.detail = why();
    return feature;
  }
  feature.available = (api.features & UFFD_FEATURE_PAGEFAULT_FLAG_WP) != 0;
  feature.detail = fmt::format("{}{}", feature.available ? "write-protect" : "no write-protect",
                               full ? ", faults of system calls too" : ", faults of user mode only");
  return feature;
}

Feature cross_memory_feature() {
  Feature feature{"cross-memory attach", false, "",
                  "bulk transfers without a frame per piece; never required"};
  static volatile std::uint64_t there = 0x0123456789abcdef;
  int ends[2];
  if (pipe(ends) != 0) return feature;
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    close(ends[1]);
    [[maybe_unused]] const auto got = read(ends[0], &byte, 1);  // lives until we have looked
    _exit(0);
  }
  close(ends[0]);
  std::uint64_t here = 0;
  iovec local{&here, sizeof here};
  iovec remote{const_cast<std::uint64_t*>(&there), sizeof here};
  const auto got = process_vm_readv(child, &local, 1, &remote, 1, 0);
  feature.available = got == sizeof here && here == there;
  const std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
  feature.detail = feature.available ? "a child's memory could be read" : why();
  // A child may be read where siblings may not: PEs are siblings.
  if (!scope.empty() && scope != "0" && geteuid() != 0) {
    feature.available = false;
    feature.detail = fmt::format("kernel.yama.ptrace_scope is {}: PEs may not read each other", scope);
  }
  close(ends[1]);
  if (child > 0) waitpid(child, nullptr, 0);
  return feature;
}

Feature huge_page_feature() {
  Feature feature{"huge pages", false, "", "fewer TLB misses in memory that we allocate"};
  constexpr std::size_t kHuge = 2u << 20;
  const UniqueFd fd(memfd_create("orrery-probe", MFD_CLOEXEC | MFD_HUGETLB));
  void* memory = MAP_FAILED;
  if (fd.valid() && ftruncate(fd.get(), kHuge) == 0) {
    memory = mmap(nullptr, kHuge, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  }
  feature.available = memory != MAP_FAILED;
  feature.detail = feature.available ? "reserved pages" : fmt::format("none reserved ({})", why());
  if (memory != MAP_FAILED) munmap(memory, kHuge);
  const std::string shared = first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  if (!shared.empty()) feature.detail += fmt::format("; transparent ones for shared memory: {}", shared);
  return feature;
}

Feature membarrier_feature() {
  Feature feature{"membarrier", false, "", "cheap fences on the hot path, dear ones on the rare one"};
  const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  feature.available = commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0;
  feature.detail = commands < 0 ? why() : fmt::format("commands {:#x}", commands);
  return feature;
}

Feature pidfd_feature() {
  Feature feature{"pidfd", false, "", "tells at once when a peer dies; else /proc is polled"};
  const UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  feature.available = fd.valid();
  feature.detail = fd.valid() ? "a process can be watched" : why();
  return feature;
}

Feature memfd_feature() {
  Feature feature{"memfd", false, "", "all shared memory; required"};
  const UniqueFd fd(memfd_create("orrery-probe", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) {
    feature.detail = why();
    return feature;
  }
  feature.available = fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0;
  // The whole address space in one sparse file. Above RLIMIT_FSIZE ftruncate would raise SIGXFSZ.
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  constexpr std::uint64_t kSpan = 1ull << 47;
  const UniqueFd span(memfd_create("orrery-probe", MFD_CLOEXEC));
  const bool whole = limit.rlim_cur >= kSpan && span.valid() && ftruncate(span.get(), kSpan) == 0;
  feature.detail = fmt::format("sealing {}, a sparse file of 2^47 bytes {}",
                               feature.available ? "works" : "fails", whole ? "works" : "is refused");
  return feature;
}

}  // namespace

std::vector<Feature> probe_features() {
  return {memfd_feature(),     userfaultfd_feature(), cross_memory_feature(),
          huge_page_feature(), membarrier_feature(),  pidfd_feature()};
}

std::vector<Limit> probe_limits() {
  std::vector<Limit> limits;
  const auto add = [&](const char* name, __rlimit_resource which, const char* unit, const char* use) {
    rlimit limit{};
    if (getrlimit(which, &limit) != 0) return;
    limits.push_back({name,
                      limit.rlim_cur == RLIM_INFINITY ? std::string("unlimited")
                                                      : fmt::format("{} {}", limit.rlim_cur, unit),
                      use});
  };
  add("RLIMIT_NOFILE", RLIMIT_NOFILE, "descriptors", "`orrery run` needs one to three per PE");
  add("RLIMIT_FSIZE", RLIMIT_FSIZE, "bytes", "size of the memory file");
  add("RLIMIT_AS", RLIMIT_AS, "bytes", "windows of peers' memory count");
  add("RLIMIT_MEMLOCK", RLIMIT_MEMLOCK, "bytes", "not needed: nothing is locked");
  add("RLIMIT_NPROC", RLIMIT_NPROC, "processes", "PEs and their service threads");
  const std::string maps = first_line("/proc/sys/vm/max_map_count");
  if (!maps.empty()) limits.push_back({"vm.max_map_count", maps + " mappings", "scattered adopted ranges"});
  return limits;
}

}  // namespace orrery::tool
