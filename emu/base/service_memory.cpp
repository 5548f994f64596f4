// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/service_memory.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <new>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace orrery::service_memory {

namespace {

constexpr std::size_t kSmallestBits = 6;  // 64 bytes, the header included
constexpr std::size_t kClasses = 11;      // up to 64 KiB; larger ones are mappings by themselves
constexpr std::size_t kChunkBytes = 256 << 10;
constexpr std::uint32_t kMapped = UINT32_MAX;

struct Arena;

// Before each block of take().
struct Header {
  Arena* arena;
  std::uint32_t size_class;  // or kMapped
  std::uint32_t offset;      // from the start of the piece to the block
  std::uint64_t bytes;       // of a mapping
  std::uint64_t unused;
};
static_assert(sizeof(Header) == 32 && sizeof(Header) % alignof(std::max_align_t) == 0);

struct Free {
  Free* next;
};

// A service thread's.
struct Arena {
  std::array<Free*, kClasses> free{};
  std::byte* next = nullptr;  // of the present chunk
  std::byte* end = nullptr;
  std::atomic<Free*> returned{nullptr};  // by other threads; whole pieces, their headers still there
};

thread_local Arena* t_arena = nullptr;
// What service threads were given and the heap is to have back. The first word of each links it to the next.
std::atomic<Free*> g_put_aside{nullptr};

// Which addresses are ours: a table of what was mapped. A block of another allocator is never looked into.
struct Mapped {
  std::atomic<std::uint64_t> not_begin{0};  // the complement: an unused row begins after every address
  std::atomic<std::uint64_t> end{0};        // 0: unused
};
constexpr std::size_t kMostMapped = 1024;
constinit std::array<Mapped, kMostMapped> g_mapped{};
constinit std::atomic<std::size_t> g_rows{0};  // rows that were ever used are before it

bool is_ours(const void* block) {
  const auto at = reinterpret_cast<std::uint64_t>(block);
  const std::size_t rows = g_rows.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < rows; ++i) {
    if (at >= ~g_mapped[i].not_begin.load(std::memory_order_relaxed) &&
        at < g_mapped[i].end.load(std::memory_order_relaxed))
      return true;
  }
  return false;
}

// By raw calls: the interposed ones do not hear of these mappings, and no peer ever shares them.
void* map(std::size_t bytes) {
  for (std::size_t i = 0; i < kMostMapped; ++i) {
    std::uint64_t unused = 0;
    if (!g_mapped[i].end.compare_exchange_strong(unused, 1, std::memory_order_relaxed)) continue;
    const long at =
        syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1l, 0l);
    if (at == -1) {
      g_mapped[i].end.store(0, std::memory_order_relaxed);
      return nullptr;
    }
    const auto begin = static_cast<std::uint64_t>(at);
    g_mapped[i].end.store(begin + bytes, std::memory_order_relaxed);
    g_mapped[i].not_begin.store(~begin, std::memory_order_relaxed);
    std::size_t rows = g_rows.load(std::memory_order_relaxed);
    // Release: a thread that sees the row counted sees what it says.
    while (rows <= i && !g_rows.compare_exchange_weak(rows, i + 1, std::memory_order_release)) {
    }
    return reinterpret_cast<void*>(at);
  }
  return nullptr;
}

void unmap(void* begin, std::size_t bytes) {
  for (Mapped& row : g_mapped) {
    if (~row.not_begin.load(std::memory_order_relaxed) != reinterpret_cast<std::uint64_t>(begin)) continue;
    row.not_begin.store(0, std::memory_order_relaxed);
    row.end.store(0, std::memory_order_relaxed);
    break;
  }
  syscall(SYS_munmap, begin, bytes);
}

void push(std::atomic<Free*>& list, Free* one) {
  one->next = list.load(std::memory_order_relaxed);
  while (!list.compare_exchange_weak(one->next, one, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

std::byte* carve(Arena& arena, std::size_t size_class) {
  const std::size_t bytes = std::size_t{1} << (kSmallestBits + size_class);
  if (static_cast<std::size_t>(arena.end - arena.next) < bytes) {
    auto* const chunk = static_cast<std::byte*>(map(kChunkBytes));
    if (chunk == nullptr) return nullptr;
    arena.next = chunk;
    arena.end = chunk + kChunkBytes;
  }
  std::byte* const piece = arena.next;
  arena.next += bytes;
  return piece;
}

std::byte* piece_of(void* block, const Header& header) {
  return static_cast<std::byte*>(block) - header.offset;
}

void put_in(Arena& arena, std::byte* piece, std::size_t size_class) {
  auto* const one = reinterpret_cast<Free*>(piece);
  one->next = arena.free[size_class];
  arena.free[size_class] = one;
}

// What other threads have given back.
void collect(Arena& arena) {
  // Acquire: the thread that gave it back has done with it.
  Free* one = arena.returned.exchange(nullptr, std::memory_order_acquire);
  while (one != nullptr) {
    Free* const next = one->next;
    // The link stands in the block: the header before it still says what it is.
    const Header& header = *(reinterpret_cast<Header*>(one) - 1);
    put_in(arena, piece_of(one, header), header.size_class);
    one = next;
  }
}

void free_put_aside() {
  // Acquire: as above.
  Free* one = g_put_aside.exchange(nullptr, std::memory_order_acquire);
  while (one != nullptr) {
    Free* const next = one->next;
    std::free(one);
    one = next;
  }
}

}  // namespace

void begin() {
  void* const place = map(kChunkBytes);
  if (place == nullptr) return;  // then it uses the heap
  t_arena = new (place) Arena;
  t_arena->next = static_cast<std::byte*>(place) + ((sizeof(Arena) + 63) & ~std::size_t{63});
  t_arena->end = static_cast<std::byte*>(place) + kChunkBytes;
}

void* take(std::size_t bytes, std::size_t alignment) noexcept {
  Arena* const arena = t_arena;
  if (arena == nullptr) [[likely]] {
    if (g_put_aside.load(std::memory_order_relaxed) != nullptr) free_put_aside();
    return nullptr;
  }
  if (bytes > SIZE_MAX / 4 || alignment > SIZE_MAX / 4) return nullptr;
  alignment = std::max(alignment, alignof(std::max_align_t));
  const std::size_t whole = std::max(bytes, sizeof(Free)) + sizeof(Header) + alignment;
  const auto bits = static_cast<std::size_t>(std::bit_width(whole - 1));
  const std::size_t size_class = std::max(bits, kSmallestBits) - kSmallestBits;
  std::byte* piece = nullptr;
  if (size_class < kClasses) {
    if (arena->free[size_class] == nullptr) collect(*arena);
    if (Free* const one = arena->free[size_class]; one != nullptr) {
      arena->free[size_class] = one->next;
      piece = reinterpret_cast<std::byte*>(one);
    } else {
      piece = carve(*arena, size_class);
    }
  } else {
    piece = static_cast<std::byte*>(map(whole));
  }
  if (piece == nullptr) return nullptr;
  const auto at =
      (reinterpret_cast<std::uint64_t>(piece) + sizeof(Header) + alignment - 1) & ~(alignment - 1);
  void* const block = piece + (at - reinterpret_cast<std::uint64_t>(piece));
  *(static_cast<Header*>(block) - 1) = {
      .arena = arena,
      .size_class = size_class < kClasses ? static_cast<std::uint32_t>(size_class) : kMapped,
      .offset = static_cast<std::uint32_t>(at - reinterpret_cast<std::uint64_t>(piece)),
      .bytes = whole,
      .unused = 0};
  return block;
}

bool give_back(void* block) noexcept {
  Arena* const here = t_arena;
  if (!is_ours(block)) {
    if (here == nullptr) [[likely]]
      return false;
    push(g_put_aside, static_cast<Free*>(block));
    return true;
  }
  const Header& header = *(static_cast<Header*>(block) - 1);
  if (header.size_class == kMapped) {
    unmap(piece_of(block, header), header.bytes);
  } else if (header.arena == here) {
    put_in(*here, piece_of(block, header), header.size_class);
  } else {
    push(header.arena->returned, static_cast<Free*>(block));
  }
  return true;
}

}  // namespace orrery::service_memory
