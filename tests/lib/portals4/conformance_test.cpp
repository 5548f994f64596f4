// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Two processes, each the other's target, through the public interface alone. Every PE runs the same tests in
// the same order.
#include "tests/lib/portals4/client.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <numeric>

#include <unistd.h>

namespace client {
namespace {

using Portals = PortalsTest;

TEST_F(Portals, PutsAndAcknowledges) {
  std::vector<std::uint64_t> target(64, 0);
  std::vector<std::uint64_t> source(64);
  std::iota(source.begin(), source.end(), rank * 1000u);
  append(entry(target.data(), 512, 7), PTL_PRIORITY_LIST, &target);
  expect(PTL_EVENT_LINK);
  const ptl_handle_md_t md = bind(source.data(), 512);
  barrier();
  ASSERT_EQ(PtlPut(md, 8, 16, PTL_ACK_REQ, peer, portal, 7, 24, this, 0x1234), PTL_OK);
  const ptl_event_t sent = expect(PTL_EVENT_SEND);
  EXPECT_EQ(sent.user_ptr, this);
  const ptl_event_t acknowledged = expect(PTL_EVENT_ACK);
  EXPECT_EQ(acknowledged.mlength, 16u);
  EXPECT_EQ(acknowledged.remote_offset, 24u);
  const ptl_event_t arrived = expect(PTL_EVENT_PUT);
  EXPECT_EQ(arrived.hdr_data, 0x1234u);
  EXPECT_EQ(arrived.user_ptr, &target);
  EXPECT_EQ(arrived.start, &target[3]);
  EXPECT_EQ(arrived.initiator.phys.pid, peer.phys.pid);
  EXPECT_EQ(target[3], (1 - rank) * 1000u + 1);
  EXPECT_EQ(target[4], (1 - rank) * 1000u + 2);
  EXPECT_EQ(target[5], 0u);
  barrier();
}

// With PTL_MD_EVENT_CT_BYTES an acknowledgement counts what was taken. One of an operation's completion alone
// does not tell that, and counts the operation.
TEST_F(Portals, CountsTheBytesOfAnAcknowledgementButNotOfACompletion) {
  std::vector<std::byte> target(64);
  std::vector<std::byte> source(100);
  append(entry(target.data(), 64, 7, PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE),
         PTL_PRIORITY_LIST);
  ptl_handle_ct_t counter = PTL_CT_NONE;
  ASSERT_EQ(PtlCTAlloc(ni, &counter), PTL_OK);
  const ptl_md_t md{source.data(), 100, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_BYTES, PTL_EQ_NONE, counter};
  ptl_handle_md_t handle = PTL_INVALID_HANDLE;
  ASSERT_EQ(PtlMDBind(ni, &md, &handle), PTL_OK);
  barrier();
  std::uint64_t expected = 0;
  const auto put = [&](ptl_ack_req_t ack, std::uint64_t counts) {
    ASSERT_EQ(PtlPut(handle, 0, 100, ack, peer, portal, 7, 0, nullptr, 0), PTL_OK);
    ptl_ct_event_t count{};
    expected += counts;
    ASSERT_EQ(PtlCTWait(counter, expected, &count), PTL_OK);
    EXPECT_EQ(count.success, expected);
    EXPECT_EQ(count.failure, 0u);
  };
  put(PTL_CT_ACK_REQ, 64);
  put(PTL_OC_ACK_REQ, 1);
  put(PTL_CT_ACK_REQ, 64);
  EXPECT_EQ(PtlMDRelease(handle), PTL_OK);
  EXPECT_EQ(PtlCTFree(counter), PTL_OK);
  barrier();
}

TEST_F(Portals, GetsWhatTheTargetHasAndNoMore) {
  std::vector<std::uint32_t> exposed(8, 5u + rank);
  std::vector<std::uint32_t> got(16, 0);
  append(entry(exposed.data(), 32, 1, PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE),
         PTL_PRIORITY_LIST);
  const ptl_handle_md_t md = bind(got.data(), 64);
  barrier();
  ASSERT_EQ(PtlGet(md, 0, 64, peer, portal, 1, 16, nullptr), PTL_OK);
  const ptl_event_t reply = expect(PTL_EVENT_REPLY);
  EXPECT_EQ(reply.mlength, 16u);
  EXPECT_EQ(got[0], 5u + (1 - rank));
  EXPECT_EQ(got[4], 0u);
  barrier();
}

TEST_F(Portals, KeepsUnexpectedMessagesUntilAnEntryTakesThem) {
  std::vector<char> room(4096);
  ptl_me_t overflow = entry(room.data(), room.size(), 0, PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_LINK_DISABLE);
  overflow.ignore_bits = ~std::uint64_t{0};
  append(overflow, PTL_OVERFLOW_LIST);
  std::uint64_t value = 77 + rank;
  const ptl_handle_md_t md = bind(&value, 8);
  barrier();
  for (std::uint64_t bits = 1; bits <= 3; ++bits)
    ASSERT_EQ(PtlPut(md, 0, 8, PTL_ACK_REQ, peer, portal, bits, 0, nullptr, bits), PTL_OK);
  int arrived = 0;
  for (int i = 0; i < 9; ++i) arrived += next().type == PTL_EVENT_PUT ? 1 : 0;
  EXPECT_EQ(arrived, 3);
  barrier();
  std::uint64_t unused = 0;
  append(entry(&unused, 8, 2, PTL_ME_USE_ONCE), PTL_PRIORITY_LIST, &unused);
  const ptl_event_t found = expect(PTL_EVENT_PUT_OVERFLOW);
  EXPECT_EQ(found.hdr_data, 2u);
  EXPECT_EQ(found.user_ptr, &unused);
  EXPECT_EQ(*static_cast<std::uint64_t*>(found.start), 77u + (1 - rank));
  expect(PTL_EVENT_AUTO_UNLINK);
  ptl_me_t all = entry(nullptr, 0, 0);
  all.ignore_bits = ~std::uint64_t{0};
  ASSERT_EQ(PtlMESearch(ni, portal, &all, PTL_SEARCH_DELETE, nullptr), PTL_OK);
  EXPECT_EQ(expect(PTL_EVENT_PUT_OVERFLOW).hdr_data, 1u);
  EXPECT_EQ(expect(PTL_EVENT_PUT_OVERFLOW).hdr_data, 3u);
  barrier();
}

TEST_F(Portals, AddsAtTheTargetAndFetchesWhatWasThere) {
  std::int64_t sum = 100;
  append(entry(&sum, 8, 1, PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST);
  std::int64_t operands[2] = {5, 0};
  const ptl_handle_md_t md = bind(operands, 16);
  barrier();
  ASSERT_EQ(PtlAtomic(md, 0, 8, PTL_ACK_REQ, peer, portal, 1, 0, nullptr, 0, PTL_SUM, PTL_INT64_T), PTL_OK);
  expect(PTL_EVENT_SEND);
  expect(PTL_EVENT_ACK);
  ASSERT_EQ(PtlFetchAtomic(md, 8, md, 0, 8, peer, portal, 1, 0, nullptr, 0, PTL_MAX, PTL_INT64_T), PTL_OK);
  expect(PTL_EVENT_SEND);
  expect(PTL_EVENT_REPLY);
  EXPECT_EQ(operands[1], 105);
  const std::int64_t compare = 105;
  ASSERT_EQ(PtlSwap(md, 8, md, 0, 8, peer, portal, 1, 0, nullptr, 0, &compare, PTL_CSWAP, PTL_INT64_T),
            PTL_OK);
  expect(PTL_EVENT_SEND);
  expect(PTL_EVENT_REPLY);
  barrier();
  ASSERT_EQ(PtlAtomicSync(), PTL_OK);
  EXPECT_EQ(sum, 5);
  barrier();
}

TEST_F(Portals, ReportsWhyAMessageWasRefused) {
  std::uint64_t value = 0;
  append(entry(&value, 8, 1, PTL_ME_EVENT_LINK_DISABLE, PTL_ME_OP_GET), PTL_PRIORITY_LIST);
  ptl_me_t foreign = entry(&value, 8, 2, PTL_ME_EVENT_LINK_DISABLE);
  foreign.uid = getuid() + 1;
  append(foreign, PTL_PRIORITY_LIST);
  const ptl_handle_md_t md = bind(&value, 8);
  barrier();
  const struct {
    std::uint64_t bits;
    ptl_ni_fail_t fail;
  } cases[] = {{1, PTL_NI_OP_VIOLATION}, {2, PTL_NI_PERM_VIOLATION}, {3, PTL_NI_DROPPED}};
  for (const auto& one : cases) {
    ASSERT_EQ(PtlPut(md, 0, 8, PTL_ACK_REQ, peer, portal, one.bits, 0, nullptr, 0), PTL_OK);
    expect(PTL_EVENT_SEND);
    EXPECT_EQ(expect(PTL_EVENT_ACK, one.fail).mlength, 0u);
  }
  barrier();
  for (const ptl_sr_index_t reg :
       {PTL_SR_DROP_COUNT, PTL_SR_PERMISSION_VIOLATIONS, PTL_SR_OPERATION_VIOLATIONS}) {
    ptl_sr_value_t count = 0;
    ASSERT_EQ(PtlNIStatus(ni, reg, &count), PTL_OK);
    EXPECT_EQ(count, 1);
  }
  barrier();
}

TEST_F(Portals, StopsAPortalUnderFlowControlAndStartsItAgain) {
  ptl_pt_index_t controlled = 0;
  ASSERT_EQ(PtlPTAlloc(ni, PTL_PT_FLOWCTRL, queue, PTL_PT_ANY, &controlled), PTL_OK);
  std::uint64_t value = 0;
  const ptl_handle_md_t md = bind(&value, 8);
  barrier();
  for (int i = 0; i < 2; ++i)
    ASSERT_EQ(PtlPut(md, 0, 8, PTL_ACK_REQ, peer, controlled, 1, 0, nullptr, 0), PTL_OK);
  int disabled = 0;
  int refused = 0;
  for (int i = 0; i < 5; ++i) {
    const ptl_event_t event = next();
    disabled += event.type == PTL_EVENT_PT_DISABLED ? 1 : 0;
    refused += event.type == PTL_EVENT_ACK && event.ni_fail_type == PTL_NI_PT_DISABLED ? 1 : 0;
  }
  EXPECT_EQ(disabled, 1);
  EXPECT_EQ(refused, 2);
  barrier();
  ptl_me_t me = entry(&value, 8, 1, PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE);
  ptl_handle_me_t handle = PTL_INVALID_HANDLE;
  ASSERT_EQ(PtlMEAppend(ni, controlled, &me, PTL_PRIORITY_LIST, nullptr, &handle), PTL_OK);
  ASSERT_EQ(PtlPTEnable(ni, controlled), PTL_OK);
  barrier();
  ASSERT_EQ(PtlPut(md, 0, 8, PTL_ACK_REQ, peer, controlled, 1, 0, nullptr, 0), PTL_OK);
  expect(PTL_EVENT_SEND);
  expect(PTL_EVENT_ACK);
  barrier();
  EXPECT_EQ(PtlPTFree(ni, controlled), PTL_PT_IN_USE);
  ASSERT_EQ(PtlMEUnlink(handle), PTL_OK);
  EXPECT_EQ(PtlPTFree(ni, controlled), PTL_OK);
  barrier();
}

// A queue of one event takes a message under flow control, and tells of each of 100 portals that stop.
TEST_F(Portals, TellsOfEveryPortalThatStopsThoughItsQueueIsShort) {
  ptl_handle_eq_t small = PTL_EQ_NONE;
  ASSERT_EQ(PtlEQAlloc(ni, 1, &small), PTL_OK);
  std::vector<ptl_pt_index_t> controlled(100);
  for (ptl_pt_index_t& one : controlled)
    ASSERT_EQ(PtlPTAlloc(ni, PTL_PT_FLOWCTRL, small, PTL_PT_ANY, &one), PTL_OK);
  std::uint64_t value = 0;
  ptl_me_t me = entry(&value, 8, 1, PTL_ME_EVENT_LINK_DISABLE);
  ptl_handle_me_t handle = PTL_INVALID_HANDLE;
  ASSERT_EQ(PtlMEAppend(ni, controlled[0], &me, PTL_PRIORITY_LIST, nullptr, &handle), PTL_OK);
  const ptl_handle_md_t md = bind(&value, 8);
  barrier();
  const auto put = [&](ptl_pt_index_t index, ptl_ni_fail_t fail) {
    ASSERT_EQ(PtlPut(md, 0, 8, PTL_ACK_REQ, peer, index, 1, 0, nullptr, 0), PTL_OK);
    expect(PTL_EVENT_SEND);
    expect(PTL_EVENT_ACK, fail);
  };
  put(controlled[0], PTL_NI_OK);
  for (const ptl_pt_index_t one : controlled) put(one, PTL_NI_PT_DISABLED);
  barrier();
  ptl_event_t event{};
  unsigned int which = 0;
  ASSERT_EQ(PtlEQPoll(&small, 1, 60'000, &event, &which), PTL_OK);
  EXPECT_EQ(event.type, PTL_EVENT_PUT);
  std::vector<ptl_pt_index_t> stopped;
  for (std::size_t i = 0; i < controlled.size(); ++i) {
    ASSERT_EQ(PtlEQPoll(&small, 1, 60'000, &event, &which), PTL_OK) << i;
    EXPECT_EQ(event.type, PTL_EVENT_PT_DISABLED);
    stopped.push_back(event.pt_index);
  }
  EXPECT_EQ(PtlEQGet(small, &event), PTL_EQ_EMPTY);
  std::sort(stopped.begin(), stopped.end());
  EXPECT_EQ(stopped, controlled);
  EXPECT_EQ(PtlMEUnlink(handle), PTL_OK);
  for (const ptl_pt_index_t one : controlled) EXPECT_EQ(PtlPTFree(ni, one), PTL_OK);
  EXPECT_EQ(PtlEQFree(small), PTL_OK);
  barrier();
}

// What a portal's entries will be like is a hint: Open MPI appends others too.
TEST_F(Portals, TakesEntriesThatAPortalsHintsDoNotTellOf) {
  ptl_pt_index_t hinted = 0;
  ASSERT_EQ(PtlPTAlloc(ni, PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE, queue, PTL_PT_ANY, &hinted), PTL_OK);
  std::uint64_t value = 0;
  ptl_me_t me = entry(&value, 8, 1, PTL_ME_EVENT_LINK_DISABLE | PTL_ME_NO_TRUNCATE);
  ptl_handle_me_t handle = PTL_INVALID_HANDLE;
  ASSERT_EQ(PtlMEAppend(ni, hinted, &me, PTL_PRIORITY_LIST, nullptr, &handle), PTL_OK);
  ASSERT_EQ(PtlMEUnlink(handle), PTL_OK);
  EXPECT_EQ(PtlPTFree(ni, hinted), PTL_OK);
  barrier();
}

// Application bypass: rank 1 is stopped in the middle of nothing, and its NIC still matches, counts, fetches
// and fires its trigger, whose put comes back.
TEST_F(Portals, ServesATargetThatIsStopped) {
  if (by_frames()) GTEST_SKIP() << "a target that takes messages as frames has to run";
  if (std::getenv("ORRERY_MACHINE") != nullptr) GTEST_SKIP() << "a PE that is stopped keeps its turn";
  std::vector<std::uint64_t> memory(4, 0);
  ptl_me_t me = entry(memory.data(), 32, 1, PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM);
  ptl_handle_ct_t counter = PTL_CT_NONE;
  ASSERT_EQ(PtlCTAlloc(ni, &counter), PTL_OK);
  me.ct_handle = counter;
  append(me, PTL_PRIORITY_LIST);
  std::uint64_t value = 40 + rank;
  const ptl_handle_md_t md = bind(&value, 8);
  if (rank == 1) {
    ASSERT_EQ(PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, peer, portal, 1, 16, nullptr, 9, counter, 1), PTL_OK);
  }
  const std::vector<pid_t> pids = gather<pid_t>(getpid());
  barrier();
  if (rank == 0) {
    ASSERT_EQ(kill(pids[1], SIGSTOP), 0);
    ASSERT_EQ(PtlPut(md, 0, 8, PTL_ACK_REQ, peer, portal, 1, 0, nullptr, 0), PTL_OK);
    int seen = 0;
    for (int i = 0; i < 3; ++i) {
      const ptl_event_t event = next();
      if (event.type != PTL_EVENT_PUT) continue;
      EXPECT_EQ(event.hdr_data, 9u);
      ++seen;
    }
    EXPECT_EQ(seen, 1);
    EXPECT_EQ(memory[2], 41u);
    ASSERT_EQ(kill(pids[1], SIGCONT), 0);
  }
  barrier();
  if (rank == 1) {
    ptl_ct_event_t count{};
    ASSERT_EQ(PtlCTWait(counter, 1, &count), PTL_OK);
    EXPECT_EQ(memory[0], 40u);
    int puts = 0;
    for (int i = 0; i < 2; ++i) puts += next().type == PTL_EVENT_PUT ? 1 : 0;
    EXPECT_EQ(puts, 1);
  }
  barrier();
}

// Longer than any packet, both ways; an entry in the middle of it is too short.
TEST_F(Portals, MovesLongMessages) {
  constexpr std::size_t kWords = 200'000;
  std::vector<std::uint32_t> target(kWords, 0);
  std::vector<std::uint32_t> source(kWords);
  std::vector<std::uint32_t> back(kWords, 0);
  std::iota(source.begin(), source.end(), rank * 1'000'000u);
  append(entry(target.data(), kWords * 4, 1, PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST);
  const ptl_handle_md_t md = bind(source.data(), kWords * 4);
  const ptl_handle_md_t md_back = bind(back.data(), kWords * 4);
  barrier();
  ASSERT_EQ(PtlPut(md, 0, kWords * 4, PTL_ACK_REQ, peer, portal, 1, 400, nullptr, 0), PTL_OK);
  EXPECT_EQ(expect(PTL_EVENT_ACK).mlength, kWords * 4 - 400);
  EXPECT_EQ(expect(PTL_EVENT_PUT).mlength, kWords * 4 - 400);
  const std::uint32_t first = (1 - rank) * 1'000'000u;
  for (std::size_t i = 100; i < kWords; ++i) ASSERT_EQ(target[i], first + i - 100) << i;
  EXPECT_EQ(target[99], 0u);
  barrier();
  ASSERT_EQ(PtlGet(md_back, 0, kWords * 4, peer, portal, 1, 0, nullptr), PTL_OK);
  EXPECT_EQ(expect(PTL_EVENT_REPLY).mlength, kWords * 4);
  for (std::size_t i = 100; i < kWords; ++i) ASSERT_EQ(back[i], rank * 1'000'000u + i - 100) << i;
  barrier();
}

// Atomics as long as they may be.
TEST_F(Portals, AddsAndFetchesWholeVectors) {
  const std::size_t items = limits.max_fetch_atomic_size / 8;
  std::vector<std::uint64_t> target(items, 1000);
  std::vector<std::uint64_t> source(items);
  std::vector<std::uint64_t> found(items, 0);
  std::iota(source.begin(), source.end(), 1u);
  append(entry(target.data(), items * 8, 1, PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE),
         PTL_PRIORITY_LIST);
  const ptl_handle_md_t md = bind(source.data(), items * 8);
  const ptl_handle_md_t md_found = bind(found.data(), items * 8);
  barrier();
  ASSERT_EQ(PtlAtomic(md, 0, items * 8, PTL_ACK_REQ, peer, portal, 1, 0, nullptr, 0, PTL_SUM, PTL_UINT64_T),
            PTL_OK);
  EXPECT_EQ(expect(PTL_EVENT_ACK).mlength, items * 8);
  ASSERT_EQ(
      PtlFetchAtomic(md_found, 0, md, 0, items * 8, peer, portal, 1, 0, nullptr, 0, PTL_MAX, PTL_UINT64_T),
      PTL_OK);
  EXPECT_EQ(expect(PTL_EVENT_REPLY).mlength, items * 8);
  for (std::size_t i = 0; i < items; ++i) ASSERT_EQ(found[i], 1001 + i) << i;
  barrier();
  for (std::size_t i = 0; i < items; ++i) ASSERT_EQ(target[i], 1001 + i) << i;
  barrier();
}

// A trigger whose counter a peer's message raises, while this process does something else.
TEST_F(Portals, FiresTriggersOfAProcessThatDoesNotLook) {
  std::vector<std::uint64_t> memory(4, 0);
  ptl_handle_ct_t counter = PTL_CT_NONE;
  ptl_handle_ct_t answered = PTL_CT_NONE;
  ASSERT_EQ(PtlCTAlloc(ni, &counter), PTL_OK);
  ASSERT_EQ(PtlCTAlloc(ni, &answered), PTL_OK);
  ptl_me_t asked = entry(memory.data(), 8, 1,
                         PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM);
  asked.ct_handle = counter;
  ptl_me_t answer = entry(memory.data() + 1, 8, 2,
                          PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM);
  answer.ct_handle = answered;
  append(asked, PTL_PRIORITY_LIST);
  append(answer, PTL_PRIORITY_LIST);
  std::uint64_t value = 70 + rank;
  const ptl_handle_md_t md = bind(&value, 8);
  ASSERT_EQ(PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, peer, portal, 2, 0, nullptr, 0, counter, 1), PTL_OK);
  barrier();
  if (rank == 0) {
    ASSERT_EQ(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, peer, portal, 1, 0, nullptr, 0), PTL_OK);
    ptl_ct_event_t count{};
    ASSERT_EQ(PtlCTWait(answered, 1, &count), PTL_OK);
    EXPECT_EQ(memory[1], 71u);
  }
  barrier();
}

// Lists of pieces on both sides.
TEST_F(Portals, GathersAndScattersPieces) {
  std::vector<char> source(30);
  std::vector<char> target(30, 0);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i + 1);
  ptl_iovec_t from[2] = {{source.data() + 20, 10}, {source.data(), 10}};
  ptl_iovec_t to[3] = {{target.data(), 3}, {target.data() + 10, 3}, {target.data() + 20, 10}};
  ptl_me_t me = entry(to, 3, 1, PTL_ME_EVENT_LINK_DISABLE | PTL_IOVEC);
  append(me, PTL_PRIORITY_LIST);
  ptl_md_t md{from, 2, PTL_IOVEC, queue, PTL_CT_NONE};
  ptl_handle_md_t handle = PTL_INVALID_HANDLE;
  ASSERT_EQ(PtlMDBind(ni, &md, &handle), PTL_OK);
  barrier();
  ASSERT_EQ(PtlPut(handle, 8, 6, PTL_NO_ACK_REQ, peer, portal, 1, 2, nullptr, 0), PTL_OK);
  expect(PTL_EVENT_SEND);
  expect(PTL_EVENT_PUT);
  // The bytes 29, 30, 1, 2, 3, 4 go to the places 2, 10, 11, 12, 20, 21.
  const std::pair<std::size_t, char> expected[] = {{2, 29}, {10, 30}, {11, 1}, {12, 2},
                                                   {20, 3}, {21, 4},  {22, 0}};
  for (const auto& [place, byte] : expected) EXPECT_EQ(target[place], byte) << place;
  barrier();
}

}  // namespace
}  // namespace client
