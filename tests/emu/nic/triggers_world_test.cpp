// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/nic.hpp"
#include "tests/emu/nic/box.hpp"
#include "tests/emu/nic/seeds.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

// The world in a box for counters and what they trigger: processes that count at each other's counters,
// chains of additions, puts and actions that wait there, deaths and cancellations, against a plain model.
// ORRERY_TEST_SEED replays one world; ORRERY_LONG_TESTS=1 tries 100,000.
namespace orrery::nic {
namespace {

using box::Path;
using box::World;

// Model: additions and what they trigger commute, but for a counter that is only ever set, to one value. So
// once nothing moves any more, a trigger has been carried out exactly if its counter's sum is at its
// threshold, and each counter has the additions of all that was carried out.
class TriggerWorld {
 public:
  TriggerWorld(std::uint64_t seed, Path path)
      : random_(seed), world_(2 + static_cast<int>(random_() % 3), path, {.adopt_after = 3}) {
    for (int node = 0; node < world_.size(); ++node) {
      auto& made = nodes_.emplace_back();
      for (int i = 0; i <= kCounters; ++i)
        made.names.push_back(world_[node].nic().counters().create().value());
      made.counts.resize(kCounters + 1);
      made.words.resize(kWords);
      made.key = world_[node]
                     .nic()
                     .register_region(world_[node].port(), address(made.words.data()), kWords * 8, 0, nullptr)
                     .value();
      for (int peer = 0; peer < world_.size(); ++peer)
        made.endpoints.push_back(peer == node ? nullptr : world_.endpoint(node, peer, nullptr));
    }
  }

  std::string run() {
    const bool deaths = random_() % 3 == 0;
    for (int step = 0; step < 300 && failure_.empty(); ++step) {
      const std::uint64_t choice = random_() % 100;
      const int node = any_living();
      if (choice < 30)
        post(node);
      else if (choice < 70)
        add(node);
      else if (choice < 90)
        random_() % 2 == 0 ? (void)world_[node].nic().progress() : (void)world_[node].nic().serve();
      else if (choice < 95)
        check();
      else if (choice < 97)
        cancel(node);
      else if (deaths && step > 100 && living() > 2)
        kill(node);
    }
    check();
    return failure_;
  }

 private:
  static constexpr int kCounters = 4;  // and one more, which is only set
  static constexpr std::size_t kWords = 400;
  static constexpr CounterValue kSet{9, 4};
  enum class Kind : std::uint8_t { add, set, put, act };
  struct Trigger {
    int node, counter;
    std::uint64_t threshold;
    Kind kind;
    int to_node = 0, to_counter = 0;  // which one it raises
    CounterValue by;
    std::size_t word = 0;  // of to_node: where a put goes
    bool fired = false;
    bool cancelled = false;
  };
  struct Modelled {
    std::vector<CounterName> names;
    std::vector<CounterValue> counts;
    std::vector<std::uint64_t> words;  // sized once: registered
    MemKey key;
    std::vector<std::unique_ptr<Endpoint>> endpoints;  // by peer
    std::size_t words_used = 0;
    bool set = false;
  };

  static std::uint64_t address(const void* at) { return reinterpret_cast<std::uint64_t>(at); }
  Modelled& at(int node) { return nodes_[static_cast<std::size_t>(node)]; }
  CounterName name(int node, int counter) { return at(node).names[static_cast<std::size_t>(counter)]; }
  CounterValue& counts(int node, int counter) { return at(node).counts[static_cast<std::size_t>(counter)]; }
  int any_node() { return static_cast<int>(random_() % static_cast<std::uint64_t>(world_.size())); }
  int any_counter() { return static_cast<int>(random_() % kCounters); }
  int any_living() {
    int node = any_node();
    while (!world_[node].alive_here) node = (node + 1) % world_.size();
    return node;
  }
  int living() {
    int count = 0;
    for (int node = 0; node < world_.size(); ++node) count += world_[node].alive_here ? 1 : 0;
    return count;
  }
  CounterValue any_value() {
    CounterValue by{random_() % 3, 0};
    if (random_() % 8 == 0) by.failure = 1;
    if (by.success + by.failure == 0) by.success = 1;
    return by;
  }
  void fail(const std::string& what) {
    if (failure_.empty()) failure_ = what;
  }

  void post(int node) {
    Nic& nic = world_[node].nic();
    Trigger made{.node = node, .counter = any_counter(), .threshold = 0, .kind = {}, .by = any_value()};
    const CounterValue now = counts(node, made.counter);
    made.threshold = now.success + now.failure + random_() % 6;
    made.to_node = node;
    // Upwards only: no chain of additions is endless.
    made.to_counter = made.counter + 1;
    made.kind = static_cast<Kind>(random_() % 4);
    if (made.to_counter >= kCounters && made.kind != Kind::put) made.kind = Kind::set;
    Status posted = Errc::ok;
    if (made.kind == Kind::add) {
      posted = nic.triggered().unit().post_add(name(node, made.counter), made.threshold,
                                               name(node, made.to_counter), made.by);
    } else if (made.kind == Kind::set) {
      posted = nic.triggered().unit().post_set(name(node, made.counter), made.threshold,
                                               name(node, kCounters), kSet);
    } else if (made.kind == Kind::act) {
      made.to_node = any_living();
      posted = nic.triggered().unit().post(name(node, made.counter), made.threshold, [this, made] {
        raise(made.node, made.to_node, made.to_counter, made.by);
      });
    } else if (!post_put(&made, &posted)) {
      return;
    }
    if (!posted.ok())
      return fail(fmt::format("node {}: a trigger was refused: {}", node, errc_name(posted.code())));
    triggers_.push_back(made);
  }
  // False: there is nowhere to put to.
  bool post_put(Trigger* made, Status* posted) {
    made->to_node = any_living();
    if (made->to_node == made->node || at(made->to_node).words_used == kWords) return false;
    made->word = at(made->to_node).words_used++;
    Modelled& from = at(made->node);
    if (from.words_used == kWords) return false;
    std::uint64_t& source = from.words[from.words_used++];
    source = word_of(*made);
    Request request = box::put_word(&source, &at(made->to_node).words[made->word], at(made->to_node).key, 0);
    // Without a key of the source only the owner can carry it out.
    if (random_() % 3 != 0) request.local = from.key;
    made->to_counter = std::min(made->to_counter, kCounters - 1);
    const bool counts_end = made->to_counter > made->counter;
    if (!counts_end) made->to_counter = -1;
    made->by = {1, 0};
    *posted = world_[made->node].nic().triggered().post_put(
        name(made->node, made->counter), made->threshold,
        *from.endpoints[static_cast<std::size_t>(made->to_node)], request,
        counts_end ? name(made->node, made->to_counter) : CounterName{}, made->by);
    return true;
  }
  static std::uint64_t word_of(const Trigger& put) {
    return 1 + put.word * 1'000 + static_cast<std::uint64_t>(put.node);
  }

  // `from` counts at a counter of `to`.
  void raise(int from, int to, int counter, CounterValue by) {
    const Errc added = world_[from].nic().triggered().add(world_[to].name(), name(to, counter), by);
    if (added != Errc::ok && world_[to].alive_here)
      fail(fmt::format("node {} could not count at node {}: {}", from, to, errc_name(added)));
  }
  void add(int node) {
    const int to = any_living();
    const int counter = any_counter();
    const CounterValue by = any_value();
    const std::uint64_t how = random_() % 3;
    if (how == 0) {
      // By the segment alone, as a process that carries nothing out.
      if (counter::add(world_[to].nic().view(), name(to, counter), by).status != Errc::ok)
        return fail("a counter was not there");
    } else if (how == 1) {
      if (world_[to].nic().triggered().add(name(to, counter), by, false) != Errc::ok)
        return fail("a counter of its own was not there");
    } else {
      raise(node, to, counter, by);
    }
    count(to, counter, by);
    carry_out();
  }

  // ---- the model ----
  void count(int node, int counter, CounterValue by) {
    counts(node, counter).success += by.success;
    counts(node, counter).failure += by.failure;
  }
  void carry_out() {
    for (bool more = true; more;) {
      more = false;
      for (Trigger& t : triggers_) {
        const CounterValue now = counts(t.node, t.counter);
        if (t.fired || t.cancelled || !world_[t.node].alive_here || now.success + now.failure < t.threshold)
          continue;
        t.fired = more = true;
        if (t.kind == Kind::set)
          at(t.node).set = true;
        else if (t.kind == Kind::put && t.to_counter >= 0)
          count(t.node, t.to_counter, t.by);
        else if (t.kind != Kind::put)
          count(t.to_node, t.to_counter, t.by);
      }
    }
  }

  // Lets all that is due happen, and compares.
  void check() {
    carry_out();
    for (int i = 0; i < 60; ++i) world_.serve_all();
    for (int node = 0; node < world_.size() && failure_.empty(); ++node) {
      if (!world_[node].alive_here) continue;
      for (int counter = 0; counter < kCounters; ++counter) {
        const CounterValue now = world_[node].nic().counters().get(name(node, counter)).value();
        const CounterValue expected = counts(node, counter);
        // A put to a process that died ends in a failure.
        if (deaths_ == 0 ? now != expected : now.success + now.failure != expected.success + expected.failure)
          fail(fmt::format("node {} counter {}: {} and {}, not {} and {}", node, counter, now.success,
                           now.failure, expected.success, expected.failure));
      }
      const CounterValue set = world_[node].nic().counters().get(name(node, kCounters)).value();
      if (set != (at(node).set ? kSet : CounterValue{}))
        fail(fmt::format("node {}: the counter that is set has {} and {}", node, set.success, set.failure));
      std::uint32_t waiting = 0;
      for (const Trigger& t : triggers_) waiting += t.node == node && !t.fired && !t.cancelled ? 1 : 0;
      if (world_[node].nic().triggered().unit().pending() != waiting)
        fail(fmt::format("node {}: {} triggers wait, not {}", node,
                         world_[node].nic().triggered().unit().pending(), waiting));
    }
    for (const Trigger& t : triggers_) {
      if (t.kind != Kind::put || !world_[t.node].alive_here || !world_[t.to_node].alive_here) continue;
      const std::uint64_t expected = t.fired ? word_of(t) : 0;
      if (at(t.to_node).words[t.word] != expected)
        fail(fmt::format("node {} word {}: {}, not {}", t.to_node, t.word, at(t.to_node).words[t.word],
                         expected));
    }
  }
  void cancel(int node) {
    check();
    const int counter = any_counter();
    std::uint32_t expected = 0;
    for (Trigger& t : triggers_) {
      if (t.node != node || t.counter != counter || t.fired || t.cancelled) continue;
      t.cancelled = true;
      ++expected;
    }
    const std::uint32_t dropped = world_[node].nic().triggered().unit().cancel(name(node, counter));
    if (dropped != expected) fail(fmt::format("{} triggers were cancelled, not {}", dropped, expected));
  }
  // Its actions have been carried out: what others were to have of them is in the model.
  void kill(int node) {
    check();
    ++deaths_;
    world_.kill(node);
  }

  std::mt19937_64 random_;
  World world_;
  std::deque<Modelled> nodes_;
  std::vector<Trigger> triggers_;
  int deaths_ = 0;
  std::string failure_;
};

class TriggersInABox : public ::testing::TestWithParam<Path> {};
INSTANTIATE_TEST_SUITE_P(Paths, TriggersInABox, ::testing::Values(Path::direct, Path::frame),
                         [](const ::testing::TestParamInfo<Path>& info) {
                           return info.param == Path::direct ? "Direct" : "Frame";
                         });

TEST_P(TriggersInABox, AreCarriedOutOnceAsTheModelSays) {
  box::for_every_seed(150, 50'000, [](std::uint64_t seed) { return TriggerWorld(seed, GetParam()).run(); });
}

}  // namespace
}  // namespace orrery::nic
