// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/target/amo_unit.hpp"
#include "lib/dmapp/completions.hpp"
#include "tests/emu/nic/box.hpp"
#include "tests/emu/nic/seeds.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

// The world in a box for completion: PEs with NICs of their own in one thread, each with one to three
// threads that put, get and add, with a handle or for gsync. A seed decides which of them does what, when
// packets are served, and which PE dies. What gsync or a handle calls complete must be in place, or it must
// say that it is not.
namespace orrery::dmapp {
namespace {

using nic::box::Path;

constexpr int kWords = 32;           // of a thread at each PE: operations between two gsyncs
constexpr std::uint32_t kDepth = 6;  // operations that a thread may have under way
constexpr int kMostThreads = 3;
constexpr int kStuck = 20'000;  // steps; a world takes 1,000

// What an operation leaves behind.
struct Operation {
  int target = 0;
  const std::uint64_t* word = nullptr;
  std::uint64_t expected = 0;
};

struct Thread {
  Completions completions;
  std::vector<std::unique_ptr<nic::Endpoint>> endpoints;  // by PE
  Tracker implicit;
  std::vector<Operation> left;  // to gsync
  Tracker named;
  std::optional<Operation> with_name;
  int next_word = 0;
  std::array<std::uint64_t, kWords> buffers{};
  std::uint64_t named_buffer = 0;

  bool is_idle() const { return Completions::is_idle(implicit); }
  bool is_under_way() {
    completions.reap();
    return implicit.left.load() != 0;
  }
  Errc take() { return Completions::take(implicit); }
};

struct Pe {
  bool alive = true;
  std::deque<Thread> threads;
  std::vector<std::uint64_t> words;  // by PE, thread, word: what that thread puts here; a page of gets behind
  nic::MemKey key;
};

class GsyncWorld {
 public:
  GsyncWorld(std::uint64_t seed, Path path, bool kills)
      : random_(seed),
        world_(2 + below(3), path, {.adopt_after = 5}),
        pes_(static_cast<std::size_t>(world_.size())) {
    kills_left_ = kills ? 1 + below(2) : 0;
    for (int i = 0; i < npes(); ++i) {
      Pe& pe = at(i);
      pe.words.resize(place(npes(), 0, 0) + 1);
      pe.words.back() = secret(i);
      pe.key = world_[i]
                   .nic()
                   .register_region(world_[i].port(), reinterpret_cast<std::uint64_t>(pe.words.data()),
                                    pe.words.size() * 8, 0, nullptr)
                   .value();
      pe.threads.resize(static_cast<std::size_t>(1 + below(kMostThreads)));
      for (Thread& thread : pe.threads) {
        ORRERY_CHECK(thread.completions.open(world_[i].nic(), kDepth).ok(), "no queue");
        for (int to = 0; to < npes(); ++to)
          thread.endpoints.push_back(world_.endpoint(i, to, thread.completions.queue()));
      }
    }
  }

  std::string run() {
    const int steps = 300 + below(700);
    for (step_ = 0; step_ < steps && failure_.empty(); ++step_) {
      if (kills_left_ > 0 && below(100) == 0) kill();
      go_on(below(npes()), true);
    }
    // All that is under way ends, and says how.
    for (; failure_.empty() && !is_over(); ++step_) {
      if (step_ == kStuck) return "an operation never ends";
      go_on(below(npes()), false);
    }
    return failure_;
  }

 private:
  int npes() const { return world_.size(); }
  Pe& at(int pe) { return pes_[static_cast<std::size_t>(pe)]; }
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  static std::size_t place(int pe, std::size_t thread, int word) {
    return (static_cast<std::size_t>(pe) * kMostThreads + thread) * (kWords + 1) +
           static_cast<std::size_t>(word);
  }
  static std::uint64_t secret(int pe) { return 0x5ec0'0000'0000'0000 + static_cast<std::uint64_t>(pe); }
  void fail(int pe, const std::string& what) {
    if (failure_.empty())
      failure_ = "step " + std::to_string(step_) + ", PE " + std::to_string(pe) + ": " + what;
  }

  void go_on(int number, bool issues) {
    Pe& pe = at(number);
    if (!pe.alive) return;
    const int what = below(10);
    const auto which = static_cast<std::size_t>(below(static_cast<int>(pe.threads.size())));
    Thread& thread = pe.threads[which];
    if (what < 3) return void(world_[number].nic().serve());
    if (what < 7) {
      if (issues) issue(number, which);
      return;
    }
    if (what == 7) return test_named(number, thread);
    if (what == 8) return test_thread(number, thread);
    test_all_threads(number);
  }

  void issue(int number, std::size_t which) {
    Thread& thread = at(number).threads[which];
    const bool named = below(4) == 0;
    if (named ? thread.with_name.has_value() : thread.next_word == kWords) return;
    const int word = named ? kWords : thread.next_word;
    std::uint64_t& buffer = named ? thread.named_buffer : thread.buffers[static_cast<std::size_t>(word)];
    Operation operation{.target = below(npes())};
    Pe& target = at(operation.target);
    std::uint64_t* const there = &target.words[place(number, which, word)];
    nic::Request request = nic::box::put_word(&buffer, there, target.key, nic::kGlobalEvent);
    operation.word = there;
    switch (below(3)) {
      case 0:
        buffer = operation.expected = random_();
        break;
      case 1:
        request.op = nic::Op::get;
        request.flags = nic::kLocalEvent;
        request.remote_address = reinterpret_cast<std::uint64_t>(&target.words.back());
        buffer = 0;
        operation.word = &buffer;
        operation.expected = secret(operation.target);
        break;
      default:
        // Of a word that nothing else touches until this is over.
        request.op = nic::Op::amo;
        request.command = nic::amo::command(nic::AmoOp::add, 0);
        request.operand[0] = static_cast<std::uint64_t>(1 + below(1000));
        operation.expected = *there + request.operand[0];
    }
    const Errc started =
        thread.completions.start(*thread.endpoints[static_cast<std::size_t>(operation.target)], request,
                                 named ? thread.named : thread.implicit);
    if (started == Errc::no_resource) return thread.completions.reap();
    if (started != Errc::ok) {
      if (target.alive) fail(number, "an operation at a PE that lives is refused");
      return;
    }
    if (named)
      thread.with_name = operation;
    else
      thread.left.push_back(operation);
    thread.next_word += named ? 0 : 1;
  }

  // What is said of some operations: all is in place, or one of their targets is dead.
  void check(int number, Errc ended, const std::vector<Operation>& operations, const char* what) {
    if (ended == Errc::ok) {
      for (const Operation& one : operations)
        if (*one.word != one.expected)
          return fail(number, std::string(what) + " calls complete what is not there");
      return;
    }
    for (const Operation& one : operations)
      if (!at(one.target).alive) return;
    fail(number, std::string(what) + " fails though every target lives");
  }
  void test_named(int number, Thread& thread) {
    if (!thread.with_name) return;
    const Errc ended = thread.completions.test(thread.named);
    if (ended == Errc::not_done) return;
    check(number, ended, {*thread.with_name}, "a handle");
    thread.with_name.reset();
  }
  void test_thread(int number, Thread& thread) {
    const Errc ended = thread.completions.test(thread.implicit);
    if (ended == Errc::not_done) return;
    check(number, ended, thread.left, "a thread's gsync");
    forget(thread);
  }
  void test_all_threads(int number) {
    std::deque<Thread>& threads = at(number).threads;
    const Errc ended = test_all(threads.size(), [&](std::size_t i) -> Thread& { return threads[i]; });
    if (ended == Errc::not_done) return;
    std::vector<Operation> all;
    for (Thread& thread : threads) {
      all.insert(all.end(), thread.left.begin(), thread.left.end());
      forget(thread);
    }
    check(number, ended, all, "gsync");
  }
  static void forget(Thread& thread) {
    thread.left.clear();
    thread.next_word = 0;
  }

  void kill() {
    const int pe = below(npes());
    if (!at(pe).alive) return;
    --kills_left_;
    at(pe).alive = false;
    world_.kill(pe);
  }
  bool is_over() {
    for (const Pe& pe : pes_) {
      if (!pe.alive) continue;
      for (const Thread& thread : pe.threads)
        if (!thread.left.empty() || thread.with_name || !thread.is_idle()) return false;
    }
    return true;
  }

  std::mt19937_64 random_;
  nic::box::World world_;
  std::deque<Pe> pes_;
  int kills_left_ = 0;
  int step_ = 0;
  std::string failure_;
};

class GsyncWorlds : public ::testing::TestWithParam<Path> {};

INSTANTIATE_TEST_SUITE_P(Paths, GsyncWorlds, ::testing::Values(Path::direct, Path::frame),
                         [](const auto& info) { return info.param == Path::direct ? "Direct" : "Frame"; });

TEST_P(GsyncWorlds, WhatIsCalledCompleteIsInPlace) {
  nic::box::for_every_seed(200, 50'000,
                           [](std::uint64_t seed) { return GsyncWorld(seed, GetParam(), false).run(); });
}

TEST_P(GsyncWorlds, WhateverPeDiesEachOperationEndsAndNoFailureIsLost) {
  nic::box::for_every_seed(200, 50'000,
                           [](std::uint64_t seed) { return GsyncWorld(seed, GetParam(), true).run(); });
}

}  // namespace
}  // namespace orrery::dmapp
