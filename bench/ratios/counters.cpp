// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The NIC's own units, which no interface shows as they are: counters, what they trigger, a registration of
// the whole address space, threads that post.
#include "bench/common/session.hpp"
#include "bench/ratios/stage.hpp"
#include "bench/ratios/tests.hpp"
#include "emu/nic/host/runtime.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include <time.h>

namespace bench {

namespace nic_units {
namespace {

using namespace orrery;

constexpr std::uint16_t kDomain = 78;
constexpr std::size_t kBytes = 64 << 10;

void must(bool so, const char* what) {
  if (so) return;
  std::fprintf(stderr, "%s failed\n", what);
  PMI_Abort(1, what);
  std::exit(1);
}

// What a PE tells the others of itself.
struct Card {
  nic::MemKey pages, space;
  nic::CounterName turns;
  nic::ProcessName process;
  std::uint32_t nic_address = 0;
  std::uint64_t memory = 0;
};

// A port of the NIC's own, a page-aligned buffer that the others put to, and what they said of theirs.
struct Party {
  Session session;
  nic::Nic* nic = nullptr;
  nic::Port* port = nullptr;
  std::byte* memory = nullptr;
  Card mine;
  std::vector<Card> cards;
  std::vector<std::unique_ptr<nic::Endpoint>> endpoints;

  explicit Party(bool pinned) {
    if (pinned) pin(session.rank);
    const auto runtime = nic::Runtime::of_process();
    must(runtime.ok(), "Runtime::of_process");
    nic = &runtime.value()->nic();
    job::Job& job = runtime.value()->job();
    const auto rank = static_cast<std::uint32_t>(session.rank);
    must(job.publish(kDomain, rank, 0).ok(), "publish");
    port = nic->open_port(kDomain, job.nic_address(), rank);
    memory = static_cast<std::byte*>(std::aligned_alloc(4096, kBytes));
    std::memset(memory, 0, kBytes);
    mine.memory = reinterpret_cast<std::uint64_t>(memory);
    mine.pages = nic->register_region(*port, mine.memory, kBytes, 0, nullptr).value();
    mine.space = nic->regions().register_space(*port, 0, nullptr).value();
    mine.turns = nic->counters().create().value();
    mine.process = {static_cast<wire::ProcessSlot>(job.self().index), job.self().generation};
    mine.nic_address = job.nic_address();
    cards = all_gather(mine, session.rank, session.size);
    for (int pe = 0; pe < session.size; ++pe) endpoints.push_back(endpoint(pe));
    warm_up();
  }

  std::unique_ptr<nic::Endpoint> endpoint(int pe) const {
    auto made = std::make_unique<nic::Endpoint>();
    made->port = port;
    made->bound = true;
    made->remote_nic_address = cards[static_cast<std::size_t>(pe)].nic_address;
    made->remote_instance = static_cast<std::uint32_t>(pe);
    return made;
  }
  nic::Request put(int pe, const nic::MemKey& key, const std::uint64_t* from, std::size_t offset) const {
    nic::Request request;
    request.local_address = reinterpret_cast<std::uint64_t>(from);
    request.remote_address = cards[static_cast<std::size_t>(pe)].memory + offset;
    request.length = 8;
    request.remote = key;
    return request;
  }
  // Memory that is used often moves to where it can be mapped.
  void warm_up() {
    static std::uint64_t zero = 0;
    for (int round = 0; round < 40; ++round) {
      for (int pe = 0; pe < session.size; ++pe) {
        const Card& to = cards[static_cast<std::size_t>(pe)];
        for (const nic::MemKey& key : {to.pages, to.space}) {
          nic::Endpoint& endpoint = *endpoints[static_cast<std::size_t>(pe)];
          while (nic->post(endpoint, put(pe, key, &zero, 4096)) == Errc::no_resource) nic->progress();
        }
      }
      nic->progress();
      const timespec nap{0, 2'000'000};
      nanosleep(&nap, nullptr);
    }
    PMI_Barrier();
  }
};

void increments(Party& p, Stage& stage) {
  const Card& peer = p.cards[static_cast<std::size_t>(1 - p.session.rank)];
  const nic::CounterState& turns = *nic::counter::find(p.nic->view(), p.mine.turns);
  static std::uint64_t turn = 0;
  const auto add = [&] { (void)p.nic->triggered().add(peer.process, peer.turns, {.success = 1}); };
  const auto await = [&] {
    while (turns.success.load(std::memory_order_acquire) < turn) {
    }
  };
  const auto ping = [&](int n) {
    for (int i = 0; i < n; ++i) {
      ++turn;
      add();
      await();
    }
  };
  const auto pong = [&](int n) {
    for (int i = 0; i < n; ++i) {
      ++turn;
      await();
      add();
    }
  };
  const double raw = stage.raw_half_round_trip(kRawMs);
  row(p.session.rank, "counter_increment", median(stage.run(64, kTestMs, 2, ping, pong)), raw);
}

// An increment of the counter of a peer triggers a put from its memory to its own, at which it looks. Both
// have posted a batch of such puts before each batch is timed.
void triggers(Party& p, Stage& stage, const Stopwatch& watch) {
  constexpr int kBatch = 64;
  constexpr int kBatches = 60;
  const auto rank = static_cast<std::size_t>(p.session.rank);
  const Card& peer = p.cards[1 - rank];
  auto* const words = reinterpret_cast<std::uint64_t*>(p.memory + 8192);
  auto* const flag = reinterpret_cast<volatile std::uint64_t*>(p.memory + 16'384);
  const nic::CounterName counter = p.nic->counters().create().value();
  const auto counters = all_gather(counter, p.session.rank, p.session.size);
  nic::Endpoint& to_self = *p.endpoints[rank];
  std::vector<double> samples;
  std::uint64_t count = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    for (int i = 0; i < kBatch; ++i) {
      words[i] = count + static_cast<std::uint64_t>(i) + 1;
      nic::Request request = p.put(p.session.rank, p.mine.pages, &words[i], 16'384);
      request.local = p.mine.pages;
      must(p.nic->triggered().post_put(counter, words[i], to_self, request, {}, {}).ok(), "post_triggered");
    }
    PMI_Barrier();
    const std::uint64_t begin = Stopwatch::ticks();
    for (int i = 0; i < kBatch; ++i) {
      ++count;
      if (rank == 0) (void)p.nic->triggered().add(peer.process, counters[1], {.success = 1});
      while (*flag < count) {
      }
      if (rank == 1) (void)p.nic->triggered().add(peer.process, counters[0], {.success = 1});
    }
    samples.push_back(watch.ns(Stopwatch::ticks() - begin) / (2 * kBatch));
    PMI_Barrier();
  }
  const double raw = stage.raw_half_round_trip(kRawMs);
  row(p.session.rank, "trigger_put8", median(samples), raw);
  p.nic->triggered().unit().cancel(counter);
  must(p.nic->counters().destroy(counter).ok(), "destroy");
}

void puts_through_space(Party& p, Stage& stage) {
  const Card& peer = p.cards[static_cast<std::size_t>(1 - p.session.rank)];
  nic::Endpoint& endpoint = *p.endpoints[static_cast<std::size_t>(1 - p.session.rank)];
  auto* const flag = reinterpret_cast<volatile std::uint64_t*>(p.memory + 24'576);
  static std::uint64_t value = 0;
  alignas(8) static std::uint64_t source = 0;
  double ns[2] = {};
  for (const int way : {0, 1}) {
    const nic::Request request =
        p.put(1 - p.session.rank, way == 0 ? peer.pages : peer.space, &source, 24'576);
    const auto send = [&] {
      source = value;
      (void)p.nic->post(endpoint, request);
    };
    const auto await = [&] {
      while (*flag != value) {
      }
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
    ns[way] = median(stage.run(64, kTestMs, 2, ping, pong));
  }
  row(p.session.rank, "put8_through_space", ns[1], ns[0]);
}

void measure_counters(int repetitions) {
  Party p(true);
  Stage stage(p.session.rank);
  for (int i = 0; i < repetitions; ++i) {
    increments(p, stage);
    triggers(p, stage, stage.watch());
    puts_through_space(p, stage);
  }
  PMI_Barrier();
}

void measure_threads(int repetitions) {
  constexpr int kPuts = 400'000;
  Party p(false);
  const Stopwatch watch;
  static std::uint64_t one = 1;
  const auto post_to = [&](int pe, nic::Endpoint& endpoint) {
    const nic::Request request =
        p.put(pe, p.cards[static_cast<std::size_t>(pe)].pages, &one, static_cast<std::size_t>(pe) * 64);
    for (int i = 0; i < kPuts; ++i) (void)p.nic->post(endpoint, request);
  };
  for (int i = 0; i < repetitions; ++i) {
    PMI_Barrier();
    std::uint64_t begin = Stopwatch::ticks();
    const int next = (p.session.rank + 1) % p.session.size;
    post_to(next, *p.endpoints[static_cast<std::size_t>(next)]);
    PMI_Barrier();
    const double processes = watch.ns(Stopwatch::ticks() - begin) / kPuts / p.session.size;
    if (p.session.rank == 0) {
      begin = Stopwatch::ticks();
      std::vector<std::thread> threads;
      for (int pe = 0; pe < p.session.size; ++pe)
        threads.emplace_back([&, pe] { post_to(pe, *p.endpoints[static_cast<std::size_t>(pe)]); });
      for (auto& thread : threads) thread.join();
      row(0, "put8_8_threads", watch.ns(Stopwatch::ticks() - begin) / kPuts / p.session.size, processes);
    }
    PMI_Barrier();
  }
}

}  // namespace
}  // namespace nic_units

void measure_counters(int repetitions) { nic_units::measure_counters(repetitions); }
void measure_threads(int repetitions) { nic_units::measure_threads(repetitions); }

}  // namespace bench
