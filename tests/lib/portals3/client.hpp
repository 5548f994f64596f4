// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include <p3rt/p3rt.h>
#include <pmi.h>
#include <portals3.h>

namespace client3 {

// PMI for the whole program. mpirun takes a process that leaves without a word for one that failed.
class Pmi {
 public:
  static void start() { static const Pmi pmi; }
  Pmi(const Pmi&) = delete;
  Pmi& operator=(const Pmi&) = delete;

 private:
  Pmi() {
    int spawned = 0;
    PMI_Init(&spawned);
  }
  ~Pmi() { PMI_Finalize(); }
};

// The interface, an event queue; `peer` is the other process, or this one when it is alone.
class Portals3Test : public testing::Test {
 protected:
  Portals3Test() {
    Pmi::start();
    int interfaces = 0;
    EXPECT_EQ(PtlInit(&interfaces), PTL_OK);
    EXPECT_EQ(interfaces, 1);
    EXPECT_EQ(PtlSetRank(PTL_INVALID_HANDLE, -1, -1), PTL_OK);
    EXPECT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, nullptr, &limits, &ni), PTL_OK);
    EXPECT_EQ(PtlGetRank(ni, &rank, &size), PTL_OK);
    EXPECT_EQ(PtlGetId(ni, &self), PTL_OK);
    EXPECT_EQ(PtlGetRankId(ni, (rank + 1) % size, &peer), PTL_OK);
    EXPECT_EQ(PtlEQAlloc(ni, 64, PTL_EQ_HANDLER_NONE, &queue), PTL_OK);
    EXPECT_EQ(PtlEQAlloc(ni, 64, PTL_EQ_HANDLER_NONE, &flushed), PTL_OK);
    ptl_handle_me_t me = PTL_INVALID_HANDLE;
    EXPECT_EQ(PtlMEAttach(ni, kPortal + 1, {PTL_NID_ANY, PTL_PID_ANY}, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
              PTL_OK);
    ptl_md_t md = memory(nullptr, 0, PTL_MD_OP_PUT | kEnds | PTL_MD_EVENT_END_DISABLE);
    md.eq_handle = flushed;
    flush_target = attach(me, md);
    flush_source = bind(md);
    barrier();
  }
  // All that was put to the peer before has come there.
  void flush() {
    ASSERT_EQ(PtlPut(flush_source, PTL_ACK_REQ, peer, kPortal + 1, 0, 0, 0, 0), PTL_OK);
    ptl_event_t event{};
    ASSERT_EQ(PtlEQWait(flushed, &event), PTL_OK);
    ASSERT_EQ(event.type, PTL_EVENT_ACK);
  }
  ~Portals3Test() override {
    barrier();
    EXPECT_EQ(PtlNIFini(ni), PTL_OK);
    PtlFini();
    barrier();
  }
  void barrier() const {
    if (size > 1) {
      ASSERT_EQ(PMI_Barrier(), PMI_SUCCESS);
    }
  }
  ptl_md_t memory(void* start, ptl_size_t length, unsigned int options, int threshold = PTL_MD_THRESH_INF) {
    return {start, length, threshold, 0, options, start, queue};
  }
  ptl_handle_me_t entry(ptl_match_bits_t bits, ptl_ins_pos_t where = PTL_INS_AFTER,
                        ptl_unlink_t unlink = PTL_RETAIN) {
    ptl_handle_me_t me = PTL_INVALID_HANDLE;
    EXPECT_EQ(PtlMEAttach(ni, kPortal, {PTL_NID_ANY, PTL_PID_ANY}, bits, 0, unlink, where, &me), PTL_OK);
    return me;
  }
  ptl_handle_md_t attach(ptl_handle_me_t me, const ptl_md_t& md, ptl_unlink_t unlink = PTL_RETAIN) {
    ptl_handle_md_t handle = PTL_INVALID_HANDLE;
    EXPECT_STREQ(PtlErrorStr(PtlMDAttach(me, md, unlink, &handle)), "PTL_OK");
    return handle;
  }
  ptl_handle_md_t bind(const ptl_md_t& md, ptl_unlink_t unlink = PTL_RETAIN) {
    ptl_handle_md_t handle = PTL_INVALID_HANDLE;
    EXPECT_STREQ(PtlErrorStr(PtlMDBind(ni, md, unlink, &handle)), "PTL_OK");
    return handle;
  }
  int put(ptl_handle_md_t md, ptl_match_bits_t bits, ptl_ack_req_t ack = PTL_NO_ACK_REQ,
          ptl_size_t offset = 0) {
    return PtlPut(md, ack, peer, kPortal, 0, bits, offset, 0x77);
  }
  // The next event of that type; those that come before it are kept for later. Half a minute without fails.
  ptl_event_t expect(ptl_event_kind_t type) {
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (kept[i].type != type) continue;
      const ptl_event_t event = kept[i];
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
      return event;
    }
    for (;;) {
      ptl_event_t event{};
      int which = -1;
      EXPECT_STREQ(PtlErrorStr(PtlEQPoll(&queue, 1, 30'000, &event, &which)), "PTL_OK")
          << PtlEventKindStr(type);
      if (event.type == type || HasFailure()) return event;
      kept.push_back(event);
    }
  }
  // Whether nothing more is told.
  bool silent() {
    ptl_event_t event{};
    return kept.empty() && PtlEQGet(queue, &event) == PTL_EQ_EMPTY;
  }
  ptl_sr_value_t drops() const {
    ptl_sr_value_t count = 0;
    EXPECT_EQ(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &count), PTL_OK);
    return count;
  }

  static constexpr ptl_pt_index_t kPortal = 4;
  static constexpr unsigned int kEnds = PTL_MD_EVENT_START_DISABLE;
  unsigned int rank = 0;
  unsigned int size = 1;
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_ni_limits_t limits{};
  ptl_process_id_t self{}, peer{};
  ptl_handle_eq_t queue = PTL_EQ_NONE;
  ptl_handle_eq_t flushed = PTL_EQ_NONE;
  ptl_handle_md_t flush_target = PTL_INVALID_HANDLE;
  ptl_handle_md_t flush_source = PTL_INVALID_HANDLE;
  std::vector<ptl_event_t> kept;
};

}  // namespace client3
