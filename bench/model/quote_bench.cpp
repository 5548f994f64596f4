// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What quote() costs, per machine and pattern. Names: quote/<machine>/<pattern>/<state>
//   pattern  neighbour   node 0 to a neighbour, 8 B puts
//            random      random pairs, 8 B puts
//            bulk        random pairs, 64 KiB puts
//            get         random pairs, 8 B gets
//   state    quiet       no link state
//            exact       intervals, calls in order of time
//            decayed     counters
//   two_processes        decayed or exact state in shared memory, two processes on the same pair
// Each iteration is one call, timed alone with the time stamp counter; the counter's own cost (median of
// empty readings) is taken off. Columns p50_ns and p99_ns are over all calls of the run; the mean that
// the benchmark library prints includes the timing itself.
#include "emu/model/machine.hpp"
#include "emu/model/machine_file.hpp"
#include "emu/model/quote.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace {

using namespace orrery;
using namespace orrery::model;

enum class State { quiet, exact, decayed };
constexpr const char* kStates[] = {"quiet", "exact", "decayed"};

std::uint64_t ticks() {
#if defined(__x86_64__)
  unsigned aux;
  return __rdtscp(&aux);
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

double nanos_per_tick() {
  static const double value = [] {
    const auto t0 = std::chrono::steady_clock::now();
    const std::uint64_t c0 = ticks();
    while (std::chrono::steady_clock::now() - t0 < std::chrono::milliseconds(50)) {
    }
    const std::uint64_t c1 = ticks();
    const auto t1 = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::nano>(t1 - t0).count() / static_cast<double>(c1 - c0);
  }();
  return value;
}

std::uint64_t timing_cost() {
  static const std::uint64_t value = [] {
    std::vector<std::uint64_t> empty(10001);
    for (auto& e : empty) {
      const std::uint64_t a = ticks();
      e = ticks() - a;
    }
    std::nth_element(empty.begin(), empty.begin() + 5000, empty.end());
    return empty[5000];
  }();
  return value;
}

// Shared between processes, so that the same code measures one and two.
class SharedState {
 public:
  SharedState(const Pricing& pricing, State state) {
    if (state == State::quiet) return;
    const auto kind = state == State::exact ? LinkState::Kind::exact : LinkState::Kind::decayed;
    size_ = LinkState::bytes_needed(pricing, kind);
    at_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at_ == MAP_FAILED) std::abort();
    state_ = LinkState::create({static_cast<std::byte*>(at_), size_}, pricing, kind).value();
  }
  ~SharedState() {
    if (size_ != 0) munmap(at_, size_);
  }
  LinkState* get() { return size_ == 0 ? nullptr : &state_; }

 private:
  void* at_ = nullptr;
  std::size_t size_ = 0;
  LinkState state_;
};

void report(benchmark::State& state, std::vector<std::uint32_t>& calls) {
  if (calls.empty()) return;
  const auto at = [&](double part) {
    const auto i = static_cast<std::ptrdiff_t>(part * static_cast<double>(calls.size() - 1));
    std::nth_element(calls.begin(), calls.begin() + i, calls.end());
    return static_cast<double>(calls[static_cast<std::size_t>(i)]) * nanos_per_tick();
  };
  state.counters["p50_ns"] = at(0.50);
  state.counters["p99_ns"] = at(0.99);
}

void run_quotes(benchmark::State& state, const std::string& name, const std::string& pattern, State kind) {
  const BuiltMachine built = build_machine(name);
  const Pricing& p = built.machine->pricing;
  SharedState shared(p, kind);
  Choices pick(7);
  // Requests are made beforehand: the application's own work is not the model's.
  constexpr std::size_t kRequests = 4096;
  std::vector<QuoteRequest> requests(kRequests);
  for (QuoteRequest& r : requests) {
    const bool neighbour = pattern == "neighbour";
    r.op = pattern == "get" ? Op::fma_get : pattern == "bulk" ? Op::bte_put : Op::fma_put;
    r.src = neighbour ? 0 : pick.below(p.nodes);
    r.dst = neighbour ? 1 % p.nodes : pick.below(p.nodes);
    r.bytes = pattern == "bulk" ? 65536 : 8;
  }
  // Far enough apart that a quiet machine stays quiet.
  const Picos step = pattern == "bulk" ? Picos{20'000'000} : Picos{2'000'000};
  std::vector<std::uint32_t> calls;
  calls.reserve(1 << 22);
  const std::uint64_t cost = timing_cost();
  Picos now;
  std::size_t i = 0;
  for (auto _ : state) {
    QuoteRequest& r = requests[i++ % kRequests];
    r.now = now;
    now += step;
    const std::uint64_t before = ticks();
    const Quote q = quote(p, r, shared.get());
    benchmark::DoNotOptimize(q);
    const std::uint64_t after = ticks();
    if (calls.size() < calls.capacity()) {
      calls.push_back(static_cast<std::uint32_t>(
          std::max<std::int64_t>(static_cast<std::int64_t>(after - before - cost), 0)));
    }
  }
  report(state, calls);
}

// The other process quotes on the same pair as long as the measurement lasts.
void run_two_processes(benchmark::State& state, const std::string& name, State kind) {
  const BuiltMachine built = build_machine(name);
  const Pricing& p = built.machine->pricing;
  SharedState shared(p, kind);
  auto* flag = static_cast<std::atomic<std::uint64_t>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  auto* clock = flag + 8;  // a cache line of its own: both processes share one virtual time
  QuoteRequest r{.op = Op::fma_put, .src = 0, .dst = p.nodes / 2, .bytes = 8};
  const auto one = [&] {
    // A clock that both advance keeps the calls nearly ordered.
    r.now = Picos{static_cast<std::int64_t>(clock->fetch_add(200'000, std::memory_order_relaxed))};
    return r;
  };
  const pid_t child = fork();
  if (child == 0) {
    while (flag->load(std::memory_order_relaxed) == 0)
      benchmark::DoNotOptimize(quote(p, one(), shared.get()));
    _exit(0);
  }
  std::vector<std::uint32_t> calls;
  calls.reserve(1 << 22);
  const std::uint64_t cost = timing_cost();
  for (auto _ : state) {
    const QuoteRequest mine = one();
    const std::uint64_t before = ticks();
    const Quote q = quote(p, mine, shared.get());
    benchmark::DoNotOptimize(q);
    const std::uint64_t after = ticks();
    if (calls.size() < calls.capacity()) {
      calls.push_back(static_cast<std::uint32_t>(
          std::max<std::int64_t>(static_cast<std::int64_t>(after - before - cost), 0)));
    }
  }
  flag->store(1);
  waitpid(child, nullptr, 0);
  munmap(flag, 4096);
  report(state, calls);
}

}  // namespace

int main(int argc, char** argv) {
  for (const ShippedFile& shipped : shipped_machines()) {
    const std::string name(shipped.name);
    for (const char* pattern : {"neighbour", "random", "bulk", "get"}) {
      for (const State kind : {State::quiet, State::exact, State::decayed}) {
        benchmark::RegisterBenchmark(
            ("quote/" + name + "/" + pattern + "/" + kStates[static_cast<int>(kind)]).c_str(),
            [name, pattern = std::string(pattern), kind](benchmark::State& s) {
              run_quotes(s, name, pattern, kind);
            });
      }
    }
    for (const State kind : {State::exact, State::decayed}) {
      benchmark::RegisterBenchmark(
          ("quote/" + name + "/two_processes/" + kStates[static_cast<int>(kind)]).c_str(),
          [name, kind](benchmark::State& s) { run_two_processes(s, name, kind); });
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
