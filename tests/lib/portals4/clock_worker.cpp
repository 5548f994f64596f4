// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What a Portals program measures under a clock, printed by PE 0: half a round trip of a matched put whose
// events are waited for, a put until its acknowledgement, a get, a fetching atomic; then every PE's time of a
// broadcast by triggered puts, and of a chain of them through programs that sleep. Times in nanoseconds.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <pmi.h>
#include <portals4.h>
#include <time.h>

namespace {

void require(int code, const char* what) {
  if (code == PTL_OK) return;
  std::fprintf(stderr, "%s: %d\n", what, code);
  std::exit(1);
}

long long now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<long long>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

struct World {
  int rank = 0;
  int size = 1;
  ptl_handle_ni_t ni{};
  ptl_handle_eq_t at_target{}, at_source{};
  ptl_pt_index_t portal = 0;
  std::vector<ptl_process_t> peers;
  std::vector<char> window = std::vector<char>(1 << 20);
  std::vector<char> local = std::vector<char>(1 << 20);
  ptl_handle_md_t md{};

  World() {
    int spawned = 0;
    PMI_Init(&spawned);
    PMI_Get_rank(&rank);
    PMI_Get_size(&size);
    require(PtlInit(), "PtlInit");
    require(
        PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni),
        "PtlNIInit");
    require(PtlEQAlloc(ni, 64, &at_target), "PtlEQAlloc");
    require(PtlEQAlloc(ni, 64, &at_source), "PtlEQAlloc");
    require(PtlPTAlloc(ni, 0, at_target, 0, &portal), "PtlPTAlloc");
    const ptl_md_t descriptor{local.data(), local.size(), PTL_MD_EVENT_SEND_DISABLE, at_source, PTL_CT_NONE};
    require(PtlMDBind(ni, &descriptor, &md), "PtlMDBind");
    append(1, PTL_CT_NONE, 0);
    struct Card {
      int rank;
      ptl_process_t id;
    } mine{rank, {}};
    require(PtlGetPhysId(ni, &mine.id), "PtlGetPhysId");
    std::vector<Card> cards(static_cast<std::size_t>(size));
    PMI_Allgather(&mine, cards.data(), sizeof mine);
    peers.resize(cards.size());
    for (const Card& card : cards) peers[static_cast<std::size_t>(card.rank)] = card.id;
    PMI_Barrier();
  }
  void append(ptl_match_bits_t bits, ptl_handle_ct_t counter, unsigned int options) {
    ptl_me_t me{};
    me.start = window.data();
    me.length = window.size();
    me.ct_handle = counter;
    me.uid = PTL_UID_ANY;
    me.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | options;
    me.match_id.phys.nid = PTL_NID_ANY;
    me.match_id.phys.pid = PTL_PID_ANY;
    me.match_bits = bits;
    ptl_handle_me_t handle{};
    require(PtlMEAppend(ni, portal, &me, PTL_PRIORITY_LIST, nullptr, &handle), "PtlMEAppend");
  }
  static void await(ptl_handle_eq_t queue) {
    ptl_event_t event{};
    require(PtlEQWait(queue, &event), "PtlEQWait");
    require(event.ni_fail_type, "an event");
  }
  void put(int to, ptl_size_t bytes, ptl_ack_req_t ack) const {
    require(PtlPut(md, 0, bytes, ack, peers[static_cast<std::size_t>(to)], portal, 1, 0, nullptr, 0),
            "PtlPut");
  }
};

void round_trips(World& world, ptl_size_t bytes) {
  PMI_Barrier();
  const long long begin = now_ns();
  constexpr int kTimes = 10;
  for (int i = 0; i < kTimes && world.rank < 2; ++i) {
    if (world.rank == 0) world.put(1, bytes, PTL_NO_ACK_REQ);
    World::await(world.at_target);
    if (world.rank == 1) world.put(0, bytes, PTL_NO_ACK_REQ);
  }
  if (world.rank == 0) std::printf("put %lu %lld\n", bytes, (now_ns() - begin) / (2 * kTimes));
  PMI_Barrier();
}

void one_sided(World& world, ptl_size_t bytes) {
  PMI_Barrier();
  if (world.rank == 0) {
    long long begin = now_ns();
    world.put(1, bytes, PTL_ACK_REQ);
    World::await(world.at_source);
    std::printf("ack %lu %lld\n", bytes, now_ns() - begin);
    begin = now_ns();
    require(PtlGet(world.md, 0, bytes, world.peers[1], world.portal, 1, 0, nullptr), "PtlGet");
    World::await(world.at_source);
    std::printf("get %lu %lld\n", bytes, now_ns() - begin);
    begin = now_ns();
    require(PtlFetchAtomic(world.md, 0, world.md, 8, 8, world.peers[1], world.portal, 1, 0, nullptr, 0,
                           PTL_SUM, PTL_UINT64_T),
            "PtlFetchAtomic");
    World::await(world.at_source);
    std::printf("fetch %d %lld\n", 8, now_ns() - begin);
  }
  PMI_Barrier();
  if (world.rank == 1) {
    for (int i = 0; i < 3; ++i) World::await(world.at_target);
  }
  PMI_Barrier();
}

// A binary tree: each PE's puts to its children wait for its own parent's.
void tree(World& world) {
  ptl_handle_ct_t arrived{};
  require(PtlCTAlloc(world.ni, &arrived), "PtlCTAlloc");
  world.append(2, arrived, PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM);
  for (int child = 2 * world.rank + 1; child <= 2 * world.rank + 2 && child < world.size; ++child) {
    require(PtlTriggeredPut(world.md, 0, 8, PTL_NO_ACK_REQ, world.peers[static_cast<std::size_t>(child)],
                            world.portal, 2, 0, nullptr, 0, arrived, 1),
            "PtlTriggeredPut");
  }
  PMI_Barrier();
  const long long begin = now_ns();
  if (world.rank == 0) require(PtlCTInc(arrived, {1, 0}), "PtlCTInc");
  ptl_ct_event_t count{};
  require(PtlCTWait(arrived, 1, &count), "PtlCTWait");
  std::printf("tree %d %lld\n", world.rank, now_ns() - begin);
  PMI_Barrier();
}

// PE 0 puts to PE 1, and so on to the last: each that has got something puts to the next. Those in between
// sleep meanwhile, their NICs do not.
void relay(World& world) {
  ptl_handle_ct_t arrived{};
  require(PtlCTAlloc(world.ni, &arrived), "PtlCTAlloc");
  world.append(3, arrived, PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM);
  const bool is_last = world.rank == world.size - 1;
  if (!is_last) {
    require(
        PtlTriggeredPut(world.md, 0, 8, PTL_NO_ACK_REQ, world.peers[static_cast<std::size_t>(world.rank) + 1],
                        world.portal, 3, 0, nullptr, 0, arrived, 1),
        "PtlTriggeredPut");
  }
  PMI_Barrier();
  const long long begin = now_ns();
  if (world.rank == 0) require(PtlCTInc(arrived, {1, 0}), "PtlCTInc");
  if (is_last) {
    ptl_ct_event_t count{};
    require(PtlCTWait(arrived, 1, &count), "PtlCTWait");
    std::printf("relay %d %lld\n", world.size - 1, now_ns() - begin);
  } else {
    const timespec long_enough{.tv_sec = 0, .tv_nsec = 50'000'000};
    const long long from = now_ns();
    nanosleep(&long_enough, nullptr);
    std::printf("sleep %d %lld\n", world.rank, now_ns() - from);
  }
  PMI_Barrier();
}

}  // namespace

int main() {
  World world;
  if (world.size < 2) {
    std::fprintf(stderr, "two PEs or more are needed\n");
    return 1;
  }
  for (const ptl_size_t bytes : {0, 8, 32, 33, 4096, 1 << 20}) round_trips(world, bytes);
  for (const ptl_size_t bytes : {8, 4096}) one_sided(world, bytes);
  tree(world);
  relay(world);
  PtlNIFini(world.ni);
  PtlFini();
  PMI_Finalize();
}
