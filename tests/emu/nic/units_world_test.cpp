// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/nic.hpp"
#include "tests/emu/nic/box.hpp"
#include "tests/emu/nic/collective/tree.hpp"
#include "tests/emu/nic/seeds.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

// The world in a box for reductions and for sends to posted buffers: random trees and random receivers, steps
// in random order, deaths, against plain models. ORRERY_TEST_SEED replays one world; ORRERY_LONG_TESTS=1
// tries 100,000 of each kind.
namespace orrery::nic {
namespace {

using box::Path;
using box::Tree;
using box::World;

constexpr std::uint64_t kShortSeeds = 150;
constexpr std::uint64_t kLongSeeds = 50'000;  // of each of two ways

template <typename Simulation>
void try_worlds(Path path) {
  box::for_every_seed(kShortSeeds, kLongSeeds,
                      [path](std::uint64_t seed) { return Simulation(seed, path).run(); });
}

std::string path_name(const ::testing::TestParamInfo<Path>& info) {
  return info.param == Path::direct ? "Direct" : "Frame";
}

// ---- reductions ----

// A random tree; every leaf contributes reduction after reduction, in several lanes, as soon as it has the
// last result. Model: a reduction is complete when all leaves contributed, and then it is the sum in tree
// order.
class ReductionWorld {
 public:
  ReductionWorld(std::uint64_t seed, Path path)
      : random_(seed), world_(2 + static_cast<int>(random_() % 4), path, options(path)), tree_(world_) {
    tree_.results_per_leaf = kLanes;
    std::vector<int> vces{tree_.vce(any_node(), -1)};
    const int more = static_cast<int>(random_() % 4);
    for (int i = 0; i < more; ++i) vces.push_back(tree_.vce(any_node(), vces[random_() % vces.size()]));
    // A leaf for each VCE, so that none is without children, and some more.
    for (const int vce : vces) add_leaf(vce);
    for (std::uint64_t i = random_() % 5; i > 0; --i) add_leaf(vces[random_() % vces.size()]);
    if (!tree_.configure()) failure_ = "the tree was not accepted";
    turns_.resize(leaf_node_.size());
    for (auto& turns : turns_) turns.fill(0);
  }

  std::string run() {
    const bool deaths = random_() % 2 == 0;
    for (int step = 0; step < 250 && failure_.empty(); ++step) {
      const std::uint64_t choice = random_() % 100;
      if (choice < 50) {
        contribute(static_cast<int>(random_() % leaf_node_.size()), static_cast<int>(random_() % kLanes));
      } else if (choice < 99 || !deaths) {
        const int node = any_node();
        if (world_[node].alive_here) {
          if (random_() % 2 == 0)
            world_[node].nic().progress();
          else
            world_[node].nic().serve();
        }
        const int leaf = static_cast<int>(random_() % leaf_node_.size());
        if (world_[leaf_node_[static_cast<std::size_t>(leaf)]].alive_here)
          tree_.check(leaf, static_cast<int>(random_() % kLanes));
      } else if (victims_ == 0) {
        ++victims_;
        world_.kill(any_node());
      }
      check();
    }
    for (int i = 0; i < 60 && failure_.empty(); ++i) tree_.look();
    check();
    if (failure_.empty() && victims_ == 0) check_all_that_is_complete_ended();
    return failure_;
  }

 private:
  static constexpr int kLanes = 3;
  static Nic::Options options(Path path) {
    Nic::Options options;
    options.collective_by_packets = path == Path::frame;
    return options;
  }
  int any_node() { return static_cast<int>(random_() % static_cast<std::uint64_t>(world_.size())); }
  void add_leaf(int vce) {
    const int node = any_node();
    tree_.leaf(node, vce);
    leaf_node_.push_back(node);
  }
  // What a leaf says in a turn of a lane: a function of all three, so that a stale contribution shows.
  static CeValue value_of(int leaf, int lane, std::uint64_t turn) {
    const auto l = static_cast<std::uint64_t>(leaf);
    const auto n = static_cast<std::uint64_t>(lane);
    return {.operand = {l * 1'000'003 + turn * 101 + n, ~turn ^ l},
            .reduction = n + kCeLanes * (turn % 3),  // the same lane by different ids
            .command = static_cast<std::uint8_t>(turn % 2 == 0 ? 0x15 : 0x05),  // IADD, XOR
            .two_operands = turn % 8 < 3};
  }
  bool ended(int leaf, int lane) const { return tree_.done(leaf, lane); }

  void contribute(int leaf, int lane) {
    if (!world_[leaf_node_[static_cast<std::size_t>(leaf)]].alive_here) return;
    std::uint64_t& turn = turns_[static_cast<std::size_t>(leaf)][static_cast<std::size_t>(lane)];
    if (turn != 0 && !ended(leaf, lane)) return;  // a PE has one outstanding in a lane
    if (turn != 0 && tree_.status(leaf, lane) != CeStatus::ok) return;
    tree_.usual = random_() % 4 != 0;
    const Errc joined = tree_.join(leaf, value_of(leaf, lane, turn + 1), lane);
    if (joined == Errc::ok || joined == Errc::unreachable) {
      ++turn;
    } else if (joined != Errc::no_resource) {
      failure_ = fmt::format("leaf {} was refused: {}", leaf, errc_name(joined));
    }
  }

  // Nothing that ended well is wrong; nothing is an error while all live.
  void check() {
    for (int leaf = 0; leaf < static_cast<int>(leaf_node_.size()) && failure_.empty(); ++leaf) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const std::uint64_t turn = turns_[static_cast<std::size_t>(leaf)][static_cast<std::size_t>(lane)];
        if (turn == 0 || !ended(leaf, lane)) continue;
        if (tree_.status(leaf, lane) != CeStatus::ok) {
          if (victims_ == 0)
            failure_ = fmt::format("leaf {} lane {} turn {}: error {:#x} while all live", leaf, lane, turn,
                                   static_cast<int>(tree_.status(leaf, lane)));
          continue;
        }
        std::vector<CeValue> values;
        for (int other = 0; other < static_cast<int>(leaf_node_.size()); ++other) {
          values.push_back(value_of(other, lane, turn));
          if (turns_[static_cast<std::size_t>(other)][static_cast<std::size_t>(lane)] < turn)
            failure_ = fmt::format("lane {} turn {} ended before leaf {} contributed", lane, turn, other);
        }
        const CeValue expected = tree_.oracle(values, Rounding::nearest);
        if (tree_.result(leaf, 1, lane) != expected.operand[0] ||
            tree_.result(leaf, 2, lane) != expected.operand[1])
          failure_ = fmt::format("leaf {} lane {} turn {}: {:#x}, not {:#x}", leaf, lane, turn,
                                 tree_.result(leaf, 1, lane), expected.operand[0]);
      }
    }
  }

  void check_all_that_is_complete_ended() {
    for (int lane = 0; lane < kLanes; ++lane) {
      std::uint64_t least = UINT64_MAX;
      for (const auto& turns : turns_) least = std::min(least, turns[static_cast<std::size_t>(lane)]);
      for (int leaf = 0; leaf < static_cast<int>(leaf_node_.size()); ++leaf) {
        const std::uint64_t turn = turns_[static_cast<std::size_t>(leaf)][static_cast<std::size_t>(lane)];
        if (turn != 0 && turn == least && !ended(leaf, lane))
          failure_ = fmt::format("lane {} turn {} is complete, and leaf {} waits", lane, turn, leaf);
      }
    }
  }

  std::mt19937_64 random_;
  World world_;
  Tree tree_;
  std::vector<int> leaf_node_;
  std::vector<std::array<std::uint64_t, kLanes>> turns_;  // last contributed
  int victims_ = 0;
  std::string failure_;
};

class ReductionsInABox : public ::testing::TestWithParam<Path> {};
INSTANTIATE_TEST_SUITE_P(Paths, ReductionsInABox, ::testing::Values(Path::direct, Path::frame), path_name);

TEST_P(ReductionsInABox, EndAsTheModelSays) { try_worlds<ReductionWorld>(GetParam()); }

// Every survivor of a death hears of it: none waits for ever for the dead.
TEST_P(ReductionsInABox, NobodyWaitsForTheDead) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    Nic::Options options;
    options.collective_by_packets = GetParam() == Path::frame;
    World world(4, GetParam(), options);
    Tree tree(world);
    const int root = tree.vce(static_cast<int>(random() % 4), -1);
    const int low = tree.vce(static_cast<int>(random() % 4), root);
    for (int node = 0; node < 4; ++node) tree.leaf(node, random() % 2 == 0 ? root : low);
    tree.leaf(static_cast<int>(random() % 4), root);
    const int last = tree.leaf(static_cast<int>(random() % 4), low);
    ASSERT_TRUE(tree.configure());
    for (int i = 0; i < 5; ++i) tree.look();
    const int victim = static_cast<int>(random() % 4);
    // Its own leaf stays silent, so that the reduction cannot be complete.
    for (int leaf = 0; leaf <= last; ++leaf) {
      if (leaf != victim) {
        ASSERT_EQ(tree.join(leaf, 5, 0x15, 1, 0), Errc::ok);
      }
      if (random() % 2 == 0) tree.look();
    }
    world.kill(victim);
    for (int i = 0; i < 60; ++i) tree.look();
    for (int leaf = 0; leaf < 4; ++leaf) {
      if (leaf == victim) continue;
      ASSERT_TRUE(tree.done(leaf)) << "seed " << seed << ": leaf " << leaf;
      ASSERT_EQ(tree.status(leaf), CeStatus::unreachable) << "seed " << seed;
    }
  }
}

// ---- sends ----

// Node 0 receives, the others send; buffers of random lengths are posted and taken, senders die. Model: a
// send takes the oldest buffer that is ready at some time between its post and its end.
class SendWorld {
 public:
  SendWorld(std::uint64_t seed, Path path)
      : random_(seed), world_(4, path, {.adopt_after = 3}), memory_(kBuffers * kPageBytes / 8) {
    const auto at = reinterpret_cast<std::uint64_t>(memory_.data());
    arrivals_ = world_[0].nic().create_queue(512, 0).value();
    key_ = world_[0].nic().register_region(world_[0].port(), at, memory_.size() * 8, 0, nullptr).value();
    name_ = world_[0].nic().channels().open(world_[0].port(), arrivals_).value();
    for (int node = 1; node < 4; ++node) {
      senders_.push_back({.queue = world_[node].nic().create_queue(64, 0).value()});
      senders_.back().endpoint = world_.endpoint(node, 0, senders_.back().queue);
    }
    for (std::uint64_t i = 0; i < kBuffers; ++i) free_.push_back(i);
  }

  std::string run() {
    const bool deaths = random_() % 2 == 0;
    for (int step = 0; step < 300 && failure_.empty(); ++step) {
      const std::uint64_t choice = random_() % 100;
      if (choice < 25)
        post();
      else if (choice < 60)
        send(static_cast<int>(random_() % senders_.size()));
      else if (choice < 75)
        world_[0].nic().serve();
      else if (choice < 85)
        reap(static_cast<int>(random_() % senders_.size()));
      else if (choice < 99 || !deaths)
        receive();
      else
        kill(static_cast<int>(random_() % senders_.size()));
    }
    end();
    return failure_;
  }

 private:
  static constexpr std::uint64_t kBuffers = 12;
  struct Sent {
    std::vector<std::byte> bytes;
    bool arrived = false;
  };
  struct Sender {
    CompletionQueue* queue = nullptr;
    std::unique_ptr<Endpoint> endpoint = nullptr;
    bool alive = true;
    std::deque<Sent> sent = {};  // all; an element does not move
  };
  void fail(const std::string& what) {
    if (failure_.empty()) failure_ = what;
  }
  void post() {
    if (free_.empty()) return;
    const std::uint64_t buffer = free_.front();
    free_.pop_front();
    const std::uint64_t bytes = 8 + random_() % (kPageBytes - 8);
    length_[buffer] = bytes;
    const Errc posted = world_[0].nic().channels().post(
        name_, key_, reinterpret_cast<std::uint64_t>(memory_.data()) + buffer * kPageBytes, bytes,
        reinterpret_cast<void*>(buffer));
    if (posted != Errc::ok) fail("a buffer was not taken");
    ++ready_;
  }
  void send(int who) {
    Sender& sender = senders_[static_cast<std::size_t>(who)];
    if (!sender.alive) return;
    Sent& sent = sender.sent.emplace_back();
    // The first 8 bytes say which sender and which send; the rest is a function of them.
    sent.bytes.resize(8 + random_() % 3000);
    const std::uint64_t mark = static_cast<std::uint64_t>(who) << 32 | (sender.sent.size() - 1);
    std::memcpy(sent.bytes.data(), &mark, 8);
    for (std::size_t i = 8; i < sent.bytes.size(); ++i) sent.bytes[i] = static_cast<std::byte>(mark * 7 + i);
    Request request;
    request.op = Op::send;
    request.flags = kGlobalEvent;
    request.local_address = reinterpret_cast<std::uint64_t>(sent.bytes.data());
    request.length = sent.bytes.size();
    request.remote = key_of(name_);
    request.context = &sent;
    const Errc posted = world_[who + 1].nic().post(*sender.endpoint, request);
    if (posted == Errc::no_resource) {
      sender.sent.pop_back();
    } else if (posted != Errc::ok) {
      fail(fmt::format("a send was refused: {}", errc_name(posted)));
    }
  }
  void reap(int who) {
    Sender& sender = senders_[static_cast<std::size_t>(who)];
    Event event;
    while (sender.alive && world_[who + 1].nic().poll(*sender.queue, &event) == Errc::ok) {
      const auto done = sender.queue->completed(event.transaction(), event.status);
      if (!done.ok()) return fail("an event of no send");
      auto& sent = *static_cast<Sent*>(done.value().context);
      ++ended_;
      if (event.status == Errc::ok) {
        ++good_;
      } else if (event.status != Errc::no_resource && event.status != Errc::size) {
        fail(fmt::format("a send ended in {}", errc_name(event.status)));
      } else if (sent.arrived) {
        fail("what ended in error has arrived");
      }
    }
  }
  void receive() {
    Event event;
    while (world_[0].nic().poll(*arrivals_, &event) == Errc::ok) {
      const auto came = world_[0].nic().channels().take(event);
      if (!came.ok()) {
        if (deaths_ == 0) fail("an event of no arrival");
        continue;
      }
      const auto buffer = reinterpret_cast<std::uint64_t>(came.value().context);
      const auto* const at = reinterpret_cast<const std::byte*>(memory_.data()) + buffer * kPageBytes;
      std::uint64_t mark = 0;
      std::memcpy(&mark, at, 8);
      const std::uint64_t who = mark >> 32;
      const std::uint64_t which = mark & 0xffff'ffff;
      if (who >= senders_.size() || which >= senders_[who].sent.size()) return fail("bytes of no send");
      Sent& sent = senders_[who].sent[which];
      if (came.value().source != who + 1 || came.value().bytes != sent.bytes.size() ||
          came.value().bytes > length_[buffer] || !std::equal(sent.bytes.begin(), sent.bytes.end(), at))
        return fail(fmt::format("send {} of {} came wrong", which, who));
      if (std::exchange(sent.arrived, true)) return fail("a send came twice");
      ++arrived_;
      --ready_;
      free_.push_back(buffer);
    }
  }
  void kill(int who) {
    Sender& sender = senders_[static_cast<std::size_t>(who)];
    if (!sender.alive) return;
    reap(who);
    sender.alive = false;
    ++deaths_;
    world_.kill(who + 1);
  }
  // Everything under way ends, and what ended well has arrived.
  void end() {
    for (int i = 0; i < 50; ++i) {
      world_.serve_all();
      for (int who = 0; who < static_cast<int>(senders_.size()); ++who) reap(who);
      receive();
    }
    std::uint64_t sent = 0;
    std::uint64_t lost = 0;
    for (const Sender& sender : senders_) {
      (sender.alive ? sent : lost) += sender.sent.size();
      if (sender.alive && !sender.endpoint->is_idle()) fail("an endpoint is never idle");
    }
    if (deaths_ == 0 && ended_ != sent) fail(fmt::format("{} of {} sends ended", ended_, sent));
    if (arrived_ < good_ || arrived_ > good_ + lost) {
      fail(fmt::format("{} sends ended well, {} arrived, {} were of the dead", good_, arrived_, lost));
    }
    // Every buffer is accounted for: ready, or ours again.
    const std::uint64_t ready = credits_of(world_[0].nic().view(), name_).value();
    if (failure_.empty() && ready != ready_) fail(fmt::format("{} buffers are ready, not {}", ready, ready_));
  }

  std::mt19937_64 random_;
  World world_;
  std::vector<std::uint64_t> memory_;
  CompletionQueue* arrivals_ = nullptr;
  MemKey key_;
  ChannelName name_;
  std::vector<Sender> senders_;
  std::deque<std::uint64_t> free_;
  std::map<std::uint64_t, std::uint64_t> length_;
  std::uint64_t ready_ = 0;
  std::uint64_t ended_ = 0;
  std::uint64_t good_ = 0;
  std::uint64_t arrived_ = 0;
  int deaths_ = 0;
  std::string failure_;
};

class SendsInABox : public ::testing::TestWithParam<Path> {};
INSTANTIATE_TEST_SUITE_P(Paths, SendsInABox, ::testing::Values(Path::direct, Path::frame), path_name);

TEST_P(SendsInABox, ArriveAsTheModelSays) { try_worlds<SendWorld>(GetParam()); }

}  // namespace
}  // namespace orrery::nic
