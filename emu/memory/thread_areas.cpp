// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/thread_areas.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace orrery::memory {

namespace {

// Where the robust list's head lies in a control block and how large that is. Exact, since a mapping that is
// not a stack may begin right behind it and be one mapping with it for the kernel.
struct BlockShape {
  std::uint64_t head_offset = 0;
  std::uint64_t size = 0;
};

// glibc 2.36's sizeof(struct pthread), for a libc that does not tell its debugger library.
constexpr std::uint64_t kUsualBlockBytes = 2304;
// Below the modules' own thread-local storage the dynamic linker keeps a surplus of 1,664 bytes (glibc 2.36);
// part of it covers what alignment adds.
constexpr std::uint64_t kStorageSlack = 1024;

std::uint64_t control_block(pid_t thread);

BlockShape block_shape() {
  static const BlockShape shape = [] {
    BlockShape found;
    found.head_offset = control_block(0) - static_cast<std::uint64_t>(pthread_self());
    const auto* const size =
        static_cast<const std::uint32_t*>(dlsym(RTLD_DEFAULT, "_thread_db_sizeof_pthread"));
    found.size = size != nullptr ? *size : kUsualBlockBytes;
    if (found.head_offset >= found.size) found.head_offset = 0;
    return found;
  }();
  return shape;
}

// Bytes of thread-local storage that lie below a control block.
std::uint64_t static_storage_bytes() {
  std::uint64_t sum = kStorageSlack;
  const auto add = [](dl_phdr_info* module, std::size_t, void* context) {
    for (int i = 0; i < module->dlpi_phnum; ++i)
      if (module->dlpi_phdr[i].p_type == PT_TLS)
        *static_cast<std::uint64_t*>(context) += module->dlpi_phdr[i].p_memsz;
    return 0;
  };
  dl_iterate_phdr(add, &sum);
  return sum;
}

// `main`: the control block of the first thread stands alone, its stack is elsewhere; below that of any other
// thread lies its stack, down to the beginning of the mapping (a guard page).
bool near_control_block(const Mapping& mapping, Range range, std::uint64_t head, bool main) {
  if (!mapping.range.contains(head)) return false;
  const BlockShape shape = block_shape();
  const std::uint64_t block = head - shape.head_offset;
  const std::uint64_t low = main ? block - static_storage_bytes() : mapping.range.begin;
  return range.overlaps(page_hull({low, block + shape.size}));
}

std::uint64_t control_block(pid_t thread) {
  robust_list_head* head = nullptr;
  std::size_t size = 0;
  if (syscall(SYS_get_robust_list, thread, &head, &size) != 0) return 0;
  return reinterpret_cast<std::uint64_t>(head);
}

// Calls visit(tid) for each thread until it returns true; whether one did. True as well when threads cannot
// be listed (descriptors are used up): what is asked for is a reason not to adopt. Allocates nothing.
template <typename Visit>
bool any_thread(Visit visit) {
  const int directory = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return true;
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

namespace {

// A number of /proc/self/stat; 0 when the kernel does not tell.
std::uint64_t stat_field(int wanted) {
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[2048];
  const long got = syscall(SYS_read, file, text, sizeof text - 1);
  close(file);
  if (got <= 0) return 0;
  text[got] = 0;
  // The second field is the program's name in parentheses and may hold anything.
  const char* at = std::strrchr(text, ')');
  for (int field = 2; at != nullptr && field < wanted; ++field) {
    at = std::strchr(at, ' ');
    if (at != nullptr) ++at;
  }
  return at == nullptr ? 0 : std::strtoull(at, nullptr, 10);
}

}  // namespace

std::uint64_t main_stack_address() { return stat_field(28); }

std::uint64_t heap_begin() { return stat_field(47); }

bool holds_own_thread_area(const Mapping& mapping, Range range, std::uint64_t main_stack) {
  if (mapping.range.contains(main_stack)) return true;
  if (near_control_block(mapping, range, control_block(0),
                         getpid() == static_cast<pid_t>(syscall(SYS_gettid))))
    return true;
  // A stack that is not the thread library's (makecontext, a split stack): what lies around our own frame.
  return mapping.range.contains(reinterpret_cast<std::uint64_t>(__builtin_frame_address(0))) &&
         range.contains(reinterpret_cast<std::uint64_t>(__builtin_frame_address(0)));
}

bool holds_thread_area(const Mapping& mapping, Range range, std::uint64_t main_stack) {
  if (holds_own_thread_area(mapping, range, main_stack)) return true;
  const pid_t main = getpid();
  return any_thread([&](pid_t thread) {
    return near_control_block(mapping, range, control_block(thread), thread == main);
  });
}

namespace {

bool some_thread_blocks_faults() {
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  return any_thread([&](pid_t thread) {
    if (thread == self) return false;
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno != ENOENT && errno != ESRCH;  // it has ended, or it is unknown
    char text[4096];
    const long got = syscall(SYS_read, file, text, sizeof text - 1);
    close(file);
    if (got <= 0) return false;
    text[got] = 0;
    const char* const line = std::strstr(text, "SigBlk:");
    return line != nullptr && (std::strtoull(line + 7, nullptr, 16) >> (SIGSEGV - 1) & 1) != 0;
  });
}

}  // namespace

bool all_threads_take_faults() {
  // pthread_create and thread exit block all signals for some 20 us, or for as long as such a thread is kept
  // from its core: 10 looks over 50 ms do not all meet one.
  for (useconds_t pause = 50, look = 0; look < 10; ++look, pause *= 2) {
    if (!some_thread_blocks_faults()) return true;
    usleep(pause);
  }
  return false;
}

}  // namespace orrery::memory
