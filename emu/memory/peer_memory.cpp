// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/peer_memory.hpp"

#include "emu/base/log.hpp"
#include "emu/base/own_descriptor.hpp"
#include "emu/memory/address_space.hpp"
#include "emu/memory/raw_calls.hpp"

#include <cerrno>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace orrery::memory {

namespace {

using Entry = std::atomic<std::byte*>;
static_assert(Entry::is_always_lock_free);

// Entries for all of user space at most: 1 MiB of address space per peer, of which a page or two is ever
// touched.
Entry* map_table(std::uint64_t span) {
  void* const table = raw::mmap(nullptr, span / PeerMemory::kWindowBytes * sizeof(Entry),
                                PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return table == MAP_FAILED ? nullptr : static_cast<Entry*>(table);
}

}  // namespace

PeerMemory::PeerMemory(int file, std::uint64_t span, std::atomic<std::byte*>* table)
    : file_(file), span_(span), table_(table) {
  mapped_.reserve(8);
}

Result<std::unique_ptr<PeerMemory>> PeerMemory::open(int file, std::uint64_t span) {
  struct stat about {};
  const int seals = fcntl(file, F_GET_SEALS);
  if (span == 0 || span > AddressSpace::kSpan || span % kWindowBytes != 0 || fstat(file, &about) != 0 ||
      !S_ISREG(about.st_mode) || static_cast<std::uint64_t>(about.st_size) != span || seals < 0 ||
      (seals & F_SEAL_SHRINK) == 0) {
    log::error("descriptor {} is not a memory file of {} bytes: size {}, seals {}", file, span, about.st_size,
               seals);
    return Errc::corrupt;
  }
  const int own = own_descriptor(fcntl(file, F_DUPFD_CLOEXEC, 0));
  Entry* const table = own < 0 ? nullptr : map_table(span);
  if (table == nullptr) {
    log::error("windows of a peer: {}", std::strerror(errno));
    if (own >= 0) close(own);
    return Errc::no_memory;
  }
  return std::unique_ptr<PeerMemory>(new PeerMemory(own, span, table));
}

Result<std::unique_ptr<PeerMemory>> PeerMemory::same_process() {
  Entry* const table = map_table(AddressSpace::kSpan);
  if (table == nullptr) return Errc::no_memory;
  return std::unique_ptr<PeerMemory>(new PeerMemory(-1, AddressSpace::kSpan, table));
}

PeerMemory::~PeerMemory() {
  if (file_ >= 0) {
    for (const std::uint64_t index : mapped_)
      raw::munmap(table_[index].load(std::memory_order_relaxed), kWindowBytes);
    close(file_);
  }
  raw::munmap(table_, span_ / kWindowBytes * sizeof(Entry));
}

Result<Window> PeerMemory::map_window(std::uint64_t index) {
  const std::uint64_t begin = index * kWindowBytes;
  if (file_ < 0) return Window{reinterpret_cast<std::byte*>(begin), begin, begin + kWindowBytes};
  const std::lock_guard lock(mapping_);
  std::byte* base = table_[index].load(std::memory_order_relaxed);
  if (base == nullptr && refused_.load(std::memory_order_relaxed)) return Errc::no_memory;
  if (base == nullptr) {
    // Without access first: under mlockall(MCL_FUTURE) the kernel would fill a GiB of the peer's file.
    void* const at = raw::mmap(nullptr, kWindowBytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file_, begin);
    if (at == MAP_FAILED) {
      // No room now is no room later: asked once, and said once for all peers.
      refused_.store(true, std::memory_order_relaxed);
      static std::atomic<bool> said{false};
      if (!said.exchange(true, std::memory_order_relaxed)) {
        log::warn("window of {} bytes of a peer's memory: {}: it is reached by frames", kWindowBytes,
                  std::strerror(errno));
      }
      return Errc::no_memory;
    }
    const auto address = reinterpret_cast<std::uint64_t>(at);
    munlock(at, kWindowBytes);
    raw::madvise(address, kWindowBytes, MADV_DONTFORK);
    raw::madvise(address, kWindowBytes, MADV_DONTDUMP);
    if (raw::mprotect(address, kWindowBytes, PROT_READ | PROT_WRITE) != 0) {
      raw::munmap(at, kWindowBytes);
      return Errc::no_memory;
    }
    base = static_cast<std::byte*>(at);
    if (mapped_.size() < known_.size()) {
      Known& window = known_[mapped_.size()];
      window.base = base;
      window.number.store(index + 1, std::memory_order_release);
    }
    mapped_.push_back(index);
    // Release: see window().
    table_[index].store(base, std::memory_order_release);
  }
  return Window{base, begin, begin + kWindowBytes};
}

}  // namespace orrery::memory
