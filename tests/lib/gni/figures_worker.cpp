// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A client of uGNI and PMI that measures, with clock_gettime(2), what the machines' papers print; its first
// argument says what. figures_test.cpp runs it under virtual time and holds what it prints to the papers.
#include "bench/common/reduction.hpp"
#include "bench/common/session.hpp"

#include <cinttypes>
#include <functional>
#include <string>
#include <vector>

#include <orrery/fma.h>
#include <time.h>

namespace {

constexpr std::size_t kRoom = 1 << 20;

double now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

struct World {
  bench::Session session{GNI_CDM_MODE_CACHED_AMO_ENABLED};
  gni_cq_handle_t queue = session.queue(1024);
  std::byte* window = memory();
  std::byte* local = memory();
  gni_mem_handle_t local_handle = session.registered(local, kRoom);
  std::vector<bench::Window> windows;
  std::vector<gni_ep_handle_t> eps;

  World() {
    const bench::Window mine{reinterpret_cast<std::uint64_t>(window), session.registered(window, kRoom)};
    windows = bench::all_gather(mine, session.rank, session.size);
    for (int pe = 0; pe < session.size; ++pe) eps.push_back(session.endpoint(pe, queue));
    PMI_Barrier();
  }
  static std::byte* memory() {
    auto* const at = static_cast<std::byte*>(std::aligned_alloc(4096, kRoom));
    std::memset(at, 0, kRoom);
    return at;
  }
  gni_post_descriptor_t descriptor(gni_post_type_t type, int to, std::uint64_t offset, std::uint64_t bytes,
                                   std::uint16_t events = GNI_CQMODE_GLOBAL_EVENT) const {
    auto pd =
        bench::put_descriptor(type, events, local, windows[static_cast<std::size_t>(to)], offset, bytes);
    pd.local_mem_hndl = local_handle;
    return pd;
  }
  void post(int to, gni_post_descriptor_t& pd) {
    const bool block = pd.type == GNI_POST_RDMA_PUT || pd.type == GNI_POST_RDMA_GET;
    const gni_ep_handle_t ep = eps[static_cast<std::size_t>(to)];
    BENCH_REQUIRE(block ? GNI_PostRdma(ep, &pd) : GNI_PostFma(ep, &pd));
  }
};

// Half round trips, data polled in memory; a get's time.
void latency(World& w) {
  const int rank = w.session.rank, peer = 1 - rank;
  constexpr int kRounds = 20;
  auto* const flag = reinterpret_cast<volatile std::uint64_t*>(w.window + kRoom - 8);
  std::uint64_t value = 0;
  for (const std::uint64_t bytes : {8u, 128u}) {
    // Data of more than a word comes in any order: a flag behind it says that all of it is there.
    auto pd = w.descriptor(bytes == 8 ? GNI_POST_FMA_PUT : GNI_POST_FMA_PUT_W_SYNCFLAG, peer,
                           bytes == 8 ? kRoom - 8 : 0, bytes, GNI_CQMODE_SILENT);
    // One path, of which the test knows the length.
    pd.dlvr_mode = GNI_DLVMODE_IN_ORDER;
    pd.sync_flag_addr = w.windows[static_cast<std::size_t>(peer)].address + kRoom - 8;
    const double start = now_ns();
    for (int i = 0; i < kRounds; ++i) {
      ++value;
      pd.sync_flag_value = value;
      std::memcpy(w.local, &value, sizeof value);
      if (rank == 0) w.post(peer, pd);
      while (*flag != value) {
      }
      if (rank == 1) w.post(peer, pd);
    }
    if (rank == 0) std::printf("put %" PRIu64 " %.6f\n", bytes, (now_ns() - start) / (2 * kRounds) / 1e3);
    PMI_Barrier();
  }
  if (rank != 0) return;
  auto get = w.descriptor(GNI_POST_FMA_GET, peer, 0, 8);
  const double start = now_ns();
  w.post(peer, get);
  bench::reap(w.queue);
  std::printf("get 8 %.6f\n", (now_ns() - start) / 1e3);
}

// Half round trip of a short message.
void message(World& w) {
  const int rank = w.session.rank, peer = 1 - rank;
  gni_smsg_attr_t mine{};
  mine.msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT;
  mine.mbox_maxcredit = 8;
  mine.msg_maxsize = 64;
  BENCH_REQUIRE(GNI_SmsgBufferSizeNeeded(&mine, &mine.buff_size));
  mine.msg_buffer = w.local + 4096;
  mine.mem_hndl = w.session.registered(mine.msg_buffer, mine.buff_size);
  auto theirs = bench::all_gather(mine, rank, 2)[static_cast<std::size_t>(peer)];
  const gni_ep_handle_t ep = w.session.endpoint(peer, nullptr);
  BENCH_REQUIRE(GNI_SmsgInit(ep, &mine, &theirs));
  PMI_Barrier();
  constexpr int kRounds = 20;
  const auto receive = [&] {
    void* got = nullptr;
    gni_return_t rc = GNI_RC_SUCCESS;
    while ((rc = GNI_SmsgGetNext(ep, &got)) == GNI_RC_NOT_DONE) {
    }
    bench::require(rc, "GNI_SmsgGetNext");
    BENCH_REQUIRE(GNI_SmsgRelease(ep));
  };
  const double start = now_ns();
  for (int i = 0; i < kRounds; ++i) {
    if (rank == 1) receive();
    BENCH_REQUIRE(GNI_SmsgSend(ep, w.local, 8, nullptr, 0, 0));
    if (rank == 0) receive();
  }
  if (rank == 0) std::printf("message 8 %.6f\n", (now_ns() - start) / (2 * kRounds) / 1e3);
}

// Operations back to back, 64 under way: what all senders together make a microsecond, and GB/s.
//   <kind> <bytes> <count> <to>: kind fma, bte, launch, amo (one cached word), amo_random;
//   to: pairs (the first half to the second), both (and back), last (all to the last)
void stream(World& w, const std::string& kind, std::uint64_t bytes, int count, const std::string& to) {
  const int rank = w.session.rank, size = w.session.size, half = size / 2;
  const int target = to == "last" ? size - 1 : (rank + half) % size;
  const bool sends = to == "both" || (to == "last" ? rank < size - 1 : rank < half);
  constexpr std::size_t kWindow = 64;
  std::vector<gni_post_descriptor_t> posts(kWindow);
  std::size_t open = 0, next = 0;
  const auto by_post = [&] {
    if (open == kWindow)
      bench::reap(w.queue);
    else
      ++open;
    auto& pd = posts[next++ % kWindow];
    const bool amo = kind.starts_with("amo");
    const std::uint64_t where =
        kind == "amo_random"
            ? ((next + 7919) * static_cast<std::uint64_t>(rank + 1) * 2654435761u) % (kRoom / 8) * 8
            : 0;
    pd = w.descriptor(amo             ? GNI_POST_AMO
                      : kind == "bte" ? GNI_POST_RDMA_PUT
                                      : GNI_POST_FMA_PUT,
                      target, where, bytes);
    pd.amo_cmd = kind == "amo" ? GNI_FMA_ATOMIC_ADD_C : GNI_FMA_ATOMIC_ADD;
    pd.first_operand = 1;
    w.post(target, pd);
  };
  orrery_fma_window_t* window = nullptr;
  std::uint32_t name = 0;
  std::vector<std::uint32_t> names;
  const auto settled = [&](std::uint32_t which) {
    int rc = 0;
    while ((rc = orrery_fma_test(window, which)) == ORRERY_FMA_NOT_DONE) {
    }
    bench::require(static_cast<gni_return_t>(rc), "orrery_fma_test");
  };
  const auto by_launch = [&] {
    if (next % kWindow == 0) {
      if (next != 0) {
        bench::require(static_cast<gni_return_t>(orrery_fma_end(window, &name)), "orrery_fma_end");
        names.push_back(name);
        // The one before is long there.
        if (names.size() > 1) settled(names[names.size() - 2]);
      }
      bench::require(static_cast<gni_return_t>(orrery_fma_begin(window)), "orrery_fma_begin");
    }
    const auto word = orrery_fma_word(static_cast<std::uint32_t>(target), next % 64 * 8, next);
    ++next;
    bench::require(static_cast<gni_return_t>(orrery_fma_launch(window, word)), "orrery_fma_launch");
  };
  if (kind == "launch") {
    std::vector<orrery_fma_place_t> places;
    for (int pe = 0; pe < size; ++pe) {
      const bench::Window& there = w.windows[static_cast<std::size_t>(pe)];
      places.push_back({w.session.addresses[static_cast<std::size_t>(pe)],
                        0,
                        there.address,
                        {there.handle.qword1, there.handle.qword2}});
    }
    orrery_fma_descriptor_t d{};
    d.pe_shift = 12;
    while ((1 << d.pe_bits) < size) ++d.pe_bits;
    bench::require(static_cast<gni_return_t>(orrery_fma_open(w.session.nic, &d, places.data(),
                                                             static_cast<std::uint32_t>(size), &window)),
                   "orrery_fma_open");
  }
  const std::function<void()> step = kind == "launch" ? std::function<void()>(by_launch) : by_post;
  PMI_Barrier();
  double rate = 0;
  if (sends) {
    // Until each one has to wait for one before it.
    for (int i = 0; i < 4 * static_cast<int>(kWindow) && i < 64 + 2 * count; ++i) step();
    const double start = now_ns();
    for (int i = 0; i < count; ++i) step();
    rate = count / (now_ns() - start) * 1e3;
    for (; open > 0; --open) bench::reap(w.queue);
  }
  if (window != nullptr && sends) {
    bench::require(static_cast<gni_return_t>(orrery_fma_end(window, &name)), "orrery_fma_end");
    settled(name);
  }
  double all = 0;
  for (const double each : bench::all_gather(rate, rank, size)) all += each;
  if (rank == 0)
    std::printf("rate %.6f\nGB/s %.6f\n%" PRIu64 " B: GB/s %.6f\n", all,
                all * static_cast<double>(bytes) / 1e3, bytes, all * static_cast<double>(bytes) / 1e3);
  PMI_Barrier();
}

// What the machine's own collectives take, all entering at once.
void collectives(World& w) {
  const auto time = [&](const char* what, const std::function<void()>& step) {
    constexpr int kRounds = 4;
    PMI_Barrier();
    const double start = now_ns();
    for (int i = 0; i < kRounds; ++i) step();
    const double mine = (now_ns() - start) / kRounds / 1e3;
    double most = 0;
    for (const double each : bench::all_gather(mine, w.session.rank, w.session.size))
      most = std::max(most, each);
    if (w.session.rank == 0) std::printf("%s %.6f\n", what, most);
  };
  time("barrier", [] { PMI_Barrier(); });
  std::vector<char> text(384 * 10, 'x');
  time("broadcast", [&] { PMI_Bcast(text.data(), static_cast<int>(text.size())); });
  bench::Reduction reduction(w.session);
  time("allreduce", [&] {
    const std::uint64_t sum = reduction.run(GNI_FMA_CE_IADD, 1);
    if (sum != static_cast<std::uint64_t>(w.session.size)) PMI_Abort(1, "wrong sum");
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  World w;
  if (what == "latency") {
    latency(w);
    message(w);
  } else if (what == "stream" && argc > 5) {
    // One size, or several with commas between them.
    for (const char* size = argv[3]; *size != 0; size += *size == ',' ? 1 : 0) {
      char* end = nullptr;
      const std::uint64_t bytes = std::strtoull(size, &end, 10);
      if (end == size) return 2;
      stream(w, argv[2], bytes, std::atoi(argv[4]), argv[5]);
      size = end;
    }
  } else if (what == "collectives") {
    collectives(w);
  } else {
    std::fprintf(stderr, "%s is not one of latency, stream, collectives\n", what.c_str());
    return 2;
  }
  PMI_Barrier();
  return 0;
}
