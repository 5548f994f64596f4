// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Atomic memory operations as clients of two or more PEs see them, whatever way the packets take. The memory
// is rank 0's; every PE, rank 0 too, works on it.
#include "tests/lib/gni/client.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

#include <sys/mman.h>

namespace {

using client::address_of;
using client::descriptor;
using client::next_event;

constexpr std::size_t kWords = 8192 / sizeof(std::uint64_t);

class Amo : public testing::Test {
 protected:
  struct Card {
    std::uint32_t nic_address;
    std::uint64_t address;
    gni_mem_handle_t handle;
  };

  explicit Amo(std::uint32_t modes = 0) : domain(modes, 100) {
    void* mapped = mmap(nullptr, sizeof(std::uint64_t) * kWords, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    words = static_cast<std::uint64_t*>(mapped);
    source = domain.queue(64);
    target = domain.queue(256);
    local = domain.memory(results.data(), sizeof results);
    mine = {domain.address, address_of(words), domain.memory(words, sizeof(std::uint64_t) * kWords, target)};
    home = pmi.gather(mine)[0];
    endpoint = domain.endpoint(source, home.nic_address, 100);
  }
  ~Amo() override {
    pmi.barrier();
    EXPECT_EQ(GNI_MemDeregister(domain.nic, &mine.handle), GNI_RC_SUCCESS);
    munmap(words, sizeof(std::uint64_t) * kWords);
  }

  gni_post_descriptor_t amo(gni_fma_cmd_type_t command, std::size_t word, std::uint64_t first,
                            std::uint64_t second = 0, std::uint64_t length = 8) const {
    gni_post_descriptor_t d = descriptor(GNI_POST_AMO, GNI_CQMODE_GLOBAL_EVENT);
    d.local_addr = address_of(results.data());
    d.local_mem_hndl = local;
    d.remote_addr = home.address + word * 8;
    d.remote_mem_hndl = home.handle;
    d.length = length;
    d.amo_cmd = command;
    d.first_operand = first;
    d.second_operand = second;
    return d;
  }
  // Posts and collects; the old value, of a command that fetches.
  std::uint64_t run(gni_post_descriptor_t d) {
    EXPECT_EQ(GNI_PostFma(endpoint, &d), GNI_RC_SUCCESS);
    gni_cq_entry_t event = 0;
    EXPECT_EQ(next_event(source, &event), GNI_RC_SUCCESS);
    gni_post_descriptor_t* done = nullptr;
    EXPECT_EQ(GNI_GetCompleted(source, event, &done), GNI_RC_SUCCESS);
    EXPECT_EQ(done, &d);
    return results[0];
  }

  const client::Pmi& pmi = client::Pmi::get();
  client::Domain domain;
  alignas(64) std::array<std::uint64_t, 16> results{};
  std::uint64_t* words = nullptr;
  gni_cq_handle_t source = nullptr;
  gni_cq_handle_t target = nullptr;
  gni_mem_handle_t local{};
  gni_ep_handle_t endpoint = nullptr;
  Card mine{};
  Card home{};
};

TEST_F(Amo, EveryPeGetsItsOwnNumbersFromOneCounter) {
  constexpr std::uint64_t kEach = 500;
  std::vector<std::uint64_t> got;
  for (std::uint64_t i = 0; i < kEach; ++i) got.push_back(run(amo(GNI_FMA_ATOMIC_FADD, 0, 1)));
  for (std::size_t i = 1; i < got.size(); ++i) ASSERT_GT(got[i], got[i - 1]);
  pmi.barrier();
  // Each marks its numbers with a bit; no bit was set before, and all are in the end.
  for (const std::uint64_t number : got) {
    const std::uint64_t bit = 1ull << number % 64;
    ASSERT_EQ(run(amo(GNI_FMA_ATOMIC2_FOR, 1 + number / 64, bit)) & bit, 0u) << number;
  }
  pmi.barrier();
  const std::uint64_t total = kEach * static_cast<std::uint64_t>(pmi.size);
  EXPECT_EQ(run(amo(GNI_FMA_ATOMIC_FAND, 0, ~0ull)), total);
  for (std::uint64_t number = 0; number < total; ++number) {
    if (pmi.rank != 0) break;
    ASSERT_NE(words[1 + number / 64] >> number % 64 & 1, 0u) << number;
  }
}

TEST_F(Amo, NarrowWordsKeepTheirNeighbours) {
  // Every PE adds to the low half, and floats to the high half.
  for (int i = 0; i < 100; ++i) {
    run(amo(GNI_FMA_ATOMIC2_IADD_S, 0, 3, 0, 4));
    gni_post_descriptor_t d = amo(GNI_FMA_ATOMIC2_FFPADD_S, 0, std::bit_cast<std::uint32_t>(0.25f), 0, 4);
    d.remote_addr += 4;
    run(d);
  }
  pmi.barrier();
  const auto n = static_cast<std::uint32_t>(pmi.size);
  results[0] = ~0ull;
  const std::uint64_t low = run(amo(GNI_FMA_ATOMIC2_FIADD_S, 0, 0, 0, 4));
  EXPECT_EQ(low, 0xffff'ffff'0000'0000 | 300 * n) << "four bytes come back";
  pmi.barrier();
  if (pmi.rank == 0) {
    EXPECT_EQ(words[0] >> 32, std::bit_cast<std::uint32_t>(25.0f * static_cast<float>(n)));
  }
}

TEST_F(Amo, CompareAndSwapLetsOneWin) {
  const std::uint64_t me = static_cast<std::uint64_t>(pmi.rank) + 1;
  const bool won = run(amo(GNI_FMA_ATOMIC2_FCSWAP, 0, 0, me)) == 0;
  const auto all = pmi.gather(won);
  EXPECT_EQ(std::count(all.begin(), all.end(), true), 1);
  const std::uint64_t winner = run(amo(GNI_FMA_ATOMIC_CSWAP, 0, ~0ull, 0));
  EXPECT_EQ(winner == me, won);
}

TEST_F(Amo, EventsReachTheTarget) {
  gni_post_descriptor_t d = amo(GNI_FMA_ATOMIC_ADD, 0, 1);
  d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
  run(d);
  pmi.barrier();
  if (pmi.rank != 0) return;
  for (int i = 0; i < pmi.size; ++i) {
    gni_cq_entry_t event = 0;
    ASSERT_EQ(next_event(target, &event), GNI_RC_SUCCESS);
    EXPECT_GE(GNI_CQ_GET_REM_INST_ID(event), 100u);
  }
  EXPECT_EQ(words[0], static_cast<std::uint64_t>(pmi.size));
}

TEST_F(Amo, AListOfWordsIsOneOperation) {
  results.fill(7);
  run(amo(GNI_FMA_ATOMIC_FADD, 0, 1, 0, 5 * 8));
  EXPECT_EQ(results[5], 7u);
  pmi.barrier();
  for (int i = 0; i < 6 && pmi.rank == 0; ++i)
    EXPECT_EQ(words[i], i < 5 ? static_cast<std::uint64_t>(pmi.size) : 0u);
  pmi.barrier();
  // Two operands: every other word.
  run(amo(GNI_FMA_ATOMIC_AX, 0, 0, 9, 2 * 16));
  pmi.barrier();
  if (pmi.rank != 0) return;
  EXPECT_EQ(words[0], 9u);
  EXPECT_EQ(words[1], static_cast<std::uint64_t>(pmi.size));
  EXPECT_EQ(words[2], 9u);
}

TEST_F(Amo, FlagsStandBehindResponses) {
  gni_post_descriptor_t d = amo(GNI_FMA_ATOMIC_FADD, static_cast<std::size_t>(pmi.rank) * 8, 4);
  d.type = GNI_POST_AMO_W_FLAG;
  d.sync_flag_value = 0x1'1234'5678;
  results[1] = 0;
  EXPECT_EQ(run(d), 0u);
  EXPECT_EQ(results[1], 0x1234'5678u);
  d = amo(GNI_FMA_ATOMIC_FADD, static_cast<std::size_t>(pmi.rank) * 8, 0);
  d.type = GNI_POST_FMA_GET_W_FLAG;
  d.length = 60;
  d.sync_flag_value = 0x9abc'def0;
  EXPECT_EQ(run(d), 4u);
  EXPECT_EQ(results[7] >> 32, 0x9abc'def0u);
  d.length = 64;
  EXPECT_EQ(GNI_PostFma(endpoint, &d), GNI_RC_SIZE_ERROR);
}

TEST_F(Amo, WordsThatCannotBeReachedEndInAnEvent) {
  gni_post_descriptor_t d = amo(GNI_FMA_ATOMIC_ADD, kWords, 1);
  ASSERT_EQ(GNI_PostFma(endpoint, &d), GNI_RC_SUCCESS);
  gni_cq_entry_t event = 0;
  EXPECT_EQ(next_event(source, &event), GNI_RC_TRANSACTION_ERROR);
  gni_post_descriptor_t* done = nullptr;
  EXPECT_EQ(GNI_GetCompleted(source, event, &done), GNI_RC_TRANSACTION_ERROR);
  EXPECT_EQ(done, &d);
}

TEST_F(Amo, RequestsThatCannotBeCarriedOutAreRefusedAtOnce) {
  const gni_mem_handle_t read_only = domain.memory(results.data(), 64, nullptr, GNI_MEM_READ_ONLY);
  constexpr auto kAdd = GNI_FMA_ATOMIC_ADD;
  constexpr auto kFetchingAdd = GNI_FMA_ATOMIC_FADD;
  using Spoil = std::function<void(gni_post_descriptor_t&)>;
  struct Row {
    const char* what;
    gni_fma_cmd_type_t command;
    Spoil spoil;
    gni_return_t code;
  };
  const Spoil flagged = [](auto& d) { d.type = GNI_POST_AMO_W_FLAG; };
  const Row rows[] = {
      {"of 0", kAdd, [](auto& d) { d.length = 0; }, GNI_RC_INVALID_PARAM},
      {"of 12", kAdd, [](auto& d) { d.length = 12; }, GNI_RC_ALIGNMENT_ERROR},
      {"at 4", kAdd, [](auto& d) { d.remote_addr += 4; }, GNI_RC_ALIGNMENT_ERROR},
      {"32 bits at 2", GNI_FMA_ATOMIC2_IADD_S, [](auto& d) { d.remote_addr += 2; }, GNI_RC_ALIGNMENT_ERROR},
      {"over 1 GiB", kAdd, [](auto& d) { d.length = 2ull << 30; }, GNI_RC_SIZE_ERROR},
      {"unknown event", kAdd, [](auto& d) { d.cq_mode = 8; }, GNI_RC_INVALID_PARAM},
      {"nowhere for the result", kFetchingAdd, [](auto& d) { d.local_mem_hndl = {}; }, GNI_RC_INVALID_PARAM},
      {"result behind the end", kFetchingAdd, [](auto& d) { d.local_addr += 8192; }, GNI_RC_INVALID_PARAM},
      {"result into read-only", kFetchingAdd, [&](auto& d) { d.local_mem_hndl = read_only; },
       GNI_RC_PERMISSION_ERROR},
      {"flag without response", kAdd, flagged, GNI_RC_INVALID_PARAM},
      {"flag behind 64 bytes", kFetchingAdd,
       [](auto& d) {
         d.type = GNI_POST_AMO_W_FLAG;
         d.length = 64;
       },
       GNI_RC_SIZE_ERROR},
      {"no such command", static_cast<gni_fma_cmd_type_t>(GNI_FMA_ATOMIC_ADD - 8), [](auto&) {},
       GNI_RC_ILLEGAL_OP},
      {"no first generation for 32 bits", static_cast<gni_fma_cmd_type_t>(GNI_FMA_ATOMIC_ADD | 0x200),
       [](auto&) {}, GNI_RC_ILLEGAL_OP},
  };
  for (const Row& row : rows) {
    gni_post_descriptor_t d = amo(row.command, 0, 1);
    row.spoil(d);
    EXPECT_EQ(GNI_PostFma(endpoint, &d), row.code) << row.what;
    gni_cq_entry_t event = 0;
    EXPECT_EQ(GNI_CqGetEvent(source, &event), GNI_RC_NOT_DONE) << row.what;
  }
  pmi.barrier();
  EXPECT_EQ(words[0], 0u);
}

// Domains that use the cache: the same results.
class CachedAmo : public Amo {
 protected:
  CachedAmo() : Amo(GNI_CDM_MODE_CACHED_AMO_ENABLED) {}
};

TEST_F(CachedAmo, SumsAreWhatWasAdded) {
  for (int i = 0; i < 200; ++i) {
    run(amo(GNI_FMA_ATOMIC_ADD_C, static_cast<std::size_t>(i % 3), 1));
    run(amo(GNI_FMA_ATOMIC2_FIADD_C, 2, 1));
  }
  pmi.barrier();
  const auto n = static_cast<std::uint64_t>(pmi.size);
  EXPECT_EQ(run(amo(GNI_FMA_ATOMIC_FADD_C, 0, 0)), 67 * n);
  EXPECT_EQ(run(amo(GNI_FMA_ATOMIC_FADD, 2, 0)), 266 * n) << "past the cache";
}

}  // namespace
