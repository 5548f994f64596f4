// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
// Puts whose target is moved into the memory file while they come: no byte of any is lost.
#include "tests/lib/portals4/client.hpp"

#include <thread>

#include <sys/mman.h>
#include <unistd.h>

namespace {

// Each extent is moved once: so many chances to lose a put.
constexpr ptl_size_t kExtentBytes = 2 << 20;
constexpr ptl_size_t kExtents = 128;
constexpr ptl_size_t kPageBytes = 4096;
constexpr ptl_size_t kPages = kExtentBytes / kPageBytes;
constexpr ptl_size_t kPuts = 100;  // per extent: they begin before it is hot, and end behind its move
constexpr ptl_match_bits_t kAll = 1;

// Where the put of that number goes: a page of its own.
ptl_size_t offset_of(ptl_size_t extent, ptl_size_t put) {
  return extent * kExtentBytes + put * (kPages / kPuts) * kPageBytes;
}

class Moving : public client::PortalsTest {
 protected:
  void put_while_it_moves(int file, ptl_size_t threads);

 private:
  // The puts of one thread: each `stride`th. Each is acknowledged before the next begins.
  void put_some(ptl_size_t first, ptl_size_t stride) const {
    std::uint64_t value = 0;
    ptl_handle_ct_t done = PTL_INVALID_HANDLE;
    ASSERT_EQ(PtlCTAlloc(ni, &done), PTL_OK);
    const ptl_md_t from{&value, sizeof value, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, done};
    ptl_handle_md_t md = PTL_INVALID_HANDLE;
    ASSERT_EQ(PtlMDBind(ni, &from, &md), PTL_OK);
    ptl_size_t puts = 0;
    ptl_ct_event_t seen{};
    for (ptl_size_t extent = 0; extent < kExtents && seen.failure == 0; ++extent) {
      for (ptl_size_t put = first; put < kPuts && seen.failure == 0; put += stride) {
        value = extent * kPuts + put;
        ASSERT_EQ(PtlPut(md, 0, sizeof value, PTL_CT_ACK_REQ, peer, portal, kAll, offset_of(extent, put),
                         nullptr, 0),
                  PTL_OK);
        // Ends with PTL_OK for a failure, too.
        ASSERT_EQ(PtlCTWait(done, ++puts, &seen), PTL_OK);
      }
    }
    EXPECT_EQ(seen.failure, 0u);
    EXPECT_EQ(PtlMDRelease(md), PTL_OK);
    EXPECT_EQ(PtlCTFree(done), PTL_OK);
  }
};

// `file`: of which the memory is a private mapping; -1: anonymous.
void Moving::put_while_it_moves(int file, ptl_size_t threads) {
  const int flags = MAP_PRIVATE | MAP_NORESERVE | (file < 0 ? MAP_ANONYMOUS : 0);
  void* const room = mmap(nullptr, (kExtents + 1) * kExtentBytes, PROT_READ | PROT_WRITE, flags, file, 0);
  ASSERT_NE(room, MAP_FAILED);
  const std::uintptr_t begin =
      (reinterpret_cast<std::uintptr_t>(room) + kExtentBytes - 1) & ~(kExtentBytes - 1);
  const auto at = [&](ptl_size_t extent, ptl_size_t put) -> std::uint64_t& {
    return *reinterpret_cast<std::uint64_t*>(begin + offset_of(extent, put));
  };
  for (ptl_size_t extent = 0; extent < kExtents; ++extent)
    for (ptl_size_t put = 0; put < kPuts; ++put) at(extent, put) = UINT64_MAX;
  const ptl_handle_me_t me = append(entry(reinterpret_cast<void*>(begin), kExtents * kExtentBytes, kAll,
                                          PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE),
                                    PTL_PRIORITY_LIST);
  barrier();
  std::vector<std::thread> others;
  for (ptl_size_t thread = 1; thread < threads; ++thread)
    others.emplace_back([this, thread, threads] { put_some(thread, threads); });
  put_some(0, threads);
  for (std::thread& other : others) other.join();
  barrier();
  ptl_size_t lost = 0;
  for (ptl_size_t extent = 0; extent < kExtents; ++extent)
    for (ptl_size_t put = 0; put < kPuts; ++put) lost += at(extent, put) != extent * kPuts + put;
  EXPECT_EQ(lost, 0u);
  barrier();
  EXPECT_EQ(PtlMEUnlink(me), PTL_OK);
  munmap(room, (kExtents + 1) * kExtentBytes);
}

TEST_F(Moving, LosesNoPut) { put_while_it_moves(-1, 1); }

// As a program's initialised variables are: the kernel may refuse a write while they move.
class MovingFile : public Moving {
 protected:
  MovingFile() : file_(memfd_create("target", MFD_CLOEXEC)) {
    EXPECT_GE(file_, 0);
    EXPECT_EQ(ftruncate(file_, static_cast<off_t>((kExtents + 1) * kExtentBytes)), 0);
  }
  ~MovingFile() override { close(file_); }

  int file_;
};

TEST_F(MovingFile, LosesNoPut) { put_while_it_moves(file_, 1); }

// More threads than have a hazard word of their own.
TEST_F(MovingFile, LosesNoPutOfManyThreads) { put_while_it_moves(file_, 72); }

}  // namespace
