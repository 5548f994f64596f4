// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/chunk_switch.hpp"

#include "emu/memory/fault_handler.hpp"
#include "emu/memory/raw_calls.hpp"
#include "emu/memory/write_hold.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <iterator>

#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>

namespace orrery::memory {

namespace {

constexpr std::uint64_t kPagemapPresent = std::uint64_t{1} << 63;
constexpr std::uint64_t kPagemapSwapped = std::uint64_t{1} << 62;
// A page that loses its mark does so by MADV_DONTNEED of a running thread; one that does it all the time is
// not worth adopting.
constexpr int kCopyAttempts = 8;

// Marks the chunk as being switched, for the fault handler, interposed calls and settle(). From begin to end
// the sequence is odd.
class ActiveChunk {
 public:
  ActiveChunk(ProcessState& state, Range chunk) : state_(state) {
    const std::lock_guard lock(state_.table);
    state_.active_begin.store(chunk.begin, std::memory_order_relaxed);
    state_.active_end.store(chunk.end, std::memory_order_relaxed);
    // Release: a reader that sees it odd sees the range.
    state_.sequence.fetch_add(1, std::memory_order_release);
    start_ns_ = monotonic_ns();
  }
  ~ActiveChunk() {
    const auto took = static_cast<std::uint64_t>(monotonic_ns() - start_ns_);
    // Release: a reader that sees it even again sees the new mapping and the table with it.
    state_.sequence.fetch_add(1, std::memory_order_release);
    futex_wake(state_.sequence, INT_MAX);
    state_.switch_ns_total.fetch_add(took, std::memory_order_relaxed);
    if (took > state_.switch_ns_max.load(std::memory_order_relaxed))
      state_.switch_ns_max.store(took, std::memory_order_relaxed);
  }
  ActiveChunk(const ActiveChunk&) = delete;
  ActiveChunk& operator=(const ActiveChunk&) = delete;

 private:
  ProcessState& state_;
  std::int64_t start_ns_ = 0;
};

Status write_all(const ProcessState& state, Range range) {
  for (std::uint64_t at = range.begin; at < range.end;) {
    const std::int64_t put = raw::pwrite(state.file, raw::pointer(at), range.end - at, at);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return put < 0 && errno == EFAULT ? Errc::not_done : Errc::no_memory;
    at += static_cast<std::uint64_t>(put);
  }
  return {};
}

// By a system call: the program may give its pages back at any moment, and a reader must then not die
// of it. A page that cannot be read, or that we may not read so, is not zeros: to write it to the file says
// why, or costs a page of zeros.
bool reads_as_zeros(std::uint64_t page) {
  std::uint64_t words[kPageBytes / sizeof(std::uint64_t)];
  const iovec to{words, sizeof words}, from{raw::pointer(page), sizeof words};
  // Words, not ints: the last argument is on the stack, where the upper half of an int may be anything.
  return ::syscall(SYS_process_vm_readv, ::getpid(), &to, 1ul, &from, 1ul, 0ul) == std::ssize(words) * 8 &&
         std::all_of(std::begin(words), std::end(words), [](std::uint64_t word) { return word == 0; });
}

// Whether no page of the system is in swap. A page that was swapped out takes its place there.
bool nothing_is_swapped() {
  struct sysinfo system {};
  return ::sysinfo(&system) == 0 && system.totalswap == system.freeswap;
}

// Writes what the chunk holds to the file; pages that were never touched stay holes. `anonymous`: a page that
// is not there is zeros.
Status copy_to_file(const ProcessState& state, Range chunk, bool anonymous) {
  if (!anonymous || state.pagemap < 0) return write_all(state, chunk);
  bool no_swap = nothing_is_swapped();
  std::uint64_t entries[512];
  for (std::uint64_t at = chunk.begin; at < chunk.end;) {
    const std::uint64_t pages = std::min<std::uint64_t>((chunk.end - at) / kPageBytes, std::size(entries));
    const std::uint64_t bytes = pages * sizeof entries[0];
    if (raw::pread(state.pagemap, entries, bytes, at / kPageBytes * sizeof entries[0]) !=
        static_cast<std::int64_t>(bytes))
      return write_all(state, {at, chunk.end});
    // The mark of a held page that is not there looks like a swapped page. To read each costs microseconds:
    // minutes for a reservation of many GiB.
    no_swap = no_swap && nothing_is_swapped();
    const auto there = [&](std::uint64_t i) {
      return (entries[i] & kPagemapPresent) != 0 ||
             ((entries[i] & kPagemapSwapped) != 0 && !no_swap && !reads_as_zeros(at + i * kPageBytes));
    };
    for (std::uint64_t i = 0; i < pages;) {
      std::uint64_t end = i;
      while (end < pages && there(end)) ++end;
      if (end > i)
        if (const Status status = write_all(state, {at + i * kPageBytes, at + end * kPageBytes});
            !status.ok())
          return status;
      i = end + 1;
    }
    at += pages * kPageBytes;
  }
  return {};
}

// Fills private memory at `to` from the file's data of `chunk`.
Status copy_from_file(const ProcessState& state, Range chunk, std::byte* to) {
  for (std::uint64_t at = chunk.begin; at < chunk.end;) {
    const off_t data = lseek(state.file, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 || static_cast<std::uint64_t>(data) >= chunk.end) break;
    at = std::max(at, static_cast<std::uint64_t>(data));
    const off_t hole = lseek(state.file, static_cast<off_t>(at), SEEK_HOLE);
    const std::uint64_t end = hole < 0 ? chunk.end : std::min(chunk.end, static_cast<std::uint64_t>(hole));
    while (at < end) {
      const std::int64_t got = raw::pread(state.file, to + (at - chunk.begin), end - at, at);
      if (got <= 0) return Errc::no_memory;
      at += static_cast<std::uint64_t>(got);
    }
  }
  return {};
}

}  // namespace

std::uint64_t chunk_bytes(const ProcessState& state, const Mapping& mapping) {
  const Blocker method = hold_method(state, mapping.inode != 0, state.is_ours(mapping));
  return method == Blocker::userfault ? kChunkWhereCallsWait : kChunkWhereCallsFail;
}

Status switch_in(ProcessState& state, Range chunk, bool bulk, bool continues) {
  const std::lock_guard lock(state.switching);
  Mapping mapping;
  if (!state.map_query.find(chunk.begin, &mapping) || mapping.range.begin > chunk.begin ||
      mapping.range.end < chunk.end || mapping.shared || !mapping.writable)
    return Errc::not_done;
  const bool anonymous = mapping.inode == 0;
  WriteHold hold(state, chunk, mapping.protection(), !anonymous, false);
  if (hold.by_signal()) put_fault_handler_in_front();
  {
    const std::lock_guard table(state.table);
    if (state.extents.count() >= state.options.extent_budget) return Errc::no_resource;
  }

  const ActiveChunk active(state, chunk);
  // No lock, no allocation, no log line from here to let_go: a held writer may own any of them.
  raw::punch(state.file, chunk);
  if (const Status status = hold.hold(); !status.ok()) return status;
  Status status = Errc::not_done;
  for (int attempt = 0; attempt < kCopyAttempts && status == Errc::not_done; ++attempt) {
    if (attempt > 0) {
      status = hold.hold_again();
      if (!status.ok()) return status;
      raw::punch(state.file, chunk);
    }
    status = copy_to_file(state, chunk, anonymous);
    if (status.ok()) status = hold.close();
    if (status.ok() && !hold.intact()) status = Errc::not_done;
  }
  if (status.ok() && raw::mmap(raw::pointer(chunk.begin), chunk.size(), mapping.protection(),
                               MAP_SHARED | MAP_FIXED | MAP_NORESERVE, state.file, chunk.begin) == MAP_FAILED)
    status = Errc::no_resource;
  hold.let_go(status.ok());
  if (!status.ok()) {
    raw::punch(state.file, chunk);
    return status;
  }
  raw::madvise(chunk.begin, chunk.size(), MADV_DONTFORK);
  const std::lock_guard table(state.table);
  state.extents.insert({chunk, mapping.protection(), bulk, continues});
  state.adopted_since_reap += chunk.size();
  state.adoptions.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Status switch_out(ProcessState& state, Range chunk) {
  const std::lock_guard lock(state.switching);
  Mapping mapping;
  if (!state.map_query.find(chunk.begin, &mapping) || mapping.range.begin > chunk.begin ||
      mapping.range.end < chunk.end || !state.is_ours(mapping) || mapping.offset != mapping.range.begin)
    return Errc::not_done;
  WriteHold hold(state, chunk, mapping.protection(), false, true);
  if (hold.by_signal()) put_fault_handler_in_front();
  void* const aside =
      raw::mmap(nullptr, chunk.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (aside == MAP_FAILED) return Errc::no_memory;

  Status status;
  {
    const ActiveChunk active(state, chunk);
    status = hold.hold();
    if (status.ok()) {
      status = copy_from_file(state, chunk, static_cast<std::byte*>(aside));
      if (status.ok() && mapping.protection() != (PROT_READ | PROT_WRITE) &&
          raw::mprotect(reinterpret_cast<std::uint64_t>(aside), chunk.size(), mapping.protection()) != 0)
        status = Errc::no_memory;
      if (status.ok() && raw::mremap(aside, chunk.size(), chunk.size(), MREMAP_MAYMOVE | MREMAP_FIXED,
                                     raw::pointer(chunk.begin)) == MAP_FAILED)
        status = Errc::no_resource;
      hold.let_go(status.ok());
    }
    if (status.ok()) {
      const std::lock_guard table(state.table);
      state.extents.erase(chunk);
      state.releases.fetch_add(1, std::memory_order_relaxed);
    }
  }
  if (!status.ok()) raw::munmap(aside, chunk.size());
  return status;
}

}  // namespace orrery::memory
