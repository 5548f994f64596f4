// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/thread_areas.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace orrery::memory {

namespace {

// The control block reaches at most this far above the robust list's head: sizeof(struct pthread) is 2,304 in
// glibc 2.36.
constexpr std::uint64_t kControlBlockBytes = 4096;

bool near_control_block(const Mapping& mapping, Range range, std::uint64_t head) {
  if (!mapping.range.contains(head)) return false;
  return range.begin < page_hull({head, head + kControlBlockBytes}).end;
}

std::uint64_t control_block(pid_t thread) {
  robust_list_head* head = nullptr;
  std::size_t size = 0;
  if (syscall(SYS_get_robust_list, thread, &head, &size) != 0) return 0;
  return reinterpret_cast<std::uint64_t>(head);
}

// Calls visit(tid) for each thread until it returns true; whether one did. Allocates nothing.
template <typename Visit>
bool any_thread(Visit visit) {
  const int directory = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return false;
  struct Entry {
    std::uint64_t inode;
    std::int64_t offset;
    std::uint16_t length;
    std::uint8_t type;
    char name[1];
  };
  bool found = false;
  alignas(8) char buffer[4096];
  long got = 0;
  while (!found && (got = syscall(SYS_getdents64, directory, buffer, sizeof buffer)) > 0) {
    for (long at = 0; !found && at < got;) {
      std::uint16_t length = 0;
      std::memcpy(&length, buffer + at + offsetof(Entry, length), sizeof length);
      const pid_t thread = static_cast<pid_t>(std::strtol(buffer + at + offsetof(Entry, name), nullptr, 10));
      if (thread > 0) found = visit(thread);
      at += length;
    }
  }
  close(directory);
  return found;
}

}  // namespace

std::uint64_t main_stack_address() {
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[2048];
  const long got = syscall(SYS_read, file, text, sizeof text - 1);
  close(file);
  if (got <= 0) return 0;
  text[got] = 0;
  // The second field is the program's name in parentheses and may hold anything; startstack is field 28.
  const char* at = std::strrchr(text, ')');
  for (int field = 2; at != nullptr && field < 28; ++field) {
    at = std::strchr(at, ' ');
    if (at != nullptr) ++at;
  }
  return at == nullptr ? 0 : std::strtoull(at, nullptr, 10);
}

bool holds_own_thread_area(const Mapping& mapping, Range range, std::uint64_t main_stack) {
  if (mapping.range.contains(main_stack)) return true;
  if (near_control_block(mapping, range, control_block(0))) return true;
  // A stack that is not the thread library's (makecontext, a split stack): what lies around our own frame.
  return mapping.range.contains(reinterpret_cast<std::uint64_t>(__builtin_frame_address(0))) &&
         range.contains(reinterpret_cast<std::uint64_t>(__builtin_frame_address(0)));
}

bool holds_thread_area(const Mapping& mapping, Range range, std::uint64_t main_stack) {
  if (holds_own_thread_area(mapping, range, main_stack)) return true;
  return any_thread([&](pid_t thread) { return near_control_block(mapping, range, control_block(thread)); });
}

bool some_thread_blocks_faults() {
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  return any_thread([&](pid_t thread) {
    if (thread == self) return false;
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    char text[4096];
    const long got = syscall(SYS_read, file, text, sizeof text - 1);
    close(file);
    if (got <= 0) return false;
    text[got] = 0;
    const char* const line = std::strstr(text, "SigBlk:");
    return line != nullptr && (std::strtoull(line + 7, nullptr, 16) >> (SIGSEGV - 1) & 1) != 0;
  });
}

}  // namespace orrery::memory
