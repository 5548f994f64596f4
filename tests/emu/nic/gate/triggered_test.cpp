// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/gate/triggered.hpp"

#include "tests/emu/nic/box.hpp"
#include "tests/emu/nic/seeds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace orrery::nic {
namespace {

class Triggers : public ::testing::Test {
 protected:
  Nic& nic() { return world_[0].nic(); }
  TriggerUnit& unit() { return nic().triggers(); }
  CounterName counter() { return nic().counters().create().value(); }
  // As another process does it: by the segment alone.
  Counted peer_adds(CounterName name, CounterValue by) { return counter::add(nic().view(), name, by); }
  TriggerUnit::Action note(int what) {
    return [this, what] { done_.push_back(what); };
  }
  box::World world_{2, box::Path::direct};
  std::vector<int> done_;
};

TEST_F(Triggers, FireInTheOrderOfThresholdsAndThenOfPosts) {
  const CounterName name = counter();
  ASSERT_TRUE(unit().post(name, 5, note(4)).ok());
  ASSERT_TRUE(unit().post(name, 2, note(1)).ok());
  ASSERT_TRUE(unit().post(name, 5, note(5)).ok());
  ASSERT_TRUE(unit().post(name, 3, note(2)).ok());
  ASSERT_TRUE(unit().post(name, 9, note(9)).ok());
  EXPECT_FALSE(peer_adds(name, {.success = 1}).fires);
  unit().run(TriggerUnit::Look::at_counts);
  EXPECT_TRUE(done_.empty());
  EXPECT_TRUE(peer_adds(name, {.failure = 4}).fires) << "failures count too";
  unit().run(TriggerUnit::Look::at_signals);
  EXPECT_EQ(done_, (std::vector{1, 2, 4, 5}));
  EXPECT_EQ(unit().pending(), 1u);
}

TEST_F(Triggers, ThatAreReachedAlreadyFireAtOnce) {
  const CounterName name = counter();
  peer_adds(name, {.success = 3});
  ASSERT_TRUE(unit().post(name, 3, note(1)).ok());
  EXPECT_EQ(done_, std::vector{1});
  ASSERT_TRUE(unit().post(name, 0, note(2)).ok());
  EXPECT_EQ(done_, (std::vector{1, 2}));
}

TEST_F(Triggers, AddToCountersThatTriggerInTurn) {
  const CounterName a = counter();
  const CounterName b = counter();
  const CounterName c = counter();
  ASSERT_TRUE(unit().post_add(a, 1, b, {.success = 7}).ok());
  ASSERT_TRUE(unit().post_set(b, 7, c, {40, 2}).ok());
  ASSERT_TRUE(unit().post(c, 42, note(1)).ok());
  ASSERT_EQ(nic().add_to_counter(a, {.success = 1}, false), Errc::ok);
  EXPECT_EQ(done_, std::vector{1});
  EXPECT_EQ(nic().counters().get(c).value(), (CounterValue{40, 2}));
  EXPECT_EQ(unit().post_add(a, 1, CounterName{}, {}).code(), Errc::invalid_handle);
  EXPECT_EQ(unit().post(CounterName{}, 1, note(2)).code(), Errc::invalid_handle);
}

TEST_F(Triggers, ThatAreCancelledNeverFire) {
  const CounterName name = counter();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(unit().post(name, 2, note(i)).ok());
  EXPECT_EQ(unit().cancel(name), 3u);
  EXPECT_FALSE(peer_adds(name, {.success = 5}).fires);
  unit().run(TriggerUnit::Look::at_counts);
  EXPECT_TRUE(done_.empty());
  EXPECT_EQ(unit().cancel(name), 0u);
}

// The thread that serves the NIC carries them out: a poll of the program, or its service thread.
TEST_F(Triggers, FireWhenTheProgramPollsAndWhenItDoesNot) {
  const CounterName name = counter();
  CompletionQueue* queue = nic().create_queue(4, 0).value();
  ASSERT_TRUE(unit().post(name, 1, note(1)).ok());
  ASSERT_TRUE(unit().post(name, 2, note(2)).ok());
  peer_adds(name, {.success = 1});
  Event event;
  EXPECT_EQ(nic().poll(*queue, &event), Errc::not_done);
  EXPECT_EQ(done_, std::vector{1});
  peer_adds(name, {.success = 1});
  nic().serve();
  EXPECT_EQ(done_, (std::vector{1, 2}));
}

// An adder that dies after its addition, before it could say so: the death makes the owner look.
TEST_F(Triggers, FireWhenTheAdderDiedBeforeItSaidSo) {
  const CounterName name = counter();
  ASSERT_TRUE(unit().post(name, 1, note(1)).ok());
  counters_of(nic().view()).counters[name.index].success.fetch_add(1);
  unit().run(TriggerUnit::Look::at_signals);
  EXPECT_TRUE(done_.empty()) << "nothing was said";
  world_.kill(1);
  EXPECT_EQ(done_, std::vector{1});
}

// A put of this process that waits for a counter which a peer raises.
TEST_F(Triggers, CarryOutAPut) {
  std::uint64_t source = 0;
  std::uint64_t target = 0;
  const MemKey key =
      world_[1]
          .nic()
          .register_region(world_[1].port(), reinterpret_cast<std::uint64_t>(&target), 8, 0, nullptr)
          .value();
  const auto endpoint = world_.endpoint(0, 1, nullptr);
  const CounterName name = counter();
  ASSERT_TRUE(
      unit()
          .post(name, 2,
                [&] { EXPECT_EQ(nic().post(*endpoint, box::put_word(&source, &target, key, 0)), Errc::ok); })
          .ok());
  source = 77;  // what is there when it fires counts
  peer_adds(name, {.success = 1});
  nic().progress();
  EXPECT_EQ(target, 0u);
  peer_adds(name, {.success = 1});
  nic().progress();
  EXPECT_EQ(target, 77u);
}

// Adders, posters and runners in threads of their own: each action runs exactly once, none is forgotten.
TEST_F(Triggers, FireExactlyOnceUnderThreads) {
  constexpr int kRounds = 3000;
  const CounterName name = counter();
  std::vector<std::atomic<int>> ran(kRounds);
  std::atomic<bool> stop{false};
  std::thread poster([&] {
    for (int i = 0; i < kRounds; ++i) {
      ASSERT_TRUE(unit()
                      .post(name, static_cast<std::uint64_t>(i) + 1,
                            [&ran, i] { ran[static_cast<std::size_t>(i)].fetch_add(1); })
                      .ok());
    }
  });
  std::thread runner([&] {
    while (!stop.load()) unit().run(TriggerUnit::Look::at_signals);
  });
  for (int i = 0; i < kRounds; ++i) peer_adds(name, {.success = 1});
  poster.join();
  for (int i = 0; i < 1'000'000 && unit().pending() != 0; ++i) std::this_thread::yield();
  stop.store(true);
  runner.join();
  unit().run(TriggerUnit::Look::at_counts);
  for (int i = 0; i < kRounds; ++i) ASSERT_EQ(ran[static_cast<std::size_t>(i)].load(), 1) << i;
}

// A seeded world against a plain model: counters that peers add to, chains of actions, cancellations, deaths.
std::string triggers_as_the_model_says(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  box::World world(3, box::Path::direct);
  Nic& nic = world[0].nic();
  constexpr std::size_t kCounters = 4;
  std::vector<CounterName> names;
  for (std::size_t i = 0; i < kCounters; ++i) names.push_back(nic.counters().create().value());
  struct Model {
    CounterValue value;
    std::map<std::pair<std::uint64_t, int>, std::pair<int, CounterValue>>
        waiting;  // -> counter, what is added
  };
  std::vector<Model> model(kCounters);
  std::vector<int> done, expected;
  int order = 0;
  int left = 2;  // peers that live
  const auto settle = [&] {
    // The model fires in any order between counters; additions commute, so the end is the same.
    for (bool any = true; any;) {
      any = false;
      for (Model& m : model) {
        while (!m.waiting.empty() && m.waiting.begin()->first.first <= m.value.sum()) {
          const auto [at, what] = *m.waiting.begin();
          m.waiting.erase(m.waiting.begin());
          expected.push_back(at.second);
          Model& to = model[static_cast<std::size_t>(what.first)];
          to.value = {to.value.success + what.second.success, to.value.failure + what.second.failure};
          any = true;
        }
      }
    }
  };
  for (int step = 0; step < 120; ++step) {
    const std::size_t i = random() % kCounters;
    const std::uint64_t choice = random() % 100;
    if (choice < 40) {
      const CounterValue by =
          random() % 4 == 0 ? CounterValue{0, random() % 3} : CounterValue{random() % 3, 0};
      const bool silent = left > 1 && random() % 20 == 0;
      if (silent) {
        // Dies right after its addition.
        counters_of(nic.view()).counters[names[i].index].success.fetch_add(by.success);
        counters_of(nic.view()).counters[names[i].index].failure.fetch_add(by.failure);
        world.kill(left--);
      } else {
        counter::add(nic.view(), names[i], by);
      }
      model[i].value = {model[i].value.success + by.success, model[i].value.failure + by.failure};
    } else if (choice < 80) {
      const std::uint64_t threshold = model[i].value.sum() + random() % 6;
      const int id = ++order;
      const std::size_t to = random() % kCounters;
      const CounterValue by{random() % 2, random() % 8 == 0 ? 1u : 0u};
      if (!nic.triggers()
               .post(names[i], threshold,
                     [&, id, to, by] {
                       done.push_back(id);
                       counter::add(nic.view(), names[to], by);
                     })
               .ok())
        return "a post was refused";
      model[i].waiting[{threshold, id}] = {static_cast<int>(to), by};
    } else if (choice < 95) {
      nic.serve();
    } else {
      nic.progress();
      nic.triggers().run(TriggerUnit::Look::at_counts);
      settle();
      if (nic.triggers().cancel(names[i]) != model[i].waiting.size()) return "another number was cancelled";
      model[i].waiting.clear();
    }
  }
  nic.triggers().run(TriggerUnit::Look::at_counts);
  settle();
  std::sort(done.begin(), done.end());
  std::sort(expected.begin(), expected.end());
  if (done != expected) return fmt::format("{} actions ran, not {}", done.size(), expected.size());
  for (std::size_t i = 0; i < kCounters; ++i) {
    if (nic.counters().get(names[i]).value() != model[i].value) return "a count differs";
  }
  return "";
}

TEST(TriggersInABox, RunAsTheModelSays) { box::for_every_seed(300, 100'000, triggers_as_the_model_says); }

}  // namespace
}  // namespace orrery::nic
