// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <pmi.h>
#include <portals4.h>
#include <portals4_ext.h>

namespace client {

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

// An interface with matching and physical addresses, one event queue, one portal; `peer` is the other
// process, or this one when it is alone.
class PortalsTest : public testing::Test {
 protected:
  PortalsTest() {
    int size = 1;
    int mine = 0;
    Pmi::start();
    PMI_Get_rank(&mine);
    PMI_Get_size(&size);
    rank = static_cast<unsigned>(mine);
    processes = size;
    EXPECT_EQ(PtlInit(), PTL_OK);
    EXPECT_EQ(
        PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, &limits, &ni),
        PTL_OK);
    EXPECT_EQ(PtlEQAlloc(ni, 1024, &queue), PTL_OK);
    EXPECT_EQ(PtlPTAlloc(ni, 0, queue, PTL_PT_ANY, &portal), PTL_OK);
    ptl_process_t self{};
    EXPECT_EQ(PtlGetPhysId(ni, &self), PTL_OK);
    peer = gather(self)[(rank + 1) % static_cast<unsigned>(size)];
  }
  ~PortalsTest() override {
    barrier();
    EXPECT_EQ(PtlNIFini(ni), PTL_OK);
    PtlFini();
    barrier();
  }

  void barrier() const {
    if (processes > 1) {
      ASSERT_EQ(PMI_Barrier(), PMI_SUCCESS);
    }
  }
  template <typename T>
  std::vector<T> gather(const T& mine) const {
    std::vector<T> values(static_cast<std::size_t>(processes), mine);
    if (processes == 1) return values;
    struct Card {
      unsigned rank;
      T value;
    };
    Card card{rank, mine};
    std::vector<Card> cards(static_cast<std::size_t>(processes));
    EXPECT_EQ(PMI_Allgather(&card, cards.data(), sizeof card), PMI_SUCCESS);
    for (const Card& one : cards) values[one.rank] = one.value;
    return values;
  }

  // Whether messages travel as frames, which the target has to take in.
  static bool by_frames() {
    const char* const attach = std::getenv("ORRERY_ATTACH");
    return std::getenv("ORRERY_WIRE") != nullptr || std::getenv("TWO_HOSTS") != nullptr ||
           (attach != nullptr && std::string_view(attach) == "off");
  }

  ptl_me_t entry(void* start, ptl_size_t length, ptl_match_bits_t bits, unsigned int options = 0,
                 unsigned int allowed = PTL_ME_OP_PUT | PTL_ME_OP_GET) const {
    ptl_me_t me{};
    me.start = start;
    me.length = length;
    me.ct_handle = PTL_CT_NONE;
    me.uid = PTL_UID_ANY;
    me.options = options | allowed;
    me.match_id.phys.nid = PTL_NID_ANY;
    me.match_id.phys.pid = PTL_PID_ANY;
    me.match_bits = bits;
    return me;
  }
  ptl_handle_me_t append(const ptl_me_t& me, ptl_list_t list, void* user = nullptr) const {
    ptl_handle_me_t handle = PTL_INVALID_HANDLE;
    EXPECT_EQ(PtlMEAppend(ni, portal, &me, list, user, &handle), PTL_OK);
    return handle;
  }
  ptl_handle_md_t bind(void* start, ptl_size_t length) const {
    const ptl_md_t md{start, length, 0, queue, PTL_CT_NONE};
    ptl_handle_md_t handle = PTL_INVALID_HANDLE;
    EXPECT_EQ(PtlMDBind(ni, &md, &handle), PTL_OK);
    return handle;
  }
  // The next event. A minute without one fails the test.
  ptl_event_t next() {
    if (!kept.empty()) {
      const ptl_event_t event = kept.front();
      kept.erase(kept.begin());
      return event;
    }
    return wait();
  }
  // The next event of that type; those that come before it are kept for later.
  ptl_event_t expect(ptl_event_kind_t type, ptl_ni_fail_t fail = PTL_NI_OK) {
    ptl_event_t event{};
    bool found = false;
    for (std::size_t i = 0; i < kept.size() && !found; ++i) {
      if (kept[i].type != type) continue;
      event = kept[i];
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
      found = true;
    }
    while (!found) {
      event = wait();
      if (event.type == type || HasFailure())
        found = true;
      else
        kept.push_back(event);
    }
    EXPECT_STREQ(ptl_event_kind_str(event.type), ptl_event_kind_str(type));
    EXPECT_STREQ(ptl_fail_type_str(event.ni_fail_type), ptl_fail_type_str(fail));
    return event;
  }

  unsigned rank = 0;
  int processes = 1;
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_ni_limits_t limits{};
  ptl_handle_eq_t queue = PTL_EQ_NONE;
  ptl_pt_index_t portal = 0;
  ptl_process_t peer{};
  std::vector<ptl_event_t> kept;

 private:
  ptl_event_t wait() const {
    ptl_event_t event{};
    unsigned int which = 0;
    EXPECT_STREQ(ptl_rc_str(PtlEQPoll(&queue, 1, 60'000, &event, &which)), "PTL_OK");
    return event;
  }
};

}  // namespace client
