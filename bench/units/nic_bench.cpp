// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The NIC's units alone, in one process: what an operation costs in instructions of ours, without a second
// core's cache.
#include "emu/nic/nic.hpp"
#include "tests/emu/nic/box.hpp"

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace orrery::nic {
namespace {

struct Fixture {
  box::World world{2, box::Path::direct};
  std::vector<std::uint64_t> source = std::vector<std::uint64_t>(8192, 1);
  std::vector<std::uint64_t> target = std::vector<std::uint64_t>(8192);
  CompletionQueue* local = world[0].nic().create_queue(256, 0).value();
  CompletionQueue* remote = world[1].nic().create_queue(256, 0).value();
  std::unique_ptr<Endpoint> endpoint = world.endpoint(0, 1, local);
  MemKey key =
      world[1]
          .nic()
          .register_region(world[1].port(), reinterpret_cast<std::uint64_t>(target.data()), 65536, 0, remote)
          .value();

  Request request(Op op, std::uint32_t flags, std::uint64_t bytes) const {
    Request r;
    r.op = op;
    r.flags = flags;
    r.local_address = reinterpret_cast<std::uint64_t>(source.data());
    r.remote_address = reinterpret_cast<std::uint64_t>(target.data());
    r.length = bytes;
    r.remote = key;
    return r;
  }
  void reap() {
    Event event;
    world[0].nic().poll(*local, &event);
    benchmark::DoNotOptimize(local->completed(event.transaction(), event.status));
  }
};

void put_silent(benchmark::State& state) {
  Fixture f;
  const Request r = f.request(Op::put, 0, static_cast<std::uint64_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(f.world[0].nic().post(*f.endpoint, r));
}
BENCHMARK(put_silent)->Arg(8)->Arg(64)->Arg(4096);

void put_and_local_event(benchmark::State& state) {
  Fixture f;
  const Request r = f.request(Op::put, kLocalEvent, 8);
  for (auto _ : state) {
    benchmark::DoNotOptimize(f.world[0].nic().post(*f.endpoint, r));
    f.reap();
  }
}
BENCHMARK(put_and_local_event);

void put_and_remote_event(benchmark::State& state) {
  Fixture f;
  const Request r = f.request(Op::put, kRemoteEvent, 8);
  Event event;
  for (auto _ : state) {
    benchmark::DoNotOptimize(f.world[0].nic().post(*f.endpoint, r));
    benchmark::DoNotOptimize(f.remote->take(&event));
  }
}
BENCHMARK(put_and_remote_event);

void get_and_local_event(benchmark::State& state) {
  Fixture f;
  const Request r = f.request(Op::get, kLocalEvent, 8);
  for (auto _ : state) {
    benchmark::DoNotOptimize(f.world[0].nic().post(*f.endpoint, r));
    f.reap();
  }
}
BENCHMARK(get_and_local_event);

void queue_push_and_take(benchmark::State& state) {
  Fixture f;
  Event event;
  for (auto _ : state) {
    benchmark::DoNotOptimize(push_event(f.remote->view(), {EventKind::remote, Errc::ok, 7}));
    benchmark::DoNotOptimize(f.remote->take(&event));
  }
}
BENCHMARK(queue_push_and_take);

void queue_empty_poll(benchmark::State& state) {
  Fixture f;
  Event event;
  for (auto _ : state) benchmark::DoNotOptimize(f.world[0].nic().poll(*f.local, &event));
}
BENCHMARK(queue_empty_poll);

void register_and_deregister(benchmark::State& state) {
  Fixture f;
  for (auto _ : state) {
    const auto key = f.world[1].nic().register_region(
        f.world[1].port(), reinterpret_cast<std::uint64_t>(f.target.data()), 4096, 0, nullptr);
    benchmark::DoNotOptimize(f.world[1].nic().deregister(key.value()));
  }
}
BENCHMARK(register_and_deregister);

// ---- counters, and what they trigger; the bare atomic addition beside them ----

void raw_add(benchmark::State& state) {
  alignas(64) std::atomic<std::uint64_t> word{0};
  for (auto _ : state) benchmark::DoNotOptimize(word.fetch_add(1, std::memory_order_seq_cst));
}
BENCHMARK(raw_add);

void counter_add(benchmark::State& state) {
  Fixture f;
  Nic& nic = f.world[1].nic();
  const CounterName name = nic.counters().create().value();
  for (auto _ : state) benchmark::DoNotOptimize(counter::add(nic.view(), name, {.success = 1}));
}
BENCHMARK(counter_add);

// Two threads hand a turn to each other by counting; the time is that of half a round trip.
template <typename Add, typename Get>
void half_round_trips(benchmark::State& state, Add add, Get get) {
  std::atomic<bool> stop{false};
  std::thread partner([&] {
    for (std::uint64_t turn = 1;; ++turn) {
      while (get(0) < turn) {
        if (stop.load(std::memory_order_relaxed)) return;
      }
      add(1);
    }
  });
  std::uint64_t turn = 0;
  for (auto _ : state) {
    add(0);
    ++turn;
    while (get(1) < turn) {
    }
  }
  stop.store(true);
  partner.join();
  state.counters["half_ns"] = benchmark::Counter(static_cast<double>(state.iterations()) * 2e-9,
                                                 benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void raw_half_round_trip(benchmark::State& state) {
  struct alignas(64) Line {
    std::atomic<std::uint64_t> word{0};
  } lines[2];
  half_round_trips(
      state, [&](int i) { lines[i].word.fetch_add(1, std::memory_order_seq_cst); },
      [&](int i) { return lines[i].word.load(std::memory_order_acquire); });
}
BENCHMARK(raw_half_round_trip)->UseRealTime();

void counter_half_round_trip(benchmark::State& state) {
  Fixture f;
  Nic& nic = f.world[0].nic();
  const CounterName names[] = {nic.counters().create().value(), nic.counters().create().value()};
  half_round_trips(
      state, [&](int i) { counter::add(nic.view(), names[i], {.success = 1}); },
      [&](int i) { return nic.counters().get(names[i]).value().success; });
}
BENCHMARK(counter_half_round_trip)->UseRealTime();

// From the addition to the data, the owner adding: an 8-byte put through a key that was used before.
void trigger_that_fires_a_put(benchmark::State& state) {
  Fixture f;
  Nic& nic = f.world[0].nic();
  const Request r = f.request(Op::put, 0, 8);
  const CounterName name = nic.counters().create().value();
  std::uint64_t count = 0;
  for (auto _ : state) {
    (void)nic.triggered().unit().post(name, ++count, [&] { (void)nic.post(*f.endpoint, r); });
    benchmark::DoNotOptimize(nic.triggered().add(name, {.success = 1}, false));
  }
}
BENCHMARK(trigger_that_fires_a_put);

void record_push_and_take(benchmark::State& state) {
  Fixture f;
  RecordQueue& queue = *f.world[1].nic().record_queues().create(256).value();
  EventRecord record;
  bool gap = false;
  for (auto _ : state) {
    benchmark::DoNotOptimize(push_record(queue.view(), record, claimer_word(0, 0)));
    benchmark::DoNotOptimize(queue.take(&record, &gap));
  }
}
BENCHMARK(record_push_and_take);

}  // namespace
}  // namespace orrery::nic

BENCHMARK_MAIN();
