// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
// What the memory layer's operations cost: medians of repeated runs, one line each.
#include "bench/common/options.hpp"
#include "emu/base/wait.hpp"
#include "emu/memory/address_space.hpp"
#include "emu/memory/peer_memory.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace orrery::memory;
using orrery::monotonic_ns;

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

char* map_pages(std::size_t bytes) {
  char* const at =
      static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (at == MAP_FAILED) std::exit(2);
  std::memset(at, 1, bytes);
  return at;
}

// Median ns of `repeats` runs of `calls` calls each, per call.
template <typename Call>
double median_ns(int repeats, int calls, Call call) {
  std::vector<double> runs;
  for (int r = 0; r < repeats; ++r) {
    const std::int64_t start = monotonic_ns();
    for (int i = 0; i < calls; ++i) call();
    runs.push_back(static_cast<double>(monotonic_ns() - start) / calls);
  }
  std::nth_element(runs.begin(), runs.begin() + runs.size() / 2, runs.end());
  return runs[runs.size() / 2];
}

void print_line(const char* name, double value, const char* unit) {
  fmt::print("{:<52} {:>12.2f} {}\n", name, value, unit);
}

// A call may fail to find what it needs; the figures would then be of nothing.
void require(bool good, const char* what) {
  if (good) return;
  fmt::print(stderr, "{} failed\n", what);
  std::exit(2);
}

void time_adoption(AddressSpace& space) {
  NoPeers nobody;
  for (const std::size_t bytes :
       {std::size_t{4} << 10, std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{16} << 20}) {
    std::vector<double> in, out;
    for (int i = 0; i < 21; ++i) {
      char* const at = map_pages(bytes);
      const std::int64_t start = monotonic_ns();
      require(space.adopt(address_of(at), bytes, nobody).ok(), "adopt");
      const std::int64_t middle = monotonic_ns();
      require(space.release(address_of(at), bytes, nobody).ok(), "release");
      in.push_back(static_cast<double>(middle - start) / 1e3);
      out.push_back(static_cast<double>(monotonic_ns() - middle) / 1e3);
      munmap(at, bytes);
    }
    std::sort(in.begin(), in.end());
    std::sort(out.begin(), out.end());
    print_line(fmt::format("adopt {} KiB", bytes >> 10).c_str(), in[in.size() / 2], "us");
    print_line(fmt::format("release {} KiB", bytes >> 10).c_str(), out[out.size() / 2], "us");
  }
  const Stats stats = space.stats();
  print_line("writers held off, mean of a chunk",
             static_cast<double>(stats.switch_ns_total) /
                 static_cast<double>(stats.adoptions + stats.releases) / 1e3,
             "us");
  print_line("writers held off, longest chunk", static_cast<double>(stats.switch_ns_max) / 1e3, "us");
}

void time_fork(AddressSpace& space, std::size_t bytes) {
  NoPeers nobody;
  char* const at = map_pages(bytes);
  require(space.adopt(address_of(at), bytes, nobody).ok(), "adopt");
  print_line(fmt::format("fork, child exits, {} KiB adopted", bytes >> 10).c_str(),
             median_ns(11, 3,
                       [] {
                         const pid_t child = fork();
                         if (child == 0) _exit(0);
                         waitpid(child, nullptr, 0);
                       }) /
                 1e3,
             "us");
  munmap(at, bytes);
}

// How often a raw read(2) into pages that move in and out fails, and what the interposed read() sees.
void count_faults(AddressSpace& space, bool raw) {
  constexpr std::size_t kBytes = 64 << 10;
  NoPeers nobody;
  char* const at = map_pages(kBytes);
  std::atomic<bool> stop{false};
  std::uint64_t calls = 0, failed = 0;
  const int zero = open("/dev/zero", O_RDONLY);
  std::thread reader([&] {
    for (std::size_t i = 0; !stop; i = (i + kPageBytes) % kBytes, ++calls)
      failed += (raw ? syscall(SYS_read, zero, at + i, 8) : read(zero, at + i, 8)) != 8;
  });
  for (int i = 0; i < 500; ++i) {
    require(space.adopt(address_of(at), kBytes, nobody).ok(), "adopt");
    require(space.release(address_of(at), kBytes, nobody).ok(), "release");
  }
  stop = true;
  reader.join();
  fmt::print("{:<52} {:>12} of {} in 1,000 switches of 64 KiB\n",
             raw ? "raw read(2) that saw EFAULT" : "read() that saw EFAULT", failed, calls);
  close(zero);
  munmap(at, kBytes);
}

}  // namespace

int main(int argc, char** argv) {
  bool no_userfault = false, as_nobody = false, no_query = false;
  bench::Options options("costs of the memory layer");
  options.flag("--no-userfault", &no_userfault, "hold writers by mprotect and a signal handler");
  options.flag("--no-map-query", &no_query, "read /proc/self/maps, as on a kernel before 6.11");
  options.flag("--nobody", &as_nobody, "give up root first: userfaultfd in user mode only");
  options.parse(argc, argv);
  // Without dumpable, /proc/self would stay root's.
  if (as_nobody)
    require(setgid(65534) == 0 && setuid(65534) == 0 && access("/proc/self/maps", R_OK) == 0, "setuid");

  auto made = AddressSpace::create({.use_userfault = !no_userfault, .use_map_query = !no_query});
  require(made.ok() && made.value()->file() >= 0, "create");
  AddressSpace& space = *made.value();
  const char* const names[] = {"userfault", "userfault_user", "protect"};
  fmt::print("# writers held by {}, mappings by {}\n", names[static_cast<int>(space.stats().blocker)],
             space.stats().map_query ? "PROCMAP_QUERY" : "/proc/self/maps");

  NoPeers nobody;
  auto peer = PeerMemory::open(space.file(), space.span());
  require(peer.ok(), "open");
  char* const known = map_pages(4096);
  require(space.adopt(address_of(known), 4096, nobody).ok(), "adopt");
  print_line("inspect, 4 KiB in the file",
             median_ns(21, 1'000, [&] { (void)space.inspect(address_of(known), 4096).ok(); }), "ns");
  char* const fresh = map_pages(4096);
  print_line("inspect, 4 KiB not in the file",
             median_ns(21, 1'000, [&] { (void)space.inspect(address_of(fresh), 4096).ok(); }), "ns");
  volatile std::byte* sink = nullptr;
  std::uint64_t va = address_of(known);
  print_line("window, mapped",
             median_ns(21, 1'000'000,
                       [&] {
                         __asm__ volatile("" : "+r"(va));
                         sink = peer.value()->window(va).value().at(va);
                       }),
             "ns");
  (void)sink;
  time_adoption(space);
  for (const std::size_t bytes : {std::size_t{4} << 10, std::size_t{1} << 20, std::size_t{32} << 20})
    time_fork(space, bytes);
  print_line("reap, nothing to do", median_ns(21, 10, [&] { space.reap(); }) / 1e3, "us");
  count_faults(space, true);
  count_faults(space, false);
  return 0;
}
