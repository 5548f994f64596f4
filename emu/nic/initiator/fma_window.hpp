// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/nic.hpp"
#include "emu/nic/state/hazard.hpp"
#include "emu/nic/state/hazard_board.hpp"
#include "emu/nic/state/network_address.hpp"
#include "emu/nic/state/thread_word.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace orrery::nic {

// What an FMA descriptor says of its window: which bits of an offset in it select the PE and which the
// address. Bits below `pe_shift` and above the PE's bits are the address, in this order; so storing one block
// of (1 << pe_bits) << pe_shift bytes stores 1 << pe_shift bytes to each PE. (The Gemini paper, section 2.1;
// the Cascade paper, section IV B.)
struct WindowShape {
  std::uint32_t base_pe = 0;      // the PE of offset 0
  std::uint64_t base_offset = 0;  // added to the address, in every PE's memory
  unsigned pe_shift = 6;          // 1 << pe_shift bytes go to a PE before the next one's turn
  unsigned pe_bits = 0;           // of the PE: 1 << pe_bits PEs

  constexpr bool is_valid() const {
    return pe_shift >= 3 && pe_bits <= kPeBits && pe_shift + pe_bits <= kOffsetBits &&
           base_pe >> kPeBits == 0 && base_offset >> kOffsetBits == 0;
  }
  constexpr std::uint64_t granularity() const { return std::uint64_t{1} << pe_shift; }
  constexpr std::uint32_t pe_of(std::uint64_t offset) const {
    return base_pe + static_cast<std::uint32_t>(offset >> pe_shift & ((std::uint64_t{1} << pe_bits) - 1));
  }
  constexpr std::uint64_t address_of(std::uint64_t offset) const {
    return base_offset + (offset >> (pe_shift + pe_bits) << pe_shift | (offset & (granularity() - 1)));
  }
};

// A PE that a window may reach: where its memory is.
struct WindowPlace {
  std::uint32_t nic_address = 0;  // as the job numbers it, with a translation; else the machine's
  MemKey key;
  std::uint64_t address = 0;  // offset 0 of its memory: a virtual address within the registration
};

// One FMA window of a port: stores into it are puts to the PEs that it was opened for. All of them belong to
// the transaction that is open at the time, whose status says the first thing that went wrong.
//
// Owns an endpoint for each PE. Threads: the one that uses the port.
// Invariants: (1) a lane stores through a grant only after it announced itself and saw the owner's control
// word unchanged, as every direct access does, or announced itself to all owners and saw that none has
// changed any since; (2) at most one transaction is open; any number wait for their packets, up to the NIC's
// 1,024.
// Usage: window->begin();  window->store(0, p, 8);  auto id = window->end();  window->test(id.value(), &s)
class FmaWindow {
 public:
  // `translation`: null when places have the machine's addresses. `port` and `nic` outlive the window.
  // Errors: invalid_param (shape; a registration by segments; no places or more than 18 bits can name),
  // bounds (an address of more bits than the hardware's, or that the translation does not know).
  static Result<std::unique_ptr<FmaWindow>> open(Nic& nic, Port& port, const WindowShape& shape,
                                                 std::span<const WindowPlace> places,
                                                 const NodeTranslation* translation = nullptr);
  // Waits for packets in flight, a bounded time.
  ~FmaWindow();
  FmaWindow(const FmaWindow&) = delete;
  FmaWindow& operator=(const FmaWindow&) = delete;

  // Opens a transaction. Errors: invalid_state (one is open), no_resource (1,024 are in use: test() some).
  Errc begin();
  // Ends it, and gives its name. Errors: invalid_state (none is open).
  Result<std::uint32_t> end();
  // Whether every packet of a transaction has arrived: not_done, or ok and in `*status` its first error; then
  // the name is free. invalid_param: there is none of that name, or it is open.
  Errc test(std::uint32_t name, Errc* status) { return nic_.initiator().test_sequence(name, status); }

  // Stores `bytes` at an offset of the window, in pieces to the PEs that the bits of the offset select.
  // `from` may be reused on return. ok, and errors of packets are the transaction's; invalid_state (none is
  // open), invalid_param (a PE that there is none of: what lies before it was stored). May wait for answers
  // when packets that go by frame are used up.
  Errc store(std::uint64_t offset, const std::byte* from, std::uint64_t bytes) {
    if (current_ == nullptr) [[unlikely]]
      return Errc::invalid_state;
#if defined(__x86_64__)
    if (bytes == row_bytes_ && (offset & (row_bytes_ - 1)) == 0) [[likely]]
      return store_row(offset, from);
#endif
    return store_pieces(offset, from, bytes);
  }

  // FMA Launch: one write of 128 bits, an 8-byte put to any PE and offset: launch_word(pe, offset) and the
  // data. ok, and errors of the packet are the transaction's; invalid_state (none is open), invalid_param (no
  // such PE), alignment (offset), no_resource (packets are used up: test(), then again). Waits only for room
  // in a lane, when it goes by frame.
  Errc launch(std::uint64_t where, std::uint64_t data) {
    if (current_ == nullptr) [[unlikely]]
      return Errc::invalid_state;
    const std::uint64_t pe = where >> kOffsetBits;
    const std::uint64_t offset = launch_offset(where);
    if (pe >= lane_count_) [[unlikely]]
      return Errc::invalid_param;
    Lane& lane = lanes_[pe];
    if (offset % 8 != 0) [[unlikely]]
      return Errc::alignment;
    if (offset < lane.words_end && store_here(lane, [&] {
          // Release: a target that polls this word sees what was put before it.
          std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(lane.here + offset))
              .store(data, std::memory_order_release);
        })) [[likely]]
      return Errc::ok;
    return post(lane, offset, reinterpret_cast<const std::byte*>(&data), sizeof data, kLaunched);
  }

  // The window as memory: plain stores to it are puts, with no transaction and no report; nothing but the
  // processor takes part. Offset 0 of the window is the first byte. The target's end of its registration cuts
  // the window off: later stores reach no process.
  // Errors: invalid_state (mapped already), invalid_param (granularity or a place is no multiple of a page,
  // or fewer PEs than the shape selects), unsupported (a target whose memory cannot be mapped here), bounds,
  // and those of reaching a target. May wait for the targets' service threads.
  Result<std::span<std::byte>> map();

  std::uint32_t pe_count() const { return static_cast<std::uint32_t>(places_.size()); }
  const WindowShape& shape() const { return shape_; }
  void* context = nullptr;  // the API layer's own

  // Launches that the API layer counted: its window's thread alone counts, any thread may look.
  void count_launch() {
    launches_.store(launches_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  std::uint32_t launches() const { return launches_.load(std::memory_order_relaxed); }
  void forget_launches() { launches_.store(0, std::memory_order_relaxed); }

 private:
  // What one store needs to know of a PE, in one line.
  struct alignas(kCacheLine) Lane {
    std::byte* here = nullptr;    // where offset 0 of its memory is mapped
    std::uint64_t end = 0;        // bytes from there that may be stored directly; 0: none
    std::uint64_t words_end = 0;  // end - 7, or 0
    std::atomic<std::uint64_t>* hazard = nullptr;
    const std::atomic<std::uint64_t>* control = nullptr;
    std::uint64_t granted = 0;  // what `control` has to be
    const std::atomic<bool>* dead = nullptr;
    std::uint32_t region = 0;
    std::uint32_t thread = 0;  // whose word `hazard` is (state/thread_word.hpp)
  };
  static_assert(sizeof(Lane) == kCacheLine);

  FmaWindow(Nic& nic, const WindowShape& shape, std::size_t places);

  // Runs `body`, which stores through the lane, if that is still allowed.
  template <typename Body>
  [[gnu::always_inline]] static bool store_here(const Lane& lane, Body body) {
    if (lane.dead->load(std::memory_order_relaxed) || lane.thread != t_thread_tag >> kThreadTagShift)
        [[unlikely]]
      return false;
    const HazardGuard guard(*lane.hazard, lane.region, false);
    // Acquire: see try_fast.
    if (lane.control->load(std::memory_order_acquire) != lane.granted) [[unlikely]]
      return false;
    body();
    return true;
  }
  void measure_lines();
  Errc store_row(std::uint64_t offset, const std::byte* from);
  std::uint64_t store_lines(std::uint64_t offset, const std::byte* from, std::uint64_t bytes);
  Errc store_pieces(std::uint64_t offset, const std::byte* from, std::uint64_t bytes);
  Errc post(Lane& lane, std::uint64_t offset, const std::byte* from, std::uint64_t bytes,
            std::uint32_t flags = 0);
  void keep_grant(std::size_t pe);
  Errc touch(std::size_t pe);
  Result<std::byte*> reach(std::size_t pe, std::uint64_t bytes);
  static void mark(MrtEntry& entry, std::uint16_t generation);
  static void unmark(MrtEntry& entry, std::uint16_t generation);
  void unmark_first(std::size_t count);

  Nic& nic_;
  const WindowShape shape_;
  Sequence* current_ = nullptr;
  // Of whole lines. A row of them that store_row() takes: its bytes, all ones when none is, and its lanes.
  std::uint64_t row_bytes_ = UINT64_MAX;
  const Lane* row_begin_ = nullptr;
  const Lane* row_end_ = nullptr;
  // Before which address one may begin so that all lanes of a row may be stored to directly, when the board
  // counts that many withdrawals; and where on it we announce ourselves, how.
  std::uint64_t lines_end_ = 0;
  std::uint64_t withdrawals_seen_ = UINT64_MAX;
  HazardBoard* const board_;
  std::atomic<std::uint64_t>* announcement_ = nullptr;  // null: lines are pieces like any other
  std::uint64_t marks_ = 0;
  std::uint64_t row_ = 0;  // PEs that there are of a row
  std::unique_ptr<Lane[]> lanes_;
  std::uint64_t lane_count_;
  std::atomic<std::uint32_t> launches_{0};
  std::vector<WindowPlace> places_;  // nic_address: the machine's
  std::unique_ptr<Endpoint[]> endpoints_;
  std::span<std::byte> mapped_;
};

}  // namespace orrery::nic
