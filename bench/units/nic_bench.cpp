// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The NIC's units alone, in one process: what an operation costs in instructions of ours, without a second
// core's cache.
#include "emu/nic/nic.hpp"
#include "tests/emu/nic/box.hpp"

#include <benchmark/benchmark.h>

#include <cstdint>
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

}  // namespace
}  // namespace orrery::nic

BENCHMARK_MAIN();
