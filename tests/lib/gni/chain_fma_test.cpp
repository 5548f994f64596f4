// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Chains and FMA windows as clients of several PEs see them: each PE works on the memory of all others.
#include "tests/lib/gni/client.hpp"

#include <array>
#include <functional>
#include <new>

#include <orrery/fma.h>
#include <sys/mman.h>

namespace {

using client::address_of;
using client::descriptor;
using client::next_event;

constexpr std::size_t kBytes = 64 << 10;

class Everybody : public testing::Test {
 protected:
  struct Card {
    std::uint32_t nic_address;
    std::uint64_t address;
    gni_mem_handle_t handle;
  };

  explicit Everybody(std::uint32_t modes = 0) : domain(modes, 100) {
    void* mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    words = static_cast<std::uint64_t*>(mapped);
    source = domain.queue(32);
    target = domain.queue(256);
    local = domain.memory(results.data(), sizeof results);
    mine = {domain.address, address_of(words), domain.memory(words, kBytes, target)};
    cards = pmi.gather(mine);
    for (std::size_t i = 0; i < cards.size(); ++i)
      endpoints.push_back(domain.endpoint(source, cards[i].nic_address, 100 + static_cast<std::uint32_t>(i)));
  }
  ~Everybody() override {
    pmi.barrier();
    EXPECT_EQ(GNI_MemDeregister(domain.nic, &mine.handle), GNI_RC_SUCCESS);
    munmap(words, kBytes);
  }
  void completes(gni_post_descriptor_t* d, gni_return_t expected = GNI_RC_SUCCESS) {
    gni_cq_entry_t event = 0;
    ASSERT_EQ(next_event(source, &event), expected);
    gni_post_descriptor_t* done = nullptr;
    EXPECT_EQ(GNI_GetCompleted(source, event, &done), expected);
    EXPECT_EQ(done, d);
    EXPECT_EQ(GNI_CqGetEvent(source, &event), GNI_RC_NOT_DONE) << "one completion";
  }
  std::uint64_t me() const { return static_cast<std::uint64_t>(pmi.rank); }

  const client::Pmi& pmi = client::Pmi::get();
  client::Domain domain;
  alignas(64) std::array<std::uint64_t, 64> results{};
  std::uint64_t* words = nullptr;
  gni_cq_handle_t source = nullptr;
  gni_cq_handle_t target = nullptr;
  gni_mem_handle_t local{};
  Card mine{};
  std::vector<Card> cards;
  std::vector<gni_ep_handle_t> endpoints;
};

class Chains : public Everybody {
 protected:
  // The first to rank 0, the others as nodes; `nodes` has to stay while it is posted.
  template <typename Ct>
  gni_post_descriptor_t chain(gni_post_type_t type, std::vector<Ct>& nodes) {
    nodes.resize(cards.size() - 1);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      nodes[i] = Ct{};
      nodes[i].next_descr = i + 1 < nodes.size() ? &nodes[i + 1] : nullptr;
      nodes[i].ep_hndl = endpoints[i + 1];
      nodes[i].remote_mem_hndl = cards[i + 1].handle;
      if constexpr (requires { nodes[i].length; }) {
        nodes[i].length = 8;
        nodes[i].remote_addr = cards[i + 1].address + me() * 8;
        nodes[i].local_addr = address_of(&results[i + 1]);
      }
      if constexpr (requires { nodes[i].local_mem_hndl; }) nodes[i].local_mem_hndl = local;
    }
    gni_post_descriptor_t d = descriptor(type, GNI_CQMODE_GLOBAL_EVENT);
    d.next_descr = nodes.empty() ? nullptr : nodes.data();
    d.local_addr = address_of(results.data());
    d.local_mem_hndl = local;
    d.remote_addr = cards[0].address + me() * 8;
    d.remote_mem_hndl = cards[0].handle;
    d.length = 8;
    return d;
  }
};

TEST_F(Chains, OfPutsGetsAndAmosReachEveryPeWithOneCompletion) {
  std::vector<gni_ct_put_post_descriptor_t> puts;
  for (std::size_t i = 0; i < cards.size(); ++i) results[i] = 1000 * (me() + 1) + i;
  gni_post_descriptor_t d = chain(GNI_POST_FMA_PUT, puts);
  d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
  ASSERT_EQ(GNI_CtPostFma(endpoints[0], &d), GNI_RC_SUCCESS);
  completes(&d);
  pmi.barrier();
  for (std::size_t from = 0; from < cards.size(); ++from) EXPECT_EQ(words[from], 1000 * (from + 1) + me());
  for (std::size_t from = 0; from < cards.size(); ++from) {
    gni_cq_entry_t event = 0;
    EXPECT_EQ(next_event(target, &event), GNI_RC_SUCCESS) << "every part tells its target";
  }
  pmi.barrier();

  std::vector<gni_ct_amo_post_descriptor_t> amos;
  d = chain(GNI_POST_AMO, amos);
  d.amo_cmd = GNI_FMA_ATOMIC_FADD;
  d.first_operand = 5;
  for (auto& node : amos) {
    node.amo_cmd = GNI_FMA_ATOMIC2_FXOR;
    node.first_operand = 1;
  }
  results.fill(0);
  ASSERT_EQ(GNI_CtPostFma(endpoints[0], &d), GNI_RC_SUCCESS);
  completes(&d);
  for (std::size_t i = 0; i < cards.size(); ++i) EXPECT_EQ(results[i], 1000 * (me() + 1) + i);

  std::vector<gni_ct_get_post_descriptor_t> gets;
  d = chain(GNI_POST_FMA_GET, gets);
  ASSERT_EQ(GNI_CtPostFma(endpoints[0], &d), GNI_RC_SUCCESS);
  completes(&d);
  EXPECT_EQ(results[0], 1000 * (me() + 1) + 5);
  for (std::size_t i = 1; i < cards.size(); ++i) EXPECT_EQ(results[i], (1000 * (me() + 1) + i) ^ 1);
}

TEST_F(Chains, OfEventWritesReachEveryPe) {
  std::vector<gni_ct_cqw_post_descriptor_t> writes;
  gni_post_descriptor_t d = chain(GNI_POST_CQWRITE, writes);
  d.cqwrite_value = 0xaa00 + me();
  for (auto& node : writes) node.cqwrite_value = 0xbb00 + me();
  ASSERT_EQ(GNI_CtPostCqWrite(endpoints[0], &d), GNI_RC_SUCCESS);
  completes(&d);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    gni_cq_entry_t event = 0;
    ASSERT_EQ(next_event(target, &event), GNI_RC_SUCCESS);
    sum += GNI_CQ_GET_DATA(event) - (me() == 0 ? 0xaa00 : 0xbb00);
  }
  EXPECT_EQ(sum, cards.size() * (cards.size() - 1) / 2);
}

TEST_F(Chains, AnErrorOfOnePartIsTheCompletions) {
  std::vector<gni_ct_put_post_descriptor_t> puts;
  gni_post_descriptor_t d = chain(GNI_POST_FMA_PUT, puts);
  if (puts.empty()) return;
  puts.back().remote_addr += kBytes;
  ASSERT_EQ(GNI_CtPostFma(endpoints[0], &d), GNI_RC_SUCCESS);
  completes(&d, GNI_RC_TRANSACTION_ERROR);
}

TEST_F(Chains, ThatCannotBeCarriedOutAreRefusedWhole) {
  using Puts = std::vector<gni_ct_put_post_descriptor_t>;
  struct Row {
    const char* what;
    std::function<void(gni_post_descriptor_t&, Puts&)> spoil;
    gni_return_t code;
  };
  const Row rows[] = {
      {"type of a block transfer", [](auto& d, auto&) { d.type = GNI_POST_RDMA_PUT; }, GNI_RC_INVALID_PARAM},
      {"type with a flag", [](auto& d, auto&) { d.type = GNI_POST_FMA_PUT_W_SYNCFLAG; },
       GNI_RC_INVALID_PARAM},
      {"ordered tail", [](auto& d, auto&) { d.dlvr_mode = GNI_DLVMODE_ORDERED_TAIL; }, GNI_RC_INVALID_PARAM},
      {"bad endpoint", [](auto&, auto& n) { n[0].ep_hndl = nullptr; }, GNI_RC_INVALID_PARAM},
      {"no source", [](auto&, auto& n) { n[0].local_addr = 0; }, GNI_RC_INVALID_PARAM},
      {"unknown event", [](auto& d, auto&) { d.cq_mode = 8; }, GNI_RC_INVALID_PARAM},
      {"over 1 GiB", [](auto& d, auto& n) { d.length = n[0].length = 600u << 20; }, GNI_RC_SIZE_ERROR},
  };
  words[me()] = 4;
  pmi.barrier();
  for (const Row& row : rows) {
    Puts puts;
    gni_post_descriptor_t d = chain(GNI_POST_FMA_PUT, puts);
    if (puts.empty()) return;
    row.spoil(d, puts);
    EXPECT_EQ(GNI_CtPostFma(endpoints[0], &d), row.code) << row.what;
  }
  EXPECT_EQ(GNI_CtPostFma(endpoints[0], nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CtPostCqWrite(endpoints[0], nullptr), GNI_RC_INVALID_PARAM);
  Puts puts;
  gni_post_descriptor_t d = chain(GNI_POST_FMA_PUT, puts);
  EXPECT_EQ(GNI_CtPostFma(nullptr, &d), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CtPostCqWrite(endpoints[0], &d), GNI_RC_INVALID_PARAM) << "puts are no event writes";
  gni_cq_entry_t event = 0;
  EXPECT_EQ(GNI_CqGetEvent(source, &event), GNI_RC_NOT_DONE);
  pmi.barrier();
  EXPECT_EQ(words[me()], 4u);
}

// ---- windows ----

class FmaWindows : public Everybody {
 protected:
  FmaWindows() {
    for (const Card& card : cards)
      places.push_back({card.nic_address, 0, card.address, {card.handle.qword1, card.handle.qword2}});
  }
  orrery_fma_window_t* open(std::uint32_t shift, std::uint32_t bits) {
    orrery_fma_descriptor_t d{};
    d.pe_shift = shift;
    d.pe_bits = bits;
    orrery_fma_window_t* window = nullptr;
    EXPECT_EQ(
        orrery_fma_open(domain.nic, &d, places.data(), static_cast<std::uint32_t>(places.size()), &window),
        ORRERY_FMA_SUCCESS);
    return window;
  }
  int settle(orrery_fma_window_t* window) {
    std::uint32_t name = 0;
    EXPECT_EQ(orrery_fma_end(window, &name), ORRERY_FMA_SUCCESS);
    const std::time_t give_up = std::time(nullptr) + 60;
    int rc = ORRERY_FMA_NOT_DONE;
    while ((rc = orrery_fma_test(window, name)) == ORRERY_FMA_NOT_DONE && std::time(nullptr) < give_up) {
    }
    return rc;
  }
  std::vector<orrery_fma_place_t> places;
};

TEST_F(FmaWindows, OneStoreScattersToEveryPeAndLaunchesReachThemAll) {
  orrery_fma_window_t* const window = open(6, 3);
  const std::size_t pes = cards.size();
  std::vector<std::uint64_t> block(8 * pes);
  for (int round = 1; round <= 30; ++round) {
    for (std::size_t i = 0; i < block.size(); ++i)
      block[i] = me() * 1000 + i + static_cast<std::size_t>(round);
    ASSERT_EQ(orrery_fma_begin(window), ORRERY_FMA_SUCCESS);
    // Each PE has its own rows: the bits above the PE's.
    ASSERT_EQ(orrery_fma_store(window, me() * 512, block.data(), pes * 64), ORRERY_FMA_SUCCESS);
    for (std::uint32_t pe = 0; pe < pes; ++pe) {
      ASSERT_EQ(
          orrery_fma_launch(window, orrery_fma_word(pe, 4096 + 8 * me(), static_cast<std::uint64_t>(round))),
          ORRERY_FMA_SUCCESS);
    }
    ASSERT_EQ(settle(window), ORRERY_FMA_SUCCESS);
  }
  pmi.barrier();
  for (std::size_t from = 0; from < pes; ++from) {
    for (std::size_t i = 0; i < 8; ++i) ASSERT_EQ(words[from * 8 + i], from * 1000 + me() * 8 + i + 30);
    EXPECT_EQ(words[512 + from], 30u);
  }
  EXPECT_EQ(orrery_fma_close(window), ORRERY_FMA_SUCCESS);
}

TEST_F(FmaWindows, MappedOnesTakePlainStores) {
  orrery_fma_window_t* const window = open(12, pmi.size > 2 ? 1 : 0);
  void* base = nullptr;
  std::uint64_t bytes = 0;
  const int rc = orrery_fma_map(window, &base, &bytes);
  if (std::getenv("TWO_HOSTS") != nullptr) {
    // Those of one's own host can be mapped.
    EXPECT_TRUE(rc == ORRERY_FMA_SUCCESS || rc == ORRERY_FMA_ILLEGAL_OP) << rc;
  } else if (!client::memory_is_shared()) {
    EXPECT_EQ(rc, ORRERY_FMA_ILLEGAL_OP);
  } else {
    ASSERT_EQ(rc, ORRERY_FMA_SUCCESS);
    auto* const row = static_cast<std::uint64_t*>(base);
    for (std::uint64_t at = 0; at < bytes / 8; at += 512) row[at + me()] = 77 + at / 512;
    pmi.barrier();
    if (me() < bytes / 4096) {
      for (std::size_t from = 0; from < cards.size(); ++from) EXPECT_EQ(words[from], 77 + me());
    }
  }
  pmi.barrier();
  EXPECT_EQ(orrery_fma_close(window), ORRERY_FMA_SUCCESS);
}

TEST_F(FmaWindows, StoresToAMappedWindowReachNobodyAfterTheEndOfTheRegistration) {
  const gni_mem_handle_t whole = mine.handle;
  auto* const page = static_cast<std::uint64_t*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  page[0] = 1;
  gni_mem_handle_t handle = domain.memory(page, 4096);
  mine = {domain.address, address_of(page), handle};
  const auto all = pmi.gather(mine);
  mine.handle = whole;
  const std::size_t next = (me() + 1) % all.size();
  orrery_fma_descriptor_t d{};
  d.pe_shift = 12;
  const orrery_fma_place_t place{
      all[next].nic_address, 0, all[next].address, {all[next].handle.qword1, all[next].handle.qword2}};
  orrery_fma_window_t* window = nullptr;
  ASSERT_EQ(orrery_fma_open(domain.nic, &d, &place, 1, &window), ORRERY_FMA_SUCCESS);
  void* base = nullptr;
  std::uint64_t bytes = 0;
  const bool mapped = orrery_fma_map(window, &base, &bytes) == ORRERY_FMA_SUCCESS;
  if (mapped) *static_cast<volatile std::uint64_t*>(base) = 2;
  pmi.barrier();
  // On several hosts another PE may have mapped what this one could not.
  if (mapped && std::getenv("TWO_HOSTS") == nullptr) {
    EXPECT_EQ(page[0], 2u);
  }
  ASSERT_EQ(GNI_MemDeregister(domain.nic, &handle), GNI_RC_SUCCESS);
  pmi.barrier();
  if (mapped) *static_cast<volatile std::uint64_t*>(base) = 3;
  pmi.barrier();
  if (std::getenv("TWO_HOSTS") == nullptr) {
    EXPECT_EQ(page[0], mapped ? 2u : 1u);
  } else {
    EXPECT_NE(page[0], 3u);
  }
  EXPECT_EQ(orrery_fma_close(window), ORRERY_FMA_SUCCESS);
  munmap(page, 4096);
}

TEST_F(FmaWindows, BadArgumentsAreRefused) {
  orrery_fma_descriptor_t d{};
  d.pe_shift = 6;
  orrery_fma_window_t* window = nullptr;
  const auto open_with = [&](const orrery_fma_descriptor_t& bad) {
    return orrery_fma_open(domain.nic, &bad, places.data(), 1, &window);
  };
  EXPECT_EQ(orrery_fma_open(nullptr, &d, places.data(), 1, &window), ORRERY_FMA_INVALID_PARAM);
  EXPECT_EQ(orrery_fma_open(source, &d, places.data(), 1, &window), ORRERY_FMA_INVALID_PARAM) << "a queue";
  EXPECT_EQ(orrery_fma_open(domain.nic, nullptr, places.data(), 1, &window), ORRERY_FMA_INVALID_PARAM);
  EXPECT_EQ(orrery_fma_open(domain.nic, &d, nullptr, 1, &window), ORRERY_FMA_INVALID_PARAM);
  EXPECT_EQ(orrery_fma_open(domain.nic, &d, places.data(), 0, &window), ORRERY_FMA_INVALID_PARAM);
  EXPECT_EQ(orrery_fma_open(domain.nic, &d, places.data(), 1, nullptr), ORRERY_FMA_INVALID_PARAM);
  auto bad = d;
  bad.pe_shift = 64;
  EXPECT_EQ(open_with(bad), ORRERY_FMA_INVALID_PARAM);
  bad = d;
  bad.base_offset = ~0ull;
  EXPECT_EQ(open_with(bad), ORRERY_FMA_INVALID_PARAM);
  bad = d;
  bad.base_pe = 1u << 18;
  EXPECT_EQ(open_with(bad), ORRERY_FMA_INVALID_PARAM);
  const std::uint32_t table[1] = {1};
  bad = d;
  bad.ntt = table;
  EXPECT_EQ(open_with(bad), ORRERY_FMA_INVALID_PARAM) << "no entries";
  bad.ntt_entries = 1;
  EXPECT_EQ(open_with(bad), ORRERY_FMA_INVALID_PARAM) << "no group";
  EXPECT_EQ(window, nullptr);

  window = open(6, 0);
  std::uint32_t name = 0;
  std::uint64_t value = 1;
  EXPECT_EQ(orrery_fma_store(window, 0, &value, 8), ORRERY_FMA_INVALID_STATE);
  EXPECT_EQ(orrery_fma_end(window, &name), ORRERY_FMA_INVALID_STATE);
  EXPECT_EQ(orrery_fma_test(window, 12345), ORRERY_FMA_INVALID_PARAM);
  ASSERT_EQ(orrery_fma_begin(window), ORRERY_FMA_SUCCESS);
  EXPECT_EQ(orrery_fma_begin(window), ORRERY_FMA_INVALID_STATE);
  EXPECT_EQ(orrery_fma_store(window, 0, nullptr, 8), ORRERY_FMA_INVALID_PARAM);
  EXPECT_EQ(orrery_fma_end(window, nullptr), ORRERY_FMA_INVALID_PARAM);
  EXPECT_EQ(orrery_fma_launch(window, {~0ull, 0}), ORRERY_FMA_INVALID_PARAM);
  EXPECT_EQ(orrery_fma_launch(window, orrery_fma_word(0, 4, 0)), ORRERY_FMA_ALIGNMENT_ERROR);
  EXPECT_EQ(orrery_fma_launch(window, orrery_fma_word(0, 1ull << 30, 0)), ORRERY_FMA_SUCCESS);
  EXPECT_EQ(settle(window), ORRERY_FMA_TRANSACTION_ERROR) << "beyond the registration";
  void* base = nullptr;
  EXPECT_EQ(orrery_fma_map(window, &base, nullptr), ORRERY_FMA_INVALID_PARAM);
  EXPECT_EQ(orrery_fma_map(window, &base, &value), ORRERY_FMA_INVALID_PARAM) << "pieces are no pages";
  EXPECT_EQ(orrery_fma_close(window), ORRERY_FMA_SUCCESS);
  for (const int rc : {orrery_fma_begin(nullptr), orrery_fma_end(nullptr, &name), orrery_fma_test(nullptr, 0),
                       orrery_fma_store(nullptr, 0, &value, 8), orrery_fma_launch(nullptr, {0, 0}),
                       orrery_fma_map(nullptr, &base, &value), orrery_fma_close(nullptr)}) {
    EXPECT_EQ(rc, ORRERY_FMA_INVALID_PARAM);
  }
}

}  // namespace
