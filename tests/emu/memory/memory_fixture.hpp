// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/memory/address_space.hpp"
#include "emu/memory/peer_memory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::memory {

// Of what most tests map.
inline constexpr std::size_t kBytes = 64 * kPageBytes;

// The ways of holding writers off that a test can ask for. userfault falls back to what the system allows.
enum class Method : std::uint8_t { userfault, protect };

inline std::string method_name(Method method) {
  return method == Method::userfault ? "userfault" : "protect";
}

// In programs that link the archive a sanitizer's own read(), munmap() and so on come before ours and lead
// past them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kInterposed = false;
#else
inline constexpr bool kInterposed = true;
#endif

// ThreadSanitizer's own thread blocks every signal, so nothing is adopted where a handler would have to wait.
inline bool method_works(Method method) {
#if defined(__SANITIZE_THREAD__)
  return method != Method::protect;
#else
  (void)method;
  return true;
#endif
}
// Adoption by mprotect gives up where a thread blocks SIGSEGV, and ThreadSanitizer has such a thread. The
// release and asan-ubsan suites run these tests.
#define ORRERY_SKIP_WITHOUT(method) \
  if (!method_works(method)) GTEST_SKIP() << "ThreadSanitizer's own thread blocks all signals"

inline std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

// One address space and a peer's view of it (a second mapping of the same file in this process).
struct Rig {
  std::unique_ptr<AddressSpace> space;
  std::unique_ptr<PeerMemory> peer;
  NoPeers nobody;

  explicit Rig(Options options = {}) {
    auto made = AddressSpace::create(options);
    if (!made.ok()) return;
    space = std::move(made.value());
    if (space->file() < 0) return;
    auto opened = PeerMemory::open(space->file(), space->span());
    if (opened.ok()) peer = std::move(opened.value());
  }
  explicit Rig(Method method) : Rig(Options{.use_userfault = method == Method::userfault}) {}

  Status adopt(const void* at, std::size_t bytes, Obstacle* obstacle = nullptr) {
    return space->adopt(address_of(at), bytes, nobody, obstacle);
  }
  Status release(const void* at, std::size_t bytes) { return space->release(address_of(at), bytes, nobody); }
  Cover cover(const void* at, std::size_t bytes) {
    return space->inspect(address_of(at), bytes).value().cover;
  }
  Obstacle obstacle(const void* at, std::size_t bytes) {
    return space->inspect(address_of(at), bytes).value().obstacle;
  }
  // Where the peer sees our byte; its neighbours may lie in the next window.
  std::byte* seen(const void* at) { return peer->window(address_of(at)).value().at(address_of(at)); }
  // What the peer reads at [at, at + bytes), and the peer storing `value` there.
  std::string peer_reads(const void* at, std::size_t bytes) {
    std::string out(bytes, 0);
    for (std::size_t i = 0; i < bytes; ++i)
      out[i] = static_cast<char>(*seen(static_cast<const char*>(at) + i));
    return out;
  }
  void peer_sets(const void* at, int value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      *seen(static_cast<const char*>(at) + i) = static_cast<std::byte>(value);
  }
};

// Fresh private pages, unmapped at the end.
class Pages {
 public:
  explicit Pages(std::size_t bytes, int protection = PROT_READ | PROT_WRITE, int flags = 0)
      : bytes_(bytes), at_(mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0)) {}
  ~Pages() {
    if (ok()) munmap(at_, bytes_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  bool ok() const { return at_ != MAP_FAILED; }
  char* data() const { return static_cast<char*>(at_); }
  std::size_t size() const { return bytes_; }

 private:
  const std::size_t bytes_;
  void* const at_;
};

// Runs `body` in a child process of its own, for tests that kill, fork, drop rights or set limits. The body
// returns 0 for good, 77 for "not possible here", anything else for a failure (use the line number). Returns
// the exit code, or 1000 + the signal that killed it.
template <typename Body>
int in_child(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}
inline constexpr int kSkip = 77;

// In a body of in_child: leaves with the line number (kept in a byte) when the condition does not hold.
#define ORRERY_CHILD_REQUIRE(condition)                                                         \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      std::fprintf(stderr, "%s:%d: not so in the child: %s\n", __FILE__, __LINE__, #condition); \
      return 1;                                                                                 \
    }                                                                                           \
  } while (0)

}  // namespace orrery::memory
