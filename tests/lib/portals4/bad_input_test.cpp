// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What the calls refuse, and with what code. One process.
#include "tests/lib/portals4/client.hpp"

#include <gtest/gtest.h>

#include <array>
#include <climits>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

extern "C" {
int portals4_values(int value);
int portals4_events(int value);
}

namespace client {
namespace {

using Refused = PortalsTest;

TEST(Values, AreThoseThatTheCHeaderNames) {
  EXPECT_EQ(portals4_values(PTL_PT_IN_USE), 1);
  EXPECT_EQ(portals4_values(-1), 0);
  EXPECT_EQ(portals4_events(PTL_EVENT_SEARCH), 1);
  EXPECT_STREQ(ptl_rc_str(-1), "unknown");
  EXPECT_STREQ(ptl_rc_str(99), "unknown");
  EXPECT_STREQ(ptl_event_kind_str(200), "unknown");
  EXPECT_STREQ(ptl_fail_type_str(200), "unknown");
  EXPECT_STREQ(PtlToStr(PTL_NO_SPACE, PTL_STR_ERROR), "PTL_NO_SPACE");
  EXPECT_STREQ(PtlToStr(PTL_EVENT_ACK, PTL_STR_EVENT), "PTL_EVENT_ACK");
  EXPECT_STREQ(PtlToStr(PTL_NI_SEGV, PTL_STR_FAIL_TYPE), "PTL_NI_SEGV");
  EXPECT_STREQ(PtlToStr(-1, PTL_STR_EVENT), "unknown");
  EXPECT_STREQ(PtlToStr(PTL_EVENT_ACK + 256, PTL_STR_EVENT), "unknown");
}

// The text of an event, and that the length is what was said.
std::string line_of(const ptl_event_t& event, unsigned int ni_options = 0) {
  std::array<char, PTL_EV_STR_SIZE> text{};
  const int length = PtlEvToStr(ni_options, &event, text.data());
  EXPECT_EQ(static_cast<std::size_t>(length), std::strlen(text.data()));
  return text.data();
}

TEST(Events, AsText) {
  ptl_event_t event{};
  event.type = PTL_EVENT_LINK;
  event.pt_index = 7;
  EXPECT_EQ(line_of(event), "type=LINK fail=OK, pt=7, uptr=(nil)\n");
  event.type = PTL_EVENT_PT_DISABLED;
  event.ni_fail_type = PTL_NI_PT_DISABLED;
  EXPECT_EQ(line_of(event), "type=PT_DISABLED fail=PT_DISABLED, pt=7\n");
  event.ni_fail_type = PTL_NI_OK;
  event.mlength = 13;
  event.type = PTL_EVENT_SEND;
  EXPECT_EQ(line_of(event), "type=SEND fail=OK, uptr=(nil), mlen=d\n");
  event.type = PTL_EVENT_ACK;
  event.ptl_list = PTL_OVERFLOW_LIST;
  EXPECT_EQ(line_of(event), "type=ACK fail=OK, list=" + std::to_string(PTL_OVERFLOW_LIST) +
                                ", uptr=(nil), mlen=d, roffs=0\n");
  event.rlength = 16;
  event.uid = 1000;
  event.hdr_data = 2060;
  event.initiator.phys.nid = 9;
  event.initiator.phys.pid = 10;
  event.type = PTL_EVENT_PUT;
  EXPECT_EQ(line_of(event),
            "type=PUT fail=OK, init=(9:10), uid=1000, bits=0, rlen=10, pt=7, hdr=80c, uptr=(nil), "
            "mlen=d, roffs=0, start=(nil)\n");
  event.type = PTL_EVENT_GET;
  event.initiator.rank = 3;
  EXPECT_EQ(line_of(event, PTL_NI_LOGICAL),
            "type=GET fail=OK, init=(3), uid=1000, bits=0, rlen=10, pt=7, uptr=(nil), mlen=d, roffs=0, "
            "start=(nil)\n");
}

TEST(Events, AsTextNeverLongerThanTheRoom) {
  ptl_event_t event;
  std::memset(&event, 0xff, sizeof event);
  event.type = PTL_EVENT_FETCH_ATOMIC_OVERFLOW;
  event.ni_fail_type = PTL_NI_PERM_VIOLATION;
  const std::string longest = line_of(event);
  EXPECT_EQ(longest.back(), '\n');  // nothing was cut off
  EXPECT_LT(longest.size() + 1, std::size_t{PTL_EV_STR_SIZE});
  event.type = 200;
  event.ni_fail_type = 200;
  EXPECT_EQ(line_of(event).rfind("type=unknown fail=unknown, init=", 0), 0U);
  std::array<char, PTL_EV_STR_SIZE> text{};
  EXPECT_EQ(PtlEvToStr(0, nullptr, text.data()), 0);
  EXPECT_EQ(PtlEvToStr(0, &event, nullptr), 0);
}

TEST(Uninitialised, EveryCallSaysSo) {
  constexpr unsigned int kMode = PTL_NI_MATCHING | PTL_NI_PHYSICAL;
  ptl_handle_any_t handle = PTL_INVALID_HANDLE;
  const ptl_handle_any_t none = PTL_INVALID_HANDLE;
  ptl_event_t event{};
  ptl_ct_event_t count{};
  ptl_process_t id{};
  ptl_uid_t uid = 0;
  ptl_size_t size = 0;
  ptl_sr_value_t value = 0;
  ptl_pt_index_t index = 0;
  ptl_md_t md{};
  ptl_me_t me{};
  ptl_le_t le{};
  unsigned int which = 0;
  const int codes[] = {
      PtlNIInit(PTL_IFACE_DEFAULT, kMode, PTL_PID_ANY, nullptr, nullptr, &handle),
      PtlNIFini(none),
      PtlNIStatus(none, PTL_SR_DROP_COUNT, &value),
      PtlNIHandle(none, &handle),
      PtlSetMap(none, 1, &id),
      PtlGetMap(none, 1, &id, &size),
      PtlPTAlloc(none, 0, PTL_EQ_NONE, PTL_PT_ANY, &index),
      PtlPTFree(none, 0),
      PtlPTDisable(none, 0),
      PtlPTEnable(none, 0),
      PtlGetUid(none, &uid),
      PtlGetId(none, &id),
      PtlGetPhysId(none, &id),
      PtlMDBind(none, &md, &handle),
      PtlMDRelease(none),
      PtlLEAppend(none, 0, &le, PTL_PRIORITY_LIST, nullptr, &handle),
      PtlLEUnlink(none),
      PtlLESearch(none, 0, &le, PTL_SEARCH_ONLY, nullptr),
      PtlMEAppend(none, 0, &me, PTL_PRIORITY_LIST, nullptr, &handle),
      PtlMEUnlink(none),
      PtlMESearch(none, 0, &me, PTL_SEARCH_ONLY, nullptr),
      PtlEQAlloc(none, 1, &handle),
      PtlEQFree(none),
      PtlEQGet(none, &event),
      PtlEQWait(none, &event),
      PtlEQPoll(&handle, 1, 0, &event, &which),
      PtlCTAlloc(none, &handle),
      PtlCTFree(none),
      PtlCTCancelTriggered(none),
      PtlCTGet(none, &count),
      PtlCTWait(none, 0, &count),
      PtlCTPoll(&none, &size, 1, 0, &count, &which),
      PtlCTSet(none, count),
      PtlCTInc(none, count),
      PtlPut(none, 0, 0, PTL_NO_ACK_REQ, id, 0, 0, 0, nullptr, 0),
      PtlGet(none, 0, 0, id, 0, 0, 0, nullptr),
      PtlAtomic(none, 0, 8, PTL_NO_ACK_REQ, id, 0, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T),
      PtlFetchAtomic(none, 0, none, 0, 8, id, 0, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T),
      PtlSwap(none, 0, none, 0, 8, id, 0, 0, 0, nullptr, 0, nullptr, PTL_SWAP, PTL_INT64_T),
      PtlAtomicSync(),
      PtlTriggeredPut(none, 0, 0, PTL_NO_ACK_REQ, id, 0, 0, 0, nullptr, 0, none, 1),
      PtlTriggeredGet(none, 0, 0, id, 0, 0, 0, nullptr, none, 1),
      PtlTriggeredAtomic(none, 0, 8, PTL_NO_ACK_REQ, id, 0, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T, none, 1),
      PtlTriggeredFetchAtomic(none, 0, none, 0, 8, id, 0, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T, none, 1),
      PtlTriggeredSwap(none, 0, none, 0, 8, id, 0, 0, 0, nullptr, 0, nullptr, PTL_SWAP, PTL_INT64_T, none, 1),
      PtlTriggeredCTInc(none, count, none, 1),
      PtlTriggeredCTSet(none, count, none, 1),
      PtlStartBundle(none),
      PtlEndBundle(none)};
  for (std::size_t i = 0; i < std::size(codes); ++i) EXPECT_EQ(codes[i], PTL_NO_INIT) << "call " << i;
  EXPECT_EQ(PtlHandleIsEqual(none, none), 1);  // asks for nothing
  PtlFini();                                   // without PtlInit: nothing
  PtlAbort();                                  // likewise
  EXPECT_EQ(PtlInit(), PTL_OK);
  PtlFini();
  PtlFini();  // once too often
  EXPECT_EQ(PtlNIFini(none), PTL_NO_INIT);
}

// Each argument by itself, of the calls that later tests do not have.
TEST_F(Refused, EachArgument) {
  const ptl_handle_any_t bad = 0x4001ffffu;
  ptl_handle_any_t handle = PTL_INVALID_HANDLE;
  ptl_handle_ct_t counter = PTL_CT_NONE;
  ASSERT_EQ(PtlCTAlloc(ni, &counter), PTL_OK);
  const ptl_handle_md_t md = bind(nullptr, 0);
  ptl_event_t event{};
  ptl_ct_event_t count{};
  ptl_process_t id{};
  ptl_uid_t uid = 0;
  ptl_size_t size = 1;
  ptl_sr_value_t value = 0;
  ptl_pt_index_t index = 0;
  ptl_md_t memory{nullptr, 0, 0, PTL_EQ_NONE, PTL_CT_NONE};
  ptl_me_t me = entry(nullptr, 0, 1);
  ptl_le_t le{};
  le.ct_handle = PTL_CT_NONE;
  unsigned int which = 0;
  ptl_md_t bad_options = memory;
  bad_options.options = 1u << 30;
  ptl_md_t bad_queue = memory;
  bad_queue.eq_handle = counter;
  ptl_md_t bad_counter = memory;
  bad_counter.ct_handle = queue;
  const int codes[] = {
      PtlNIStatus(bad, PTL_SR_DROP_COUNT, &value),
      PtlNIStatus(ni, 17, &value),
      PtlNIStatus(ni, PTL_SR_DROP_COUNT, nullptr),
      PtlNIHandle(queue, nullptr),
      PtlGetMap(ni, 1, &id, &size),  // physical addresses
      PtlGetMap(bad, 1, &id, &size),
      PtlPTAlloc(bad, 0, queue, PTL_PT_ANY, &index),
      PtlPTAlloc(ni, 1u << 20, queue, PTL_PT_ANY, &index),
      PtlPTAlloc(ni, 0, counter, PTL_PT_ANY, &index),
      PtlPTAlloc(ni, 0, queue, 100'000, &index),
      PtlPTAlloc(ni, 0, queue, PTL_PT_ANY, nullptr),
      PtlPTFree(bad, portal),
      PtlPTFree(ni, 100'000),
      PtlPTFree(ni, portal + 1),
      PtlPTDisable(bad, portal),
      PtlPTDisable(ni, portal + 1),
      PtlPTEnable(bad, portal),
      PtlPTEnable(ni, portal + 1),
      PtlGetUid(bad, &uid),
      PtlGetUid(ni, nullptr),
      PtlGetId(bad, &id),
      PtlGetId(ni, nullptr),
      PtlGetPhysId(bad, &id),
      PtlGetPhysId(ni, nullptr),
      PtlMDBind(bad, &memory, &handle),
      PtlMDBind(ni, nullptr, &handle),
      PtlMDBind(ni, &memory, nullptr),
      PtlMDBind(ni, &bad_options, &handle),
      PtlMDBind(ni, &bad_queue, &handle),
      PtlMDBind(ni, &bad_counter, &handle),
      PtlLESearch(ni, portal, &le, PTL_SEARCH_ONLY, nullptr),  // an interface with matching
      PtlMESearch(bad, portal, &me, PTL_SEARCH_ONLY, nullptr),
      PtlMESearch(ni, portal + 1, &me, PTL_SEARCH_ONLY, nullptr),
      PtlMESearch(ni, portal, nullptr, PTL_SEARCH_ONLY, nullptr),
      PtlMESearch(ni, portal, &me, 7, nullptr),
      PtlEQAlloc(bad, 1, &handle),
      PtlEQAlloc(ni, 1, nullptr),
      PtlEQWait(bad, &event),
      PtlEQWait(queue, nullptr),
      PtlEQGet(queue, nullptr),
      PtlEQPoll(nullptr, 1, 0, &event, &which),
      PtlEQPoll(&bad, 1, 0, &event, &which),
      PtlEQPoll(&queue, 1, 0, nullptr, &which),
      PtlEQPoll(&queue, 1, 0, &event, nullptr),
      PtlCTAlloc(bad, &handle),
      PtlCTAlloc(ni, nullptr),
      PtlCTCancelTriggered(bad),
      PtlCTGet(counter, nullptr),
      PtlCTWait(bad, 0, &count),
      PtlCTWait(counter, 0, nullptr),
      PtlCTPoll(nullptr, &size, 1, 0, &count, &which),
      PtlCTPoll(&counter, nullptr, 1, 0, &count, &which),
      PtlCTPoll(&bad, &size, 1, 0, &count, &which),
      PtlCTPoll(&counter, &size, 1, 0, nullptr, &which),
      PtlCTPoll(&counter, &size, 1, 0, &count, nullptr),
      PtlCTSet(bad, count),
      PtlCTInc(bad, {1, 0}),
      PtlCTInc(counter, {1, 1}),  // one of the two
      PtlTriggeredPut(md, 0, 0, PTL_NO_ACK_REQ, peer, portal, 1, 0, nullptr, 0, bad, 1),
      PtlTriggeredPut(md, 0, 1, PTL_NO_ACK_REQ, peer, portal, 1, 0, nullptr, 0, counter, 1),
      PtlTriggeredGet(md, 0, 0, peer, portal, 1, 0, nullptr, bad, 1),
      PtlTriggeredGet(bad, 0, 0, peer, portal, 1, 0, nullptr, counter, 1),
      PtlTriggeredAtomic(md, 0, 0, PTL_NO_ACK_REQ, peer, portal, 1, 0, nullptr, 0, PTL_SUM, PTL_INT64_T, bad,
                         1),
      PtlTriggeredAtomic(md, 0, 0, PTL_NO_ACK_REQ, peer, portal, 1, 0, nullptr, 0, PTL_BOR, PTL_DOUBLE,
                         counter, 1),
      PtlFetchAtomic(md, 0, bad, 0, 0, peer, portal, 1, 0, nullptr, 0, PTL_SUM, PTL_INT64_T),
      PtlFetchAtomic(bad, 0, md, 0, 0, peer, portal, 1, 0, nullptr, 0, PTL_SUM, PTL_INT64_T),
      PtlTriggeredFetchAtomic(md, 0, md, 0, 0, peer, portal, 1, 0, nullptr, 0, PTL_SUM, PTL_INT64_T, bad, 1),
      PtlTriggeredSwap(md, 0, md, 0, 0, peer, portal, 1, 0, nullptr, 0, nullptr, PTL_SWAP, PTL_INT64_T, bad,
                       1),
      PtlTriggeredCTInc(bad, {1, 0}, counter, 1),
      PtlTriggeredCTInc(counter, {1, 0}, bad, 1),
      PtlTriggeredCTInc(counter, {1, 1}, counter, 1),
      PtlTriggeredCTSet(bad, count, counter, 1),
      PtlTriggeredCTSet(counter, count, bad, 1),
      PtlEndBundle(bad)};
  for (std::size_t i = 0; i < std::size(codes); ++i) EXPECT_EQ(codes[i], PTL_ARG_INVALID) << "case " << i;
  // Nothing of it has left a trace.
  EXPECT_EQ(PtlEQGet(queue, &event), PTL_EQ_EMPTY);
  ASSERT_EQ(PtlCTGet(counter, &count), PTL_OK);
  EXPECT_EQ(count.success + count.failure, 0u);
}

// More than there is of each: its code; after one is given back there is one.
TEST_F(Refused, MoreThanThereIs) {
  std::vector<ptl_handle_any_t> all;
  ptl_handle_any_t handle = PTL_INVALID_HANDLE;
  const auto fill = [&](auto take, auto give, int limit, const char* what) {
    all.clear();
    int code = PTL_OK;
    while ((code = take()) == PTL_OK && all.size() < 200'000) all.push_back(handle);
    EXPECT_EQ(code, PTL_NO_SPACE) << what;
    EXPECT_LE(all.size(), static_cast<std::size_t>(limit)) << what;
    EXPECT_GE(all.size() + 4, static_cast<std::size_t>(limit)) << what;
    ASSERT_FALSE(all.empty()) << what;
    EXPECT_EQ(give(all.back()), PTL_OK) << what;
    EXPECT_EQ(take(), PTL_OK) << what;
    all.back() = handle;
    EXPECT_EQ(take(), PTL_NO_SPACE) << what;
    for (const ptl_handle_any_t one : all) EXPECT_EQ(give(one), PTL_OK) << what;
  };
  fill([&] { return PtlEQAlloc(ni, 1, &handle); }, PtlEQFree, limits.max_eqs, "event queues");
  fill([&] { return PtlCTAlloc(ni, &handle); }, PtlCTFree, limits.max_cts, "counters");
  ptl_md_t md{nullptr, 0, 0, PTL_EQ_NONE, PTL_CT_NONE};
  fill([&] { return PtlMDBind(ni, &md, &handle); }, PtlMDRelease, limits.max_mds, "descriptors");
  // Two lists, so that none of them is too long.
  ptl_pt_index_t other = 0;
  ASSERT_EQ(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &other), PTL_OK);
  ptl_me_t me = entry(nullptr, 0, 1, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
  int turn = 0;
  fill(
      [&] {
        return PtlMEAppend(ni, ++turn % 2 == 0 ? portal : other, &me, PTL_PRIORITY_LIST, nullptr, &handle);
      },
      PtlMEUnlink, limits.max_entries, "entries");
  ptl_handle_ct_t counter = PTL_CT_NONE;
  ASSERT_EQ(PtlCTAlloc(ni, &counter), PTL_OK);
  int armed = 0;
  while (PtlTriggeredCTInc(counter, {1, 0}, counter, 1'000'000) == PTL_OK) ++armed;
  EXPECT_EQ(armed, limits.max_triggered_ops);
  EXPECT_EQ(PtlTriggeredCTInc(counter, {1, 0}, counter, 1'000'000), PTL_NO_SPACE);
  EXPECT_EQ(PtlCTCancelTriggered(counter), PTL_OK);
  EXPECT_EQ(PtlTriggeredCTInc(counter, {1, 0}, counter, 1'000'000), PTL_OK);
}

// What queues leave, freed one by one or with their interface, is room for a queue of any size.
TEST_F(Refused, AQueueThatFitsWhereOthersWere) {
  constexpr ptl_size_t kHalf = (std::size_t{64} << 20) / 128 / 2 - 64;  // takes half the room
  ptl_handle_ni_t other = PTL_INVALID_HANDLE;
  ASSERT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr,
                      &other),
            PTL_OK);
  ptl_handle_eq_t large = PTL_EQ_NONE;
  for (const bool with_interface : {false, true}) {
    std::vector<ptl_handle_eq_t> all;
    ptl_handle_eq_t one = PTL_EQ_NONE;
    while (PtlEQAlloc(other, 1900, &one) == PTL_OK) all.push_back(one);
    EXPECT_EQ(all.size(), 255u);  // and the fixture's
    EXPECT_EQ(PtlEQAlloc(ni, kHalf, &large), PTL_NO_SPACE);
    if (with_interface) {
      EXPECT_EQ(PtlNIFini(other), PTL_OK);
    } else {
      for (const std::size_t first : {0, 1})
        for (std::size_t i = first; i < all.size(); i += 2) EXPECT_EQ(PtlEQFree(all[i]), PTL_OK);
    }
    EXPECT_EQ(PtlEQAlloc(ni, kHalf, &large), PTL_OK) << "with its interface: " << with_interface;
    EXPECT_EQ(PtlEQFree(large), PTL_OK);
  }
}

TEST_F(Refused, InterfacesWithOptionsThatContradictEachOther) {
  ptl_handle_ni_t other = PTL_INVALID_HANDLE;
  for (const unsigned int options :
       {0u, PTL_NI_MATCHING, PTL_NI_PHYSICAL, PTL_NI_MATCHING | PTL_NI_NO_MATCHING,
        PTL_NI_MATCHING | PTL_NI_LOGICAL | PTL_NI_PHYSICAL, 1u << 4, ~0u})
    EXPECT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, nullptr, nullptr, &other), PTL_ARG_INVALID);
  const unsigned int good = PTL_NI_MATCHING | PTL_NI_PHYSICAL;
  EXPECT_EQ(PtlNIInit(7, good, PTL_PID_ANY, nullptr, nullptr, &other), PTL_ARG_INVALID);
  EXPECT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, good, PTL_PID_ANY, nullptr, nullptr, nullptr), PTL_ARG_INVALID);
  EXPECT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, good, 77, nullptr, nullptr, &other), PTL_PID_IN_USE);
  ASSERT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, good, PTL_PID_ANY, nullptr, nullptr, &other), PTL_OK);
  EXPECT_EQ(other, ni);  // the same one, counted
  EXPECT_EQ(PtlNIFini(other), PTL_OK);
}

TEST_F(Refused, HandlesThatNameNothing) {
  ptl_event_t event;
  ptl_ct_event_t count;
  ptl_handle_ni_t owner = PTL_INVALID_HANDLE;
  const ptl_handle_any_t bad[] = {PTL_INVALID_HANDLE, PTL_EQ_NONE, PTL_CT_NONE, 0,           1,
                                  0x20000000u,        0x4001ffffu, 0x6001ffffu, 0xa001ffffu, 0xdfffffffu,
                                  0x80000001u};
  for (const ptl_handle_any_t handle : bad) {
    EXPECT_EQ(PtlNIHandle(handle, &owner), PTL_ARG_INVALID) << std::hex << handle;
    EXPECT_EQ(PtlEQGet(handle, &event), PTL_ARG_INVALID) << std::hex << handle;
    EXPECT_EQ(PtlEQFree(handle), PTL_ARG_INVALID) << std::hex << handle;
    EXPECT_EQ(PtlCTGet(handle, &count), PTL_ARG_INVALID) << std::hex << handle;
    EXPECT_EQ(PtlCTFree(handle), PTL_ARG_INVALID) << std::hex << handle;
    EXPECT_EQ(PtlMDRelease(handle), PTL_ARG_INVALID) << std::hex << handle;
    EXPECT_EQ(PtlMEUnlink(handle), PTL_ARG_INVALID) << std::hex << handle;
    EXPECT_EQ(PtlLEUnlink(handle), PTL_ARG_INVALID) << std::hex << handle;
    EXPECT_EQ(PtlNIFini(handle), PTL_ARG_INVALID) << std::hex << handle;
    EXPECT_EQ(PtlStartBundle(handle), PTL_ARG_INVALID) << std::hex << handle;
  }
}

TEST_F(Refused, TransfersOutsideTheirDescriptor) {
  std::uint64_t words[4] = {};
  append(entry(words, 32, 1, PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST);
  const ptl_handle_md_t md = bind(words, 32);
  const struct {
    ptl_size_t offset, length;
  } bad[] = {{0, 33}, {33, 0}, {32, 1}, {PTL_SIZE_MAX, 1}, {1, PTL_SIZE_MAX}, {PTL_SIZE_MAX, PTL_SIZE_MAX}};
  for (const auto& one : bad) {
    EXPECT_EQ(PtlPut(md, one.offset, one.length, PTL_NO_ACK_REQ, peer, portal, 1, 0, nullptr, 0),
              PTL_ARG_INVALID);
    EXPECT_EQ(PtlGet(md, one.offset, one.length, peer, portal, 1, 0, nullptr), PTL_ARG_INVALID);
  }
  EXPECT_EQ(PtlPut(md, 0, 8, 9, peer, portal, 1, 0, nullptr, 0), PTL_ARG_INVALID);
  EXPECT_EQ(PtlPut(md, 0, 8, PTL_CT_ACK_REQ, peer, portal, 1, 0, nullptr, 0), PTL_ARG_INVALID);
  EXPECT_EQ(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, peer, UINT_MAX, 1, 0, nullptr, 0), PTL_ARG_INVALID);
  // A remote offset beyond the entry moves nothing, and is no error.
  ASSERT_EQ(PtlPut(md, 0, 8, PTL_ACK_REQ, peer, portal, 1, PTL_SIZE_MAX, nullptr, 0), PTL_OK);
  EXPECT_EQ(expect(PTL_EVENT_ACK).mlength, 0u);
}

TEST_F(Refused, AtomicsThatNoTypeHas) {
  std::uint64_t words[4] = {};
  const ptl_handle_md_t md = bind(words, 32);
  const auto atomic = [&](ptl_size_t length, ptl_op_t operation, ptl_datatype_t type) {
    return PtlAtomic(md, 0, length, PTL_NO_ACK_REQ, peer, portal, 1, 0, nullptr, 0, operation, type);
  };
  EXPECT_EQ(atomic(8, PTL_BOR, PTL_DOUBLE), PTL_ARG_INVALID);
  EXPECT_EQ(atomic(8, PTL_MIN, PTL_FLOAT_COMPLEX), PTL_ARG_INVALID);
  EXPECT_EQ(atomic(8, PTL_SWAP, PTL_INT64_T), PTL_ARG_INVALID);
  EXPECT_EQ(atomic(7, PTL_SUM, PTL_INT64_T), PTL_ARG_INVALID);
  EXPECT_EQ(atomic(8, PTL_SUM, 200), PTL_ARG_INVALID);
  EXPECT_EQ(atomic(8, 200, PTL_INT64_T), PTL_ARG_INVALID);
  const auto swap = [&](ptl_size_t length, const void* operand, ptl_op_t operation, ptl_datatype_t type) {
    return PtlSwap(md, 0, md, 16, length, peer, portal, 1, 0, nullptr, 0, operand, operation, type);
  };
  EXPECT_EQ(swap(8, nullptr, PTL_CSWAP, PTL_INT64_T), PTL_ARG_INVALID);
  EXPECT_EQ(swap(16, words, PTL_CSWAP, PTL_INT64_T), PTL_ARG_INVALID);
  EXPECT_EQ(swap(8, words, PTL_MSWAP, PTL_DOUBLE), PTL_ARG_INVALID);
  EXPECT_EQ(swap(8, words, PTL_SUM, PTL_INT64_T), PTL_ARG_INVALID);
}

TEST_F(Refused, EntriesThatThePortalDoesNotTake) {
  ptl_handle_me_t handle = PTL_INVALID_HANDLE;
  ptl_me_t me = entry(nullptr, 0, 1);
  EXPECT_EQ(PtlMEAppend(ni, portal + 1, &me, PTL_PRIORITY_LIST, nullptr, &handle), PTL_ARG_INVALID);
  EXPECT_EQ(PtlMEAppend(ni, UINT_MAX, &me, PTL_PRIORITY_LIST, nullptr, &handle), PTL_ARG_INVALID);
  EXPECT_EQ(PtlMEAppend(ni, portal, &me, 2, nullptr, &handle), PTL_ARG_INVALID);
  EXPECT_EQ(PtlMEAppend(ni, portal, nullptr, PTL_PRIORITY_LIST, nullptr, &handle), PTL_ARG_INVALID);
  EXPECT_EQ(PtlMEAppend(ni, portal, &me, PTL_PRIORITY_LIST, nullptr, nullptr), PTL_ARG_INVALID);
  me.options = 1u << 25;
  EXPECT_EQ(PtlMEAppend(ni, portal, &me, PTL_PRIORITY_LIST, nullptr, &handle), PTL_ARG_INVALID);
  ptl_le_t le{};
  le.ct_handle = PTL_CT_NONE;
  EXPECT_EQ(PtlLEAppend(ni, portal, &le, PTL_PRIORITY_LIST, nullptr, &handle), PTL_ARG_INVALID);
  ptl_pt_index_t index = 0;
  EXPECT_EQ(PtlPTAlloc(ni, PTL_PT_FLOWCTRL, PTL_EQ_NONE, PTL_PT_ANY, &index), PTL_PT_EQ_NEEDED);
  EXPECT_EQ(PtlPTAlloc(ni, 0, queue, portal, &index), PTL_PT_IN_USE);
  EXPECT_EQ(PtlSetMap(ni, 1, &peer), PTL_ARG_INVALID);  // physical addresses
}

// Memory that is not there is an event, not the end of the program.
TEST_F(Refused, MemoryThatIsNotThere) {
  std::uint64_t word = 3;
  append(entry(reinterpret_cast<void*>(8), 8, 1, PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST);
  const ptl_handle_md_t md = bind(&word, 8);
  ASSERT_EQ(PtlPut(md, 0, 8, PTL_ACK_REQ, peer, portal, 1, 0, nullptr, 0), PTL_OK);
  expect(PTL_EVENT_SEND);
  expect(PTL_EVENT_PUT, PTL_NI_SEGV);
  expect(PTL_EVENT_ACK, PTL_NI_SEGV);
}

}  // namespace
}  // namespace client
