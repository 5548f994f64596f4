// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/cci/segment.hpp"

#include "emu/base/own_descriptor.hpp"

#include <bit>
#include <cerrno>
#include <new>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace orrery::cci {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kFreeEntries = 2 * std::uint64_t{kMaxReceiveBuffers};
constexpr std::uint64_t kRegistrationsAt = (sizeof(SegmentHeader) + kPage - 1) / kPage * kPage;
constexpr std::uint64_t kRingsAt = kRegistrationsAt + kMaxRegistrations * sizeof(Registration);
constexpr std::uint64_t kSlotsAt = kRingsAt + kMaxConnections * sizeof(ConnectionRing);
constexpr std::uint64_t kFreeAt = kSlotsAt + kMaxReceiveBuffers * sizeof(std::uint64_t);
constexpr std::uint64_t kSlabAt =
    (kFreeAt + kFreeEntries * sizeof(std::uint64_t) + kPage - 1) / kPage * kPage;
constexpr std::uint32_t kLongestBuffer = 1u << 20;

constexpr std::uint64_t bytes_for(std::uint32_t buffer_bytes) {
  return kSlabAt + std::uint64_t{kMaxReceiveBuffers} * buffer_bytes;
}
constexpr std::uint64_t slot_word(std::uint32_t serial, std::uint32_t claimer, BufferState state) {
  return static_cast<std::uint64_t>(serial) << 32 | static_cast<std::uint64_t>(claimer & 0x3fffffff) << 2 |
         static_cast<std::uint64_t>(state);
}
constexpr std::uint32_t slot_serial(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }
constexpr std::uint32_t slot_claimer(std::uint64_t word) { return static_cast<std::uint32_t>(word) >> 2; }
constexpr BufferState slot_state(std::uint64_t word) { return static_cast<BufferState>(word & 3); }

}  // namespace

Result<std::unique_ptr<Segment>> Segment::create(std::uint32_t buffer_bytes, std::uint64_t nonce) {
  std::unique_ptr<Segment> segment(new (std::nothrow) Segment);
  if (segment == nullptr) return Errc::no_memory;
  const std::uint64_t bytes = bytes_for(buffer_bytes);
  segment->fd_.reset(own_descriptor(::memfd_create("orrery-cci", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
  if (!segment->fd_.valid() || ::ftruncate(segment->fd_.get(), static_cast<off_t>(bytes)) != 0)
    return Errc::system;
  // A peer that maps the file may not be cut off by a change of its size.
  if (::fcntl(segment->fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return Errc::system;
  void* const base =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, segment->fd_.get(), 0);
  if (base == MAP_FAILED) return Errc::no_memory;
  segment->base_ = static_cast<std::byte*>(base);
  segment->bytes_ = bytes;
  segment->buffer_bytes_ = buffer_bytes;
  SegmentHeader& header = segment->header();
  header.magic = kSegmentMagic;
  header.version = kSegmentVersion;
  header.buffer_bytes = buffer_bytes;
  header.segment_bytes = bytes;
  header.nonce = nonce;
  header.pid = ::getpid();
  header.buffer_limit.store(kMaxReceiveBuffers, std::memory_order_relaxed);
  return segment;
}

Result<std::unique_ptr<Segment>> Segment::open(int fd) {
  struct stat status {};
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (::fstat(fd, &status) != 0 || seals < 0) return Errc::corrupt;
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if ((seals & F_SEAL_SHRINK) == 0 || bytes < kSlabAt) return Errc::corrupt;
  std::unique_ptr<Segment> segment(new (std::nothrow) Segment);
  if (segment == nullptr) return Errc::no_memory;
  void* const base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) return Errc::no_memory;
  segment->base_ = static_cast<std::byte*>(base);
  segment->bytes_ = bytes;
  const SegmentHeader& header = segment->header();
  segment->buffer_bytes_ = header.buffer_bytes;
  if (header.magic != kSegmentMagic || header.version != kSegmentVersion || header.segment_bytes != bytes ||
      segment->buffer_bytes_ == 0 || segment->buffer_bytes_ > kLongestBuffer ||
      bytes != bytes_for(segment->buffer_bytes_))
    return Errc::corrupt;
  return segment;
}

Segment::~Segment() {
  if (base_ != nullptr) ::munmap(base_, bytes_);
}

void Segment::forget() const {
  ::mmap(base_, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
         0);
}

Registration& Segment::registration(std::uint32_t index) const {
  return reinterpret_cast<Registration*>(base_ + kRegistrationsAt)[index];
}
ConnectionRing& Segment::ring(std::uint32_t connection) const {
  return reinterpret_cast<ConnectionRing*>(base_ + kRingsAt)[connection];
}
std::byte* Segment::buffer(std::uint32_t index) const {
  return base_ + kSlabAt + std::uint64_t{index} * buffer_bytes_;
}
std::atomic<std::uint64_t>* Segment::slots() const {
  return reinterpret_cast<std::atomic<std::uint64_t>*>(base_ + kSlotsAt);
}
std::atomic<std::uint64_t>* Segment::free_ring() const {
  return reinterpret_cast<std::atomic<std::uint64_t>*>(base_ + kFreeAt);
}

// A claim is one swap of the buffer's own word. Ring and `fresh` only say where to look, and an entry that is
// out of date is passed. So a peer that dies between two steps leaves nothing but its name in the word.
Result<Claim> Segment::claim(std::uint32_t claimer) const {
  SegmentHeader& shared = header();
  const std::uint32_t limit = shared.buffer_limit.load(std::memory_order_relaxed);
  const std::uint64_t most = 2 * kFreeEntries;
  std::uint64_t head = shared.free_head.load(std::memory_order_acquire);
  for (std::uint64_t step = 0; step < most; ++step) {
    // Acquire: pairs with push_free(); the entry is there.
    if (head >= shared.free_tail.load(std::memory_order_acquire)) break;
    const std::uint64_t entry = free_ring()[head % kFreeEntries].load(std::memory_order_acquire);
    const auto buffer = static_cast<std::uint32_t>(entry);
    const auto serial = static_cast<std::uint32_t>(entry >> 32);
    bool mine = false;
    if (buffer < kMaxReceiveBuffers && buffer < limit) {
      std::uint64_t word = slot_word(serial, 0, BufferState::free);
      mine = slots()[buffer].compare_exchange_strong(word, slot_word(serial, claimer, BufferState::claimed),
                                                     std::memory_order_acq_rel);
    }
    if (shared.free_head.compare_exchange_strong(head, head + 1, std::memory_order_acq_rel)) ++head;
    if (mine) return Claim{buffer, serial};
  }
  std::uint64_t fresh = shared.fresh.load(std::memory_order_acquire);
  while (fresh < limit && fresh < kMaxReceiveBuffers) {
    const auto buffer = static_cast<std::uint32_t>(fresh);
    std::uint64_t word = slot_word(0, 0, BufferState::free);
    const bool mine = slots()[buffer].compare_exchange_strong(
        word, slot_word(0, claimer, BufferState::claimed), std::memory_order_acq_rel);
    if (shared.fresh.compare_exchange_strong(fresh, fresh + 1, std::memory_order_acq_rel)) ++fresh;
    if (mine) return Claim{buffer, 0};
  }
  return Errc::no_resource;
}

bool Segment::announce(std::uint32_t connection) const {
  SegmentHeader& shared = header();
  const std::uint64_t bit = std::uint64_t{1} << connection % 64;
  const std::uint32_t word = connection / 64;
  // The first is a full barrier between the line and what the owner may have said meanwhile.
  if ((shared.ready[word].fetch_or(bit, std::memory_order_seq_cst) & bit) == 0)
    shared.ready_words[word / 64].fetch_or(std::uint64_t{1} << word % 64, std::memory_order_seq_cst);
  return shared.armed.load(std::memory_order_seq_cst) != 0 &&
         shared.armed.exchange(0, std::memory_order_seq_cst) != 0;
}

bool Segment::take(const Claim& claim, std::uint32_t claimer) const {
  if (claim.buffer >= kMaxReceiveBuffers) return false;
  std::uint64_t word = slot_word(claim.serial, claimer, BufferState::claimed);
  return slots()[claim.buffer].compare_exchange_strong(word, slot_word(claim.serial, 0, BufferState::taken),
                                                       std::memory_order_acq_rel);
}

void Segment::push_free(std::uint32_t buffer, std::uint32_t serial) const {
  SegmentHeader& shared = header();
  const std::uint64_t tail = shared.free_tail.load(std::memory_order_relaxed);
  free_ring()[tail % kFreeEntries].store(static_cast<std::uint64_t>(serial) << 32 | buffer,
                                         std::memory_order_release);
  shared.free_tail.store(tail + 1, std::memory_order_release);
}

void Segment::make_free(std::uint32_t buffer, std::uint32_t serial) const {
  // Release: our use of the buffer happens before a sender's.
  slots()[buffer].store(slot_word(serial, 0, BufferState::free), std::memory_order_release);
  push_free(buffer, serial);
}

void Segment::give_back(std::uint32_t buffer) const {
  const std::uint64_t word = slots()[buffer].load(std::memory_order_relaxed);
  if (slot_state(word) == BufferState::taken) make_free(buffer, slot_serial(word) + 1);
}

void Segment::free_claims_of(std::uint32_t claimer) const {
  const std::uint64_t fresh = header().fresh.load(std::memory_order_acquire);
  // One more than `fresh` says: its claimer may have died before it moved that on.
  for (std::uint64_t i = 0; i <= fresh && i < kMaxReceiveBuffers; ++i) {
    const std::uint64_t word = slots()[i].load(std::memory_order_acquire);
    if (slot_state(word) == BufferState::claimed && slot_claimer(word) == (claimer & 0x3fffffff))
      make_free(static_cast<std::uint32_t>(i), slot_serial(word) + 1);
  }
}

void Segment::set_buffer_limit(std::uint32_t limit) const {
  SegmentHeader& shared = header();
  shared.buffer_limit.store(limit, std::memory_order_seq_cst);
  // The ring begins anew: it may hold entries beyond the limit, or lack some that are below it now.
  const std::uint64_t tail = shared.free_tail.load(std::memory_order_relaxed);
  std::uint64_t head = shared.free_head.load(std::memory_order_acquire);
  while (head < tail && !shared.free_head.compare_exchange_weak(head, tail, std::memory_order_acq_rel)) {
  }
  const std::uint64_t fresh = shared.fresh.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < limit && i < fresh; ++i) {
    std::uint64_t word = slots()[i].load(std::memory_order_acquire);
    if (slot_state(word) != BufferState::free) continue;
    const std::uint32_t serial = slot_serial(word) + 1;
    // A sender that has read an old entry may claim it at this moment.
    if (slots()[i].compare_exchange_strong(word, slot_word(serial, 0, BufferState::free),
                                           std::memory_order_acq_rel))
      push_free(i, serial);
  }
}

}  // namespace orrery::cci
