// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "bench/common/session.hpp"
#include "bench/ratios/stage.hpp"
#include "bench/ratios/tests.hpp"

#include <cstdio>
#include <cstring>
#include <string>

#include <sys/mman.h>

namespace bench {

namespace {

constexpr std::size_t kBufferBytes = 8u << 20;

// The two PEs, each with a window that the other puts to.
struct Pair {
  Session session;
  Stage stage;
  std::byte* window;  // others put here
  std::byte* local;   // we put from, and get to, here
  gni_cq_handle_t source_queue;
  gni_cq_handle_t window_queue;
  gni_mem_handle_t local_handle;
  gni_ep_handle_t ep;
  Window peer;         // without events
  Window peer_events;  // the same memory, with a queue

  Pair() : stage(session.rank) {
    pin(session.rank);
    window = static_cast<std::byte*>(std::aligned_alloc(4096, kBufferBytes));
    local = static_cast<std::byte*>(std::aligned_alloc(4096, kBufferBytes));
    std::memset(window, 0, kBufferBytes);
    std::memset(local, 1, kBufferBytes);
    source_queue = session.queue(1024);
    window_queue = session.queue(8192);
    local_handle = session.registered(local, kBufferBytes);
    struct Card {
      Window plain, events;
    };
    const Card mine{
        {reinterpret_cast<std::uint64_t>(window), session.registered(window, kBufferBytes)},
        {reinterpret_cast<std::uint64_t>(window), session.registered(window, kBufferBytes, window_queue)}};
    const auto cards = all_gather(mine, session.rank, session.size);
    peer = cards[static_cast<std::size_t>(1 - session.rank)].plain;
    peer_events = cards[static_cast<std::size_t>(1 - session.rank)].events;
    ep = session.endpoint(1 - session.rank, source_queue);
    warm_up();
  }

  // Registered memory moves into the memory file when it is used often: use it until it has.
  void warm_up() {
    for (int round = 0; round < 40; ++round) {
      for (const Window& to : {peer, peer_events}) {
        for (std::size_t at = 0; at < kBufferBytes; at += kBufferBytes / 4) {
          auto pd = put_descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_LOCAL_EVENT, local, to, at, 8);
          BENCH_REQUIRE(GNI_PostFma(ep, &pd));
          reap(source_queue);
        }
      }
      const timespec nap{0, 2'000'000};
      nanosleep(&nap, nullptr);
    }
    PMI_Barrier();
    std::memset(window, 0, kBufferBytes);
    PMI_Barrier();
  }
};

void put_latency(Pair& p) {
  static std::uint64_t value = 0;
  alignas(8) static std::uint64_t source = 0;
  auto pd = put_descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_SILENT, &source, p.peer, 0, 8);
  auto* flag = reinterpret_cast<volatile std::uint64_t*>(p.window);
  const auto send = [&] {
    source = value;
    GNI_PostFma(p.ep, &pd);
  };
  const auto ping = [&](int n) {
    for (int i = 0; i < n; ++i) {
      ++value;
      send();
      while (*flag != value) {
      }
    }
  };
  const auto pong = [&](int n) {
    for (int i = 0; i < n; ++i) {
      ++value;
      while (*flag != value) {
      }
      send();
    }
  };
  const double raw = p.stage.raw_half_round_trip(kRawMs);
  row(p.session.rank, "put8_memory_polled", median(p.stage.run(64, kTestMs, 2, ping, pong)), raw);
}

void put_event_latency(Pair& p) {
  alignas(8) static std::uint64_t source = 0;
  auto pd = put_descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_REMOTE_EVENT, &source, p.peer_events, 64, 8);
  const auto await = [&] {
    gni_cq_entry_t event = 0;
    while (GNI_CqGetEvent(p.window_queue, &event) == GNI_RC_NOT_DONE) {
    }
  };
  const auto ping = [&](int n) {
    for (int i = 0; i < n; ++i) {
      GNI_PostFma(p.ep, &pd);
      await();
    }
  };
  const auto pong = [&](int n) {
    for (int i = 0; i < n; ++i) {
      await();
      GNI_PostFma(p.ep, &pd);
    }
  };
  const double raw = p.stage.raw_half_round_trip(kRawMs);
  row(p.session.rank, "put8_event_polled", median(p.stage.run(64, kTestMs, 2, ping, pong)), raw);
}

// One PE works, the other waits: nanoseconds an operation on an idle line.
template <typename Step>
double alone(Pair& p, int batch, double ms, Step step) {
  return median(p.stage.run(
      batch, ms, 1,
      [&](int n) {
        for (int i = 0; i < n; ++i) step();
      },
      [](int) {}));
}

void single_operations(Pair& p) {
  alignas(8) static std::uint64_t word = 5;
  auto with_event = put_descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_LOCAL_EVENT, &word, p.peer, 4096, 8);
  row(p.session.rank, "put8_and_local_event",
      alone(p, 256, kTestMs,
            [&] {
              GNI_PostFma(p.ep, &with_event);
              reap(p.source_queue);
            }),
      1);
  auto silent = put_descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_SILENT, &word, p.peer, 4096, 8);
  row(p.session.rank, "put8_silent", alone(p, 1024, kTestMs, [&] { GNI_PostFma(p.ep, &silent); }), 1);
  auto get = put_descriptor(GNI_POST_FMA_GET, GNI_CQMODE_LOCAL_EVENT, p.local, p.peer, 4096, 8);
  get.local_mem_hndl = p.local_handle;
  row(p.session.rank, "get8_and_event",
      alone(p, 256, kTestMs,
            [&] {
              GNI_PostFma(p.ep, &get);
              reap(p.source_queue);
            }),
      1);
}

void block_transfers(Pair& p) {
  static std::byte* from = static_cast<std::byte*>(std::aligned_alloc(4096, kBufferBytes));
  static std::byte* to = static_cast<std::byte*>(std::aligned_alloc(4096, kBufferBytes));
  std::memset(from, 1, kBufferBytes);
  std::memset(to, 1, kBufferBytes);
  for (const std::size_t bytes : {std::size_t{4096}, std::size_t{65536}, std::size_t{1} << 20}) {
    const int batch = static_cast<int>(std::max<std::size_t>(2, (std::size_t{1} << 18) / bytes));
    auto pd = put_descriptor(GNI_POST_RDMA_PUT, GNI_CQMODE_LOCAL_EVENT, p.local, p.peer, 65536, bytes);
    pd.local_mem_hndl = p.local_handle;
    // In turns, so that a host that slows down slows both.
    constexpr int kTurns = 5;
    std::vector<double> limits, times;
    for (int turn = 0; turn < kTurns; ++turn) {
      limits.push_back(alone(p, batch, kTestMs / kTurns, [&] {
        std::memcpy(to + 65536, from, bytes);
        asm volatile("" ::"r"(to) : "memory");
      }));
      times.push_back(alone(p, batch, kTestMs / kTurns, [&] {
        GNI_PostRdma(p.ep, &pd);
        reap(p.source_queue);
      }));
    }
    const double limit = median(limits), ours = median(times);
    // As bandwidths, so that more is better: ours over memcpy's.
    row(p.session.rank, "bte_put_bandwidth_" + std::to_string(bytes), static_cast<double>(bytes) / ours,
        static_cast<double>(bytes) / limit);
  }
}

// A block transfer of 8 bytes and its event, in nanoseconds.
double short_block_transfer(Pair& p) {
  auto pd = put_descriptor(GNI_POST_RDMA_PUT, GNI_CQMODE_LOCAL_EVENT, p.local, p.peer, 65536, 8);
  pd.local_mem_hndl = p.local_handle;
  return alone(p, 1024, kTestMs, [&] {
    GNI_PostRdma(p.ep, &pd);
    reap(p.source_queue);
  });
}

// What a NIC's first fence costs those that come after it, once it is over and its event taken: a look
// whether that is so. `before`: times without it. Last, for that reason.
void after_a_fence(Pair& p, const std::vector<double>& before) {
  auto pd = put_descriptor(GNI_POST_RDMA_PUT, GNI_CQMODE_LOCAL_EVENT, p.local, p.peer, 65536, 8);
  pd.local_mem_hndl = p.local_handle;
  pd.rdma_mode = GNI_RDMAMODE_FENCE;
  GNI_PostRdma(p.ep, &pd);
  reap(p.source_queue);
  for (const double without : before)
    row(p.session.rank, "bte_put8_after_fence", short_block_transfer(p), without);
}

// How long the post of a transfer takes that the engine carries out.
void long_post(Pair& p) {
  constexpr std::size_t kBytes = 256 << 20;
  struct Long {
    std::byte* at;
    Window here, there;
  };
  static const Long memory = [&p] {
    void* mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto* at = static_cast<std::byte*>(mapped);
    std::memset(at, 1, kBytes);
    const Window mine{reinterpret_cast<std::uint64_t>(at), p.session.registered(at, kBytes)};
    return Long{
        at, mine,
        all_gather(mine, p.session.rank, p.session.size)[static_cast<std::size_t>(1 - p.session.rank)]};
  }();
  if (p.session.rank == 0) {
    auto pd = put_descriptor(GNI_POST_RDMA_PUT, GNI_CQMODE_GLOBAL_EVENT, memory.at, memory.there, 0, kBytes);
    pd.local_mem_hndl = memory.here.handle;
    const auto begin = Stopwatch::ticks();
    BENCH_REQUIRE(GNI_PostRdma(p.ep, &pd));
    const double ns = p.stage.watch().ns(Stopwatch::ticks() - begin);
    reap(p.source_queue);
    row(0, "rdma_256_mib_returns_us", ns / 1000, 1);
  }
  PMI_Barrier();
}

void half_bandwidth_size(Pair& p) {
  std::vector<std::pair<double, double>> curve;  // bytes, bytes per ns
  for (std::size_t bytes = 64; bytes <= (1u << 20); bytes *= 2) {
    const int window = static_cast<int>(std::clamp<std::size_t>((1u << 20) / bytes, 1, 64));
    auto silent = put_descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_SILENT, p.local, p.peer, 0, bytes);
    auto last = silent;
    last.cq_mode = GNI_CQMODE_LOCAL_EVENT;
    const double ns = median(p.stage.run(
        window, kTestMs / 3, 1,
        [&](int n) {
          for (int i = 0; i < n; ++i) {
            auto& pd = i == n - 1 ? last : silent;
            pd.remote_addr = p.peer.address + 65536 + (bytes * static_cast<std::size_t>(i)) % (4u << 20);
            GNI_PostFma(p.ep, &pd);
          }
          reap(p.source_queue);
        },
        [](int) {}));
    curve.emplace_back(static_cast<double>(bytes), static_cast<double>(bytes) / ns);
  }
  if (p.session.rank != 0) return;
  double peak = 0;
  for (const auto& point : curve) peak = std::max(peak, point.second);
  double half = curve.front().first;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    if (curve[i].second < peak / 2) continue;
    half = curve[i].first;
    break;
  }
  row(0, "half_bandwidth_bytes", half, 1);
}

void registration(Pair& p) {
  gni_mem_handle_t handle{};
  const auto both = [&](void* address, std::size_t bytes) {
    GNI_MemRegister(p.session.nic, reinterpret_cast<std::uint64_t>(address), bytes, nullptr,
                    GNI_MEM_READWRITE, UINT32_MAX, &handle);
    GNI_MemDeregister(p.session.nic, &handle);
  };
  row(p.session.rank, "register_known_range_us",
      alone(p, 64, kTestMs, [&] { both(p.window + 65536, 65536); }) / 1000, 1);
  // New memory: mapped, touched, registered, deregistered, unmapped; only the middle is timed.
  std::vector<double> samples;
  p.stage.run(
      64, kTestMs, 1,
      [&](int n) {
        for (int i = 0; i < n; ++i) {
          void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
          std::memset(page, 1, 4096);
          const auto a = Stopwatch::ticks();
          both(page, 4096);
          samples.push_back(p.stage.watch().ns(Stopwatch::ticks() - a));
          munmap(page, 4096);
        }
      },
      [](int) {});
  row(p.session.rank, "register_new_page_us", median(samples) / 1000, 1);
}

void frame_latency(Pair& p) {
  // The target polls its queue, which is what makes its NIC take frames in; memory shows that one came.
  static std::uint64_t value = 0;
  alignas(8) static std::uint64_t source = 0;
  auto pd = put_descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_SILENT, &source, p.peer, 0, 8);
  auto* flag = reinterpret_cast<volatile std::uint64_t*>(p.window);
  const auto send = [&] {
    source = value;
    while (GNI_PostFma(p.ep, &pd) == GNI_RC_ERROR_RESOURCE) {
      gni_cq_entry_t event = 0;
      GNI_CqGetEvent(p.source_queue, &event);
    }
  };
  const auto await = [&] {
    gni_cq_entry_t event = 0;
    while (*flag != value) GNI_CqGetEvent(p.window_queue, &event);
  };
  const auto ping = [&](int n) {
    for (int i = 0; i < n; ++i) {
      ++value;
      send();
      await();
    }
  };
  const auto pong = [&](int n) {
    for (int i = 0; i < n; ++i) {
      ++value;
      await();
      send();
    }
  };
  const double raw = p.stage.raw_half_round_trip(kRawMs);
  row(p.session.rank, "frame_put8_target_polls", median(p.stage.run(64, kTestMs, 2, ping, pong)), raw);
}

}  // namespace

void measure_direct(int repetitions) {
  Pair p;
  std::vector<double> unfenced;
  for (int i = 0; i < repetitions; ++i) {
    put_latency(p);
    put_event_latency(p);
    single_operations(p);
    block_transfers(p);
    half_bandwidth_size(p);
    long_post(p);
    registration(p);
    unfenced.push_back(short_block_transfer(p));
  }
  after_a_fence(p, unfenced);
}

void measure_frames(int repetitions) {
  Pair p;
  for (int i = 0; i < repetitions; ++i) frame_latency(p);
}

}  // namespace bench
