// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/common/log/call_line.hpp"

#include "emu/base/output_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace orrery::common::log {

namespace {

// Real time, also under a clock of ours: whose clock_gettime() would count as the client's own reading.
std::int64_t now_us() {
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000 + now.tv_nsec / 1'000;
}

// Where lines go, and what stands in front of them: constant after the first use, but for the descriptor.
struct Place {
  int pe = -1;
  std::int64_t begin_us = now_us();
  std::string file;  // empty: stderr

  Place() {
    for (const char* name : {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
      const char* text = ::secure_getenv(name);
      if (text == nullptr || *text == 0) continue;
      pe = std::atoi(text);
      break;
    }
    const char* path = ::secure_getenv("ORRERY_LOG_CALLS");
    if (path == nullptr || *path == 0) return;
    file = std::string(path) + "." + std::to_string(pe < 0 ? 0 : pe);
    if (reopen() >= 0) return;
    std::fprintf(stderr, "orrery: error: the log of calls %s cannot be written: %s; using stderr\n",
                 file.c_str(), std::strerror(errno));
    file.clear();
  }

  // The descriptor that lines go to, or -1. A client may close what it did not open, and then open a file of
  // its own under the same number.
  int descriptor() {
    if (file.empty()) return STDERR_FILENO;
    const int fd = fd_.load(std::memory_order_relaxed);
    struct stat now {};
    if (fstat(fd, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_) return fd;
    return reopen();
  }

 private:
  // Threads that meet a lost descriptor at the same time each open one: the file is the same.
  int reopen() {
    const int fd = append_to_file(file.c_str());
    struct stat now {};
    if (fd < 0 || fstat(fd, &now) != 0) return -1;
    device_.store(now.st_dev, std::memory_order_relaxed);
    inode_.store(now.st_ino, std::memory_order_relaxed);
    fd_.store(fd, std::memory_order_relaxed);
    return fd;
  }

  std::atomic<int> fd_{-1};
  std::atomic<dev_t> device_{0};
  std::atomic<ino_t> inode_{0};
};
Place& place() {
  static Place* const one = new Place;  // for exit handlers too
  return *one;
}

// One line by one write(2), so that lines of several PEs stay whole.
void write_line(const char* text) {
  Place& to = place();
  char line[1280];
  const std::int64_t at = now_us() - to.begin_us;
  char thread[32] = "";
  if (const auto id = gettid(); id != getpid()) std::snprintf(thread, sizeof thread, " thread %d", id);
  char pe[24] = "";
  if (to.pe >= 0) std::snprintf(pe, sizeof pe, " pe %d:", to.pe);
  const int length = std::snprintf(line, sizeof line, "orrery:%s %s: %lld.%06lld%s %s\n", pe, kLogged.name,
                                   static_cast<long long>(at / 1'000'000),
                                   static_cast<long long>(at % 1'000'000), thread, text);
  // A line that cannot be written has nowhere to be reported.
  [[maybe_unused]] const auto written =
      write(to.descriptor(), line, std::min(static_cast<std::size_t>(length), sizeof line - 1));
}

std::uint64_t hash_of(const char* text) {
  std::uint64_t hash = 14695981039346656037ull;  // FNV-1a
  for (; *text != 0; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 1099511628211ull;
  return hash;
}

// Looks that found nothing, of this thread: each is told once, and how often it came again before anything
// else happened.
struct Looks {
  struct Look {
    std::uint64_t hash = 0;
    std::uint64_t again = 0;
    bool silent = false;
    char name[48] = "";
  };
  std::array<Look, 256> looks;
  std::size_t count = 0;

  // Whether this one was told already. `silent`: how often is told with its result.
  bool counts(const char* text, bool silent) {
    const std::uint64_t hash = hash_of(text);
    for (std::size_t i = 0; i < count; ++i) {
      if (looks[i].hash != hash) continue;
      ++looks[i].again;
      return true;
    }
    if (count == looks.size()) tell();
    Look& look = looks[count++];
    look.hash = hash;
    look.again = 0;
    look.silent = silent;
    std::snprintf(look.name, sizeof look.name, "%.*s", static_cast<int>(std::strcspn(text, "(")), text);
    return false;
  }
  void tell() {
    for (std::size_t i = 0; i < count; ++i) {
      if (looks[i].again == 0 || looks[i].silent) continue;
      char text[96];
      std::snprintf(text, sizeof text, "%s: the same %llu times more", looks[i].name,
                    static_cast<unsigned long long>(looks[i].again));
      write_line(text);
    }
    count = 0;
  }
  ~Looks() { tell(); }
};
thread_local Looks t_looks;

// What the parent has looked for is the parent's to tell.
[[gnu::constructor]] void forget_in_children() {
  pthread_atfork(nullptr, nullptr, [] { t_looks.count = 0; });
}

bool is_hex(const char* name, std::size_t bytes) {
  for (const char* word :
       {"flags", "mode", "cookie", "mask", "event_data", "match_bits", "ignore_bits", "options"}) {
    if (std::strstr(name, word) != nullptr) return true;
  }
  return std::strcmp(name, "entry") == 0 ||
         (bytes == 8 && (std::strstr(name, "addr") != nullptr || std::strstr(name, "value") != nullptr));
}

}  // namespace

void* find_next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    // The library came with a plug-in, out of sight of the program's own symbols.
    if (void* library = dlopen(kLogged.library, RTLD_LAZY | RTLD_NOLOAD)) found = dlsym(library, name);
  }
  if (found != nullptr) return found;
  std::fprintf(stderr, "orrery: error: no %s with %s is loaded behind the log of calls\n", kLogged.library,
               name);
  std::abort();
}

CallLine::CallLine(const char* name) { add("%s(", name); }

void CallLine::add(const char* format, ...) {
  va_list args;
  va_start(args, format);
  const int wanted = std::vsnprintf(text_.data() + length_, text_.size() - length_, format, args);
  va_end(args);
  if (wanted > 0) length_ = std::min(length_ + static_cast<std::size_t>(wanted), text_.size() - 1);
}

void CallLine::begin(const char* name) {
  add("%s%s ", first_ ? "" : ", ", name);
  first_ = false;
}

void CallLine::number(const char* name, std::uint64_t value, std::size_t bytes) {
  if (bytes < 8) value &= (std::uint64_t{1} << (8 * bytes)) - 1;
  const std::uint64_t all_ones = bytes < 8 ? (std::uint64_t{1} << (8 * bytes)) - 1 : ~std::uint64_t{0};
  if (bytes >= 4 && value == all_ones) {
    add("-1");
  } else if (is_hex(name, bytes)) {
    add("0x%llx", static_cast<unsigned long long>(value));
  } else {
    add("%llu", static_cast<unsigned long long>(value));
  }
}

void CallLine::show(const void* pointer) {
  if (pointer == nullptr) return add("NULL");
  add("%p", pointer);
}

void CallLine::about_to_wait() {
  const int saved = errno;
  const std::size_t length = length_;
  add(") ...");
  // Told once while nothing else happens, like the looks that found nothing.
  if (!t_looks.counts(text_.data(), true)) write_line(text_.data());
  length_ = length;
  text_[length_] = 0;
  errno = saved;
}

void CallLine::result(const char* text, bool has_output, bool nothing) {
  has_output_ = has_output;
  nothing_ = nothing;
  first_ = false;
  add(") = %s", text);
}

void CallLine::returned() {
  has_output_ = true;
  first_ = false;
  add(")");
}

void CallLine::end() {
  const int saved = errno;
  const bool nothing = nothing_ || kLogged.asks_alone(text_.data());
  if (!nothing) t_looks.tell();
  if (!nothing || !t_looks.counts(text_.data(), false)) write_line(text_.data());
  errno = saved;
}

}  // namespace orrery::common::log
