// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/address_space.hpp"

#include "emu/base/log.hpp"
#include "emu/base/own_descriptor.hpp"
#include "emu/memory/chunk_switch.hpp"
#include "emu/memory/fault_handler.hpp"
#include "emu/memory/fork_child.hpp"
#include "emu/memory/lent_space.hpp"
#include "emu/memory/process_state.hpp"
#include "emu/memory/raw_calls.hpp"
#include "emu/memory/thread_areas.hpp"
#include "emu/memory/unmapping.hpp"
#include "emu/memory/write_hold.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace orrery::memory {

namespace {

constexpr std::uint64_t kHugeBytes = std::uint64_t{2} << 20;
// MADV_COLLAPSE fills the whole block with zeroed pages at once: worth it for mailboxes and small heaps, not
// for a heap of which little may be used.
constexpr std::uint64_t kCollapseLimit = std::uint64_t{64} << 20;
// Linux' default of vm.max_map_count, where /proc does not tell.
constexpr std::uint64_t kDefaultMapCount = 65530;

std::uint32_t default_extent_budget() {
  std::uint64_t map_count = kDefaultMapCount;
  const int file = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
  if (file >= 0) {
    char text[32] = {};
    if (raw::pread(file, text, sizeof text - 1, 0) > 0) map_count = std::strtoull(text, nullptr, 10);
    close(file);
  }
  // An extent splits a mapping in three and may have its last page apart: at most three more. A quarter
  // leaves the program some.
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(map_count / 4, 64, 1 << 18));
}

// The memory file, or -1 with a line that says why.
int make_file() {
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  if (limit.rlim_cur < AddressSpace::kSpan) {
    log::warn(
        "file size limit is {} bytes, the memory file needs {}: all memory is reached by frames (ulimit -f "
        "unlimited)",
        limit.rlim_cur, AddressSpace::kSpan);
    return -1;
  }
  const int file = own_descriptor(memfd_create("orrery-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file < 0) {
    log::warn("memfd_create: {}: all memory is reached by frames", std::strerror(errno));
    return -1;
  }
  if (ftruncate(file, AddressSpace::kSpan) != 0 ||
      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    log::warn("memory file of {} bytes: {}: all memory is reached by frames", AddressSpace::kSpan,
              std::strerror(errno));
    close(file);
    return -1;
  }
  return file;
}

// Whether the kernel knows of pages everywhere in the range, as far as it says without /proc.
bool are_mapped(Range range) {
  constexpr std::uint64_t kStep = 4096 * kPageBytes;
  unsigned char resident[4096];
  for (std::uint64_t at = range.begin; at < range.end; at += kStep) {
    const std::uint64_t bytes = std::min(kStep, range.end - at);
    if (mincore(reinterpret_cast<void*>(at), bytes, resident) != 0) return false;
  }
  return true;
}

bool valid(std::uint64_t address, std::uint64_t length) {
  return length != 0 && address <= UINT64_MAX - length - kPageBytes;
}

bool is_pinned(ProcessState& state, Range range) {
  const std::uint32_t count = state.pin_count.load(std::memory_order_relaxed);
  if (count == 0) return false;
  const std::lock_guard lock(state.table);
  const auto end = state.pins.begin() + std::min<std::size_t>(count, state.pins.size());
  return std::any_of(state.pins.begin(), end, [&](Range pin) { return pin.overlaps(range); });
}

}  // namespace

Obstacle obstacle_of(ProcessState& state, const Mapping& mapping, Range range, bool all_threads) {
  const auto page = reinterpret_cast<std::uint64_t>(&g_handler_page);
  if (state.file < 0) return Obstacle::no_file;
  if (range.end > AddressSpace::kSpan) return Obstacle::beyond_span;
  if (mapping.huge_pages) return Obstacle::huge_pages;
  if (mapping.shared) return Obstacle::shared_mapping;
  if (!mapping.writable) return Obstacle::read_only;
  if (!mapping.readable) return Obstacle::unmapped;
  if (range.overlaps({page, page + kPageBytes}) || range.overlaps(state.own)) return Obstacle::own_state;
  // Private mappings of device nodes: the copy, not the device, would be shared.
  if (mapping.inode != 0 && mapping.dev_major == 0 && mapping.dev_minor == state.device_minor)
    return Obstacle::device;
  if (is_pinned(state, range)) return Obstacle::pinned;
  const bool stack = all_threads ? holds_thread_area(mapping, range, state.main_stack)
                                 : holds_own_thread_area(mapping, range, state.main_stack);
  return stack ? Obstacle::stack : Obstacle::none;
}

namespace {
std::atomic<void (*)()> g_give_up{nullptr};
}  // namespace

bool space_exists() {
  const ProcessState* const there = current_state();
  return there != nullptr && !there->in_child();
}

void lend_space(void (*give_up)()) { g_give_up.store(give_up, std::memory_order_release); }

Result<std::unique_ptr<AddressSpace>> AddressSpace::create(const Options& options) {
  if (auto* const give_up = g_give_up.exchange(nullptr, std::memory_order_acq_rel);
      give_up != nullptr && space_exists())
    give_up();
  // A child of fork may have one of its own: what it inherited is dead, and stays for code that still holds
  // the object.
  if (space_exists()) {
    log::error("this process has a memory file already");
    return Errc::invalid_state;
  }
  const std::uint32_t budget = options.extent_budget != 0 ? options.extent_budget : default_extent_budget();
  // Unmapping the middle of an extent makes two of one, with no regard to the budget: room for as many again.
  ProcessState* const state = make_state(2 * budget + 64);
  if (state == nullptr) {
    log::error("no memory for the extent table");
    return Errc::no_memory;
  }
  state->options = options;
  state->options.extent_budget = budget;
  state->fork_mode.store(options.fork_mode, std::memory_order_relaxed);
  state->main_stack = main_stack_address();
  if (!state->map_query.open(options.use_map_query)) {
    log::warn("/proc/self/maps: {}: all memory is reached by frames", std::strerror(errno));
  } else {
    state->file = make_file();
  }
  if (state->file >= 0) {
    struct stat about {};
    fstat(state->file, &about);
    state->inode = about.st_ino;
    state->dev_major = major(about.st_dev);
    state->dev_minor = minor(about.st_dev);
    if (stat("/dev/null", &about) == 0 && major(about.st_dev) == 0) state->device_minor = minor(about.st_dev);
    state->pagemap = own_descriptor(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    if (options.use_userfault) open_userfault(*state);
  }
  register_fork_handlers();
  g_handler_page.state.store(state, std::memory_order_release);
  return std::unique_ptr<AddressSpace>(new AddressSpace(*state));
}

AddressSpace::~AddressSpace() {
  if (!state_.in_child()) {
    NoPeers nobody;
    while (state_.extents.count() != 0) {
      const Range range = state_.extents.all().front().range;
      if (release(range.begin, range.size(), nobody).ok()) continue;
      // Unmapped behind our back, or the system is out of memory: leave it.
      const std::lock_guard lock(state_.table);
      state_.extents.erase(range);
    }
    withdraw_fault_handler();
  }
  if (current_state() == &state_) g_handler_page.state.store(nullptr, std::memory_order_release);
  if (!state_.child_closed) {
    for (const int file : {state_.file, state_.userfault, state_.pagemap})
      if (file >= 0) close(file);
    state_.map_query.close();
  }
  destroy_state(&state_);
}

int AddressSpace::file() const { return state_.file; }

std::uint64_t AddressSpace::span() const { return state_.file < 0 ? 0 : kSpan; }

Result<RangeInfo> AddressSpace::inspect(std::uint64_t address, std::uint64_t length) const {
  if (!valid(address, length)) return Errc::bounds;
  struct Look {
    ProcessState& state;
    Range rest;
    RangeInfo info{.cover = Cover::none, .mapped = true, .writable = true, .obstacle = Obstacle::none};
    bool any_in = false;
    bool all_in = true;
    void note(Obstacle obstacle) {
      if (info.obstacle == Obstacle::none) info.obstacle = obstacle;
    }
  } look{.state = state_, .rest = {address, address + length}};
  const auto visit = [](void* context, const Mapping& mapping) {
    auto& l = *static_cast<Look*>(context);
    if (mapping.range.begin > l.rest.begin) {
      l.info.mapped = false;
      l.rest.begin = mapping.range.begin;
    }
    const Range part{l.rest.begin, std::min(l.rest.end, mapping.range.end)};
    l.rest.begin = part.end;
    l.info.denied |= !mapping.readable;
    if (!mapping.writable) l.info.writable = false;
    const bool in = l.state.is_ours(mapping) && mapping.offset == mapping.range.begin;
    l.any_in |= in;
    l.all_in &= in;
    if (!in) l.note(obstacle_of(l.state, mapping, page_hull(part), false));
    return !l.rest.empty();
  };
  // Without /proc only whether there are pages is known. A page that may not be touched is found out by an
  // access for a peer, which is an error of the peer's operation.
  if (state_.map_query.descriptor() < 0 && !state_.in_child()) {
    look.info = {.cover = Cover::none, .mapped = are_mapped(page_hull(look.rest)), .writable = true};
    look.info.writable = look.info.mapped;
    look.info.obstacle = look.info.mapped ? Obstacle::no_file : Obstacle::unmapped;
    return look.info;
  }
  if (!state_.in_child()) state_.map_query.walk(look.rest, false, visit, &look);
  if (!look.rest.empty()) look.info.mapped = false;
  look.info.denied &= look.info.mapped;
  look.info.mapped &= !look.info.denied;
  if (!look.info.mapped) {
    look.info.writable = false;
    look.info.obstacle = Obstacle::unmapped;
    look.all_in = false;
  }
  look.info.cover = look.all_in ? Cover::direct : look.any_in ? Cover::partial : Cover::none;
  return look.info;
}

Range AddressSpace::adoptable_around(std::uint64_t page, Range bounds) const {
  Mapping mapping;
  if (state_.in_child() || state_.file < 0 || !state_.map_query.find(page, &mapping) ||
      !mapping.range.contains(page) || !mapping.writable || !mapping.readable)
    return {};
  const Range told = told_around(page);
  const Range run{std::max({mapping.range.begin, told.begin, bounds.begin}),
                  std::min({mapping.range.end, told.end, bounds.end})};
  if (run.empty() || !run.contains(page)) return {};
  if (state_.is_ours(mapping)) return mapping.offset == mapping.range.begin ? run : Range{};
  for (const Range part : {run, Range{page, page + kPageBytes}})
    if (obstacle_of(state_, mapping, part, true) == Obstacle::none) return part;
  return {};
}

void AddressSpace::settle(std::uint64_t address, std::uint64_t length) {
  if (valid(address, length)) await_switch(state_, page_hull({address, address + length}));
}

Result<void*> AddressSpace::allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes == 0 || bytes > kSpan || !std::has_single_bit(alignment) || alignment > kSpan)
    return Errc::invalid_param;
  if (state_.in_child()) return Errc::invalid_state;
  if (state_.file < 0) return Errc::unsupported;
  const std::uint64_t size = page_hull({0, bytes}).end;
  const std::uint64_t align =
      std::max<std::uint64_t>({alignment, kPageBytes, size >= kHugeBytes ? kHugeBytes : 0});
  const std::uint64_t reserved = size + align;
  void* const block =
      raw::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED) return Errc::no_memory;
  const auto begin = reinterpret_cast<std::uint64_t>(block);
  const std::uint64_t at = (begin + align - 1) & ~(align - 1);
  if (at > begin) raw::munmap(block, at - begin);
  if (begin + reserved > at + size) raw::munmap(raw::pointer(at + size), begin + reserved - at - size);
  return move_in(at, size);
}

Result<void*> AddressSpace::allocate_at(std::uint64_t at, std::size_t bytes) {
  if (bytes == 0 || at == 0 || at % kPageBytes != 0 || at > kSpan || bytes > kSpan - at)
    return Errc::invalid_param;
  if (state_.in_child()) return Errc::invalid_state;
  if (state_.file < 0) return Errc::unsupported;
  const std::uint64_t size = page_hull({0, bytes}).end;
  void* const block = raw::mmap(raw::pointer(at), size, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (block == MAP_FAILED) return errno == EEXIST ? Errc::no_match : Errc::no_memory;
  // A kernel that does not know the flag takes the address for a wish.
  if (block != raw::pointer(at)) {
    raw::munmap(block, size);
    return Errc::no_match;
  }
  return move_in(at, size);
}

// Puts pages of the file where a reservation of exactly that range lies.
Result<void*> AddressSpace::move_in(std::uint64_t at, std::uint64_t size) {
  const Range range{at, at + size};
  {
    const QuietTable lock(state_, range);
    if (state_.extents.count() >= state_.options.extent_budget) {
      raw::munmap(raw::pointer(at), size);
      return Errc::no_resource;
    }
    raw::punch(state_.file, range);
    if (raw::mmap(raw::pointer(at), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
                  state_.file, at) == MAP_FAILED) {
      raw::munmap(raw::pointer(at), size);
      return Errc::no_memory;
    }
    raw::madvise(at, size, MADV_DONTFORK);
    state_.extents.insert({range, PROT_READ | PROT_WRITE, size > kForkCopyLimit, false});
  }
  note_mapped(range);
  if (size >= kHugeBytes) {
    raw::madvise(at, size, MADV_HUGEPAGE);
    if (size <= kCollapseLimit) raw::madvise(at, size & ~(kHugeBytes - 1), MADV_COLLAPSE);
  }
  return raw::pointer(at);
}

void AddressSpace::deallocate(void* block, std::size_t bytes) {
  if (block == nullptr || state_.in_child()) return;
  const auto at = reinterpret_cast<std::uint64_t>(block);
  const Range range = page_hull({at, at + bytes});
  const Unmapping unmapping(range);
  const QuietTable lock(state_, range);
  raw::munmap(block, range.size());
  forget_extents(state_, range);
  note_unmapped(range);
}

void AddressSpace::set_fork_mode(ForkMode mode) { state_.fork_mode.store(mode, std::memory_order_relaxed); }

Stats AddressSpace::stats() const {
  Stats out;
  out.blocker = state_.blocker;
  out.map_query = state_.map_query.uses_ioctl();
  out.extent_budget = state_.options.extent_budget;
  {
    const std::lock_guard lock(state_.table);
    out.extents = state_.extents.count();
    for (const Extent& extent : state_.extents.all()) out.bytes_in_file_range += extent.range.size();
  }
  struct stat about {};
  if (state_.file >= 0 && fstat(state_.file, &about) == 0)
    out.file_blocks_bytes = static_cast<std::uint64_t>(about.st_blocks) * 512;
  const auto read = [](const std::atomic<std::uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  out.adoptions = read(state_.adoptions);
  out.releases = read(state_.releases);
  out.failures = read(state_.failures);
  out.switch_ns_total = read(state_.switch_ns_total);
  out.switch_ns_max = read(state_.switch_ns_max);
  out.bytes_punched = read(state_.bytes_punched);
  out.faults_waited = read(state_.faults_waited);
  for (std::size_t i = 0; i < out.refused.size(); ++i) out.refused[i] = read(state_.refused[i]);
  return out;
}

}  // namespace orrery::memory
