// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// PtlGetPut beside others that swap, put and get in the same memory, from all processes and several threads.
#include "tests/lib/portals3/client.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <thread>
#include <vector>

namespace client3 {
namespace {

constexpr std::size_t kWords = 32;
using Words = std::array<std::uint64_t, kWords>;

bool is_uniform(const Words& words) {
  return std::all_of(words.begin(), words.end(), [&](std::uint64_t word) { return word == words[0]; });
}

class Swaps : public Portals3Test {
 protected:
  static constexpr int kThreads = 2;
  static constexpr int kTurns = 1500;

  // One thread's descriptor and queue.
  class Side {
   public:
    explicit Side(ptl_handle_ni_t ni) {
      EXPECT_EQ(PtlEQAlloc(ni, 16, PTL_EQ_HANDLER_NONE, &queue_), PTL_OK);
      out_ = bind(ni, &out);
      in_ = bind(ni, &in);
    }
    // `last`: of the events that the operation raises.
    void wait_for(ptl_event_kind_t last) const {
      ptl_event_t event{};
      do {
        ASSERT_EQ(PtlEQWait(queue_, &event), PTL_OK);
        ASSERT_EQ(event.ni_fail_type, PTL_NI_OK);
      } while (event.type != last);
    }
    void swap(ptl_process_id_t target) const {
      ASSERT_EQ(PtlGetPut(in_, out_, target, kPortal, 0, 1, 0, 0), PTL_OK);
      wait_for(PTL_EVENT_REPLY_END);
    }
    void put(ptl_process_id_t target) const {
      ASSERT_EQ(PtlPut(out_, PTL_ACK_REQ, target, kPortal, 0, 1, 0, 0), PTL_OK);
      wait_for(PTL_EVENT_ACK);
    }
    void get(ptl_process_id_t target) const {
      ASSERT_EQ(PtlGet(in_, target, kPortal, 0, 1, 0), PTL_OK);
      wait_for(PTL_EVENT_REPLY_END);
    }
    Words out{};
    Words in{};

   private:
    ptl_handle_md_t bind(ptl_handle_ni_t ni, Words* words) const {
      ptl_handle_md_t md = PTL_INVALID_HANDLE;
      EXPECT_EQ(PtlMDBind(ni, {words, sizeof(Words), PTL_MD_THRESH_INF, 0, kEnds, nullptr, queue_},
                          PTL_RETAIN, &md),
                PTL_OK);
      return md;
    }
    ptl_handle_eq_t queue_ = PTL_EQ_NONE;
    ptl_handle_md_t out_ = PTL_INVALID_HANDLE, in_ = PTL_INVALID_HANDLE;
  };

  // Rank 0's memory, without events.
  void offer() {
    EXPECT_EQ(PtlGetRankId(ni, 0, &owner), PTL_OK);
    ptl_md_t md =
        memory(&shared, sizeof(shared), PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | kEnds);
    md.eq_handle = PTL_EQ_NONE;
    if (rank == 0) attach(entry(1), md);
    barrier();
  }
  template <typename Work>
  void by_threads(Work work) {
    std::vector<std::thread> threads;
    for (int i = 1; i < kThreads; ++i) threads.emplace_back([&, i] { work(i); });
    work(0);
    for (std::thread& thread : threads) thread.join();
  }
  std::uint64_t value(int thread, int turn) const {
    return 1 + (std::uint64_t{rank} * kThreads + static_cast<std::uint64_t>(thread)) * kTurns +
           static_cast<std::uint64_t>(turn);
  }

  ptl_process_id_t owner{};
  Words shared{};
};

// What swaps bring back, and what is there at the end, is what was there at the beginning and what they put:
// each value once.
TEST_F(Swaps, EachValueComesBackOnce) {
  offer();
  std::array<std::vector<std::uint64_t>, kThreads> got;
  by_threads([&](int thread) {
    Side side(ni);
    for (int turn = 0; turn < kTurns; ++turn) {
      side.out.fill(value(thread, turn));
      side.swap(owner);
      ASSERT_TRUE(is_uniform(side.in));
      got[thread].push_back(side.in[0]);
    }
  });
  barrier();
  // All tell rank 0, which has the last.
  std::vector<std::uint64_t> all;
  for (const auto& one : got) all.insert(all.end(), one.begin(), one.end());
  std::vector<std::uint64_t> told(all.size() * size);
  const ptl_handle_me_t me = entry(2);
  ptl_md_t md =
      memory(told.data(), told.size() * sizeof(std::uint64_t), PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | kEnds);
  attach(me, md);
  const ptl_handle_md_t source = bind(memory(all.data(), all.size() * sizeof(std::uint64_t), kEnds, 2));
  barrier();
  ASSERT_EQ(PtlPut(source, PTL_ACK_REQ, owner, kPortal, 0, 2, rank * all.size() * sizeof(std::uint64_t), 0),
            PTL_OK);
  expect(PTL_EVENT_ACK);
  barrier();
  if (rank != 0) return;
  ASSERT_TRUE(is_uniform(shared));
  std::set<std::uint64_t> values(told.begin(), told.end());
  values.insert(shared[0]);
  EXPECT_EQ(values.size(), told.size() + 1);
  EXPECT_EQ(*values.begin(), 0u);
  EXPECT_EQ(*values.rbegin(), told.size());
}

// Puts and gets come before or after a swap, never within it.
TEST_F(Swaps, PutsAndGetsDoNotComeInBetween) {
  offer();
  by_threads([&](int thread) {
    Side side(ni);
    for (int turn = 0; turn < kTurns; ++turn) {
      side.out.fill(value(thread, turn));
      switch ((turn + thread) % 3) {
        case 0:
          side.swap(owner);
          break;
        case 1:
          side.put(owner);
          continue;
        default:
          side.get(owner);
      }
      ASSERT_TRUE(is_uniform(side.in)) << turn;
    }
  });
  barrier();
  if (rank == 0) {
    EXPECT_TRUE(is_uniform(shared));
  }
}

}  // namespace
}  // namespace client3
