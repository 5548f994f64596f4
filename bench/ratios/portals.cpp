// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "bench/common/session.hpp"
#include "bench/ratios/portals3_channel.hpp"
#include "bench/ratios/stage.hpp"
#include "bench/ratios/tests.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <portals4.h>

// Portals 4: matched puts beside the raw line, long match lists beside short ones, a triggered allreduce
// beside the bare barrier.
namespace bench {

namespace {

constexpr int kPutWindow = 64;
constexpr int kEntries = 1000;
constexpr int kAllreduceRounds = 200;
constexpr std::size_t kBlockBytes = 64 << 10;

void require_ok(int code, const char* call) {
  if (code == PTL_OK) return;
  std::fprintf(stderr, "%s: %d\n", call, code);
  PMI_Abort(1, call);
  std::exit(1);
}
#define BENCH_PORTALS(call) require_ok(call, #call)

// A PE with a matching interface.
struct Node {
  int rank = 0;
  int size = 1;
  ptl_handle_ni_t ni{};
  std::vector<ptl_process_t> ids;
  ptl_process_t peer{};
  std::byte* memory = nullptr;

  Node() {
    int spawned = 0;
    if (PMI_Init(&spawned) != PMI_SUCCESS) std::exit(2);
    PMI_Get_rank(&rank);
    PMI_Get_size(&size);
    BENCH_PORTALS(PtlInit());
    BENCH_PORTALS(
        PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni));
    ptl_process_t mine{};
    BENCH_PORTALS(PtlGetPhysId(ni, &mine));
    ids = all_gather(mine, rank, size);
    peer = ids[static_cast<std::size_t>((rank + 1) % size)];
    static std::byte block[kBlockBytes];
    memory = block;
  }
  ~Node() {
    PMI_Barrier();
    PtlNIFini(ni);
    PtlFini();
    PMI_Finalize();
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  ptl_handle_eq_t queue() const {
    ptl_handle_eq_t handle{};
    BENCH_PORTALS(PtlEQAlloc(ni, 4096, &handle));
    return handle;
  }
  ptl_handle_ct_t counter() const {
    ptl_handle_ct_t handle{};
    BENCH_PORTALS(PtlCTAlloc(ni, &handle));
    return handle;
  }
  ptl_pt_index_t portal(ptl_handle_eq_t queue, ptl_pt_index_t wanted) const {
    ptl_pt_index_t index = 0;
    BENCH_PORTALS(PtlPTAlloc(ni, 0, queue, wanted, &index));
    return index;
  }
  ptl_handle_md_t bound(std::size_t at, std::size_t bytes) const {
    const ptl_md_t md{memory + at, bytes, 0, PTL_EQ_NONE, PTL_CT_NONE};
    ptl_handle_md_t handle{};
    BENCH_PORTALS(PtlMDBind(ni, &md, &handle));
    return handle;
  }
  ptl_handle_me_t entry(ptl_pt_index_t portal, std::size_t at, ptl_match_bits_t bits, unsigned options,
                        ptl_handle_ct_t counter = PTL_CT_NONE, ptl_match_bits_t ignore = 0) const {
    ptl_me_t me{};
    me.start = memory + at;
    me.length = 64;
    me.ct_handle = counter;
    me.uid = PTL_UID_ANY;
    me.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | options;
    me.match_id.phys.nid = PTL_NID_ANY;
    me.match_id.phys.pid = PTL_PID_ANY;
    me.match_bits = bits;
    me.ignore_bits = ignore;
    ptl_handle_me_t handle{};
    BENCH_PORTALS(PtlMEAppend(ni, portal, &me, PTL_PRIORITY_LIST, nullptr, &handle));
    return handle;
  }
  void put(ptl_handle_md_t md, ptl_pt_index_t portal, ptl_match_bits_t bits) const {
    BENCH_PORTALS(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, peer, portal, bits, 0, nullptr, 0));
  }
};

// What arrives is counted, or told by an event.
struct Channel {
  const Node& node;
  bool counted;
  ptl_handle_eq_t events;
  ptl_handle_ct_t arrivals;
  ptl_pt_index_t portal;
  ptl_handle_md_t source;
  ptl_size_t seen = 0;

  Channel(const Node& n, bool by_counter, ptl_pt_index_t index)
      : node(n),
        counted(by_counter),
        events(n.queue()),
        arrivals(n.counter()),
        portal(n.portal(events, index)),
        source(n.bound(4096, 8)) {
    n.entry(portal, 0, 5, counted ? PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM : 0, arrivals);
    PMI_Barrier();
    // Memory that is used often moves to where it can be mapped.
    for (int i = 0; i < 200; ++i) {
      send(1);
      receive(1);
      const timespec nap{0, 500'000};
      nanosleep(&nap, nullptr);
    }
    PMI_Barrier();
  }
  void send(int count) {
    for (int i = 0; i < count; ++i) node.put(source, portal, 5);
  }
  void receive(int count) {
    if (counted) {
      seen += static_cast<ptl_size_t>(count);
      ptl_ct_event_t value{};
      do PtlCTGet(arrivals, &value);
      while (value.success < seen);
      return;
    }
    for (int i = 0; i < count; ++i) {
      ptl_event_t event;
      int code = PTL_EQ_EMPTY;
      while ((code = PtlEQGet(events, &event)) == PTL_EQ_EMPTY) {
      }
      require_ok(code, "PtlEQGet");
    }
  }
};

// Nanoseconds of a put to a portal of the peer's, which waits; `bits(i)` is what the i-th matches.
template <typename Bits>
double matching(Stage& stage, const Node& node, ptl_handle_md_t source, ptl_pt_index_t portal, Bits bits) {
  return median(stage.run(
      kEntries, kTestMs / 3, 1,
      [&](int n) {
        for (int i = 0; i < n; ++i) node.put(source, portal, bits(i));
      },
      [](int) {}));
}

// One entry; a thousand; a thousand behind ten with wildcards that take none of these messages.
struct Lists {
  ptl_pt_index_t one, thousand, among;
  ptl_handle_md_t source;

  explicit Lists(const Node& node)
      : one(node.portal(PTL_EQ_NONE, 20)),
        thousand(node.portal(PTL_EQ_NONE, 21)),
        among(node.portal(PTL_EQ_NONE, 22)),
        source(node.bound(4096, 8)) {
    constexpr unsigned kQuiet = PTL_ME_EVENT_COMM_DISABLE;
    const auto place = [](int i) { return std::size_t{8192} + static_cast<std::size_t>(i % 512) * 64; };
    node.entry(one, place(0), 7, kQuiet);
    for (int i = 0; i < kEntries; ++i) {
      node.entry(thousand, place(i), static_cast<ptl_match_bits_t>(i), kQuiet);
      if (i % 100 == 0)
        node.entry(among, place(i), (ptl_match_bits_t{1} << 40) + static_cast<ptl_match_bits_t>(i), kQuiet,
                   PTL_CT_NONE, 0xff00);
      node.entry(among, place(i), static_cast<ptl_match_bits_t>(i), kQuiet);
    }
    PMI_Barrier();
    for (int round = 0; node.rank == 0 && round < 20; ++round) {
      for (int i = 0; i < kEntries; ++i) node.put(source, thousand, static_cast<ptl_match_bits_t>(i));
      const timespec nap{0, 2'000'000};
      nanosleep(&nap, nullptr);
    }
    PMI_Barrier();
  }
};

void lists(Stage& stage, const Node& node, const Lists& l) {
  const auto forward = [](int i) { return static_cast<ptl_match_bits_t>(i % kEntries); };
  const auto backward = [](int i) { return static_cast<ptl_match_bits_t>(kEntries - 1 - i % kEntries); };
  const auto same = [](int) { return ptl_match_bits_t{7}; };
  const double one = matching(stage, node, l.source, l.one, same);
  row(node.rank, "portals_match_1000_in_order", matching(stage, node, l.source, l.thousand, forward), one);
  row(node.rank, "portals_match_1000_reverse", matching(stage, node, l.source, l.thousand, backward), one);
  row(node.rank, "portals_match_1000_among_10_wild", matching(stage, node, l.source, l.among, forward), one);
}

// Sums a word of every PE: triggered atomics up a binary tree, triggered puts down again. A round's
// operations are all armed before it begins.
struct Allreduce {
  const Node& node;
  ptl_handle_ct_t up, down;
  ptl_pt_index_t portal;
  ptl_handle_md_t mine;
  std::vector<int> children;
  ptl_size_t round = 0;

  explicit Allreduce(const Node& n)
      : node(n), up(n.counter()), down(n.counter()), portal(n.portal(PTL_EQ_NONE, 30)), mine(n.bound(0, 8)) {
    constexpr unsigned kCounts = PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM;
    n.entry(portal, 0, 1, kCounts, up);
    n.entry(portal, 0, 2, kCounts, down);
    for (int child = 2 * n.rank + 1; child <= 2 * n.rank + 2 && child < n.size; ++child)
      children.push_back(child);
    PMI_Barrier();
  }
  void run() {
    ++round;
    const auto expected = static_cast<ptl_size_t>(children.size() + 1) * round;
    if (node.rank != 0) {
      const ptl_process_t parent = node.ids[static_cast<std::size_t>((node.rank - 1) / 2)];
      BENCH_PORTALS(PtlTriggeredAtomic(mine, 0, 8, PTL_NO_ACK_REQ, parent, portal, 1, 0, nullptr, 0, PTL_SUM,
                                       PTL_UINT64_T, up, expected));
    }
    // The root goes on when all have come, the others when the sum has.
    const ptl_handle_ct_t when = node.rank == 0 ? up : down;
    const ptl_size_t threshold = node.rank == 0 ? expected : round;
    for (const int child : children)
      BENCH_PORTALS(PtlTriggeredPut(mine, 0, 8, PTL_NO_ACK_REQ, node.ids[static_cast<std::size_t>(child)],
                                    portal, 2, 0, nullptr, 0, when, threshold));
    BENCH_PORTALS(PtlCTInc(up, {1, 0}));  // this PE's word is there
    ptl_ct_event_t value{};
    BENCH_PORTALS(PtlCTWait(when, threshold, &value));
  }
};

}  // namespace

void measure_portals(int repetitions) {
  const Node node;
  Stage stage(node.rank);
  pin(node.rank);
  Channel counted(node, true, 10);
  Channel told(node, false, 11);
  const Lists l(node);
  Portals3Channel classic(node.rank);
  for (int i = 0; i < repetitions; ++i) {
    double raw = stage.raw_half_round_trip(kRawMs);
    row(node.rank, "portals_put8_counter_polled", half_round_trip(stage, counted, kTestMs), raw);
    raw = stage.raw_half_round_trip(kRawMs);
    const double by_event = half_round_trip(stage, told, kTestMs);
    row(node.rank, "portals_put8_event_polled", by_event, raw);
    row(node.rank, "portals3_put8_event_polled", half_round_trip(stage, classic, kTestMs), by_event);
    raw = stage.raw_half_round_trip(kRawMs);
    row(node.rank, "portals_put8_window_64", window(stage, told, kPutWindow, kTestMs), raw);
    lists(stage, node, l);
  }
}

void measure_portals_8(int repetitions) {
  const Node node;
  Stage stage(node.rank);
  Allreduce reduction(node);
  const auto time = [&](auto step) {
    std::vector<double> samples;
    for (int i = 0; i < kAllreduceRounds; ++i) {
      const std::uint64_t a = Stopwatch::ticks();
      for (int k = 0; k < 10; ++k) step();
      samples.push_back(stage.watch().ns(Stopwatch::ticks() - a) / 10);
    }
    return median(samples);
  };
  for (int i = 0; i < repetitions; ++i) {
    const double bare = time([&] { bare_barrier(stage.memory(), node.size); });
    PMI_Barrier();
    const double ours = time([&] { reduction.run(); });
    PMI_Barrier();
    row(node.rank, "portals_triggered_allreduce_8_pes", ours, bare);
  }
}

}  // namespace bench
