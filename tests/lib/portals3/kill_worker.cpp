// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// kill_worker KIND SEED, three PEs: PE 2 makes calls of one kind until it kills itself at a point that the
// seed gives. The others send to it and take from it meanwhile. Then they exchange messages with each other,
// close the interface, and say that they went on.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <p3rt/p3rt.h>
#include <pmi.h>
#include <portals3.h>
#include <signal.h>

namespace {

constexpr ptl_process_id_t kAnyone = {PTL_NID_ANY, PTL_PID_ANY};
constexpr ptl_pt_index_t kPortal = 4;
constexpr auto kMeanwhile = std::chrono::milliseconds(150);
constexpr auto kLimit = std::chrono::seconds(60);

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::_Exit(1);
}
void require_ok(int code, const char* what) {
  if (code == PTL_OK) return;
  std::fprintf(stderr, "%s: %s\n", what, PtlErrorStr(code));
  std::_Exit(1);
}

struct World {
  unsigned rank = 0, size = 0;
  ptl_handle_ni_t ni{};
  ptl_handle_eq_t queue{};
  ptl_process_id_t ids[3]{};
  std::vector<char> window = std::vector<char>(1 << 16);
  std::vector<char> local = std::vector<char>(1 << 16);
  ptl_handle_md_t source{};

  ptl_md_t memory(std::vector<char>& bytes, ptl_handle_eq_t eq) const {
    return {
        bytes.data(),
        bytes.size(),
        PTL_MD_THRESH_INF,
        0,
        PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE,
        nullptr,
        eq};
  }
  void open() {
    require_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, nullptr, nullptr, &ni), "PtlNIInit");
    require_ok(PtlGetRank(ni, &rank, &size), "PtlGetRank");
    for (unsigned other = 0; other < 3; ++other)
      require_ok(PtlGetRankId(ni, other, &ids[other]), "PtlGetRankId");
    require_ok(PtlEQAlloc(ni, 900, PTL_EQ_HANDLER_NONE, &queue), "PtlEQAlloc");
    ptl_handle_me_t me{};
    ptl_handle_md_t md{};
    require_ok(PtlMEAttach(ni, kPortal, kAnyone, 1, 0, PTL_RETAIN, PTL_INS_AFTER, &me), "PtlMEAttach");
    require_ok(PtlMDAttach(me, memory(window, PTL_EQ_NONE), PTL_RETAIN, &md), "PtlMDAttach");
    require_ok(PtlMDBind(ni, memory(local, queue), PTL_RETAIN, &source), "PtlMDBind");
  }
  void put(unsigned to, ptl_size_t bytes, ptl_ack_req_t ack) const {
    require_ok(PtlPutRegion(source, 0, bytes, ack, ids[to], kPortal, 0, 1, 0, 0), "PtlPutRegion");
  }
  void get(unsigned from, ptl_size_t bytes) const {
    require_ok(PtlGetRegion(source, 0, bytes, ids[from], kPortal, 0, 1, 0), "PtlGetRegion");
  }
  void swap(unsigned with) const {
    require_ok(PtlGetPut(source, source, ids[with], kPortal, 0, 1, 0, 0), "PtlGetPut");
  }
  // Takes what has come. What a dead process did not take was dropped on its node: that is no failure.
  void look() const {
    ptl_event_t event{};
    int code = PTL_OK;
    while ((code = PtlEQGet(queue, &event)) != PTL_EQ_EMPTY) {
      require(code == PTL_OK || code == PTL_EQ_DROPPED, "PtlEQGet");
      if (event.ni_fail_type == PTL_NI_OK) continue;
      std::fprintf(stderr, "PE %u: %s failed\n", rank, PtlEventKindStr(event.type));
      std::_Exit(1);
    }
  }
};

[[noreturn]] void call_until_killed(World& world, const std::string& kind, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::thread([delay = std::chrono::microseconds(random() % 40'000)] {
    std::this_thread::sleep_for(delay);
    raise(SIGKILL);
  }).detach();
  ptl_handle_me_t base{};
  require_ok(PtlMEAttach(world.ni, kPortal + 1, kAnyone, 9, 0, PTL_RETAIN, PTL_INS_AFTER, &base),
             "PtlMEAttach");
  const auto sizes = [&random] { return ptl_size_t{1} << random() % 16; };
  const auto other = [&random] { return static_cast<unsigned>(random() % 2); };
  const std::map<std::string, std::function<void()>> calls = {
      {"put", [&] { world.put(other(), sizes(), PTL_NO_ACK_REQ); }},
      {"ack", [&] { world.put(other(), sizes(), PTL_ACK_REQ); }},
      {"get", [&] { world.get(other(), sizes()); }},
      {"swap", [&] { world.swap(other()); }},
      {"attach",
       [&] {
         ptl_handle_me_t me{};
         ptl_handle_md_t md{};
         const int code = PtlMEAttach(world.ni, kPortal, kAnyone, 1, 0, PTL_UNLINK, PTL_INS_BEFORE, &me);
         if (code != PTL_OK) return;
         (void)PtlMDAttach(me, world.memory(world.local, PTL_EQ_NONE), PTL_RETAIN, &md);
         while (PtlMDUnlink(md) == PTL_MD_IN_USE) {
         }
       }},
      {"post",
       [&] {
         ptl_handle_me_t me{};
         ptl_handle_md_t md{};
         if (PtlMEMDPost(world.ni, base, kAnyone, 1, 0, PTL_RETAIN, PTL_INS_BEFORE,
                         world.memory(world.local, world.queue), PTL_RETAIN, &me, &md, PTL_EQ_NONE) == PTL_OK)
           (void)PtlMEUnlink(me);
       }},
      {"update",
       [&] {
         ptl_md_t md = world.memory(world.local, world.queue);
         (void)PtlMDUpdate(world.source, &md, &md, world.queue);
         world.put(other(), 8, PTL_ACK_REQ);
         world.look();
       }},
      {"queue",
       [&] {
         ptl_handle_eq_t eq{};
         if (PtlEQAlloc(world.ni, 2000, PTL_EQ_HANDLER_NONE, &eq) == PTL_OK) (void)PtlEQFree(eq);
       }},
      {"wait",
       [&] {
         ptl_event_t event{};
         (void)PtlEQWait(world.queue, &event);
       }},
      {"poll",
       [&] {
         ptl_event_t event{};
         int which = 0;
         (void)PtlEQPoll(&world.queue, 1, 1, &event, &which);
       }},
      {"reopen",
       [&] {
         require_ok(PtlNIFini(world.ni), "PtlNIFini");
         world.open();
       }},
  };
  const auto call = calls.find(kind);
  require(call != calls.end(), "unknown kind");
  for (;;) {
    call->second();
    if (kind != "wait" && kind != "poll") world.look();
  }
}

// The two that are left.
void exchange(World& world) {
  const unsigned peer = 1 - world.rank;
  ptl_handle_eq_t came{};
  ptl_handle_me_t me{};
  ptl_handle_md_t md{};
  std::vector<char> room(64);
  require_ok(PtlEQAlloc(world.ni, 900, PTL_EQ_HANDLER_NONE, &came), "PtlEQAlloc");
  require_ok(PtlMEAttach(world.ni, kPortal + 2, world.ids[peer], 7, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
             "PtlMEAttach");
  require_ok(PtlMDAttach(me, world.memory(room, came), PTL_RETAIN, &md), "PtlMDAttach");
  std::memset(world.local.data(), 'a' + static_cast<int>(world.rank), 64);
  ptl_handle_eq_t told{};
  ptl_handle_md_t from{};
  require_ok(PtlEQAlloc(world.ni, 900, PTL_EQ_HANDLER_NONE, &told), "PtlEQAlloc");
  require_ok(PtlMDBind(world.ni, world.memory(world.local, told), PTL_RETAIN, &from), "PtlMDBind");
  bool got = false, taken = false;
  const auto limit = std::chrono::steady_clock::now() + kLimit;
  while (!got || !taken) {
    require(std::chrono::steady_clock::now() < limit, "the other survivor was not heard of");
    ptl_event_t event{};
    int which = 0;
    // What comes before the other one has attached its entry is dropped.
    if (!taken)
      require_ok(PtlPutRegion(from, 0, 64, PTL_ACK_REQ, world.ids[peer], kPortal + 2, 0, 7, 0, 0), "PtlPut");
    ptl_handle_eq_t both[2] = {came, told};
    while (PtlEQPoll(both, 2, 2, &event, &which) != PTL_EQ_EMPTY) {
      require(event.ni_fail_type == PTL_NI_OK, "a failure between survivors");
      got = got || event.type == PTL_EVENT_PUT_END;
      taken = taken || event.type == PTL_EVENT_ACK;
    }
  }
  for (const char byte : room)
    require(byte == 'a' + static_cast<int>(peer), "wrong bytes from the other survivor");
}

}  // namespace

int main(int argc, char** argv) {
  require(argc == 3, "usage: kill_worker KIND SEED");
  const std::uint64_t seed = std::strtoull(argv[2], nullptr, 0);
  int spawned = 0;
  PMI_Init(&spawned);
  require_ok(PtlInit(nullptr), "PtlInit");
  World world;
  world.open();
  PMI_Barrier();
  if (world.rank == 2) call_until_killed(world, argv[1], seed);
  std::mt19937_64 random(seed * 2 + world.rank);
  const auto end = std::chrono::steady_clock::now() + kMeanwhile;
  while (std::chrono::steady_clock::now() < end) {
    world.put(2, ptl_size_t{1} << random() % 16, PTL_ACK_REQ);
    world.get(2, ptl_size_t{1} << random() % 16);
    if (random() % 8 == 0) world.swap(2);
    world.look();
  }
  exchange(world);
  require_ok(PtlNIFini(world.ni), "PtlNIFini");
  std::printf("PE %u went on\n", world.rank);
  std::fflush(stdout);
  PtlFini();
  std::_Exit(0);
}
