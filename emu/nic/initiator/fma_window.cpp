// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/initiator/fma_window.hpp"

#include "emu/base/wait.hpp"
#include "emu/memory/raw_calls.hpp"
#include "emu/nic/initiator/fast_path.hpp"

#include <algorithm>

#include <sys/mman.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace orrery::nic {

namespace {

// How long the end of a window waits for packets that are on their way.
constexpr std::int64_t kSettleNs = 1'000'000'000;
// How long a mapping waits for a target to move its memory into its file.
constexpr std::int64_t kAdoptNs = 2'000'000'000;

}  // namespace

FmaWindow::FmaWindow(Nic& nic, const WindowShape& shape, std::size_t places)
    : nic_(nic),
      shape_(shape),
      board_(nic.services().hazard_board()),
      lanes_(new Lane[places]),
      lane_count_(places),
      endpoints_(new Endpoint[places]) {}

Result<std::unique_ptr<FmaWindow>> FmaWindow::open(Nic& nic, Port& port, const WindowShape& shape,
                                                   std::span<const WindowPlace> places,
                                                   const NodeTranslation* translation) {
  if (!shape.is_valid() || places.empty() || places.size() > std::size_t{1} << kPeBits)
    return Errc::invalid_param;
  std::unique_ptr<FmaWindow> window(new FmaWindow(nic, shape, places.size()));
  for (std::size_t pe = 0; pe < places.size(); ++pe) {
    WindowPlace place = places[pe];
    if ((place.key.flags & kSegmented) != 0 || place.address % 8 != 0) return Errc::invalid_param;
    if (translation != nullptr) {
      const auto physical = translation->physical(place.nic_address);
      if (!physical.ok()) return physical.code();
      place.nic_address = physical.value();
    }
    const NetworkAddress address{place.nic_address, place.key.index, shape.base_offset};
    if (!address.fits()) return Errc::bounds;
    Endpoint& endpoint = window->endpoints_[pe];
    endpoint.port = &port;
    endpoint.bound = true;
    endpoint.remote_nic_address = place.nic_address;
    window->places_.push_back(place);
  }
#if defined(__x86_64__)
  // Ports that share a word keep to the general way.
  if (shape.granularity() == 64 && window->board_ != nullptr && port.hazard_slot < kSharedHazardSlot &&
      __builtin_cpu_supports("avx") != 0) {
    window->row_ = std::min(std::uint64_t{1} << shape.pe_bits,
                            places.size() - std::min<std::uint64_t>(shape.base_pe, places.size()));
    if (window->row_ == std::uint64_t{1} << shape.pe_bits && window->row_ % 8 == 0) {
      window->row_bytes_ = window->row_ * 64;
      window->row_begin_ = window->lanes_.get() + shape.base_pe;
      window->row_end_ = window->row_begin_ + window->row_;
    }
    window->announcement_ = &window->board_->lines[nic.self()].port[port.hazard_slot];
  }
#endif
  return Result<std::unique_ptr<FmaWindow>>(std::move(window));
}

FmaWindow::~FmaWindow() {
  if (current_ != nullptr) {
    const auto name = end();
    Errc status = Errc::ok;
    if (name.ok()) (void)test(name.value(), &status);
  }
  if (!mapped_.empty()) {
    memory::raw::munmap(mapped_.data(), mapped_.size());
    unmark_first(std::size_t{1} << shape_.pe_bits);
  }
  const std::int64_t deadline = monotonic_ns() + kSettleNs;
  bool idle = false;
  while (!idle && monotonic_ns() < deadline) {
    idle = std::all_of(endpoints_.get(), endpoints_.get() + lane_count_,
                       [](const Endpoint& endpoint) { return endpoint.is_idle(); });
    if (!idle) {
      nic_.progress();
      yield_cpu();
    }
  }
  // A thread that takes a late answer in still reads the endpoint.
  if (!idle) (void)endpoints_.release();
}

Errc FmaWindow::begin() {
  if (current_ != nullptr) return Errc::invalid_state;
  current_ = nic_.initiator().open_sequence();
  return current_ == nullptr ? Errc::no_resource : Errc::ok;
}

Result<std::uint32_t> FmaWindow::end() {
  if (current_ == nullptr) return Errc::invalid_state;
  const std::uint32_t name = current_->name;
  Initiator::end_sequence(*current_);
  current_ = nullptr;
  return name;
}

// Whole lines to one PE after the other, which is what a window is most often made for: a row, or what is
// asked for of it, is announced at once to all owners, which count what they withdraw (hazard_board.hpp).
// REQUIRES: whole pieces of 64 bytes; the processor has AVX.
#if defined(__x86_64__)
namespace {
[[gnu::target("avx"), gnu::always_inline]] inline void copy_line(std::byte* to, const std::byte* from) {
  const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 32));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), low);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32), high);
}
}  // namespace

// One row, a multiple of eight lines, without a branch and without a register saved.
[[gnu::target("avx")]] Errc FmaWindow::store_row(std::uint64_t offset, const std::byte* from) {
  const std::uint64_t at = shape_.base_offset + (offset >> shape_.pe_bits);
  if (at >= lines_end_) [[unlikely]]
    return store_pieces(offset, from, row_bytes_);
  {
    const BoardGuard guard(*announcement_, marks_);
    // Acquire: an owner that withdraws what a lane was granted counts it, and then looks for announcements.
    if (board_->withdrawals.load(std::memory_order_acquire) == withdrawals_seen_) [[likely]] {
      const Lane* lane = row_begin_;
      const Lane* const end = row_end_;
      do {
#pragma GCC unroll 8
        for (unsigned i = 0; i < 8; ++i) copy_line(lane[i].here + at, from + i * 64);
        lane += 8;
        from += 8 * 64;
      } while (lane != end);
      return Errc::ok;
    }
  }
  return store_pieces(offset, from, row_bytes_);
}

// Any number of lines, up to the end of a row. Returns how many bytes were stored: 0 when one of the row's
// lanes, not necessarily of these, has to go the general way.
[[gnu::target("avx")]] std::uint64_t FmaWindow::store_lines(std::uint64_t offset, const std::byte* from,
                                                            std::uint64_t bytes) {
  if (board_->withdrawals.load(std::memory_order_relaxed) != withdrawals_seen_) measure_lines();
  const std::uint64_t unit = offset / 64;
  const std::uint64_t in_row = unit & ((std::uint64_t{1} << shape_.pe_bits) - 1);
  const std::uint64_t at = shape_.base_offset + (unit >> shape_.pe_bits) * 64;
  if (in_row >= row_ || at >= lines_end_) return 0;
  const std::uint64_t count = std::min(bytes / 64, row_ - in_row);
  const Lane* const lane = lanes_.get() + shape_.base_pe + in_row;
  const BoardGuard guard(*announcement_, marks_);
  // Acquire: as in store_row().
  if (board_->withdrawals.load(std::memory_order_acquire) != withdrawals_seen_) return 0;
#pragma GCC unroll 8
  for (std::uint64_t i = 0; i < count; ++i) copy_line(lane[i].here + at, from + i * 64);
  return count * 64;
}
#endif

// What holds for all lanes of a row as long as no owner withdraws anything.
void FmaWindow::measure_lines() {
  // Acquire: what is seen of the entries below is at least as new as this count. It counts deaths too.
  withdrawals_seen_ = board_->withdrawals.load(std::memory_order_acquire);
  marks_ = 0;
  lines_end_ = UINT64_MAX;
  for (std::uint64_t i = 0; i < row_ && lines_end_ != 0; ++i) {
    const std::uint64_t pe = shape_.base_pe + i;
    const Lane& lane = lanes_[pe];
    const bool usable = lane.end >= 64 && !lane.dead->load(std::memory_order_relaxed) &&
                        lane.control->load(std::memory_order_acquire) == lane.granted;
    lines_end_ = std::min(lines_end_, usable ? lane.end - 63 : 0);
    marks_ |= region_mark(places_[pe].key.process, lane.region);
  }
}

Errc FmaWindow::store_pieces(std::uint64_t offset, const std::byte* from, std::uint64_t bytes) {
  const std::uint64_t granularity = shape_.granularity();
  while (bytes != 0) {
#if defined(__x86_64__)
    const std::uint64_t done =
        announcement_ != nullptr && (offset | bytes) % 64 == 0 ? store_lines(offset, from, bytes) : 0;
    offset += done;
    from += done;
    bytes -= done;
    if (done != 0) continue;
#endif
    const std::uint64_t piece = std::min(bytes, granularity - (offset & (granularity - 1)));
    const std::uint64_t pe = shape_.pe_of(offset);
    const std::uint64_t at = shape_.address_of(offset);
    if (pe >= lane_count_) [[unlikely]]
      return Errc::invalid_param;
    Lane& lane = lanes_[pe];
    const bool fits = at <= lane.end && piece <= lane.end - at;
    if (!fits || !store_here(lane, [&] {
          std::byte* const to = lane.here + at;
          // What a window is most often made for, as straight moves.
          if (piece == 64) {
            std::memcpy(to, from, 64);
          } else if (piece == 128) {
            std::memcpy(to, from, 128);
          } else {
            std::memcpy(to, from, piece);
          }
        })) [[unlikely]] {
      Errc posted = post(lane, at, from, piece);
      while (posted == Errc::no_resource) {
        nic_.progress();
        yield_cpu();
        posted = post(lane, at, from, piece);
      }
      if (posted != Errc::ok) return posted;
    }
    offset += piece;
    from += piece;
    bytes -= piece;
  }
  return Errc::ok;
}

// The general way, and what it was granted is kept for the next time.
Errc FmaWindow::post(Lane& lane, std::uint64_t offset, const std::byte* from, std::uint64_t bytes,
                     std::uint32_t flags) {
  const auto pe = static_cast<std::size_t>(&lane - lanes_.get());
  const WindowPlace& place = places_[pe];
  Request request;
  request.op = Op::put;
  // How it was issued matters to a clock alone; without one the fast path takes no flag that it does not
  // know.
  request.flags = nic_.clock() != nullptr ? flags : 0;
  request.local_address = reinterpret_cast<std::uint64_t>(from);
  request.remote_address = place.address + offset;
  request.remote = place.key;
  request.length = bytes;
  const Errc posted = nic_.initiator().post_in(*current_, endpoints_[pe], request);
  // A frame that found no room in its lane is packed later, from bytes that are the caller's again then.
  while (nic_.initiator().waits_for_room(endpoints_[pe])) {
    nic_.progress();
    yield_cpu();
  }
  keep_grant(pe);
  return posted;
}

void FmaWindow::keep_grant(std::size_t pe) {
  const WindowPlace& place = places_[pe];
  const Grant& grant = endpoints_[pe].grants[key_word(place.key) % kGrants];
  Lane& lane = lanes_[pe];
  lane.end = 0;
  lane.words_end = 0;
  withdrawals_seen_ = UINT64_MAX;  // to be measured again
  const std::uint64_t offset = place.address - grant.begin;
  if (grant.key != (key_word(place.key) | t_thread_tag) || !grant.writable || offset > grant.size) return;
  lane.here = grant.here + offset;
  lane.hazard = grant.hazard;
  lane.control = grant.word;
  lane.granted = grant.control;
  lane.dead = &grant.peer->dead;
  lane.region = place.key.index;
  lane.thread = static_cast<std::uint32_t>(t_thread_tag >> kThreadTagShift);
  lane.end = grant.size - offset;
  lane.words_end = lane.end < 8 ? 0 : lane.end - 7;
}

// Reads a word of a PE's memory, so that what the window may do there is known.
Errc FmaWindow::touch(std::size_t pe) {
  std::uint32_t word = 0;
  Request request;
  request.op = Op::get;
  request.local_address = reinterpret_cast<std::uint64_t>(&word);
  request.remote = places_[pe].key;
  request.remote_address = places_[pe].address + shape_.base_offset;
  request.length = sizeof word;
  Sequence* const sequence = nic_.initiator().open_sequence();
  if (sequence == nullptr) return Errc::no_resource;
  const std::uint32_t name = sequence->name;
  const Errc posted = nic_.initiator().post_in(*sequence, endpoints_[pe], request);
  Initiator::end_sequence(*sequence);
  Errc status = Errc::ok;
  while (nic_.initiator().test_sequence(name, &status) == Errc::not_done) yield_cpu();
  keep_grant(pe);
  return posted != Errc::ok ? posted : status;
}

// Where offset base_offset of a PE's memory is mapped here, after its owner has moved it into its file.
Result<std::byte*> FmaWindow::reach(std::size_t pe, std::uint64_t bytes) {
  const Errc touched = touch(pe);
  if (touched != Errc::ok) return touched;
  // No memory to map, or some that its owner may put elsewhere.
  if (endpoints_[pe].peer->link.by_wire || (places_[pe].key.flags & kSpace) != 0) return Errc::unsupported;
  const MrtEntry& entry = endpoints_[pe].peer->link.nic.region(places_[pe].key.index);
  const auto is_direct = [&] {
    return control::state(entry.control.load(std::memory_order_acquire)) == RegionState::direct;
  };
  if (!is_direct()) nic_.initiator().ask_for_adoption(endpoints_[pe], places_[pe].key);
  for (const std::int64_t deadline = monotonic_ns() + kAdoptNs; !is_direct(); yield_cpu()) {
    if (monotonic_ns() > deadline) return Errc::unsupported;
  }
  const Errc again = touch(pe);
  if (again != Errc::ok) return again;
  const Lane& lane = lanes_[pe];
  if (shape_.base_offset > lane.end || bytes > lane.end - shape_.base_offset) return Errc::unsupported;
  return lane.here + shape_.base_offset;
}

// ---- marks of mappings on a registration: generation << 32 | count ----

void FmaWindow::mark(MrtEntry& entry, std::uint16_t generation) {
  const std::uint64_t none = std::uint64_t{generation} << 32;
  std::uint64_t word = entry.windows.load(std::memory_order_relaxed);
  std::uint64_t marked = 0;
  do {
    marked = (word >> 32 == generation ? word : none) + 1;
  } while (!entry.windows.compare_exchange_weak(word, marked, std::memory_order_seq_cst));
}

// A later registration in the same place is no business of ours.
void FmaWindow::unmark(MrtEntry& entry, std::uint16_t generation) {
  std::uint64_t word = entry.windows.load(std::memory_order_relaxed);
  while (word >> 32 == generation && (word & UINT32_MAX) != 0 &&
         !entry.windows.compare_exchange_weak(word, word - 1, std::memory_order_seq_cst)) {
  }
}

void FmaWindow::unmark_first(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t pe = shape_.base_pe + i;
    const MemKey& key = places_[pe].key;
    unmark(endpoints_[pe].peer->link.nic.region(key.index), key.generation);
  }
}

Result<std::span<std::byte>> FmaWindow::map() {
  if (!mapped_.empty()) return Errc::invalid_state;
  // Stores that nothing sees take no time.
  if (nic_.clock() != nullptr) return Errc::unsupported;
  // A plain store through a mapping meets no check.
  if (nic_.has_faults()) return Errc::unsupported;
  const std::uint64_t piece = shape_.granularity();
  const std::uint64_t pes = std::uint64_t{1} << shape_.pe_bits;
  if (piece % kPageBytes != 0 || shape_.base_pe + pes > lane_count_) return Errc::invalid_param;
  for (std::uint64_t i = 0; i < pes; ++i) {
    if ((places_[shape_.base_pe + i].address + shape_.base_offset) % kPageBytes != 0)
      return Errc::invalid_param;
  }
  const std::uint64_t bytes = pes * piece;
  void* const base =
      memory::raw::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return Errc::no_memory;
  auto* const begin = static_cast<std::byte*>(base);
  Errc failed = Errc::ok;
  std::uint64_t done = 0;
  for (; done < pes && failed == Errc::ok; ++done) {
    const std::size_t pe = shape_.base_pe + done;
    const auto here = reach(pe, piece);
    if (!here.ok()) {
      failed = here.code();
      break;
    }
    // Announced like an access: an owner that ends the registration sees the mark, or we see it ended.
    const Lane& lane = lanes_[pe];
    const HazardGuard guard(*lane.hazard, lane.region, false);
    const MemKey& key = places_[pe].key;
    mark(endpoints_[pe].peer->link.nic.region(key.index), key.generation);
    const bool current = lane.control->load(std::memory_order_seq_cst) == lane.granted;
    // Old size 0: the same shared pages once more, where we want them. Private ones the kernel refuses.
    if (!current || memory::raw::mremap(here.value(), 0, piece, MREMAP_MAYMOVE | MREMAP_FIXED,
                                        begin + done * piece) == MAP_FAILED) {
      failed = Errc::unsupported;
    }
  }
  if (failed != Errc::ok) {
    unmark_first(done);
    memory::raw::munmap(base, bytes);
    return failed;
  }
  mapped_ = {begin, bytes};
  return mapped_;
}

}  // namespace orrery::nic
