// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/memory/range.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace orrery::memory {

// A piece of a peer's address space mapped here: the peer's byte at `va` is at(va). Value type; valid as
// long as the PeerMemory it came from.
struct Window {
  std::byte* base = nullptr;  // where `va_begin` is mapped here
  std::uint64_t va_begin = 0;
  std::uint64_t va_end = 0;
  std::byte* at(std::uint64_t va) const { return base + (va - va_begin); }
};

// The visitor's side of a peer's memory file: aligned windows of it, mapped on first use and kept. It says
// nothing about what is registered there: emu/nic checks that before it stores. A store to a page that the
// owner never adopted is harmless: it lands in a file page that the owner does not map.
//
// Ownership: owns its windows and a duplicate of the descriptor; never truncates or seals.
// Threads: window() from any; lock-free when the window is mapped.
// Invariants: a table entry goes from null to its window once and never changes; windows are not
// inherited by fork.
// Usage: auto peer = PeerMemory::open(fd, span); std::byte* at = peer.value()->window(va).value().at(va);
class PeerMemory {
 public:
  // Fewer and larger windows cost fewer kernel mappings: a peer uses 2 to 4 (program, heap, mmap area).
  static constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 30;

  // Checks and duplicates `file` (the caller keeps its own). `span`: what the peer says its file reaches
  // over, a multiple of kWindowBytes up to AddressSpace::kSpan. Errc::corrupt: not a memory file of that size
  // that is sealed against shrinking (a truncated file would kill us by SIGBUS); Errc::no_memory.
  static Result<std::unique_ptr<PeerMemory>> open(int file, std::uint64_t span);

  // For NICs of the same process: the peer's addresses are ours. (ThreadSanitizer sees no race through a
  // second mapping of the same page.)
  static Result<std::unique_ptr<PeerMemory>> same_process();

  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  // The window that holds `va`; an operation that reaches over its end continues in the next one. Maps it at
  // first use (a few us; the only time it blocks). Errc::bounds: outside the span; Errc::no_memory: no
  // address space or kernel mapping left, use frames.
  Result<Window> window(std::uint64_t va) {
    if (va >= span_) [[unlikely]]
      return Errc::bounds;
    const std::uint64_t index = va / kWindowBytes;
    // Pairs with the release in map_window.
    for (const Known& window : known_) {
      if (window.number.load(std::memory_order_acquire) == index + 1)
        return Window{window.base, index * kWindowBytes, (index + 1) * kWindowBytes};
    }
    // Pairs with the release in map_window: the mapping exists before its address is seen.
    std::byte* base = table_[index].load(std::memory_order_acquire);
    if (base == nullptr) [[unlikely]]
      return map_window(index);
    return Window{base, index * kWindowBytes, (index + 1) * kWindowBytes};
  }

 private:
  PeerMemory(int file, std::uint64_t span, std::atomic<std::byte*>* table);
  Result<Window> map_window(std::uint64_t index);

  const int file_;  // -1: same process
  const std::uint64_t span_;
  std::atomic<std::byte*>* const table_;  // span / kWindowBytes entries, zero pages until used
  std::mutex mapping_;                    // one mapper at a time
  std::atomic<bool> refused_{false};      // the kernel gave no window: none is asked for any more
  // The first that were mapped, which are nearly always all of them: the table's pages are as many as peers.
  // `base` is stored before its number, once.
  struct Known {
    std::atomic<std::uint64_t> number{0};  // its index + 1; 0: none yet
    std::byte* base = nullptr;
  };
  std::array<Known, 3> known_;
  // Those that are mapped, guarded by mapping_: the table has 2^17 places, and to look through it takes 256
  // page faults.
  std::vector<std::uint64_t> mapped_;
};

}  // namespace orrery::memory
