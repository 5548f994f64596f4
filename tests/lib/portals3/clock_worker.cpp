// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What a Portals 3.3 program measures under a clock, printed by PE 0 in nanoseconds: half a round trip of a
// put, a put until its acknowledgement, a get.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <p3rt/p3rt.h>
#include <pmi.h>
#include <portals3.h>
#include <time.h>

namespace {

void require(int code, const char* what) {
  if (code == PTL_OK) return;
  std::fprintf(stderr, "%s: %s\n", what, PtlErrorStr(code));
  std::exit(1);
}

long long now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<long long>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

struct World {
  unsigned int rank = 0;
  unsigned int size = 1;
  ptl_handle_ni_t ni{};
  ptl_handle_eq_t at_target{}, at_source{};
  ptl_process_id_t peer{};
  std::vector<char> window = std::vector<char>(1 << 20);
  std::vector<char> local = std::vector<char>(1 << 20);
  ptl_handle_md_t quiet{}, loud{};

  World() {
    int spawned = 0;
    PMI_Init(&spawned);
    require(PtlInit(nullptr), "PtlInit");
    require(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, nullptr, nullptr, &ni), "PtlNIInit");
    require(PtlGetRank(ni, &rank, &size), "PtlGetRank");
    require(PtlGetRankId(ni, rank == 0 ? 1 : 0, &peer), "PtlGetRankId");
    require(PtlEQAlloc(ni, 64, nullptr, &at_target), "PtlEQAlloc");
    require(PtlEQAlloc(ni, 64, nullptr, &at_source), "PtlEQAlloc");
    ptl_handle_me_t me{};
    require(PtlMEAttach(ni, 4, {PTL_NID_ANY, PTL_PID_ANY}, 1, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
            "PtlMEAttach");
    ptl_md_t md{window.data(),
                window.size(),
                PTL_MD_THRESH_INF,
                0,
                PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
                nullptr,
                at_target};
    ptl_handle_md_t handle{};
    require(PtlMDAttach(me, md, PTL_RETAIN, &handle), "PtlMDAttach");
    md.start = local.data();
    md.options = PTL_MD_EVENT_START_DISABLE;
    md.eq_handle = at_source;
    require(PtlMDBind(ni, md, PTL_RETAIN, &loud), "PtlMDBind");
    md.options = PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE;
    md.eq_handle = PTL_EQ_NONE;
    require(PtlMDBind(ni, md, PTL_RETAIN, &quiet), "PtlMDBind");
    PMI_Barrier();
  }
  static void await(ptl_handle_eq_t queue, ptl_event_kind_t kind) {
    ptl_event_t event{};
    do require(PtlEQWait(queue, &event), "PtlEQWait");
    while (event.type != kind);
  }
  void put(ptl_handle_md_t md, ptl_size_t bytes, ptl_ack_req_t ack) const {
    require(PtlPutRegion(md, 0, bytes, ack, peer, 4, 0, 1, 0, 0), "PtlPutRegion");
  }
};

void round_trips(World& world, ptl_size_t bytes) {
  PMI_Barrier();
  const long long begin = now_ns();
  constexpr int kTimes = 10;
  for (int i = 0; i < kTimes && world.rank < 2; ++i) {
    if (world.rank == 0) world.put(world.quiet, bytes, PTL_NO_ACK_REQ);
    World::await(world.at_target, PTL_EVENT_PUT_END);
    if (world.rank == 1) world.put(world.quiet, bytes, PTL_NO_ACK_REQ);
  }
  if (world.rank == 0) std::printf("put %lu %lld\n", bytes, (now_ns() - begin) / (2 * kTimes));
  PMI_Barrier();
}

void one_sided(World& world, ptl_size_t bytes) {
  PMI_Barrier();
  if (world.rank == 0) {
    long long begin = now_ns();
    world.put(world.loud, bytes, PTL_ACK_REQ);
    World::await(world.at_source, PTL_EVENT_ACK);
    std::printf("ack %lu %lld\n", bytes, now_ns() - begin);
    begin = now_ns();
    require(PtlGetRegion(world.loud, 0, bytes, world.peer, 4, 0, 1, 0), "PtlGetRegion");
    World::await(world.at_source, PTL_EVENT_REPLY_END);
    std::printf("get %lu %lld\n", bytes, now_ns() - begin);
  }
  PMI_Barrier();
  if (world.rank == 1) World::await(world.at_target, PTL_EVENT_GET_END);
  PMI_Barrier();
}

// Puts one after the other: how long each takes when the next need not wait for it.
void stream(World& world, ptl_size_t bytes) {
  constexpr int kTimes = 50;
  PMI_Barrier();
  const long long begin = now_ns();
  if (world.rank == 0) {
    for (int i = 0; i < kTimes; ++i) world.put(world.quiet, bytes, PTL_NO_ACK_REQ);
  } else if (world.rank == 1) {
    for (int i = 0; i < kTimes; ++i) World::await(world.at_target, PTL_EVENT_PUT_END);
    std::printf("stream %lu %lld\n", bytes, (now_ns() - begin) / kTimes);
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
  for (const ptl_size_t bytes : {8, 1 << 20}) stream(world, bytes);
  PtlNIFini(world.ni);
  PtlFini();
  PMI_Finalize();
}
