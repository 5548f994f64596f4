// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Every call of Portals 3.3 with what it does not take.
#include "tests/lib/portals3/client.hpp"

namespace client3 {
namespace {

TEST(Portals3Start, NothingWorksBeforePtlInit) {
  ptl_handle_ni_t ni{};
  ptl_handle_eq_t eq{};
  ptl_process_id_t id{};
  ptl_event_t event{};
  unsigned int number = 0;
  PtlFini();  // changes nothing
  EXPECT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, nullptr, nullptr, &ni), PTL_NO_INIT);
  EXPECT_EQ(PtlNIFini(0), PTL_NO_INIT);
  EXPECT_EQ(PtlGetId(0, &id), PTL_NO_INIT);
  EXPECT_EQ(PtlEQAlloc(0, 1, nullptr, &eq), PTL_NO_INIT);
  EXPECT_EQ(PtlEQGet(0, &event), PTL_NO_INIT);
  EXPECT_EQ(PtlMEUnlink(0), PTL_NO_INIT);
  EXPECT_EQ(PtlMDUnlink(0), PTL_NO_INIT);
  EXPECT_EQ(PtlPut(0, PTL_ACK_REQ, id, 0, 0, 0, 0, 0), PTL_NO_INIT);
  EXPECT_EQ(PtlGet(0, id, 0, 0, 0, 0), PTL_NO_INIT);
  EXPECT_EQ(PtlGetPut(0, 0, id, 0, 0, 0, 0, 0), PTL_NO_INIT);
  EXPECT_EQ(PtlSetRank(0, 0, 1), PTL_NO_INIT);
  EXPECT_EQ(PtlGetRank(0, &number, &number), PTL_NO_INIT);
  EXPECT_EQ(PtlSetJID(0, 1), PTL_NO_INIT);
  EXPECT_EQ(PtlProgress(0, 0), PTL_NO_INIT);
  EXPECT_EQ(PtlInit(nullptr), PTL_OK);  // the number of interfaces need not be asked for
  PtlFini();
  PtlFini();  // once too often
  EXPECT_EQ(PtlNIFini(0), PTL_NO_INIT);
}

class Refused3 : public Portals3Test {
 protected:
  const ptl_process_id_t any{PTL_NID_ANY, PTL_PID_ANY};
  char room[64] = {};
};

TEST_F(Refused3, TheInterface) {
  ptl_handle_ni_t other{};
  ptl_process_id_t id{};
  unsigned long distance = 0;
  ptl_sr_value_t value = 0;
  ptl_uid_t uid = 0;
  ptl_jid_t jid = 0;
  EXPECT_EQ(PtlNIInit(7, PTL_PID_ANY, nullptr, nullptr, &other), PTL_IFACE_INVALID);
  EXPECT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, self.pid + 1, nullptr, nullptr, &other), PTL_PID_INVALID);
  EXPECT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, 70000, nullptr, nullptr, &other), PTL_PID_INVALID);
  EXPECT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, nullptr, nullptr, nullptr), PTL_SEGV);
  for (const ptl_handle_ni_t bad : {0u, ni + 1, PTL_INVALID_HANDLE, PTL_HANDLE_NONE, queue}) {
    EXPECT_EQ(PtlNIFini(bad), PTL_NI_INVALID);
    EXPECT_EQ(PtlNIStatus(bad, 0, &value), PTL_NI_INVALID);
    EXPECT_EQ(PtlNIDist(bad, self, &distance), PTL_NI_INVALID);
    EXPECT_EQ(PtlGetUid(bad, &uid), PTL_NI_INVALID);
    EXPECT_EQ(PtlGetId(bad, &id), PTL_NI_INVALID);
    EXPECT_EQ(PtlGetJid(bad, &jid), PTL_NI_INVALID);
    EXPECT_EQ(PtlACEntry(bad, 0, any, 0, 0, 0), PTL_NI_INVALID);
    EXPECT_EQ(PtlGetRankId(bad, 0, &id), PTL_NI_INVALID);
  }
  EXPECT_EQ(PtlNIStatus(ni, 1, &value), PTL_SR_INDEX_INVALID);
  EXPECT_EQ(PtlNIStatus(ni, 0, nullptr), PTL_SEGV);
  EXPECT_EQ(PtlNIDist(ni, any, &distance), PTL_PROCESS_INVALID);
  EXPECT_EQ(PtlNIDist(ni, self, &distance), PTL_OK);
  EXPECT_EQ(distance, 0u);
  EXPECT_EQ(PtlACEntry(ni, static_cast<ptl_ac_index_t>(limits.max_ac_index) + 1, any, 0, 0, 0),
            PTL_AC_INDEX_INVALID);
  EXPECT_EQ(PtlACEntry(ni, 1, any, 0, 0, static_cast<ptl_pt_index_t>(limits.max_pt_index) + 1),
            PTL_PT_INDEX_INVALID);
  EXPECT_EQ(PtlGetRankId(ni, size, &id), PTL_PROCESS_INVALID);
  EXPECT_EQ(PtlNIHandle(0, &other), PTL_HANDLE_INVALID);
  EXPECT_EQ(PtlNIHandle(queue, nullptr), PTL_SEGV);
  EXPECT_EQ(PtlNIHandle(queue, &other), PTL_OK);
  EXPECT_EQ(other, ni);
  EXPECT_EQ(PtlGetUid(ni, nullptr), PTL_SEGV);
  EXPECT_EQ(PtlGetId(ni, nullptr), PTL_SEGV);
  EXPECT_EQ(PtlGetJid(ni, nullptr), PTL_SEGV);
}

TEST_F(Refused3, Ranks) {
  ptl_nid_t nids[2] = {};
  EXPECT_EQ(PtlSetRank(ni, 3, 3), PTL_FAIL);
  EXPECT_EQ(PtlSetRank(ni, -2, 3), PTL_FAIL);
  EXPECT_EQ(PtlSetNIDMap(ni, nullptr, 2), PTL_FAIL);
  EXPECT_EQ(PtlSetPIDMap(ni, nids, 0), PTL_FAIL);
  EXPECT_EQ(PtlGetNIDMap(ni, nids, static_cast<int>(size) + 1), PTL_FAIL);
  EXPECT_EQ(PtlGetPIDMap(ni, nullptr, 1), PTL_SEGV);
  EXPECT_EQ(PtlGetRank(ni, nullptr, nullptr), PTL_SEGV);
}

TEST_F(Refused3, Entries) {
  ptl_handle_me_t me = PTL_INVALID_HANDLE;
  ptl_pt_index_t portal = 0;
  EXPECT_EQ(PtlMEAttach(0, kPortal, any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me), PTL_NI_INVALID);
  EXPECT_EQ(PtlMEAttach(ni, 9999, any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me), PTL_PT_INDEX_INVALID);
  EXPECT_EQ(PtlMEAttach(ni, kPortal, any, 0, 0, static_cast<ptl_unlink_t>(5), PTL_INS_AFTER, &me), PTL_FAIL);
  EXPECT_EQ(PtlMEAttach(ni, kPortal, any, 0, 0, PTL_RETAIN, static_cast<ptl_ins_pos_t>(5), &me), PTL_FAIL);
  EXPECT_EQ(PtlMEAttach(ni, kPortal, any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, nullptr), PTL_SEGV);
  EXPECT_EQ(PtlMEAttachAny(ni, nullptr, any, 0, 0, PTL_RETAIN, &me), PTL_SEGV);
  EXPECT_EQ(PtlMEAttachAny(ni, &portal, any, 0, 0, PTL_RETAIN, &me), PTL_OK);
  for (const ptl_handle_me_t bad : {0u, PTL_INVALID_HANDLE, PTL_HANDLE_NONE, ni, queue}) {
    EXPECT_EQ(PtlMEInsert(bad, any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me), PTL_ME_INVALID);
    EXPECT_EQ(PtlMEUnlink(bad), PTL_ME_INVALID);
  }
  EXPECT_EQ(PtlMEUnlink(me), PTL_OK);
  EXPECT_EQ(PtlMEUnlink(me), PTL_ME_INVALID);  // once
}

TEST_F(Refused3, Descriptors) {
  const ptl_handle_me_t me = entry(1);
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  const ptl_md_t good = memory(room, 64, PTL_MD_OP_PUT);
  const struct {
    const char* what;
    ptl_md_t md;
    int code;
  } cases[] = {
      {"options", {room, 64, 1, 0, 0x8000, nullptr, queue}, PTL_MD_ILLEGAL},
      {"threshold", {room, 64, -2, 0, 0, nullptr, queue}, PTL_MD_ILLEGAL},
      {"no memory", {nullptr, 64, 1, 0, 0, nullptr, queue}, PTL_MD_ILLEGAL},
      {"pieces", {room, 100'000'000, 1, 0, PTL_MD_IOVEC, nullptr, queue}, PTL_MD_ILLEGAL},
      {"queue", {room, 64, 1, 0, 0, nullptr, 0}, PTL_EQ_INVALID},
      {"queue of another kind", {room, 64, 1, 0, 0, nullptr, ni}, PTL_EQ_INVALID},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(PtlMDAttach(me, one.md, PTL_RETAIN, &md), one.code) << one.what;
    EXPECT_EQ(PtlMDBind(ni, one.md, PTL_RETAIN, &md), one.code) << one.what;
  }
  EXPECT_EQ(PtlMDBind(0, good, PTL_RETAIN, &md), PTL_NI_INVALID);
  EXPECT_EQ(PtlMDBind(ni, good, PTL_RETAIN, nullptr), PTL_SEGV);
  EXPECT_EQ(PtlMDBind(ni, good, static_cast<ptl_unlink_t>(9), &md), PTL_FAIL);
  EXPECT_EQ(PtlMDAttach(ni, good, PTL_RETAIN, &md), PTL_ME_INVALID);
  EXPECT_EQ(PtlMDAttach(me, good, PTL_RETAIN, &md), PTL_OK);
  EXPECT_EQ(PtlMDAttach(me, good, PTL_RETAIN, &md), PTL_ME_IN_USE);
  ptl_md_t changed = cases[0].md;
  EXPECT_EQ(PtlMDUpdate(md, nullptr, &changed, PTL_EQ_NONE), PTL_MD_ILLEGAL);
  changed = good;
  EXPECT_EQ(PtlMDUpdate(md, nullptr, &changed, 0), PTL_EQ_INVALID);
  EXPECT_EQ(PtlMDUpdate(0, nullptr, &changed, PTL_EQ_NONE), PTL_MD_INVALID);
  EXPECT_EQ(PtlMDUnlink(md), PTL_OK);
  EXPECT_EQ(PtlMDUnlink(md), PTL_MD_INVALID);
  EXPECT_EQ(PtlMDUpdate(md, nullptr, &changed, PTL_EQ_NONE), PTL_MD_INVALID);
}

TEST_F(Refused3, AnEntryThatWentWithItsDescriptor) {
  for (const ptl_unlink_t unlink : {PTL_RETAIN, PTL_UNLINK}) {
    const ptl_handle_me_t stays = entry(1, PTL_INS_AFTER, PTL_RETAIN);
    const ptl_handle_me_t goes = entry(1, PTL_INS_AFTER, PTL_UNLINK);
    const ptl_md_t good = memory(room, 64, PTL_MD_OP_PUT);
    EXPECT_EQ(PtlMDUnlink(attach(stays, good, unlink)), PTL_OK);
    EXPECT_EQ(PtlMDUnlink(attach(goes, good, unlink)), PTL_OK);
    ptl_handle_md_t md = PTL_INVALID_HANDLE;
    EXPECT_EQ(PtlMDAttach(goes, good, unlink, &md), PTL_ME_INVALID);
    EXPECT_EQ(PtlMEUnlink(goes), PTL_ME_INVALID);
    md = attach(stays, good, unlink);
    EXPECT_EQ(PtlMEUnlink(stays), PTL_OK);
    EXPECT_EQ(PtlMDUnlink(md), PTL_MD_INVALID);
  }
}

TEST_F(Refused3, EntriesWithTheirDescriptors) {
  const ptl_handle_me_t base = entry(1);
  const ptl_md_t good = memory(room, 64, PTL_MD_OP_PUT);
  const ptl_md_t bad_md{room, 64, 1, 0, 0x8000, nullptr, queue};
  const auto bad_op = static_cast<ptl_unlink_t>(5);
  const auto bad_position = static_cast<ptl_ins_pos_t>(5);
  constexpr auto kRetain = PTL_RETAIN;
  constexpr auto kAfter = PTL_INS_AFTER;
  ptl_handle_me_t me = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  EXPECT_EQ(PtlMEMDPost(0, base, any, 1, 0, kRetain, kAfter, good, kRetain, &me, &md, PTL_EQ_NONE),
            PTL_NI_INVALID);
  for (const ptl_handle_me_t bad : {0u, PTL_INVALID_HANDLE, PTL_HANDLE_NONE, ni, queue}) {
    EXPECT_EQ(PtlMEMDPost(ni, bad, any, 1, 0, kRetain, kAfter, good, kRetain, &me, &md, PTL_EQ_NONE),
              PTL_ME_INVALID);
  }
  EXPECT_EQ(PtlMEMDPost(ni, base, any, 1, 0, bad_op, kAfter, good, kRetain, &me, &md, PTL_EQ_NONE), PTL_FAIL);
  EXPECT_EQ(PtlMEMDPost(ni, base, any, 1, 0, kRetain, bad_position, good, kRetain, &me, &md, PTL_EQ_NONE),
            PTL_FAIL);
  EXPECT_EQ(PtlMEMDPost(ni, base, any, 1, 0, kRetain, kAfter, good, bad_op, &me, &md, PTL_EQ_NONE), PTL_FAIL);
  EXPECT_EQ(PtlMEMDPost(ni, base, any, 1, 0, kRetain, kAfter, bad_md, kRetain, &me, &md, PTL_EQ_NONE),
            PTL_MD_ILLEGAL);
  EXPECT_EQ(PtlMEMDPost(ni, base, any, 1, 0, kRetain, kAfter, good, kRetain, &me, &md, 0), PTL_EQ_INVALID);
  EXPECT_EQ(PtlMEMDPost(ni, base, any, 1, 0, kRetain, kAfter, good, kRetain, nullptr, &md, PTL_EQ_NONE),
            PTL_SEGV);
  EXPECT_EQ(PtlMEMDPost(ni, base, any, 1, 0, kRetain, kAfter, good, kRetain, &me, nullptr, PTL_EQ_NONE),
            PTL_SEGV);
  EXPECT_EQ(me, PTL_INVALID_HANDLE);
  EXPECT_EQ(md, PTL_INVALID_HANDLE);
}

TEST_F(Refused3, Queues) {
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_event_t event{};
  int which = 0;
  EXPECT_EQ(PtlEQAlloc(0, 4, nullptr, &eq), PTL_NI_INVALID);
  EXPECT_EQ(PtlEQAlloc(ni, 4, nullptr, nullptr), PTL_SEGV);
  EXPECT_EQ(PtlEQAlloc(ni, std::uint64_t{1} << 60, nullptr, &eq), PTL_NO_SPACE);
  EXPECT_EQ(PtlEQAlloc(ni, 0, nullptr, &eq), PTL_OK);
  EXPECT_EQ(eq, PTL_EQ_NONE);
  for (ptl_handle_eq_t bad : {0u, PTL_EQ_NONE, PTL_INVALID_HANDLE, ni}) {
    EXPECT_EQ(PtlEQFree(bad), PTL_EQ_INVALID);
    EXPECT_EQ(PtlEQGet(bad, &event), PTL_EQ_INVALID);
    EXPECT_EQ(PtlEQWait(bad, &event), PTL_EQ_INVALID);
    EXPECT_EQ(PtlEQPoll(&bad, 1, 0, &event, &which), PTL_EQ_INVALID);
  }
  EXPECT_EQ(PtlEQGet(queue, nullptr), PTL_SEGV);
  EXPECT_EQ(PtlEQPoll(nullptr, 1, 0, &event, &which), PTL_SEGV);
  EXPECT_EQ(PtlEQPoll(&queue, 0, 0, &event, &which), PTL_EQ_INVALID);
  EXPECT_EQ(PtlEQPoll(&queue, 1, 5, &event, &which), PTL_EQ_EMPTY);
  EXPECT_EQ(PtlEQGet(queue, &event), PTL_EQ_EMPTY);
  // All of them, and one again.
  std::vector<ptl_handle_eq_t> all;
  while (PtlEQAlloc(ni, 1, nullptr, &eq) == PTL_OK) all.push_back(eq);
  EXPECT_EQ(all.size(), static_cast<std::size_t>(limits.max_eqs) - 2);
  EXPECT_EQ(PtlEQFree(all.back()), PTL_OK);
  EXPECT_EQ(PtlEQFree(all.back()), PTL_EQ_INVALID);
  EXPECT_EQ(PtlEQAlloc(ni, 1, nullptr, &eq), PTL_OK);
}

TEST_F(Refused3, AQueueThatFitsWhereOthersWere) {
  constexpr ptl_size_t kHalf = (std::size_t{128} << 20) / 128 / 2 - 64;  // takes half the room
  std::vector<ptl_handle_eq_t> all;
  ptl_handle_eq_t eq = PTL_EQ_NONE;
  while (PtlEQAlloc(ni, 3000, nullptr, &eq) == PTL_OK) all.push_back(eq);
  EXPECT_EQ(all.size(), 255u);  // and the fixture's
  EXPECT_EQ(PtlEQAlloc(ni, kHalf, nullptr, &eq), PTL_NO_SPACE);
  for (const ptl_handle_eq_t one : all) EXPECT_EQ(PtlEQFree(one), PTL_OK);
  EXPECT_EQ(PtlEQAlloc(ni, kHalf, nullptr, &eq), PTL_OK);
}

TEST_F(Refused3, Transfers) {
  const ptl_handle_md_t md = bind(memory(room, 64, PTL_MD_OP_PUT));
  const ptl_handle_md_t half = bind(memory(room, 32, PTL_MD_OP_PUT));
  const ptl_handle_md_t idle = bind(memory(room, 64, PTL_MD_OP_PUT, 0));
  for (const ptl_handle_md_t bad : {0u, PTL_INVALID_HANDLE, ni, queue}) {
    EXPECT_EQ(PtlPut(bad, PTL_ACK_REQ, peer, 0, 0, 0, 0, 0), PTL_MD_INVALID);
    EXPECT_EQ(PtlGet(bad, peer, 0, 0, 0, 0), PTL_MD_INVALID);
    EXPECT_EQ(PtlGetPut(md, bad, peer, 0, 0, 0, 0, 0), PTL_MD_INVALID);
    EXPECT_EQ(PtlGetPut(bad, md, peer, 0, 0, 0, 0, 0), PTL_MD_INVALID);
  }
  EXPECT_EQ(PtlPut(md, static_cast<ptl_ack_req_t>(8), peer, 0, 0, 0, 0, 0), PTL_FAIL);
  EXPECT_EQ(PtlPut(md, PTL_ACK_REQ, any, 0, 0, 0, 0, 0), PTL_PROCESS_INVALID);
  EXPECT_EQ(PtlGet(md, any, 0, 0, 0, 0), PTL_PROCESS_INVALID);
  EXPECT_EQ(PtlPut(idle, PTL_ACK_REQ, peer, 0, 0, 0, 0, 0), PTL_MD_ILLEGAL);
  EXPECT_EQ(PtlGet(idle, peer, 0, 0, 0, 0), PTL_MD_ILLEGAL);
  EXPECT_EQ(PtlPutRegion(md, 60, 8, PTL_ACK_REQ, peer, 0, 0, 0, 0, 0), PTL_MD_ILLEGAL);
  EXPECT_EQ(PtlPutRegion(md, ~std::uint64_t{0}, 8, PTL_ACK_REQ, peer, 0, 0, 0, 0, 0), PTL_MD_ILLEGAL);
  EXPECT_EQ(PtlGetRegion(md, 0, 65, peer, 0, 0, 0, 0), PTL_MD_ILLEGAL);
  EXPECT_EQ(PtlGetPut(md, half, peer, 0, 0, 0, 0, 0), PTL_MD_ILLEGAL);
  EXPECT_TRUE(silent());
  // A process that is not there takes nothing, and says nothing.
  ASSERT_EQ(PtlPut(md, PTL_ACK_REQ, {self.nid, 60000}, 0, 0, 0, 0, 0), PTL_OK);
  expect(PTL_EVENT_SEND_START);
  EXPECT_EQ(expect(PTL_EVENT_SEND_END).ni_fail_type, PTL_NI_OK);
  EXPECT_TRUE(silent());
  // Memory that is not there.
  const ptl_handle_md_t nowhere = bind(memory(reinterpret_cast<void*>(0x1000), 64, kEnds));
  attach(entry(1), memory(room, 64, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | kEnds));
  ASSERT_EQ(PtlPut(nowhere, PTL_ACK_REQ, self, kPortal, 0, 1, 0, 0), PTL_OK);
  EXPECT_EQ(expect(PTL_EVENT_PUT_END).ni_fail_type, PTL_NI_FAIL);
  EXPECT_EQ(expect(PTL_EVENT_SEND_END).ni_fail_type, PTL_NI_FAIL);
}

TEST_F(Refused3, MoreEntriesThanThereAre) {
  ptl_handle_me_t me = PTL_INVALID_HANDLE;
  int code = PTL_OK;
  int count = 0;
  for (; code == PTL_OK && count < 70'000; ++count)
    code = PtlMEAttach(ni, count % 2 == 0 ? 1 : 2, any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me);
  EXPECT_EQ(code, PTL_NO_SPACE);
  EXPECT_EQ(count - 1, limits.max_mes - 2);  // two are the fixture's
  EXPECT_EQ(PtlMEUnlink(me), PTL_OK);
  EXPECT_EQ(PtlMEAttach(ni, 1, any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me), PTL_OK);
}

TEST(Portals3Names, OfCodesAndEvents) {
  EXPECT_STREQ(PtlErrorStr(PTL_MD_NO_UPDATE), "PTL_MD_NO_UPDATE");
  EXPECT_STREQ(PtlErrorStr(-1), "no code of Portals 3");
  EXPECT_STREQ(PtlErrorStr(1000), "no code of Portals 3");
  EXPECT_STREQ(PtlEventKindStr(PTL_EVENT_UNLINK), "PTL_EVENT_UNLINK");
  EXPECT_STREQ(PtlEventKindStr(static_cast<ptl_event_kind_t>(77)), "no event of Portals 3");
  EXPECT_STREQ(PtlNIFailStr(0, PTL_NI_FAIL), "PTL_NI_FAIL");
  EXPECT_EQ(PtlNIDebug(PTL_INVALID_HANDLE, 5), 0u);
  EXPECT_EQ(PtlNIDebug(PTL_INVALID_HANDLE, 0), 5u);
}

}  // namespace
}  // namespace client3
