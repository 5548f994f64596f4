// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The engine with a carrier of the test's.
#include "emu/nic/initiator/bte_queue.hpp"

#include "tests/emu/nic/parts.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace orrery::nic {
namespace {

struct Carried final : BteQueue::Carrier {
  struct Chunk {
    std::uint64_t at, bytes;
    std::uint32_t flags;
    bool first;
  };
  std::mutex mu;
  std::vector<Chunk> chunks;
  std::atomic<Errc> outcome{Errc::ok};
  std::atomic<int> sent{0};
  std::atomic<bool> frames_are_answered{true};
  std::atomic<bool> quiet{true};

  Errc carry(const Request& chunk, const Request&, bool first) override {
    const std::lock_guard lock(mu);
    chunks.push_back({chunk.remote_address, chunk.length, chunk.flags, first});
    return outcome;
  }
  Errc send(const Request&) override {
    ++sent;
    return Errc::not_done;
  }
  Regions::Piece piece(const MemKey&, std::uint64_t) override { return {}; }
  std::vector<std::uint32_t> open_requests() override {
    return frames_are_answered ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{1};
  }
  void await(std::vector<std::uint32_t>& names) override {
    if (frames_are_answered) names.clear();
  }
  bool is_quiet() const override { return quiet; }
};

struct Engine : ::testing::Test {
  Carried carrier;
  BteQueue bte{carrier};
  parts::Told told;
  Request transfer(std::uint64_t bytes, std::uint32_t flags = 0) {
    Request request;
    request.flags = kBlockTransfer | kRemoteEvent | flags;
    request.length = bytes;
    request.completion.listener = &told;
    return request;
  }
  void finish() {
    while (bte.outstanding() != 0) yield_cpu();
  }
};

TEST_F(Engine, MovesATransferInChunksAndAsksForTheEventWithTheLast) {
  ASSERT_EQ(bte.submit(transfer(2 * BteQueue::kChunk + 7)), Errc::not_done);
  finish();
  ASSERT_EQ(carrier.chunks.size(), 3u);
  EXPECT_EQ(carrier.chunks[1].at, BteQueue::kChunk);
  EXPECT_EQ(carrier.chunks[2].bytes, 7u);
  EXPECT_TRUE(carrier.chunks[0].first);
  EXPECT_FALSE(carrier.chunks[1].first);
  EXPECT_EQ(carrier.chunks[1].flags & kRemoteEvent, 0u);
  EXPECT_NE(carrier.chunks[2].flags & kRemoteEvent, 0u);
  EXPECT_EQ(told.all, std::vector{Errc::ok});
}

TEST_F(Engine, EndsATransferAtItsFirstError) {
  carrier.outcome = Errc::bounds;
  ASSERT_EQ(bte.submit(transfer(4 * BteQueue::kChunk)), Errc::not_done);
  finish();
  EXPECT_EQ(carrier.chunks.size(), 1u);
  EXPECT_EQ(told.all, std::vector{Errc::bounds});
}

TEST_F(Engine, SendsAsPacketsWhatItCannotCopyAndTellsNothingThen) {
  carrier.outcome = Errc::not_done;
  ASSERT_EQ(bte.submit(transfer(64)), Errc::not_done);
  finish();
  EXPECT_EQ(carrier.sent.load(), 1);
  EXPECT_TRUE(told.all.empty());
}

TEST_F(Engine, AFencedTransferWaitsForTheAnswersToFrames) {
  carrier.frames_are_answered = false;
  ASSERT_EQ(bte.submit(transfer(64, kFence)), Errc::not_done);
  EXPECT_EQ(bte.fences(), 1u);
  for (int i = 0; i < 1000; ++i) yield_cpu();
  {
    const std::lock_guard lock(carrier.mu);
    EXPECT_TRUE(carrier.chunks.empty());
  }
  carrier.frames_are_answered = true;
  finish();
  EXPECT_EQ(told.all, std::vector{Errc::ok});
  EXPECT_EQ(bte.fences(), 0u);
}

TEST_F(Engine, NothingPrecedesWhileAllIsQuiet) {
  EXPECT_TRUE(bte.untouched());
  EXPECT_TRUE(bte.nothing_precedes(nullptr));
  carrier.quiet = false;
  EXPECT_FALSE(bte.nothing_precedes(nullptr));
  EXPECT_FALSE(bte.comes_behind_others(nullptr));
  bte.note_fence();
  EXPECT_TRUE(bte.comes_behind_others(nullptr));
}

}  // namespace
}  // namespace orrery::nic
