// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What quote() costs, per machine and pattern. Names: quote/<machine>/<pattern>/<state>
//   pattern  neighbour   node 0 to a neighbour, 8 B puts
//            random      random pairs, 8 B puts
//            bulk        random pairs, 64 KiB puts
//            get         random pairs, 8 B gets
//            in_order    random pairs, 8 B puts on one hashed path each
//            hashed_root random pairs, 8 B puts through a hashed root where the machine has such a mode
//            backlog     as neighbour, but all at once: every quote finds the links taken (not held to a
//            figure)
//   state    quiet       no link state
//            exact       intervals, calls in order of time
//            decayed     counters
//   two_processes        the state in shared memory, two processes whose messages go over the same links from
//                        and to NICs of their own. decayed: both at once, as fast as they can. exact: in
//                        turns, which is what ordered callers do. Not held to a figure: decayed_same_nics,
//                        where both share both NICs too.
// floor_ns beside a row: the p99 of touching bare what a quote of that row writes, the same lines of the same
// block in the same order of requests, all asked for and then read and written back; after each 256 quotes
// 128 touches, so that both meet the same caches; for two processes by both, in turns or at once as they
// quote. No row can be better than what memory takes, and rows over the limit are printed with it at the end.
// floor/alone is nothing at all timed the same way,
// floor/two_processes one number that two processes raise in turns: what the machine takes for a call that
// does nothing, and for one line out of another's cache. floor/chain/<machine> is a fixed chain of 64
// multiplications, taken before each machine's rows: rows of runs in which it differs are not to be compared.
// Each iteration is one call, timed alone with the time stamp counter; the counter's own cost (median of
// empty readings) is taken off. p50_ns and p99_ns are over the single calls made while the core was whole
// (timed_calls.hpp), `counted` says which share of all that was; in steps of the counter (10 ns on some
// machines). The mean that the benchmark library prints includes the timing itself and all calls.
// With --benchmark_repetitions=N a row stands for the median of its N p99s; the last lines name the worst row
// of each kind.
#include "bench/model/timed_calls.hpp"
#include "emu/model/machine.hpp"
#include "emu/model/machine_file.hpp"
#include "emu/model/path.hpp"
#include "emu/model/quote.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace orrery;
using namespace orrery::model;

enum class State { quiet, exact, decayed };
constexpr const char* kStates[] = {"quiet", "exact", "decayed"};

// The p99 of each repetition, by row.
using Rows = std::map<std::string, std::vector<double>>;
Rows g_alone, g_two, g_floor;
// Of what the rows write, touched bare: by the same names.
Rows g_touched;
// Measurements in which the cores were never whole for long, so that all calls count.
std::size_t g_shared_cores = 0;

// Calls of each row. A fixed number: the library's own choice goes by wall time, which is also spent on
// waiting for a whole core.
constexpr int kCalls = 200'000;
// Of calls in turn, so many are quotes, the others touches. Their sum does not divide the number of requests,
// so that every request is either some time.
constexpr int kQuotes = 256, kRound = 384;

std::uint64_t ticks() { return bench::Stopwatch::ticks(); }

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
  void* memory() { return at_; }

 private:
  void* at_ = nullptr;
  std::size_t size_ = 0;
  LinkState state_;
};

// The cache lines that quotes write, request after request, by number from the block's start.
class Touched {
 public:
  // Of a quote in `state`, which lies at `memory`: both NICs, and what is on the way.
  void add(const Pricing& pricing, const QuoteRequest& r, const LinkState& state, const void* memory) {
    const auto add_line = [&](const void* at) {
      const auto line = (static_cast<const char*>(at) - static_cast<const char*>(memory)) / 64;
      if (line > UINT16_MAX) std::abort();  // none of the shipped machines' is larger
      lines_.push_back(static_cast<std::uint16_t>(line));
    };
    const bool get = pricing.ops[static_cast<std::size_t>(r.op)].flow == Flow::get;
    Path path;
    find_path(pricing, r.routing, r.seed, get ? r.dst : r.src, get ? r.src : r.dst, &state, &path);
    add_line(&state.nic(r.src));
    add_line(&state.nic(r.dst));
    for (std::uint32_t i = 0; i < path.stretches; ++i) add_line(path.at[i].cell);
    if (pricing.network == Network::fat_tree) {
      const CircuitWay way(pricing, get ? r.dst : r.src, get ? r.src : r.dst, state.circuits(), state.exact(),
                           r.seed);
      for (const CircuitCell* cell : way.cells()) add_line(cell);
    }
    ends_.push_back(static_cast<std::uint32_t>(lines_.size()));
  }
  // Asks for the lines of a request, then reads and writes a word of each.
  void touch(std::size_t request, void* memory) const {
    auto* const words = static_cast<std::uint64_t*>(memory);
    const std::uint32_t first = request == 0 ? 0 : ends_[request - 1], end = ends_[request];
    for (std::uint32_t i = first; i < end; ++i) prefetch_to_write(&words[lines_[i] * std::size_t{8} + 7]);
    for (std::uint32_t i = first; i < end; ++i) {
      std::atomic_ref word(words[lines_[i] * std::size_t{8} + 7]);
      word.store(word.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
  }

 private:
  std::vector<std::uint16_t> lines_;  // small: they share the caches with what they name
  std::vector<std::uint32_t> ends_;
};

void report_touched(benchmark::State& state, const bench::TimedCalls& calls, const std::string& name) {
  const double p99 = calls.at(0.99);
  state.counters["floor_ns"] = p99;
  g_touched[name].push_back(p99);
}

void report(benchmark::State& state, bench::TimedCalls& calls, const std::string& name, Rows* rows) {
  state.counters["p50_ns"] = calls.at(0.50);
  const double p99 = calls.at(0.99);
  state.counters["p99_ns"] = p99;
  state.counters["counted"] = calls.share();
  if (rows == nullptr) return;
  (*rows)[name].push_back(p99);
  g_shared_cores += !calls.only_whole();
}

void run_quotes(benchmark::State& state, const std::string& name, const std::string& pattern, State kind) {
  const BuiltMachine built = build_machine(name);
  const Pricing& p = built.machine->pricing;
  SharedState shared(p, kind);
  Choices pick(7);
  // Requests are made beforehand: the application's own work is not the model's.
  constexpr std::size_t kRequests = 4096;
  // Of each only what differs: they are the bench's own share of the caches.
  struct Pair {
    NodeId src, dst;
  };
  std::vector<Pair> requests(kRequests);
  const bool neighbour = pattern == "neighbour" || pattern == "backlog";
  for (Pair& r : requests) {
    r.src = neighbour ? 0 : pick.below(p.nodes);
    r.dst = neighbour ? 1 % p.nodes : pick.below(p.nodes);
  }
  QuoteRequest request;
  request.op = pattern == "get" ? Op::fma_get : pattern == "bulk" ? Op::bte_put : Op::fma_put;
  request.bytes = pattern == "bulk" ? 65536 : 8;
  request.routing = pattern == "in_order"      ? Routing::in_order
                    : pattern == "hashed_root" ? Routing::hashed_non_minimal
                                               : Routing::adaptive_0;
  const auto request_of = [&](const Pair& pair) {
    QuoteRequest r = request;
    r.src = pair.src;
    r.dst = pair.dst;
    return r;
  };
  // Far enough apart that a quiet machine stays quiet: its NIC takes operations no faster than its gap, and a
  // long message holds a slow link for longer than a quiet one takes over parallel links.
  const OpPrice& price = p.ops[static_cast<std::size_t>(request.op)];
  const std::int64_t gap = (price.gap + price.gap_add + price.beyond_gap).count();
  Picos slowest;
  for (const Pair& pair : requests)
    slowest = std::max(slowest, quote(p, request_of(pair), nullptr).local_event_at);
  const Picos step{pattern == "backlog" ? 0
                                        : std::max<std::int64_t>({2'000'000, 2 * gap, 4 * slowest.count()})};
  Touched touched;
  if (kind != State::quiet)
    for (const Pair& pair : requests) touched.add(p, request_of(pair), *shared.get(), shared.memory());
  bench::TimedCalls calls, touches;
  Picos now;
  std::size_t i = 0;
  for (auto _ : state) {
    if (kind != State::quiet && i % kRound >= kQuotes) {
      const std::size_t request = i++ % kRequests;
      const std::uint64_t before = ticks();
      touched.touch(request, shared.memory());
      const std::uint64_t after = ticks();
      touches.add(before, after);
      continue;
    }
    // The caller has its request at hand.
    QuoteRequest r = request_of(requests[i++ % kRequests]);
    r.now = now;
    benchmark::DoNotOptimize(r);
    now += step;
    const std::uint64_t before = ticks();
    const Quote q = quote(p, r, shared.get());
    benchmark::DoNotOptimize(q);
    const std::uint64_t after = ticks();
    calls.add(before, after);
  }
  const std::string row = name + "/" + pattern + "/" + kStates[static_cast<int>(kind)];
  report(state, calls, row, pattern == "backlog" ? nullptr : &g_alone);
  if (kind == State::quiet) return;
  report_touched(state, touches, row);
}

// `chain`: multiplications, each of the one before's product (three cycles or so a piece).
void run_floor_alone(benchmark::State& state, int chain) {
  std::uint64_t product = 3;
  bench::TimedCalls calls;
  for (auto _ : state) {
    const std::uint64_t before = ticks();
    for (int i = 0; i < chain; ++i) {
      product *= product;
      benchmark::DoNotOptimize(product);
    }
    const std::uint64_t after = ticks();
    calls.add(before, after);
  }
  report(state, calls, chain == 0 ? "floor/alone" : "floor/chain", &g_floor);
}

// Keeps the process on a processor of its own for as long as it lives.
class Pinned {
 public:
  explicit Pinned(int cpu) {
    sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
  }
  ~Pinned() { sched_setaffinity(0, sizeof(before_), &before_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t before_;
};

// A node whose way to the sibling of another runs over the same links, but whose NIC is another: of the same
// router or lowest switch where these have several, else the next one along z.
NodeId sibling(const Pricing& p, NodeId node) {
  switch (p.network) {
    case Network::gemini_torus:
      return node + p.torus.shape().nodes[0];
    case Network::seastar_torus:
    case Network::bluegene_torus:
      return node + p.torus.shape().nodes[0] * p.torus.shape().nodes[1];
    default:
      return node ^ 1;
  }
}

// The other process does the same as long as the measurement lasts: `call` in turns.
template <typename Call>
void run_floor_two(benchmark::State& state, const Call& call) {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) std::abort();
  auto* words = static_cast<std::atomic<std::uint64_t>*>(page);
  std::atomic<std::uint64_t>&stop = words[0], &number = words[8], &turn = words[16];
  const auto my_turn = [&](std::uint64_t me) {
    while (turn.load(std::memory_order_acquire) != me)
      if (stop.load(std::memory_order_relaxed) != 0) return false;
    return true;
  };
  const pid_t child = fork();
  if (child < 0) std::abort();
  const Pinned pinned(child == 0 ? 1 : 0);
  if (child == 0) {
    while (my_turn(1)) {
      call(number);
      turn.store(0, std::memory_order_release);
    }
    _exit(0);
  }
  bench::TimedCalls calls;
  for (auto _ : state) {
    my_turn(0);
    const std::uint64_t before = ticks();
    call(number);
    const std::uint64_t after = ticks();
    turn.store(1, std::memory_order_release);
    calls.add(before, after);
  }
  stop.store(1);
  waitpid(child, nullptr, 0);
  munmap(page, 4096);
  report(state, calls, "floor/two_processes", &g_floor);
}

// The other process quotes over the same links as long as the measurement lasts.
void run_two_processes(benchmark::State& state, const std::string& name, const std::string& row, State kind,
                       bool in_turns, bool same_nics, Rows* rows) {
  const BuiltMachine built = build_machine(name);
  const Pricing& p = built.machine->pricing;
  SharedState shared(p, kind);
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) std::abort();
  // Each in a cache line of its own. Both processes share one virtual time, so that calls are nearly ordered.
  auto* words = static_cast<std::atomic<std::uint64_t>*>(page);
  std::atomic<std::uint64_t>&stop = words[0], &clock = words[8], &turn = words[16], &touching = words[24];
  // Slow enough for every machine to keep up: a backlog is not what is measured.
  constexpr std::uint64_t kStep = 10'000'000;
  // Three eighths along z on a torus: exactly half way round would be a tie, decided for each pair alone.
  QuoteRequest r{.op = Op::fma_put, .src = 0, .dst = p.nodes / 8 * 3, .bytes = 8};
  const auto my_turn = [&](std::uint64_t me) {
    while (in_turns && turn.load(std::memory_order_acquire) != me) {
      if (stop.load(std::memory_order_relaxed) != 0) return false;
    }
    r.now = Picos{static_cast<std::int64_t>(clock.fetch_add(kStep, std::memory_order_relaxed))};
    return stop.load(std::memory_order_relaxed) == 0;
  };
  const pid_t child = fork();
  if (child < 0) std::abort();
  const Pinned pinned(child == 0 ? 1 : 0);
  if (child == 0 && !same_nics) {
    r.src = sibling(p, r.src);
    r.dst = sibling(p, r.dst);
  }
  Touched touched;
  touched.add(p, r, *shared.get(), shared.memory());
  if (child == 0) {
    while (my_turn(1)) {
      if (touching.load(std::memory_order_relaxed) != 0) {
        touched.touch(0, shared.memory());
      } else {
        benchmark::DoNotOptimize(quote(p, r, shared.get()));
      }
      turn.store(0, std::memory_order_release);
    }
    _exit(0);
  }
  bench::TimedCalls calls, touches;
  int round = 0;
  for (auto _ : state) {
    const bool touch = round >= kQuotes;
    touching.store(touch ? 1 : 0, std::memory_order_relaxed);
    my_turn(0);
    const std::uint64_t before = ticks();
    if (touch) {
      touched.touch(0, shared.memory());
    } else {
      const Quote q = quote(p, r, shared.get());
      benchmark::DoNotOptimize(q);
    }
    const std::uint64_t after = ticks();
    turn.store(1, std::memory_order_release);
    (touch ? touches : calls).add(before, after);
    round = round + 1 == kRound ? 0 : round + 1;
  }
  stop.store(1);
  waitpid(child, nullptr, 0);
  munmap(page, 4096);
  report(state, calls, row, rows);
  report_touched(state, touches, row);
}

double median_of(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print_worst(const char* what, Rows& rows, double limit) {
  double worst = 0;
  std::string name;
  std::size_t over = 0;
  for (auto& [row, values] : rows) {
    const double median = median_of(values);
    if (median > limit) {
      ++over;
      const auto touched = g_touched.find(row);
      std::printf("over %.0f ns: %s %.0f ns, of which its lines touched bare take %.0f\n", limit, row.c_str(),
                  median, touched == g_touched.end() ? 0 : median_of(touched->second));
    }
    if (median >= worst) {
      worst = median;
      name = row;
    }
  }
  std::printf("worst p99, %s: %.0f ns (%s), %zu of %zu rows over %.0f ns\n", what, worst, name.c_str(), over,
              rows.size(), limit);
}

}  // namespace

template <typename Run>
void add(const std::string& row, const Run& run) {
  benchmark::RegisterBenchmark(row.c_str(), run)->Iterations(kCalls);
}

int main(int argc, char** argv) {
  add("floor/alone", [](benchmark::State& s) { run_floor_alone(s, 0); });
  add("floor/two_processes", [](benchmark::State& s) {
    run_floor_two(s, [](std::atomic<std::uint64_t>& number) { number.fetch_add(1); });
  });
  for (const ShippedFile& shipped : shipped_machines()) {
    const std::string name(shipped.name);
    // How fast the processor is just now: others may share its host.
    add("floor/chain/" + name, [](benchmark::State& s) { run_floor_alone(s, 64); });
    for (const char* pattern : {"neighbour", "random", "bulk", "get", "in_order", "hashed_root", "backlog"}) {
      for (const State kind : {State::quiet, State::exact, State::decayed}) {
        add(("quote/" + name + "/" + pattern + "/" + kStates[static_cast<int>(kind)]).c_str(),
            [name, pattern = std::string(pattern), kind](benchmark::State& s) {
              run_quotes(s, name, pattern, kind);
            });
      }
    }
    const auto two = [&](const char* kind, State state, bool in_turns, bool same_nics, Rows* rows) {
      const std::string row = name + "/two_processes/" + kind;
      add("quote/" + row, [name, row, state, in_turns, same_nics, rows](benchmark::State& s) {
        run_two_processes(s, name, row, state, in_turns, same_nics, rows);
      });
    };
    two("exact", State::exact, true, false, &g_two);
    two("decayed", State::decayed, false, false, &g_two);
    two("decayed_same_nics", State::decayed, false, true, nullptr);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  // The counter's own step is allowed for: a p99 of 100.1 ns is one of 100.
  print_worst("alone", g_alone, 101);
  print_worst("two processes", g_two, 151);
  std::printf("measurements without whole cores, all of whose calls count: %zu\n", g_shared_cores);
  for (auto& [row, values] : g_floor) {
    std::sort(values.begin(), values.end());
    std::printf("%s p99: %.0f ns\n", row.c_str(), values[values.size() / 2]);
  }
  return 0;
}
