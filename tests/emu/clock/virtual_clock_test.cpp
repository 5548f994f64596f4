// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/virtual_clock.hpp"

#include "emu/clock/look_source.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

// The PEs of a job are threads of this process, each with a clock of its own over the same shared memory.
// Whatever a PE does while it is in its program happens at its place in the order of time: so the PEs share
// plain data, without locks, and what each saw is exact.
namespace orrery::clock {
namespace {

const Choice kAries{.kind = Kind::virtual_time, .machine = "aries", .compute = {}};
constexpr WaitBudget kBudget{.spins = 1, .yields = 1};

class Pes {
 public:
  explicit Pes(std::vector<std::uint32_t> nodes, Choice choice = kAries)
      : nodes_(std::move(nodes)), choice_(std::move(choice)) {
    for (std::uint32_t pe = 0; pe < nodes_.size(); ++pe) {
      auto made = SharedClock::for_test(choice_, pe, nodes_, first_);
      EXPECT_TRUE(made.ok());
      shared_.push_back(std::move(made).value());
      if (pe == 0) first_ = shared_[0].get();
    }
    board_ = &shared_[0]->board();
    least_latency_ = shared_[0]->least_latency().count();
  }
  // Every PE runs `program` in a thread. PE n has process slot n + 1.
  void run(const std::function<void(std::uint32_t, VirtualClock&)>& program) {
    clocks_.resize(nodes_.size());
    std::vector<std::thread> threads;
    for (std::uint32_t pe = 0; pe < nodes_.size(); ++pe) {
      threads.emplace_back([&, pe] {
        clocks_[pe] = std::make_unique<VirtualClock>(std::move(shared_[pe]), choice_, kBudget, slot(pe), "");
        // As programs do before they know of each other's memory.
        clocks_[pe]->barrier_arrive();
        clocks_[pe]->barrier_wait(Picos{});
        program(pe, *clocks_[pe]);
        clocks_[pe]->finish();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  static std::uint32_t slot(std::uint32_t pe) { return pe + 1; }
  std::int64_t least_latency() const { return least_latency_; }
  // REQUIRES: run() is over or under way.
  std::uint64_t turns() const { return board_->header.turns.load(); }
  std::uint64_t late() const { return board_->header.late.load(); }

 private:
  const std::vector<std::uint32_t> nodes_;
  const Choice choice_;
  const SharedClock* first_ = nullptr;
  Board* board_ = nullptr;
  std::int64_t least_latency_ = 0;
  std::vector<std::unique_ptr<SharedClock>> shared_;
  std::vector<std::unique_ptr<VirtualClock>> clocks_;
};

struct Does final : Task {
  explicit Does(std::function<void()> body) : body_(std::move(body)) {}
  void run() override {
    body_();
    delete this;
  }
  const std::function<void()> body_;
};
Task* does(std::function<void()> body) { return new Does(std::move(body)); }

// Within a call of the program's, as the NIC does it.
template <typename Body>
void call(VirtualClock& clock, Body body) {
  clock.enter();
  body();
  clock.leave();
}

constexpr std::int64_t us(std::int64_t n) { return n * 1'000'000; }

TEST(VirtualClock, SleepsEndInTheOrderOfTime) {
  Pes pes({0, 1, 2});
  std::string seen;
  pes.run([&](std::uint32_t pe, VirtualClock& clock) {
    for (int i = 1; i <= 3; ++i) {
      clock.sleep_until(Picos{us(10 * i - 3 * static_cast<int>(pe))});
      seen += fmt::format("{}:{} ", pe, clock.now().count() / us(1));
    }
  });
  EXPECT_EQ(seen, "2:4 1:7 0:10 2:14 1:17 0:20 2:24 1:27 0:30 ");
}

TEST(VirtualClock, PesOfOneTimeGoByTheirNumber) {
  Pes pes({0, 1, 2, 3});
  std::string seen;
  pes.run([&](std::uint32_t pe, VirtualClock& clock) {
    for (int i = 1; i <= 3; ++i) {
      clock.sleep_until(Picos{us(i)});
      seen += static_cast<char>('0' + pe);
    }
  });
  EXPECT_EQ(seen, "012301230123");
}

TEST(VirtualClock, WhoWaitsGoesOnWhenSomethingHappensToIt) {
  Pes pes({0, 1});
  std::int64_t woken = 0;
  bool touched = false, in_time = true;
  pes.run([&](std::uint32_t pe, VirtualClock& clock) {
    if (pe == 0) {
      call(clock, [&] {
        clock.schedule_there(Picos{us(3)}, does([&] { clock.touch(Pes::slot(1)); }), Pes::slot(1));
      });
      clock.sleep_until(Picos{us(50)});
    } else {
      // The first one ends at once: the barrier's end was something that happened.
      while (clock.now() == Picos{}) touched = clock.wait(std::nullopt);
      woken = clock.now().count();
      in_time = clock.wait(Picos{us(7)});
    }
  });
  EXPECT_TRUE(touched);
  EXPECT_EQ(woken, us(3));
  EXPECT_FALSE(in_time) << "nothing came, so the wait was over at its deadline";
}

// ---- optimistic ----

Choice ahead_by(std::int64_t ns) {
  Choice choice = kAries;
  choice.ahead_ns = ns;
  return choice;
}

// How far the PEs of a job were behind what another one had done already, at most, in steps of 1 us each.
std::int64_t furthest_behind(const Choice& choice) {
  Pes pes({0, 1, 2}, choice);
  std::int64_t latest = 0, behind = 0;
  pes.run([&](std::uint32_t, VirtualClock& clock) {
    for (int i = 1; i <= 40; ++i) {
      clock.sleep_until(Picos{us(i)});
      latest = std::max(latest, clock.now().count());
      behind = std::max(behind, latest - clock.now().count());
    }
  });
  EXPECT_EQ(pes.late(), 0u) << "no PE did anything to another one";
  return behind;
}

TEST(Optimistic, PesRunAheadByTheirWindowAndNoFurther) {
  EXPECT_EQ(furthest_behind(kAries), 0);
  for (const std::int64_t window : {5, 20}) {
    const std::int64_t behind = furthest_behind(ahead_by(window * 1000));
    EXPECT_GE(behind, us(window - 1));
    EXPECT_LE(behind, us(window));
  }
}

// PE 0 changes PE 1's node at 2 us. PE 1, which comes out of the barrier first, goes on to `at`.
std::uint64_t late_for(std::int64_t at, const Choice& choice) {
  Pes pes({0, 1}, choice);
  pes.run([&](std::uint32_t pe, VirtualClock& clock) {
    if (pe == 1)
      clock.sleep_until(Picos{at});
    else
      call(clock, [&] { clock.schedule_there(Picos{us(2)}, does([] {}), Pes::slot(1)); });
  });
  return pes.late();
}

TEST(Optimistic, AnEffectBehindWhatItsNodeHasSeenIsCounted) {
  EXPECT_EQ(late_for(us(4), ahead_by(10'000)), 1u);
  EXPECT_EQ(late_for(us(1), ahead_by(10'000)), 0u) << "its node was not so far";
  EXPECT_EQ(late_for(us(4), ahead_by(1'000)), 0u) << "it may not run ahead so far";
  EXPECT_EQ(late_for(us(4), kAries), 0u);
}

TEST(Optimistic, BarriersEndForAllAtTheLastArrivalAllTheSame) {
  Pes pes({0, 1, 2}, ahead_by(1'000'000));
  std::vector<std::int64_t> ends(3);
  pes.run([&](std::uint32_t pe, VirtualClock& clock) {
    clock.sleep_until(Picos{us(pe == 0 ? 30 : 10)});
    clock.barrier_arrive();
    clock.barrier_wait(Picos{us(2)});
    ends[pe] = clock.now().count();
  });
  EXPECT_EQ(ends, std::vector<std::int64_t>({us(32), us(32), us(32)}));
}

// ---- effects that are owed ----

TEST(VirtualClock, AnEffectIsThereWhenItsNodeGoesOnThoughItsPeSleeps) {
  Pes pes({0, 1});
  int value = 0, seen_before = -1, seen_after = -1;
  pes.run([&](std::uint32_t pe, VirtualClock& clock) {
    if (pe == 0) {
      call(clock, [&] { clock.schedule_there(Picos{us(5)}, does([&] { value = 1; }), Pes::slot(1)); });
      clock.sleep_until(Picos{us(100)});
    } else {
      clock.sleep_until(Picos{us(5) - 1});
      seen_before = value;
      clock.sleep_until(Picos{us(6)});
      seen_after = value;
    }
  });
  EXPECT_EQ(seen_before, 0);
  EXPECT_EQ(seen_after, 1);
}

TEST(VirtualClock, EffectsOnANodeComeInTheOrderOfTheirTimesWhoeverHasTheTurn) {
  Pes pes({0, 1, 2});
  std::string seen;
  pes.run([&](std::uint32_t pe, VirtualClock& clock) {
    if (pe == 2) return clock.sleep_until(Picos{us(100)});
    // PE 0 owes at 1, 3, 5, 7; PE 1 at 2, 4, 6, 8. PE 1 has a turn at 20, when PE 0's are not done.
    for (int i = 0; i < 4; ++i) {
      const int at = 1 + 2 * i + static_cast<int>(pe);
      call(clock, [&] {
        clock.schedule_there(Picos{us(at)}, does([&seen, at] { seen += static_cast<char>('0' + at); }),
                             Pes::slot(2));
      });
    }
    clock.sleep_until(Picos{us(pe == 1 ? 20 : 50)});
    if (pe == 1) call(clock, [&] { clock.settle(Pes::slot(2)); });
    if (pe == 1) seen += '|';
  });
  EXPECT_EQ(seen, "12345678|") << "a PE that asks has them done first";
}

TEST(VirtualClock, PesOfOneNodeSeeEachOthersMemory) {
  Pes pes({0, 1, 1});
  int value = 0, seen = -1;
  pes.run([&](std::uint32_t pe, VirtualClock& clock) {
    if (pe == 0)
      call(clock, [&] { clock.schedule_there(Picos{us(5)}, does([&] { value = 1; }), Pes::slot(1)); });
    clock.sleep_until(Picos{pe == 2 ? us(6) : us(100)});
    if (pe == 2) seen = value;
  });
  EXPECT_EQ(seen, 1) << "PE 2 shares PE 1's memory, in which PE 0 stores";
}

// An engine looks at such a source in every so many rounds, from wherever its launcher let it go.
TEST(VirtualClock, ALookAtAFreeSourceTakesNoNewsFromTheOthers) {
  std::vector<std::int64_t> took;
  for (const bool looks_at_free : {false, true}) {
    Pes pes({0});
    pes.run([&](std::uint32_t, VirtualClock& clock) {
      const Picos start = clock.now();
      call(clock, [&] {
        clock.schedule(start + Picos{us(1)}, does([&] { clock.touch(Pes::slot(0)); }), Concerns::others);
      });
      clock.sleep_until(start + Picos{us(2)});
      const int source = 0;
      if (looks_at_free) clock.idle(free_source(&source));
      call(clock, [] {});
      clock.idle(&source);
      clock.idle(&clock);
      call(clock, [] {});
      took.push_back((clock.now() - start).count());
    });
  }
  EXPECT_EQ(took[0], us(2)) << "what has happened is looked for without a price";
  EXPECT_EQ(took[1], took[0]);
}

TEST(VirtualClock, EffectsThatNobodyLooksForTakeNoTurns) {
  constexpr int kEffects = 500;
  Pes pes({0, 1});
  int done = 0;
  pes.run([&](std::uint32_t pe, VirtualClock& clock) {
    if (pe == 0) {
      for (int i = 0; i < kEffects; ++i)
        call(clock, [&] { clock.schedule_there(Picos{us(1 + i)}, does([&] { ++done; }), Pes::slot(1)); });
    }
    clock.sleep_until(Picos{us(1000)});
  });
  EXPECT_EQ(done, kEffects);
  EXPECT_LT(pes.turns(), 20u);
}

// PE 0 goes on at 0, 2, 4 us and owes PE 1, which goes on at 1, 3, 5 us, something just before each: it is
// done when PE 0 has the turn anyhow, and no turn is taken for it.
TEST(VirtualClock, EffectsOnANodeThatSleepsPastThemTakeNoTurns) {
  constexpr int kRounds = 100;
  Pes pes({0, 1});
  const std::int64_t soon = pes.least_latency() - 1;
  ASSERT_GT(soon, 0);
  int done = 0, missing = 0, early = 0;
  pes.run([&](std::uint32_t pe, VirtualClock& clock) {
    for (int i = 0; i < kRounds; ++i) {
      const std::int64_t at = us(2 * i + 2);
      if (pe == 0) {
        // Posted two microseconds before, as the machine's own operations are posted before they land.
        call(clock, [&] { clock.schedule_there(Picos{at + soon}, does([&] { ++done; }), Pes::slot(1)); });
        clock.sleep_until(Picos{at});
      } else {
        clock.sleep_until(Picos{at - us(1)});
        if (done > i) ++early;
        clock.sleep_until(Picos{at + soon});
        if (done < i + 1) ++missing;
      }
    }
  });
  EXPECT_EQ(missing, 0);
  EXPECT_EQ(early, 0);
  EXPECT_EQ(done, kRounds);
  // The turn goes to and fro once a round.
  EXPECT_LT(pes.turns(), 2u * kRounds + 20);
}

// One that waits to be woken may be woken by anything: nothing comes early there.
TEST(VirtualClock, EffectsOnANodeThatMayBeWokenAreNotEarly) {
  Pes pes({0, 1, 2});
  const std::int64_t soon = pes.least_latency() - 1;
  bool there = false, seen = true;
  std::int64_t woken = 0;
  pes.run([&](std::uint32_t pe, VirtualClock& clock) {
    if (pe == 1) {
      // In the launcher's barrier, whose end is when the last one comes.
      clock.barrier_arrive();
      clock.barrier_wait(Picos{});
      seen = there;
      woken = clock.now().count();
      return;
    }
    if (pe == 0)
      call(clock,
           [&] { clock.schedule_there(Picos{us(5) + soon}, does([&] { there = true; }), Pes::slot(1)); });
    clock.sleep_until(Picos{us(5)});
    clock.barrier_arrive();
    clock.barrier_wait(Picos{});
  });
  EXPECT_EQ(woken, us(5));
  EXPECT_FALSE(seen) << "what is due later was there";
  EXPECT_TRUE(there);
}

TEST(VirtualClock, ItsOwnEventsWaitForTheProgram) {
  Pes pes({0, 1});
  std::string seen;
  pes.run([&](std::uint32_t pe, VirtualClock& clock) {
    if (pe == 0) {
      call(clock, [&] {
        clock.schedule(Picos{us(2)}, does([&] { seen += "own2 "; }), Concerns::itself);
        clock.schedule(Picos{us(4)}, does([&] { seen += "all4 "; }), Concerns::others);
        clock.schedule(Picos{us(8)}, does([&] { seen += "own8 "; }), Concerns::itself);
      });
      clock.sleep_until(Picos{us(6)});
      seen += "slept6 ";
      clock.sleep_until(Picos{us(9)});
    } else {
      clock.sleep_until(Picos{us(3)});
      seen += "other3 ";
    }
  });
  EXPECT_EQ(seen, "other3 own2 all4 slept6 own8 ");
}

// Every PE sends effects to random others at random times, and between its sleeps looks at what has come to
// it. What each must have seen follows from the times alone.
TEST(VirtualClock, WhatConcernsItsNodeIsThereForTheNodesOtherPes) {
  Pes pes({0, 0, 1});
  int there = 0, seen = -1;
  pes.run([&](std::uint32_t pe, VirtualClock& clock) {
    if (pe == 0)
      call(clock, [&] { clock.schedule(Picos{us(3)}, does([&] { there = 1; }), Concerns::its_node); });
    if (pe == 1) {
      clock.sleep_until(Picos{us(10)});
      seen = there;
    }
    clock.sleep_until(Picos{us(50)});
  });
  EXPECT_EQ(seen, 1);
}

TEST(VirtualClock, WhatConcernsItsNodeTakesNoTurnWhereNobodyElseIsOnIt) {
  const auto turns_with = [](Concerns concerns) {
    Pes pes({0, 1});
    pes.run([&](std::uint32_t pe, VirtualClock& clock) {
      for (int i = 1; i <= 10 && pe == 0; ++i)
        call(clock, [&] { clock.schedule(Picos{us(i)}, does([] {}), concerns); });
      for (int i = 1; i <= 10 && pe == 1; ++i) clock.sleep_until(Picos{us(i) + 1});
      clock.sleep_until(Picos{us(50)});
    });
    return pes.turns();
  };
  EXPECT_EQ(turns_with(Concerns::its_node), turns_with(Concerns::itself));
  EXPECT_GE(turns_with(Concerns::others), turns_with(Concerns::itself) + 10);
}

TEST(VirtualClock, RandomEffectsAreSeenWhenTheyAreDue) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  constexpr std::uint32_t kPes = 5;
  // Two PEs of one node among them.
  Pes pes({0, 1, 2, 2, 3});
  const std::uint32_t node[kPes] = {0, 1, 2, 2, 3};
  struct Effect {
    std::int64_t at;
    std::uint32_t from, number;
    auto key() const { return std::tuple(at, from, number); }
  };
  std::vector<Effect> came[4];
  std::vector<Effect> sent[4];
  int violations = 0;
  pes.run([&](std::uint32_t pe, VirtualClock& clock) {
    std::mt19937 random(seed + pe);
    std::int64_t last[4] = {};
    for (std::uint32_t i = 0; i < 200; ++i) {
      const std::uint32_t to = random() % kPes;
      auto& box = came[node[to]];
      // Later than it is posted, as every operation is, by what the machine takes at least; one PE's to one
      // node in the order of their times.
      const std::int64_t at = std::max(last[node[to]], clock.now().count() + pes.least_latency() +
                                                           static_cast<std::int64_t>(random() % 1'000'000));
      last[node[to]] = at;
      const Effect effect{at, pe, i};
      sent[node[to]].push_back(effect);
      call(clock, [&] {
        clock.schedule_there(Picos{at}, does([&box, &clock, effect, to] {
                               box.push_back(effect);
                               clock.touch(Pes::slot(to));
                             }),
                             Pes::slot(to));
      });
      const std::int64_t until = clock.now().count() + static_cast<std::int64_t>(random() % 500'000);
      if (random() % 4 == 0)
        (void)clock.wait(Picos{until});
      else
        clock.sleep_until(Picos{until});
      // Nothing that was due is missing, nothing came early.
      const std::int64_t now = clock.now().count();
      const auto& here = came[node[pe]];
      const auto due = [&](const Effect& e) { return e.at < now; };
      const auto came_due = std::count_if(here.begin(), here.end(), due);
      const auto sent_due = std::count_if(sent[node[pe]].begin(), sent[node[pe]].end(), due);
      const bool early = std::any_of(here.begin(), here.end(), [&](const Effect& e) { return e.at > now; });
      if (came_due != sent_due || early) ++violations;
    }
  });
  EXPECT_EQ(violations, 0);
  for (int n = 0; n < 4; ++n) {
    const auto by_key = [](const Effect& a, const Effect& b) { return a.key() < b.key(); };
    EXPECT_TRUE(std::is_sorted(came[n].begin(), came[n].end(), by_key)) << "node " << n;
    EXPECT_EQ(came[n].size(), sent[n].size());
  }
}

// ---- waiting without end ----

TEST(VirtualClock, TheLaunchersBarrierEndsWhenTheLastOneComes) {
  Pes pes({0, 1, 2});
  std::int64_t left[3] = {};
  pes.run([&](std::uint32_t pe, VirtualClock& clock) {
    clock.sleep_until(Picos{us(10 * (3 - static_cast<int>(pe)))});
    clock.barrier_arrive();
    clock.barrier_wait(Picos{});
    left[pe] = clock.now().count();
  });
  for (const std::int64_t at : left) EXPECT_EQ(at, us(30));
}

TEST(VirtualClockDeath, AWaitThatNothingCanEndIsReported) {
  EXPECT_EXIT(
      {
        Pes pes({0});
        pes.run([](std::uint32_t, VirtualClock& clock) {
          clock.sleep_until(Picos{us(3)});
          for (;;) (void)clock.wait(std::nullopt);
        });
      },
      ::testing::ExitedWithCode(75), "PE 0: waits for an event, since 3.000000 us, 0 operations");
}

TEST(SharedClock, APeThatChoseOtherwiseIsRefused) {
  const std::vector<std::uint32_t> nodes{0, 1};
  const auto first = SharedClock::for_test(kAries, 0, nodes, nullptr);
  ASSERT_TRUE(first.ok());
  Choice other = kAries;
  other.compute.measured = true;
  EXPECT_EQ(SharedClock::for_test(other, 1, nodes, first.value().get()).code(), Errc::invalid_param);
  const std::vector<std::uint32_t> more{0, 1, 2};
  EXPECT_FALSE(SharedClock::for_test(kAries, 1, more, first.value().get()).ok());
  EXPECT_TRUE(SharedClock::for_test(kAries, 1, nodes, first.value().get()).ok());
}

}  // namespace
}  // namespace orrery::clock
