// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/dmapp/lock_protocol.hpp"
#include "tests/emu/nic/seeds.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

// The world in a box for locks: any number of PEs in one thread. A seed decides which of them goes on by one
// access to a word, which one dies, and who gives up when; a model says what each of them may see.
namespace orrery::dmapp::lock {
namespace {

constexpr std::size_t kPlaces = 4;  // of a PE; place 0 is one as well
constexpr int kLocks = 2;
constexpr int kStuck = 20'000;  // steps; a world of 6 PEs takes 2,000

class LockWorld;

struct PlaceWords {
  std::array<std::uint64_t, 3> words{};  // by LockWord
  bool used = false;
};

// What the protocol of one PE sees of the world.
class Words {
 public:
  Words(LockWorld& world, int pe, int lock, std::size_t place)
      : world_(world), pe_(pe), lock_(lock), place_(place) {}
  std::uint64_t swap(std::uint64_t value);
  std::uint64_t compare_swap(std::uint64_t from, std::uint64_t to);
  std::uint64_t get();
  void put(int pe, LockWord word, std::size_t place, std::uint64_t value);
  std::uint64_t get(int pe, LockWord word, std::size_t place);
  std::uint64_t own(LockWord word) const;
  void set_own(LockWord word, std::uint64_t value);
  bool ok() const { return ok_; }
  void watch(int) {}
  bool alive(int pe) const;
  static bool ended() { return false; }
  bool missed();

 private:
  std::uint64_t* descriptor();

  LockWorld& world_;
  const int pe_;
  const int lock_;
  const std::size_t place_;
  bool ok_ = true;
};

struct Pe {
  bool alive = true;
  int rounds = 0;  // that it still wants
  std::array<PlaceWords, kPlaces> places;
  int lock = 0;
  std::size_t place = 0;
  bool tries = false;
  std::optional<Words> words;
  std::optional<Acquire<Words>> acquire;
  std::optional<Release<Words>> release;
  int holds_for = 0;  // steps
};

// Who has entered the queue of a lock and has not left it by a release, in order. What ended in another way
// stays: nothing behind it may ever hold the lock.
struct Model {
  std::deque<int> queue;
  bool front_holds = false;
};

class LockWorld {
 public:
  LockWorld(std::uint64_t seed, bool kills) : random_(seed) {
    pes_.resize(static_cast<std::size_t>(2 + below(5)));
    for (Pe& pe : pes_) pe.rounds = 1 + below(8);
    kills_left_ = kills ? 1 + below(3) : 0;
    kill_percent_ = 1 + below(4);
  }

  std::string run() {
    for (int steps = 0; failure_.empty(); ++steps) {
      if (steps == kStuck) return "a PE waits for ever";
      if (kills_left_ > 0 && below(100) < kill_percent_) kill();
      std::vector<int> able;
      for (int i = 0; i < npes(); ++i)
        if (at(i).alive && (at(i).rounds > 0 || at(i).acquire || at(i).release || at(i).holds_for > 0))
          able.push_back(i);
      if (able.empty()) break;
      go_on(able[static_cast<std::size_t>(below(static_cast<int>(able.size())))]);
    }
    if (failure_.empty() && deaths_ == 0) {
      for (int lock = 0; lock < kLocks; ++lock)
        if (descriptors_[static_cast<std::size_t>(lock)] != 0) return "a lock is left taken";
    }
    return failure_;
  }

  int npes() const { return static_cast<int>(pes_.size()); }
  Pe& at(int pe) { return pes_[static_cast<std::size_t>(pe)]; }
  int deaths() const { return deaths_; }
  int named() const { return named_; }
  int unnamed() const { return unnamed_; }
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  // Null: the PE whose memory it is in is dead.
  std::uint64_t* descriptor(int lock) {
    return at(lock % npes()).alive ? &descriptors_[static_cast<std::size_t>(lock)] : nullptr;
  }
  void entered(int pe, int lock) { models_[static_cast<std::size_t>(lock)].queue.push_back(pe); }

 private:
  void fail(int pe, const std::string& what) {
    failure_ = "PE " + std::to_string(pe) + ", lock " + std::to_string(at(pe).lock) + ": " + what;
  }
  void kill() {
    const int pe = below(npes());
    if (!at(pe).alive) return;
    at(pe).alive = false;
    ++deaths_;
    --kills_left_;
  }
  Model& model_of(const Pe& pe) { return models_[static_cast<std::size_t>(pe.lock)]; }

  void go_on(int number) {
    Pe& pe = at(number);
    if (pe.acquire) {
      play(number, *pe.acquire);
    } else if (pe.release) {
      play(number, *pe.release);
    } else if (pe.holds_for > 0) {
      if (--pe.holds_for == 0) pe.release.emplace(*pe.words, name_of(number, pe.place), npes());
    } else {
      begin(number);
    }
  }
  // The first place that is free, so that one is soon used again.
  void begin(int number) {
    Pe& pe = at(number);
    --pe.rounds;
    pe.place = 0;
    while (pe.place < kPlaces && pe.places[pe.place].used) ++pe.place;
    if (pe.place == kPlaces) {
      if (deaths_ == 0) fail(number, "no place is free");
      pe.rounds = 0;
      return;
    }
    pe.places[pe.place] = {.words = {}, .used = true};
    pe.lock = below(kLocks);
    pe.tries = below(100) < 25;
    pe.words.emplace(*this, number, pe.lock, pe.place);
    pe.acquire.emplace(*pe.words, name_of(number, pe.place), npes(), !pe.tries);
  }

  template <typename Turn>
  void play(int number, Turn& turn) {
    const Step step = turn.step();
    if (!failure_.empty() || step == Step::again) return;
    if (step == Step::wait) {
      if (below(100) < 20) (void)turn.gave_up();
      return;
    }
    end(number, step, turn.place_is_free());
  }
  // What the model says of a turn's end.
  void end(int number, Step step, bool place_is_free) {
    Pe& pe = at(number);
    Model& model = model_of(pe);
    const bool releases = pe.release.has_value();
    const int lost_with = releases ? pe.release->lost_with() : pe.acquire->lost_with();
    pe.acquire.reset();
    pe.release.reset();
    const bool first = !model.queue.empty() && model.queue.front() == number;
    switch (step) {
      case Step::held:
        if (releases || !first || model.front_holds) return fail(number, "has a lock that another one has");
        model.front_holds = true;
        pe.holds_for = 1 + below(4);
        return;
      case Step::released:
        if (!releases || !first || !model.front_holds) return fail(number, "released what it did not hold");
        model.queue.pop_front();
        model.front_holds = false;
        if (!place_is_free) return fail(number, "keeps its place after a release");
        break;
      case Step::busy:
        if (!pe.tries || model.queue.empty()) return fail(number, "found a free lock busy");
        break;
      case Step::lost:
        if (deaths_ == 0) return fail(number, "lost a lock though every PE lives");
        if (lost_with >= 0 && at(lost_with).alive)
          return fail(number, "lost a lock with PE " + std::to_string(lost_with) + ", which lives");
        ++(lost_with >= 0 ? named_ : unnamed_);
        break;
      case Step::failed:
        if (descriptor(pe.lock) != nullptr) return fail(number, "did not reach a lock whose PE lives");
        break;
      default:
        return fail(number, "ended in no way at all");
    }
    pe.places[pe.place].used = !place_is_free;
  }

  std::mt19937_64 random_;
  std::vector<Pe> pes_;
  std::array<std::uint64_t, kLocks> descriptors_{};
  std::array<Model, kLocks> models_;
  int deaths_ = 0;
  int named_ = 0, unnamed_ = 0;  // ends without the lock of which the PE that died is known, or is not
  int kills_left_ = 0;
  int kill_percent_ = 0;
  std::string failure_;
};

std::uint64_t* Words::descriptor() {
  std::uint64_t* const word = world_.descriptor(lock_);
  ok_ = word != nullptr;
  return word;
}

std::uint64_t Words::swap(std::uint64_t value) {
  std::uint64_t* const word = descriptor();
  if (word == nullptr) return 0;
  if ((value & kLost) == 0) world_.entered(pe_, lock_);
  return std::exchange(*word, value);
}

std::uint64_t Words::compare_swap(std::uint64_t from, std::uint64_t to) {
  std::uint64_t* const word = descriptor();
  if (word == nullptr) return 0;
  const std::uint64_t old = *word;
  if (old == from) {
    *word = to;
    if (to != 0) world_.entered(pe_, lock_);
  }
  return old;
}

std::uint64_t Words::get() {
  const std::uint64_t* const word = descriptor();
  return word == nullptr ? 0 : *word;
}

void Words::put(int pe, LockWord word, std::size_t place, std::uint64_t value) {
  Pe& target = world_.at(pe);
  ok_ = target.alive;
  if (ok_) target.places[place].words[static_cast<std::size_t>(word)] = value;
}

std::uint64_t Words::own(LockWord word) const {
  return world_.at(pe_).places[place_].words[static_cast<std::size_t>(word)];
}

std::uint64_t Words::get(int pe, LockWord word, std::size_t place) {
  const Pe& target = world_.at(pe);
  ok_ = target.alive;
  return ok_ ? target.places[place].words[static_cast<std::size_t>(word)] : 0;
}

void Words::set_own(LockWord word, std::uint64_t value) {
  world_.at(pe_).places[place_].words[static_cast<std::size_t>(word)] = value;
}

bool Words::alive(int pe) const { return world_.at(pe).alive; }

// Too early as well: it must never let two PEs have the lock.
bool Words::missed() { return world_.deaths() > 0 && world_.below(100) < 30; }

std::string run(std::uint64_t seed, bool kills) { return LockWorld(seed, kills).run(); }

TEST(DmappLockWorld, TheLockGoesToThePeThatHasWaitedLongest) {
  nic::box::for_every_seed(3000, 1'000'000, [](std::uint64_t seed) { return run(seed, false); });
}

TEST(DmappLockWorld, WhateverPeDiesNoTwoHaveTheLockAndNoneWaitsForEver) {
  nic::box::for_every_seed(10'000, 3'000'000, [](std::uint64_t seed) { return run(seed, true); });
}

// But for one that released it while another one should have said that it waits, or whose lock's PE died.
TEST(DmappLockWorld, ALockThatIsLostNamesThePeThatDied) {
  int named = 0, unnamed = 0;
  nic::box::for_every_seed(1000, 10'000, [&](std::uint64_t seed) {
    LockWorld world(seed, true);
    std::string failure = world.run();
    named += world.named();
    unnamed += world.unnamed();
    return failure;
  });
  EXPECT_GT(named, 4 * unnamed) << unnamed;
}

}  // namespace
}  // namespace orrery::dmapp::lock
