// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What the calls refuse, and with what code. One process.
#include "tests/lib/portals4/client.hpp"

#include <gtest/gtest.h>

#include <climits>

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
}

TEST(Uninitialised, EveryCallSaysSo) {
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_event_t event;
  EXPECT_EQ(
      PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni),
      PTL_NO_INIT);
  EXPECT_EQ(PtlNIFini(ni), PTL_NO_INIT);
  EXPECT_EQ(PtlEQGet(PTL_EQ_NONE, &event), PTL_NO_INIT);
  EXPECT_EQ(PtlAtomicSync(), PTL_NO_INIT);
  PtlFini();   // without PtlInit: nothing
  PtlAbort();  // likewise
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
