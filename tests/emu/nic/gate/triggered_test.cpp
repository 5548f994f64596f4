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
  TriggerUnit& unit() { return nic().triggered().unit(); }
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
  ASSERT_EQ(nic().triggered().add(a, {.success = 1}, false), Errc::ok);
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

// ---- carried out by the process that reaches the threshold ----

class TriggersOfPeers : public Triggers {
 protected:
  TriggersOfPeers() {
    source_key_ = world_[0].nic().register_region(world_[0].port(), address(&source_), 8, 0, nullptr).value();
    target_key_ = world_[1].nic().register_region(world_[1].port(), address(&target_), 8, 0, nullptr).value();
    endpoint_ = world_.endpoint(0, 1, nullptr);
  }
  static std::uint64_t address(const void* at) { return reinterpret_cast<std::uint64_t>(at); }
  Request put() {
    Request request = box::put_word(&source_, &target_, target_key_, 0);
    request.local = source_key_;
    return request;
  }
  // Node 1 counts, as a process of its own.
  Errc reach(CounterName name, CounterValue by = {.success = 1}) {
    return world_[1].nic().triggered().add(world_[0].name(), name, by);
  }
  alignas(8) std::uint64_t source_ = 0;
  alignas(8) std::uint64_t target_ = 0;
  MemKey source_key_, target_key_;
  std::unique_ptr<Endpoint> endpoint_;
};

// The owner does nothing at all meanwhile: it may be computing, asleep, or stopped.
TEST_F(TriggersOfPeers, AreCarriedOutByTheProcessThatReachesTheThreshold) {
  const CounterName name = counter();
  const CounterName ended = counter();
  const CounterName last = counter();
  ASSERT_TRUE(nic().triggered().post_put(name, 2, *endpoint_, put(), ended, {.success = 5}).ok());
  ASSERT_TRUE(unit().post_add(ended, 5, last, {.success = 3, .failure = 1}).ok());
  ASSERT_TRUE(unit().post_set(last, 4, last, {100, 0}).ok());
  source_ = 77;  // what is there when it fires counts
  ASSERT_EQ(reach(name), Errc::ok);
  EXPECT_EQ(target_, 0u);
  ASSERT_EQ(reach(name), Errc::ok);
  EXPECT_EQ(target_, 77u);
  EXPECT_EQ(nic().counters().get(ended).value(), (CounterValue{5, 0}));
  EXPECT_EQ(nic().counters().get(last).value(), (CounterValue{100, 0}));
  EXPECT_EQ(unit().pending(), 0u);
  EXPECT_EQ(world_[0].rings, 0);
  ASSERT_EQ(counter::add(nic().view(), last, {.success = 1}).status, Errc::ok);
  EXPECT_EQ(nic().counters().get(last).value(), (CounterValue{101, 0}));
  EXPECT_EQ(counter::set(nic().view(), last, {7, 8}).status, Errc::ok);
  EXPECT_EQ(nic().counters().get(last).value(), (CounterValue{7, 8}));
}

TEST_F(TriggersOfPeers, LeaveToTheOwnerWhatOnlyItCanDo) {
  const CounterName name = counter();
  ASSERT_TRUE(unit().post(name, 1, note(1)).ok());
  ASSERT_TRUE(nic().triggered().post_put(name, 1, *endpoint_, put(), {}, {}).ok());
  source_ = 5;
  ASSERT_EQ(reach(name), Errc::ok);
  EXPECT_TRUE(done_.empty());
  EXPECT_EQ(target_, 0u) << "it comes after the action";
  nic().progress();
  EXPECT_EQ(done_, std::vector{1});
  EXPECT_EQ(target_, 5u);
  // Sleeps: the owner is rung.
  nic().view().service().poller.store(Poller::none);
  world_[0].rings = 0;
  ASSERT_TRUE(unit().post(name, 2, note(2)).ok());
  ASSERT_EQ(reach(name), Errc::ok);
  EXPECT_EQ(world_[0].rings, 1);
  nic().serve();
  EXPECT_EQ(done_, (std::vector{1, 2}));
}

TEST_F(TriggersOfPeers, CountAPutThatFails) {
  const CounterName name = counter();
  const CounterName ended = counter();
  ASSERT_TRUE(nic().triggered().post_put(name, 1, *endpoint_, put(), ended, {.success = 5}).ok());
  ASSERT_TRUE(world_[1].nic().deregister(target_key_).ok());
  ASSERT_EQ(reach(name), Errc::ok);
  EXPECT_EQ(nic().counters().get(ended).value(), (CounterValue{0, 1}));
  // What it reads is gone.
  ASSERT_TRUE(nic().triggered().post_put(name, 2, *endpoint_, put(), ended, {.success = 5}).ok());
  ASSERT_TRUE(nic().deregister(source_key_).ok());
  ASSERT_EQ(reach(name), Errc::ok);
  EXPECT_EQ(nic().counters().get(ended).value(), (CounterValue{0, 2}));
  EXPECT_EQ(nic().triggered().post_put(CounterName{}, 1, *endpoint_, put(), ended, {}).code(),
            Errc::invalid_handle);
  Request get = put();
  get.op = Op::get;
  EXPECT_EQ(nic().triggered().post_put(name, 9, *endpoint_, get, ended, {}).code(), Errc::invalid_param);
}

// Memory that is not mapped there: the owner posts it, as a packet.
TEST(TriggersByFrame, ArePostedByTheOwner) {
  box::World world(2, box::Path::frame);
  alignas(8) static std::uint64_t source = 0, target = 0;
  const auto key = [&](int node, std::uint64_t* at) {
    return world[node]
        .nic()
        .register_region(world[node].port(), reinterpret_cast<std::uint64_t>(at), 8, 0, nullptr)
        .value();
  };
  source = 9;
  Request request = box::put_word(&source, &target, key(1, &target), 0);
  request.local = key(0, &source);
  const auto endpoint = world.endpoint(0, 1, nullptr);
  Nic& nic = world[0].nic();
  const CounterName name = nic.counters().create().value();
  const CounterName ended = nic.counters().create().value();
  ASSERT_TRUE(nic.triggered().post_put(name, 1, *endpoint, request, ended, {.success = 2}).ok());
  ASSERT_EQ(world[1].nic().triggered().add(world[0].name(), name, {.success = 1}), Errc::ok);
  EXPECT_EQ(target, 0u);
  for (int i = 0; i < 100 && nic.counters().get(ended).value().success == 0; ++i) world.serve_all();
  EXPECT_EQ(target, 9u);
  EXPECT_EQ(nic.counters().get(ended).value(), (CounterValue{2, 0}));
}

// Two peers and the owner count at once; chains of additions; each is carried out once.
TEST(TriggersUnderThreads, AreCarriedOutOnceByWhicheverProcessComesFirst) {
  constexpr std::uint64_t kRounds = 2000;
  box::World world(3, box::Path::direct);
  Nic& nic = world[0].nic();
  const CounterName name = nic.counters().create().value();
  const CounterName raised = nic.counters().create().value();
  std::atomic<std::uint64_t> acted{0};
  std::vector<std::thread> threads;
  for (int node : {1, 2}) {
    threads.emplace_back([&world, node, name] {
      for (std::uint64_t i = 0; i < kRounds; ++i)
        ASSERT_EQ(world[node].nic().triggered().add(world[0].name(), name, {.success = 1}), Errc::ok);
    });
  }
  for (std::uint64_t i = 1; i <= 2 * kRounds; ++i) {
    if (i % 5 == 0) {
      ASSERT_TRUE(nic.triggered().unit().post(name, i, [&] { acted.fetch_add(1); }).ok());
    } else {
      ASSERT_TRUE(nic.triggered().unit().post_add(name, i, raised, {.success = 1}).ok());
    }
  }
  for (auto& thread : threads) thread.join();
  for (int i = 0; i < 1'000'000 && nic.triggered().unit().pending() != 0; ++i) nic.progress();
  EXPECT_EQ(nic.triggered().unit().pending(), 0u);
  EXPECT_EQ(acted.load(), 2 * kRounds / 5);
  EXPECT_EQ(nic.counters().get(raised).value(), (CounterValue{2 * kRounds - 2 * kRounds / 5, 0}));
  EXPECT_EQ(nic.counters().get(name).value(), (CounterValue{2 * kRounds, 0}));
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
      if (!nic.triggered()
               .unit()
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
      nic.triggered().unit().run(TriggerUnit::Look::at_counts);
      settle();
      if (nic.triggered().unit().cancel(names[i]) != model[i].waiting.size())
        return "another number was cancelled";
      model[i].waiting.clear();
    }
  }
  nic.triggered().unit().run(TriggerUnit::Look::at_counts);
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
