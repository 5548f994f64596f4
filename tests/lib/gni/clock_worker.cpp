// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A client of uGNI and PMI like any other, that prints what it measures with clock_gettime(2); what it is to
// do is its first argument. clock_test.cpp runs it under virtual time.
#include "bench/common/session.hpp"
#include "tests/lib/gni/clock_waits.hpp"

#include <cinttypes>
#include <string>
#include <vector>

#include <sched.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr std::size_t kRoom = 1 << 20;

std::int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

struct World {
  bench::Session session;
  gni_cq_handle_t source = session.queue(1024), target = session.queue(4096);
  std::byte* window = nullptr;
  std::byte* local = nullptr;
  gni_mem_handle_t local_handle{};
  std::vector<bench::Window> windows;
  std::vector<gni_ep_handle_t> eps;

  World() {
    window = static_cast<std::byte*>(std::aligned_alloc(4096, kRoom));
    local = static_cast<std::byte*>(std::aligned_alloc(4096, kRoom));
    std::memset(window, 0, kRoom);
    std::memset(local, 0, kRoom);
    local_handle = session.registered(local, kRoom);
    const bench::Window mine{reinterpret_cast<std::uint64_t>(window),
                             session.registered(window, kRoom, target)};
    windows = bench::all_gather(mine, session.rank, session.size);
    for (int pe = 0; pe < session.size; ++pe) {
      eps.push_back(session.endpoint(pe, source));
      BENCH_REQUIRE(GNI_EpSetEventData(eps.back(), 0, static_cast<std::uint32_t>(session.rank)));
    }
    PMI_Barrier();
  }
  int rank() const { return session.rank; }
  int size() const { return session.size; }

  void post(int pe, gni_post_descriptor_t& pd) {
    const bool block = pd.type == GNI_POST_RDMA_PUT || pd.type == GNI_POST_RDMA_GET;
    pd.local_mem_hndl = local_handle;
    gni_return_t rc = GNI_RC_SUCCESS;
    const gni_ep_handle_t ep = eps[static_cast<std::size_t>(pe)];
    while ((rc = block ? GNI_PostRdma(ep, &pd) : GNI_PostFma(ep, &pd)) == GNI_RC_ERROR_RESOURCE) reap_one();
    bench::require(rc, "post");
  }
  bool reap_one() {
    gni_cq_entry_t event = 0;
    const gni_return_t rc = GNI_CqGetEvent(source, &event);
    if (rc == GNI_RC_NOT_DONE) return false;
    bench::require(rc, "GNI_CqGetEvent");
    gni_post_descriptor_t* done = nullptr;
    bench::require(GNI_GetCompleted(source, event, &done), "GNI_GetCompleted");
    return true;
  }
  void reap() {
    while (!reap_one()) {
    }
  }
  std::uint32_t await_remote() {
    gni_cq_entry_t event = 0;
    gni_return_t rc = GNI_RC_NOT_DONE;
    while ((rc = GNI_CqGetEvent(target, &event)) == GNI_RC_NOT_DONE) {
    }
    bench::require(rc, "GNI_CqGetEvent");
    return static_cast<std::uint32_t>(gni_cq_get_rem_inst_id(event));
  }
  gni_post_descriptor_t put(int pe, std::uint64_t offset, std::uint64_t bytes, std::uint16_t events,
                            gni_post_type_t type = GNI_POST_FMA_PUT) const {
    return bench::put_descriptor(type, events, local, windows[static_cast<std::size_t>(pe)], offset, bytes);
  }
};

// One put at a time from PE 0 to the last, its own event awaited; then gets.
void latency(World& w) {
  const int last = w.size() - 1;
  if (w.rank() == 0) {
    for (const gni_post_type_t type :
         {GNI_POST_FMA_PUT, GNI_POST_FMA_GET, GNI_POST_RDMA_PUT, GNI_POST_RDMA_GET}) {
      for (const std::uint64_t bytes : {8u, 64u, 4096u, 65536u}) {
        auto pd = w.put(last, 0, bytes, GNI_CQMODE_GLOBAL_EVENT, type);
        const std::int64_t start = now_ns();
        w.post(last, pd);
        w.reap();
        std::printf("type %d bytes %" PRIu64 " ns %" PRId64 "\n", static_cast<int>(type), bytes,
                    now_ns() - start);
      }
    }
  }
}

// Puts back and forth, each answered when its event has come.
void ping_pong(World& w) {
  const int peer = 1 - w.rank();
  if (w.rank() > 1) return;
  for (const std::uint64_t bytes : {8u, 1024u, 65536u}) {
    const std::int64_t start = now_ns();
    constexpr int kRounds = 100;
    for (int i = 0; i < kRounds; ++i) {
      auto pd = w.put(peer, 0, bytes, GNI_CQMODE_REMOTE_EVENT | GNI_CQMODE_GLOBAL_EVENT);
      if (w.rank() == 1) (void)w.await_remote();
      w.post(peer, pd);
      if (w.rank() == 0) (void)w.await_remote();
      w.reap();
    }
    if (w.rank() == 0)
      std::printf("bytes %" PRIu64 " half round trip %" PRId64 " ns\n", bytes,
                  (now_ns() - start) / (2 * kRounds));
  }
}

// The same, with the data itself polled.
void memory_ping_pong(World& w) {
  const int peer = 1 - w.rank();
  if (w.rank() > 1) return;
  const auto* flag = reinterpret_cast<volatile std::uint64_t*>(w.window);
  auto* value = reinterpret_cast<std::uint64_t*>(w.local);
  const std::int64_t start = now_ns();
  constexpr std::uint64_t kRounds = 100;
  for (std::uint64_t i = 1; i <= kRounds; ++i) {
    auto pd = w.put(peer, 0, 8, 0);
    *value = i;
    if (w.rank() == 1) {
      while (*flag != i) {
      }
    }
    w.post(peer, pd);
    if (w.rank() == 0) {
      while (*flag != i) {
      }
    }
  }
  if (w.rank() == 0) std::printf("half round trip %" PRId64 " ns\n", (now_ns() - start) / (2 * 100));
}

std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  return x;
}

// Every PE puts to random others, 64 at a time under way.
void all_to_all(World& w, int count) {
  std::uint64_t state = static_cast<std::uint64_t>(w.rank()) + 1;
  std::vector<gni_post_descriptor_t> posts(64);
  int open = 0;
  const std::int64_t start = now_ns();
  for (int i = 0; i < count; ++i) {
    state = mixed(state + 0x9e3779b97f4a7c15ull);
    const int to = static_cast<int>(state % static_cast<std::uint64_t>(w.size()));
    if (open == 64) {
      w.reap();
      --open;
    }
    auto& pd = posts[static_cast<std::size_t>(i) % 64];
    pd = w.put(to, state / 4096 % 64 * 64, 8u << state % 7, GNI_CQMODE_GLOBAL_EVENT);
    w.post(to, pd);
    ++open;
  }
  for (; open > 0; --open) w.reap();
  const std::int64_t took = now_ns() - start;
  for (const std::int64_t each : bench::all_gather(took, w.rank(), w.size())) {
    if (w.rank() == 0) std::printf("%" PRId64 "\n", each);
  }
}

// All put to PE 0, which counts their events.
void hot_spot(World& w) {
  constexpr int kEach = 50;
  if (w.rank() == 0) {
    std::vector<int> seen(static_cast<std::size_t>(w.size()));
    for (int i = 0; i < kEach * (w.size() - 1); ++i) {
      const std::uint32_t from = w.await_remote();
      ++seen[from];
      if (i % 7 == 0) std::printf("%d from %u at %" PRId64 "\n", i, from, now_ns());
    }
  } else {
    for (int i = 0; i < kEach; ++i) {
      auto pd = w.put(0, 64 * static_cast<std::uint64_t>(w.rank()), 512,
                      GNI_CQMODE_REMOTE_EVENT | GNI_CQMODE_GLOBAL_EVENT);
      w.post(0, pd);
      w.reap();
    }
  }
}

// Tasks are taken from a counter at PE 0 by fetch-and-add; who gets which depends on time alone.
void work_stealing(World& w) {
  auto* got = reinterpret_cast<std::uint64_t*>(w.local);
  std::string mine;
  for (;;) {
    gni_post_descriptor_t pd = w.put(0, 8, 8, GNI_CQMODE_GLOBAL_EVENT, GNI_POST_AMO);
    pd.amo_cmd = GNI_FMA_ATOMIC_FADD;
    pd.first_operand = 1;
    w.post(0, pd);
    w.reap();
    if (*got >= 200) break;
    mine += " " + std::to_string(*got);
    usleep(static_cast<useconds_t>(mixed(*got) % 5));
  }
  std::printf("PE %d at %" PRId64 ":%s\n", w.rank(), now_ns(), mine.c_str());
}

// A program that waits for a time by looking at the clock, and by sleeping.
void timeouts(World& w) {
  const std::int64_t start = now_ns();
  while (now_ns() < start + 50'000) {
  }
  const std::int64_t looked = now_ns();
  usleep(100 + static_cast<useconds_t>(w.rank()));
  const std::int64_t slept = now_ns();
  gni_cq_entry_t event = 0;
  int polls = 0;
  while (now_ns() < slept + 20'000 && GNI_CqGetEvent(w.target, &event) == GNI_RC_NOT_DONE) ++polls;
  std::printf("PE %d: %" PRId64 " %" PRId64 " %" PRId64 " %d polls\n", w.rank(), looked - start,
              slept - looked, now_ns() - slept, polls);
}

// Puts of all the others, several under way, to words of PE 0, which reads them in turn.
void to_one(World& w) {
  constexpr std::uint64_t kEach = 8;
  if (w.rank() != 0) {
    auto* values = reinterpret_cast<std::uint64_t*>(w.local);
    for (std::uint64_t i = 0; i < kEach; ++i) {
      values[i] = i + 1;
      auto pd = w.put(0, (static_cast<std::uint64_t>(w.rank()) * kEach + i) * 8, 8, 0);
      pd.local_addr += i * 8;
      w.post(0, pd);
    }
    return;
  }
  const auto* words = reinterpret_cast<volatile std::uint64_t*>(w.window);
  for (std::uint64_t i = kEach; i < kEach * static_cast<std::uint64_t>(w.size()); ++i) {
    while (words[i] == 0) {
    }
    std::printf("word %" PRIu64 " is %" PRIu64 " at %" PRId64 "\n", i, words[i], now_ns());
  }
}

// Short messages round a ring.
void messages(World& w) {
  gni_smsg_attr_t mine{};
  mine.msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT;
  mine.mbox_maxcredit = 4;
  mine.msg_maxsize = 64;
  BENCH_REQUIRE(GNI_SmsgBufferSizeNeeded(&mine, &mine.buff_size));
  mine.msg_buffer = std::calloc(2, mine.buff_size);
  mine.mem_hndl = w.session.registered(mine.msg_buffer, 2 * std::size_t{mine.buff_size});
  const bench::Window here{reinterpret_cast<std::uint64_t>(mine.msg_buffer), mine.mem_hndl};
  const auto all = bench::all_gather(here, w.rank(), w.size());
  const int next = (w.rank() + 1) % w.size(), before = (w.rank() + w.size() - 1) % w.size();
  const auto open = [&](int peer, std::uint32_t ours, std::uint32_t other) {
    const gni_ep_handle_t ep = w.session.endpoint(peer, w.source);
    gni_smsg_attr_t theirs = mine;
    theirs.msg_buffer = reinterpret_cast<void*>(all[static_cast<std::size_t>(peer)].address);
    theirs.mem_hndl = all[static_cast<std::size_t>(peer)].handle;
    mine.mbox_offset = ours * mine.buff_size;
    theirs.mbox_offset = other * mine.buff_size;
    BENCH_REQUIRE(GNI_SmsgInit(ep, &mine, &theirs));
    return ep;
  };
  const gni_ep_handle_t to = open(next, 1, 0), from = open(before, 0, 1);
  PMI_Barrier();
  int sent = 0, received = 0;
  while (sent < 100 || received < 100) {
    if (sent < 100) {
      const gni_return_t rc =
          GNI_SmsgSendWTag(to, &sent, sizeof sent, nullptr, 0, static_cast<std::uint32_t>(sent), 3);
      if (rc == GNI_RC_SUCCESS) {
        ++sent;
      } else if (rc != GNI_RC_NOT_DONE) {
        bench::require(rc, "GNI_SmsgSendWTag");
      }
    }
    gni_cq_entry_t event = 0;
    (void)GNI_CqGetEvent(w.source, &event);
    void* message = nullptr;
    if (GNI_SmsgGetNext(from, &message) == GNI_RC_SUCCESS) {
      if (*static_cast<int*>(message) != received++) std::printf("PE %d: wrong order\n", w.rank());
      BENCH_REQUIRE(GNI_SmsgRelease(from));
    }
  }
  std::printf("PE %d: all by %" PRId64 "\n", w.rank(), now_ns());
}

int keep(std::uint32_t id, std::uint32_t /*address*/, void* message, std::uint8_t /*tag*/, void* context) {
  auto& sum = *static_cast<std::uint64_t*>(context);
  std::uint64_t value = 0;
  std::memcpy(&value, message, sizeof value);
  sum += value * (id + 1);
  return 1;
}

// The message queue of a node that all PEs are on: it is there when the last one has joined, and a wait for
// messages that nobody sends is over at its time.
void shared_queue(World& w) {
  usleep(static_cast<useconds_t>(w.rank() * 100));
  gni_msgq_attr_t attrs{};
  attrs.max_msg_sz = 64;
  attrs.smsg_q_sz = 8;
  attrs.rcv_pool_sz = 64;
  attrs.num_msgq_eps = 1;
  attrs.nloc_insts = static_cast<std::uint32_t>(w.size());
  attrs.modes = GNI_MSGQ_MODE_BLOCKING;
  attrs.rcv_cq_sz = 64;
  std::uint64_t sum = 0;
  gni_msgq_handle_t queue = nullptr;
  BENCH_REQUIRE(GNI_MsgqInit(w.session.nic, keep, &sum, nullptr, &attrs, &queue));
  const std::int64_t start = now_ns();
  BENCH_REQUIRE(GNI_MsgqProgress(queue, 100));
  const bool waited = now_ns() - start >= 100'000'000;
  std::printf("PE %d: joined, %s\n", w.rank(), waited ? "waited" : "did not wait");
  PMI_Barrier();
  while (GNI_MsgqRelease(queue) == GNI_RC_NOT_DONE) {
  }
}

// Sums in the NICs' collective engine, entered at different times.
void reduce(World& w) {
  struct Root {
    std::uint32_t address, engine;
  } mine{w.session.addresses[static_cast<std::size_t>(w.rank())], 0};
  gni_ce_handle_t engine = nullptr;
  if (w.rank() == 0) {
    BENCH_REQUIRE(GNI_CeCreate(w.session.nic, &engine));
    BENCH_REQUIRE(GNI_CeGetId(engine, &mine.engine));
  }
  const Root root = bench::all_gather(mine, w.rank(), w.size())[0];
  std::vector<gni_ep_handle_t> children;
  if (w.rank() == 0) {
    for (int pe = 0; pe < w.size(); ++pe) {
      children.push_back(w.session.endpoint(pe, w.source));
      BENCH_REQUIRE(
          GNI_EpSetCeAttr(children.back(), UINT32_MAX, static_cast<std::uint32_t>(pe), GNI_CE_CHILD_PE));
    }
    BENCH_REQUIRE(GNI_CeConfigure(engine, children.data(), static_cast<std::uint32_t>(w.size()), nullptr,
                                  nullptr, GNI_CE_MODE_ROUND_NEAR));
  }
  const gni_ep_handle_t up = w.session.endpoint(0, w.source);
  BENCH_REQUIRE(GNI_EpSetCeAttr(up, root.engine, static_cast<std::uint32_t>(w.rank()), GNI_CE_CHILD_PE));
  PMI_Barrier();
  auto* result = reinterpret_cast<gni_ce_result_t*>(w.local);
  for (int round = 0; round < 10; ++round) {
    usleep(static_cast<useconds_t>(w.rank() * 3));
    gni_post_descriptor_t post{};
    post.type = GNI_POST_CE;
    post.cq_mode = GNI_CQMODE_GLOBAL_EVENT;
    post.local_addr = reinterpret_cast<std::uint64_t>(result);
    post.local_mem_hndl = w.local_handle;
    post.ce_cmd = GNI_FMA_CE_IADD;
    post.ce_red_id = static_cast<std::uint64_t>(round);
    post.first_operand = static_cast<std::uint64_t>(w.rank());
    const std::int64_t start = now_ns();
    BENCH_REQUIRE(GNI_PostFma(up, &post));
    w.reap();
    gni_return_t rc = GNI_RC_NOT_DONE;
    while ((rc = GNI_CeCheckResult(result, 1)) == GNI_RC_NOT_DONE) {
    }
    bench::require(rc, "GNI_CeCheckResult");
    std::printf("PE %d round %d: sum %" PRIu64 " after %" PRId64 "\n", w.rank(), round,
                static_cast<std::uint64_t>(result->result1), now_ns() - start);
  }
}

// What the papers print, by the programs that they describe: data that arrives is seen by reading it.
void figures(World& w) {
  const int peer = 1 - w.rank();
  auto* value = reinterpret_cast<std::uint64_t*>(w.local);
  const auto* flag = reinterpret_cast<volatile std::uint64_t*>(w.window);
  constexpr int kRounds = 50;
  const std::int64_t start = now_ns();
  for (std::uint64_t i = 1; i <= kRounds; ++i) {
    auto pd = w.put(peer, 0, 8, 0);
    *value = i;
    if (w.rank() == 0) w.post(peer, pd);
    while (*flag != i) {
    }
    if (w.rank() == 1) w.post(peer, pd);
  }
  if (w.rank() != 0) return;
  std::printf("put 8 B ns %g\n", static_cast<double>(now_ns() - start) / (2 * kRounds));
  auto* landing = reinterpret_cast<volatile std::uint64_t*>(w.local + 4096);
  const std::int64_t before = now_ns();
  for (int i = 0; i < kRounds; ++i) {
    *landing = UINT64_MAX;
    auto pd = w.put(peer, 64, 8, 0, GNI_POST_FMA_GET);
    pd.local_addr = reinterpret_cast<std::uint64_t>(landing);
    w.post(peer, pd);
    while (*landing == UINT64_MAX) {
    }
  }
  std::printf("get 8 B ns %g\n", static_cast<double>(now_ns() - before) / kRounds);
}

// Block transfers of 256 KiB, 16 under way.
void bandwidth(World& w) {
  const int peer = 1 - w.rank();
  constexpr std::uint64_t kBytes = 256 << 10;
  for (const bool both : {false, true}) {
    PMI_Barrier();
    const std::int64_t start = now_ns();
    constexpr int kCount = 200, kWindow = 16;
    std::vector<gni_post_descriptor_t> posts(kWindow);
    if (w.rank() == 0 || both) {
      for (int i = 0; i < kCount; ++i) {
        if (i >= kWindow) w.reap();
        auto& pd = posts[static_cast<std::size_t>(i) % kWindow];
        pd = w.put(peer, 0, kBytes, GNI_CQMODE_GLOBAL_EVENT, GNI_POST_RDMA_PUT);
        w.post(peer, pd);
      }
      for (int i = 0; i < kWindow; ++i) w.reap();
    }
    const double seconds = static_cast<double>(now_ns() - start) / 1e9;
    if (w.rank() == 0)
      std::printf("%s MB/s %.1f\n", both ? "both ways" : "one way",
                  kCount * static_cast<double>(kBytes) / 1e6 / seconds);
  }
}

void deadlock(World& w) { (void)w.await_remote(); }

void deadlock_blocking(World& w) {
  gni_cq_handle_t queue = nullptr;
  BENCH_REQUIRE(GNI_CqCreate(w.session.nic, 16, 0, GNI_CQ_BLOCKING, nullptr, nullptr, &queue));
  gni_cq_entry_t event = 0;
  (void)GNI_CqWaitEvent(queue, UINT64_MAX, &event);
}

void deadlock_memory(World& w) {
  const auto* flag = reinterpret_cast<volatile std::uint64_t*>(w.window);
  while (*flag == 0) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  World w;
  if (what == "latency") latency(w);
  if (what == "ping_pong") ping_pong(w);
  if (what == "memory") memory_ping_pong(w);
  if (what == "all_to_all") all_to_all(w, argc > 2 ? std::atoi(argv[2]) : 100);
  if (what == "hot_spot") hot_spot(w);
  if (what == "stealing") work_stealing(w);
  if (what == "timeouts") timeouts(w);
  if (what == "to_one") to_one(w);
  if (what == "messages") messages(w);
  if (what == "shared_queue") shared_queue(w);
  if (what == "reduce") reduce(w);
  if (what == "figures") figures(w);
  if (what == "bandwidth") bandwidth(w);
  if (what == "waits") timed_waits();
  if (what == "deadlock") deadlock(w);
  if (what == "deadlock_blocking") deadlock_blocking(w);
  if (what == "deadlock_memory") deadlock_memory(w);
  PMI_Barrier();
  return 0;
}
