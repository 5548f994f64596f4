// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Two processes, each the other's target, through the public interface of Portals 3.3 alone.
#include "tests/lib/portals3/client.hpp"

#include <atomic>
#include <cstring>
#include <ctime>
#include <numeric>

#include <catamount/cnos_mpi_os.h>
#include <portals/nal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace client3 {
namespace {

using Portals3 = Portals3Test;

TEST_F(Portals3, PutsWithAllItsEvents) {
  std::vector<std::uint64_t> target(8, 0);
  std::vector<std::uint64_t> source(8);
  std::iota(source.begin(), source.end(), rank * 100u);
  attach(entry(1), memory(target.data(), 64, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE));
  const ptl_handle_md_t md = bind(memory(source.data(), 64, 0));
  barrier();
  ASSERT_EQ(PtlPutRegion(md, 8, 16, PTL_ACK_REQ, peer, kPortal, 0, 1, 24, 0x77), PTL_OK);
  const ptl_event_t sending = expect(PTL_EVENT_SEND_START);
  const ptl_event_t sent = expect(PTL_EVENT_SEND_END);
  EXPECT_EQ(sending.link, sent.link);
  EXPECT_EQ(sent.md_handle, md);
  EXPECT_EQ(sent.initiator.pid, self.pid);
  const ptl_event_t ack = expect(PTL_EVENT_ACK);
  EXPECT_EQ(ack.mlength, 16u);
  EXPECT_EQ(ack.initiator.pid, peer.pid);
  const ptl_event_t coming = expect(PTL_EVENT_PUT_START);
  const ptl_event_t came = expect(PTL_EVENT_PUT_END);
  EXPECT_EQ(coming.link, came.link);
  EXPECT_EQ(came.initiator.pid, peer.pid);
  EXPECT_EQ(came.hdr_data, 0x77u);
  EXPECT_EQ(came.match_bits, 1u);
  EXPECT_EQ(came.rlength, 16u);
  EXPECT_EQ(came.mlength, 16u);
  EXPECT_EQ(came.offset, 24u);
  EXPECT_EQ(came.md.start, target.data());
  EXPECT_EQ(came.md.user_ptr, target.data());
  EXPECT_EQ(came.ni_fail_type, PTL_NI_OK);
  EXPECT_EQ(target[3], (size - 1 - rank) * 100u + 1);
  EXPECT_EQ(target[5], 0u);
  barrier();
  EXPECT_TRUE(silent());
}

TEST_F(Portals3, GetsAndSwaps) {
  std::vector<char> exposed(32, static_cast<char>('a' + rank));
  std::vector<char> got(32, 0);
  std::vector<char> ours(32, static_cast<char>('A' + rank));
  attach(entry(1), memory(exposed.data(), 32, PTL_MD_OP_GET | PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | kEnds));
  const ptl_handle_md_t get_md = bind(memory(got.data(), 32, kEnds));
  const ptl_handle_md_t put_md = bind(memory(ours.data(), 32, kEnds));
  barrier();
  ASSERT_EQ(PtlGetRegion(get_md, 4, 8, peer, kPortal, 0, 1, 0), PTL_OK);
  EXPECT_EQ(expect(PTL_EVENT_REPLY_END).mlength, 8u);
  EXPECT_EQ(got[4], static_cast<char>('a' + size - 1 - rank));
  EXPECT_EQ(got[3], 0);
  expect(PTL_EVENT_GET_END);
  barrier();
  ASSERT_EQ(PtlGetPut(get_md, put_md, peer, kPortal, 0, 1, 0, 5), PTL_OK);
  expect(PTL_EVENT_SEND_END);
  EXPECT_EQ(expect(PTL_EVENT_REPLY_END).mlength, 32u);
  EXPECT_EQ(expect(PTL_EVENT_GETPUT_END).hdr_data, 5u);
  EXPECT_EQ(got[31], static_cast<char>('a' + size - 1 - rank));
  EXPECT_EQ(exposed[31], static_cast<char>('A' + size - 1 - rank));
  barrier();
}

// A message that no descriptor takes goes on to the next entry, and is dropped without an answer at the end.
TEST_F(Portals3, PassesOverDescriptorsThatDoNotTakeIt) {
  char small[4] = {};
  char one[8] = {};
  char large[64] = {};
  entry(1);                                                                           // has no memory
  attach(entry(1), memory(large, 64, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | kEnds));  // is not for puts
  attach(entry(1), memory(small, 4, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | kEnds));   // is too short
  attach(entry(1), memory(one, 8, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | kEnds, 1));  // takes one
  attach(entry(1), memory(large, 64, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | kEnds, 1));
  char source[8] = "message";
  const ptl_handle_md_t md = bind(memory(source, 8, kEnds));
  barrier();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(put(md, 1, PTL_ACK_REQ), PTL_OK);
  for (int i = 0; i < 3; ++i) expect(PTL_EVENT_SEND_END);
  for (int i = 0; i < 2; ++i) expect(PTL_EVENT_ACK);
  flush();
  EXPECT_EQ(expect(PTL_EVENT_PUT_END).md.start, one);
  EXPECT_EQ(expect(PTL_EVENT_PUT_END).md.start, large);
  barrier();
  EXPECT_TRUE(silent());
  EXPECT_EQ(drops(), 1u);
  EXPECT_STREQ(large, "message");
}

// Without PTL_MD_MANAGE_REMOTE messages follow one another; PTL_MD_TRUNCATE cuts the last;
// PTL_MD_MAX_SIZE ends it.
TEST_F(Portals3, FillsMemoryFromItsBeginning) {
  char room[20] = {};
  char source[8] = "1234567";
  attach(entry(1), memory(room, 20, PTL_MD_OP_PUT | PTL_MD_TRUNCATE | kEnds));
  ptl_md_t limited = memory(room, 20, PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | kEnds);
  limited.max_size = 8;
  attach(entry(2), limited, PTL_UNLINK);
  const ptl_handle_md_t md = bind(memory(source, 8, kEnds));
  barrier();
  for (int i = 0; i < 4; ++i) ASSERT_EQ(put(md, 1), PTL_OK);
  for (const ptl_size_t moved : {8u, 8u, 4u, 0u}) {
    const ptl_event_t event = expect(PTL_EVENT_PUT_END);
    EXPECT_EQ(event.mlength, moved);
    EXPECT_EQ(event.rlength, 8u);
  }
  barrier();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(put(md, 2), PTL_OK);
  EXPECT_EQ(expect(PTL_EVENT_PUT_END).offset, 0u);
  EXPECT_EQ(expect(PTL_EVENT_PUT_END).offset, 8u);
  expect(PTL_EVENT_UNLINK);
  flush();
  barrier();
  EXPECT_EQ(drops(), 1u);
}

TEST_F(Portals3, CountsOperationsAndUnlinks) {
  char room[8] = {};
  char source[8] = {};
  const ptl_handle_me_t me = entry(1, PTL_INS_AFTER, PTL_UNLINK);
  attach(me, memory(room, 8, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | kEnds, 1), PTL_UNLINK);
  const ptl_handle_md_t once = bind(memory(source, 8, kEnds, 1), PTL_UNLINK);
  const ptl_handle_md_t twice = bind(memory(source, 8, kEnds, 2));
  barrier();
  // One operation: the message alone. Its acknowledgement finds nothing.
  ASSERT_EQ(put(once, 1, PTL_ACK_REQ), PTL_OK);
  expect(PTL_EVENT_SEND_END);
  expect(PTL_EVENT_UNLINK);
  expect(PTL_EVENT_PUT_END);
  expect(PTL_EVENT_UNLINK);
  barrier();
  EXPECT_TRUE(silent());
  EXPECT_EQ(PtlMDUnlink(once), PTL_MD_INVALID);
  EXPECT_EQ(PtlMEUnlink(me), PTL_ME_INVALID);
  attach(entry(1), memory(room, 8, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | kEnds));
  barrier();
  ASSERT_EQ(put(twice, 1, PTL_ACK_REQ), PTL_OK);
  expect(PTL_EVENT_SEND_END);
  EXPECT_EQ(expect(PTL_EVENT_ACK).md.threshold, 0);
  EXPECT_EQ(put(twice, 1), PTL_MD_ILLEGAL);
  EXPECT_EQ(PtlMDUnlink(twice), PTL_OK);
  barrier();
}

// The race of every message-passing library: an entry is attached idle, and made active if nothing has come.
TEST_F(Portals3, UpdatesADescriptorUnlessSomethingHasCome) {
  char room[8] = {};
  char caught[64] = {};
  char source[8] = {};
  const ptl_handle_md_t md = bind(memory(source, 8, kEnds | PTL_MD_EVENT_END_DISABLE));
  const ptl_handle_me_t last = entry(1);
  attach(last, memory(caught, 64, PTL_MD_OP_PUT | kEnds));
  ptl_handle_me_t me = PTL_INVALID_HANDLE;
  ASSERT_EQ(PtlMEInsert(last, {PTL_NID_ANY, PTL_PID_ANY}, 1, 0, PTL_UNLINK, PTL_INS_BEFORE, &me), PTL_OK);
  const ptl_handle_md_t posted =
      attach(me, memory(room, 8, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | kEnds, 0), PTL_UNLINK);
  barrier();
  ASSERT_EQ(put(md, 1), PTL_OK);
  flush();
  barrier();
  ptl_md_t active = memory(room, 8, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | kEnds, 1);
  EXPECT_EQ(PtlMDUpdate(posted, nullptr, &active, queue), PTL_MD_NO_UPDATE);
  EXPECT_EQ(expect(PTL_EVENT_PUT_END).md.start, caught);
  ptl_md_t old{};
  EXPECT_EQ(PtlMDUpdate(posted, &old, &active, queue), PTL_OK);
  EXPECT_EQ(old.threshold, 0);
  barrier();
  ASSERT_EQ(put(md, 1), PTL_OK);
  EXPECT_EQ(expect(PTL_EVENT_PUT_END).md.start, room);
  expect(PTL_EVENT_UNLINK);
  barrier();
}

// What a receive does: the entry is there with its memory, or nothing is, because something has come.
TEST_F(Portals3, PostsAnEntryWithItsMemoryUnlessSomethingHasCome) {
  char caught[8] = {};
  char room[8] = {};
  char source[8] = {};
  const unsigned int options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | kEnds;
  const ptl_handle_me_t last = entry(1);
  attach(last, memory(caught, 8, options));
  const ptl_handle_md_t md = bind(memory(source, 8, kEnds | PTL_MD_EVENT_END_DISABLE));
  const ptl_process_id_t any{PTL_NID_ANY, PTL_PID_ANY};
  ptl_handle_me_t me = PTL_INVALID_HANDLE;
  ptl_handle_md_t posted = PTL_INVALID_HANDLE;
  const auto post = [&] {
    return PtlMEMDPost(ni, last, any, 1, 0, PTL_UNLINK, PTL_INS_BEFORE, memory(room, 8, options, 1),
                       PTL_UNLINK, &me, &posted, queue);
  };
  barrier();
  ASSERT_EQ(put(md, 1), PTL_OK);
  flush();
  barrier();
  EXPECT_EQ(post(), PTL_MD_NO_UPDATE);
  EXPECT_EQ(posted, PTL_INVALID_HANDLE);
  EXPECT_EQ(expect(PTL_EVENT_PUT_END).md.start, caught);
  EXPECT_EQ(post(), PTL_OK);
  barrier();
  ASSERT_EQ(put(md, 1), PTL_OK);
  const ptl_event_t event = expect(PTL_EVENT_PUT_END);
  EXPECT_EQ(event.md.start, room);
  EXPECT_EQ(event.md_handle, posted);  // though it is gone meanwhile
  EXPECT_EQ(event.md.eq_handle, queue);
  expect(PTL_EVENT_UNLINK);
  barrier();
  EXPECT_EQ(PtlMEUnlink(me), PTL_ME_INVALID);  // gone with its memory
  ASSERT_EQ(put(md, 1), PTL_OK);
  EXPECT_EQ(expect(PTL_EVENT_PUT_END).md.start, caught);
  barrier();
}

TEST_F(Portals3, PutsEntriesWhereTheyAreAskedToGo) {
  char rooms[4][8] = {};
  char source[8] = {};
  const unsigned int options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | kEnds;
  // 2 1 3 0, each for one message
  const ptl_handle_me_t zero = entry(1, PTL_INS_BEFORE, PTL_UNLINK);
  const ptl_handle_me_t one = entry(1, PTL_INS_BEFORE, PTL_UNLINK);
  ptl_handle_me_t two = PTL_INVALID_HANDLE;
  ptl_handle_me_t three = PTL_INVALID_HANDLE;
  const ptl_process_id_t any{PTL_NID_ANY, PTL_PID_ANY};
  ASSERT_EQ(PtlMEInsert(one, any, 1, 0, PTL_UNLINK, PTL_INS_BEFORE, &two), PTL_OK);
  ASSERT_EQ(PtlMEInsert(one, any, 1, 0, PTL_UNLINK, PTL_INS_AFTER, &three), PTL_OK);
  const ptl_handle_me_t all[4] = {zero, one, two, three};
  for (int i = 0; i < 4; ++i) attach(all[i], memory(rooms[i], 8, options, 1), PTL_UNLINK);
  const ptl_handle_md_t md = bind(memory(source, 8, kEnds));
  barrier();
  for (int i = 0; i < 4; ++i) ASSERT_EQ(put(md, 1), PTL_OK);
  for (const int i : {2, 1, 3, 0}) EXPECT_EQ(expect(PTL_EVENT_PUT_END).md.start, rooms[i]) << i;
  barrier();
}

TEST_F(Portals3, LetsInThoseThatItsTableNames) {
  char room[8] = {};
  char source[8] = {};
  attach(entry(1), memory(room, 8, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | kEnds));
  const ptl_handle_md_t md = bind(memory(source, 8, kEnds));
  ASSERT_EQ(PtlACEntry(ni, 3, {PTL_NID_ANY, peer.pid + 1000}, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY),
            PTL_OK);
  ASSERT_EQ(PtlACEntry(ni, 4, peer, PTL_UID_ANY, PTL_JID_ANY, kPortal + 1), PTL_OK);
  ASSERT_EQ(PtlACEntry(ni, 5, peer, PTL_UID_ANY, PTL_JID_ANY, kPortal), PTL_OK);
  barrier();
  for (const ptl_ac_index_t access : {2u, 3u, 4u, 5u, 9999u})
    ASSERT_EQ(PtlPut(md, PTL_NO_ACK_REQ, peer, kPortal, access, 1, 0, access), PTL_OK);
  for (int i = 0; i < 5; ++i) expect(PTL_EVENT_SEND_END);
  EXPECT_EQ(expect(PTL_EVENT_PUT_END).hdr_data, 5u);
  flush();
  barrier();
  EXPECT_TRUE(silent());
  EXPECT_EQ(drops(), 4u);
}

std::atomic<int> g_handled{0};

TEST_F(Portals3, CallsAHandlerForEachEvent) {
  g_handled = 0;
  ptl_handle_eq_t handled = PTL_EQ_NONE;
  ASSERT_EQ(PtlEQAlloc(
                ni, 16, [](ptl_event_t* event) { g_handled += static_cast<int>(event->hdr_data); }, &handled),
            PTL_OK);
  char room[8] = {};
  ptl_md_t md = memory(room, 8, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | kEnds);
  md.eq_handle = handled;
  attach(entry(1), md);
  const ptl_handle_md_t source = bind(memory(room, 8, kEnds));
  barrier();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(put(source, 1, PTL_ACK_REQ), PTL_OK);
  for (int i = 0; i < 3; ++i) expect(PTL_EVENT_ACK);
  barrier();
  for (int i = 0; i < 30'000 && g_handled != 3 * 0x77; ++i) {
    // Real time, also under a clock: the library's thread runs when the kernel lets it.
    const timespec pause{0, 1'000'000};
    syscall(SYS_nanosleep, &pause, nullptr);
  }
  EXPECT_EQ(g_handled, 3 * 0x77);
  ptl_event_t event{};
  EXPECT_EQ(PtlEQGet(handled, &event), PTL_EQ_EMPTY);
  EXPECT_EQ(PtlEQFree(handled), PTL_OK);
  barrier();
}

// A descriptor that hears nothing of its puts: each takes the memory that it has by then, and none takes that
// of one that is gone, or of another that has its place.
TEST_F(Portals3, PutsFromWhatASilentDescriptorHasByThen) {
  alignas(4096) static char room[4096];
  char first = 1;
  char second = 2;
  attach(entry(1), memory(room, 1, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | kEnds));
  ptl_md_t hears_nothing = memory(&first, 1, kEnds);
  hears_nothing.eq_handle = PTL_EQ_NONE;
  const ptl_handle_md_t md = bind(hears_nothing);
  barrier();
  const auto comes = [&](char byte) {
    expect(PTL_EVENT_PUT_END);
    EXPECT_EQ(room[0], byte);
    barrier();
  };
  // Memory that is used often moves to where puts need no system call.
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(put(md, 1), PTL_OK);
    comes(1);
    const timespec nap{0, 500'000};
    nanosleep(&nap, nullptr);
  }
  hears_nothing.start = &second;
  ASSERT_EQ(PtlMDUpdate(md, nullptr, &hears_nothing, PTL_EQ_NONE), PTL_OK);
  ASSERT_EQ(put(md, 1), PTL_OK);
  comes(2);
  EXPECT_EQ(PtlPutRegion(md, 1, 1, PTL_NO_ACK_REQ, peer, kPortal, 0, 1, 0, 0), PTL_MD_ILLEGAL);
  hears_nothing.threshold = 0;
  ASSERT_EQ(PtlMDUpdate(md, nullptr, &hears_nothing, PTL_EQ_NONE), PTL_OK);
  EXPECT_EQ(put(md, 1), PTL_MD_ILLEGAL);
  ASSERT_EQ(PtlMDUnlink(md), PTL_OK);
  EXPECT_EQ(put(md, 1), PTL_MD_INVALID);
  hears_nothing.threshold = PTL_MD_THRESH_INF;
  hears_nothing.start = &first;
  const ptl_handle_md_t next = bind(hears_nothing);
  EXPECT_EQ(put(md, 1), PTL_MD_INVALID);
  ASSERT_EQ(put(next, 1), PTL_OK);
  comes(1);
  EXPECT_TRUE(silent());
}

// Lists of pieces on both sides.
TEST_F(Portals3, GathersAndScattersPieces) {
  std::vector<char> source(30);
  std::vector<char> target(30, 0);
  std::iota(source.begin(), source.end(), static_cast<char>(1));
  ptl_md_iovec_t from[2] = {{source.data() + 20, 10}, {source.data(), 10}};
  ptl_md_iovec_t to[3] = {{target.data(), 3}, {target.data() + 10, 3}, {target.data() + 20, 10}};
  attach(entry(1), memory(to, 3, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_IOVEC | kEnds));
  const ptl_handle_md_t md = bind(memory(from, 2, PTL_MD_IOVEC | kEnds));
  barrier();
  ASSERT_EQ(PtlPutRegion(md, 8, 6, PTL_NO_ACK_REQ, peer, kPortal, 0, 1, 2, 0), PTL_OK);
  expect(PTL_EVENT_PUT_END);
  const std::pair<std::size_t, char> expected[] = {{2, 29}, {10, 30}, {11, 1}, {12, 2},
                                                   {20, 3}, {21, 4},  {22, 0}};
  for (const auto& [place, byte] : expected) EXPECT_EQ(target[place], byte) << place;
  barrier();
}

TEST_F(Portals3, TellsThatEventsWereLost) {
  char room[8] = {};
  ptl_handle_eq_t small = PTL_EQ_NONE;
  ASSERT_EQ(PtlEQAlloc(ni, 4, PTL_EQ_HANDLER_NONE, &small), PTL_OK);
  ptl_md_t md = memory(room, 8, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | kEnds);
  md.eq_handle = small;
  attach(entry(1), md);
  ptl_md_t quiet = memory(room, 8, kEnds | PTL_MD_EVENT_END_DISABLE);
  const ptl_handle_md_t source = bind(quiet);
  barrier();
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(put(source, 1), PTL_OK);
  flush();
  barrier();
  ptl_event_t event{};
  EXPECT_EQ(PtlEQGet(small, &event), PTL_EQ_DROPPED);
  EXPECT_EQ(event.type, PTL_EVENT_PUT_END);
  const ptl_seq_t first = event.sequence;
  EXPECT_GT(first, 0u);
  EXPECT_EQ(PtlEQGet(small, &event), PTL_OK);
  EXPECT_EQ(event.sequence, first + 1);
  barrier();
}

// What programs for Cray's XT machines ask: the same ranks and places.
TEST_F(Portals3, TheLaunchersNamesOfCray) {
  EXPECT_EQ(cnos_get_rank(), static_cast<int>(rank));
  EXPECT_EQ(cnos_get_size(), static_cast<int>(size));
  cnos_nidpid_map_t* map = nullptr;
  EXPECT_EQ(cnos_get_nidpid_map(nullptr), -1);
  ASSERT_EQ(cnos_get_nidpid_map(&map), static_cast<int>(size));
  EXPECT_EQ(map[rank].nid, self.nid);
  EXPECT_EQ(map[rank].pid, self.pid);
  EXPECT_EQ(map[(rank + 1) % size].pid, peer.pid);
  cnos_barrier_init(ni);
  EXPECT_EQ(cnos_register_ptlid(self), 0);
  EXPECT_EQ(cnos_barrier(), 0);
  cnos_pm_barrier(0);
  ptl_handle_ni_t again{};
  EXPECT_EQ(PtlNIInit(IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, PTL_IFACE_SS), PTL_PID_ANY, nullptr, nullptr,
                      &again),
            PTL_OK);
  EXPECT_EQ(again, ni);
  EXPECT_EQ(PtlNIFini(again), PTL_OK);
  EXPECT_STREQ(ptl_err_str[PTL_IFACE_DUP], "PTL_IFACE_DUP");
}

}  // namespace
}  // namespace client3
