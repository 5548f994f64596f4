// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// kill_worker KIND SEED, three PEs: PE 2 makes calls of one kind until it kills itself at a point that the
// seed gives. The others operate on it meanwhile: every one of their operations ends with its event. Then
// they exchange messages with each other, close the interface, and say that they went on.
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

#include <pmi.h>
#include <portals4.h>
#include <portals4_ext.h>
#include <signal.h>

namespace {

constexpr ptl_pt_index_t kPortal = 4, kOther = 5;
constexpr auto kMeanwhile = std::chrono::milliseconds(150);
constexpr ptl_time_t kLimitMs = 60'000;
constexpr unsigned kVictim = 2;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::_Exit(1);
}
void require_ok(int code, const char* what) {
  if (code == PTL_OK) return;
  std::fprintf(stderr, "%s: %s\n", what, ptl_rc_str(code));
  std::_Exit(1);
}

struct World {
  unsigned rank = 0;
  ptl_handle_ni_t ni{};
  ptl_handle_eq_t queue{}, told{};
  ptl_handle_ct_t counter{};
  ptl_handle_md_t memory{};
  ptl_process_t ids[3]{};
  std::vector<char> window = std::vector<char>(1 << 16);
  std::vector<char> local = std::vector<char>(1 << 16);

  ptl_me_t entry(std::vector<char>& bytes, ptl_match_bits_t bits, unsigned options) const {
    ptl_me_t me{};
    me.start = bytes.data();
    me.length = bytes.size();
    me.ct_handle = PTL_CT_NONE;
    me.uid = PTL_UID_ANY;
    me.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | options;
    me.match_id.phys.nid = PTL_NID_ANY;
    me.match_id.phys.pid = PTL_PID_ANY;
    me.match_bits = bits;
    return me;
  }
  void open() {
    require_ok(
        PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni),
        "PtlNIInit");
    ptl_pt_index_t index = 0;
    require_ok(PtlEQAlloc(ni, 4096, &queue), "PtlEQAlloc");
    require_ok(PtlEQAlloc(ni, 4096, &told), "PtlEQAlloc");
    require_ok(PtlCTAlloc(ni, &counter), "PtlCTAlloc");
    require_ok(PtlPTAlloc(ni, 0, queue, kPortal, &index), "PtlPTAlloc");
    require_ok(PtlPTAlloc(ni, 0, queue, kOther, &index), "PtlPTAlloc");
    const ptl_md_t md{local.data(), local.size(), PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_SEND_DISABLE, told,
                      counter};
    require_ok(PtlMDBind(ni, &md, &memory), "PtlMDBind");
    ptl_handle_me_t me{};
    const ptl_me_t quiet = entry(window, 1, PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE);
    require_ok(PtlMEAppend(ni, kPortal, &quiet, PTL_PRIORITY_LIST, nullptr, &me), "PtlMEAppend");
  }
  // Every one of `count` operations tells its end.
  void settle(unsigned count, bool may_fail) const {
    for (unsigned i = 0; i < count; ++i) {
      ptl_event_t event{};
      unsigned which = 0;
      const int code = PtlEQPoll(&told, 1, kLimitMs, &event, &which);
      require(code == PTL_OK, "an operation did not end");
      require(event.type == PTL_EVENT_ACK || event.type == PTL_EVENT_REPLY, "an event of another kind");
      if (event.ni_fail_type == PTL_NI_OK || may_fail) continue;
      std::fprintf(stderr, "PE %u: %s\n", rank, ptl_fail_type_str(event.ni_fail_type));
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
  const auto bytes = [&random] { return ptl_size_t{1} << random() % 16; };
  const auto other = [&] { return world.ids[random() % 2]; };
  const auto append = [&](ptl_pt_index_t portal, ptl_list_t list, unsigned options) {
    ptl_handle_me_t me{};
    const ptl_me_t what = world.entry(world.window, 1, PTL_ME_EVENT_LINK_DISABLE | options);
    if (PtlMEAppend(world.ni, portal, &what, list, nullptr, &me) != PTL_OK) return;
    while (PtlMEUnlink(me) == PTL_IN_USE) {
    }
  };
  const std::map<std::string, std::function<void()>> calls = {
      {"put", [&] { PtlPut(world.memory, 0, bytes(), PTL_NO_ACK_REQ, other(), kPortal, 1, 0, nullptr, 0); }},
      {"ack", [&] { PtlPut(world.memory, 0, bytes(), PTL_ACK_REQ, other(), kPortal, 1, 0, nullptr, 0); }},
      {"get", [&] { PtlGet(world.memory, 0, bytes(), other(), kPortal, 1, 0, nullptr); }},
      {"atomic",
       [&] {
         PtlAtomic(world.memory, 0, 64, PTL_ACK_REQ, other(), kPortal, 1, 0, nullptr, 0, PTL_SUM,
                   PTL_INT64_T);
       }},
      {"fetch",
       [&] {
         PtlFetchAtomic(world.memory, 0, world.memory, 64, 64, other(), kPortal, 1, 0, nullptr, 0, PTL_SUM,
                        PTL_INT64_T);
       }},
      {"swap",
       [&] {
         PtlSwap(world.memory, 0, world.memory, 64, 64, other(), kPortal, 1, 0, nullptr, 0, nullptr, PTL_SWAP,
                 PTL_INT64_T);
       }},
      {"trigger",
       [&] {
         ptl_ct_event_t now{};
         PtlCTGet(world.counter, &now);
         PtlTriggeredPut(world.memory, 0, 8, PTL_ACK_REQ, other(), kPortal, 1, 0, nullptr, 0, world.counter,
                         now.success + 1);
         PtlCTInc(world.counter, {1, 0});
       }},
      {"append", [&] { append(kPortal, PTL_PRIORITY_LIST, PTL_ME_EVENT_COMM_DISABLE); }},
      {"unexpected", [&] { append(kOther, PTL_OVERFLOW_LIST, 0); }},
      {"search",
       [&] {
         const ptl_me_t what = world.entry(world.window, 1, 0);
         PtlMESearch(world.ni, kOther, &what, PTL_SEARCH_DELETE, nullptr);
       }},
      {"portal",
       [&] {
         PtlPTDisable(world.ni, kPortal);
         PtlPTEnable(world.ni, kPortal);
       }},
      {"queue",
       [&] {
         ptl_handle_eq_t eq{};
         if (PtlEQAlloc(world.ni, 2000, &eq) == PTL_OK) PtlEQFree(eq);
       }},
      {"wait",
       [&] {
         ptl_ct_event_t value{};
         PtlCTWait(world.counter, 1u << 30, &value);
       }},
      {"reopen",
       [&] {
         require_ok(PtlNIFini(world.ni), "PtlNIFini");
         world.open();
       }},
  };
  const auto call = calls.find(kind);
  require(call != calls.end(), "unknown kind");
  if (kind == "search") {
    ptl_handle_me_t me{};
    const ptl_me_t what = world.entry(world.window, 1, PTL_ME_EVENT_COMM_DISABLE);
    require_ok(PtlMEAppend(world.ni, kOther, &what, PTL_OVERFLOW_LIST, nullptr, &me), "PtlMEAppend");
  }
  for (;;) {
    call->second();
    ptl_event_t event{};
    while (PtlEQGet(world.told, &event) != PTL_EQ_EMPTY || PtlEQGet(world.queue, &event) != PTL_EQ_EMPTY) {
    }
  }
}

// The two that are left.
void exchange(World& world) {
  const unsigned peer = 1 - world.rank;
  std::vector<char> room(64);
  std::memset(world.local.data(), 'a' + static_cast<int>(world.rank), 64);
  ptl_handle_me_t me{};
  ptl_me_t what = world.entry(room, 7, PTL_ME_EVENT_LINK_DISABLE);
  require_ok(PtlMEAppend(world.ni, kPortal, &what, PTL_PRIORITY_LIST, nullptr, &me), "PtlMEAppend");
  // What comes before the other one has its entry is dropped.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLimitMs);
  for (bool taken = false; !taken;) {
    require(std::chrono::steady_clock::now() < limit, "the other survivor takes nothing");
    require_ok(PtlPut(world.memory, 0, 64, PTL_ACK_REQ, world.ids[peer], kPortal, 7, 0, nullptr, 0),
               "PtlPut");
    ptl_event_t event{};
    unsigned which = 0;
    require(PtlEQPoll(&world.told, 1, kLimitMs, &event, &which) == PTL_OK,
            "no answer from the other survivor");
    require(event.ni_fail_type == PTL_NI_OK || event.ni_fail_type == PTL_NI_DROPPED,
            "a failure between survivors");
    taken = event.ni_fail_type == PTL_NI_OK;
  }
  for (bool came = false; !came;) {
    ptl_event_t event{};
    unsigned which = 0;
    const int code = PtlEQPoll(&world.queue, 1, kLimitMs, &event, &which);
    require(code == PTL_OK || code == PTL_EQ_DROPPED, "the other survivor was not heard of");
    came = event.type == PTL_EVENT_PUT && event.match_bits == 7;
  }
  for (const char byte : room)
    require(byte == 'a' + static_cast<int>(peer), "wrong bytes from the other survivor");
}

}  // namespace

int main(int argc, char** argv) {
  require(argc == 3, "usage: kill_worker KIND SEED");
  const std::uint64_t seed = std::strtoull(argv[2], nullptr, 0);
  int spawned = 0;
  int rank = 0;
  PMI_Init(&spawned);
  PMI_Get_rank(&rank);
  require_ok(PtlInit(), "PtlInit");
  World world;
  world.rank = static_cast<unsigned>(rank);
  world.open();
  struct Card {
    unsigned rank;
    ptl_process_t id;
  } mine{world.rank, {}}, all[3];
  require_ok(PtlGetPhysId(world.ni, &mine.id), "PtlGetPhysId");
  PMI_Allgather(&mine, all, sizeof mine);
  for (const Card& card : all) world.ids[card.rank] = card.id;
  PMI_Barrier();
  if (world.rank == kVictim) call_until_killed(world, argv[1], seed);
  std::mt19937_64 random(seed * 2 + world.rank);
  const ptl_process_t victim = world.ids[kVictim];
  const auto end = std::chrono::steady_clock::now() + kMeanwhile;
  while (std::chrono::steady_clock::now() < end) {
    const ptl_size_t bytes = ptl_size_t{1} << random() % 16;
    require_ok(PtlPut(world.memory, 0, bytes, PTL_ACK_REQ, victim, kPortal, 1, 0, nullptr, 0), "PtlPut");
    require_ok(PtlPut(world.memory, 0, 8, PTL_ACK_REQ, victim, kOther, 1, 0, nullptr, 0), "PtlPut");
    require_ok(PtlGet(world.memory, 0, bytes, victim, kPortal, 1, 0, nullptr), "PtlGet");
    require_ok(PtlFetchAtomic(world.memory, 0, world.memory, 64, 8, victim, kPortal, 1, 0, nullptr, 0,
                              PTL_SUM, PTL_INT64_T),
               "PtlFetchAtomic");
    world.settle(4, true);
  }
  exchange(world);
  require_ok(PtlNIFini(world.ni), "PtlNIFini");
  std::printf("PE %u went on\n", world.rank);
  std::fflush(stdout);
  PtlFini();
  std::_Exit(0);
}
