// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Eight processes with a match unit each: all append to their own, search it and unlink from it, and send to
// all, at random by seed. Each change is noted, in the session that makes it, in a log of its match unit:
// the model that goes through the log afterwards predicts every outcome and every event, in order. Processes
// that are killed by SIGKILL at any time, in an append, a match, an unlink or between them, change nothing of
// that.
#include "emu/nic/target/match_plain.hpp"
#include "tests/emu/nic/seeds.hpp"
#include "tests/emu/nic/target/match_bench.hpp"
#include "tests/emu/nic/target/match_model.hpp"
#include "tests/emu/nic/target/match_processes.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace orrery::nic::match {
namespace {

constexpr int kProcesses = 8;
constexpr int kSteps = 300;  // of each process

enum class Kind { append, send, search, unlink };

struct Step {
  Kind kind;
  NewEntry what;
  Arrival arrival;
  std::uint64_t user;  // unlink: which entry
  bool remove;
  bool done;
  Fail fail;
};

class Processes final : public LoggedProcesses<Bench, Step, kProcesses, kProcesses * kSteps> {
 public:
  Processes(std::uint64_t seed, bool killed)
      : LoggedProcesses(seed, killed, [] { return std::make_unique<Bench>(0, kSmallShape, 15'000); }) {}

 private:
  NewEntry entry(std::mt19937_64& random, int rank, std::uint64_t user) const {
    const auto below = [&](std::uint64_t n) { return random() % n; };
    NewEntry what = benches_[rank]->entry(below(6), user);
    // One change takes one message at most where processes are killed: a long one is made of several.
    if (killed_ || below(2) == 0) what.options |= kUseOnce;
    if (below(4) == 0) what.options |= kNoTruncate;
    if (below(3) == 0) what.ignore_bits = below(4) == 0 ? UINT64_MAX : below(8);
    if (below(3) == 0) what.source.nid = static_cast<std::uint32_t>(below(kProcesses));
    what.length = below(64);
    return what;
  }

  void work(int rank) override {
    std::mt19937_64 random(seed_ * kProcesses + static_cast<std::uint64_t>(rank));
    const auto below = [&](std::uint64_t n) { return random() % n; };
    std::vector<std::pair<std::uint64_t, Appended>> mine;
    std::uint64_t user = 0;
    start_together();
    for (int i = 0; i < kSteps; ++i) {
      Step step{};
      switch (below(10)) {
        case 0:
        case 1:
        case 2: {
          step.kind = Kind::append;
          step.what = entry(random, rank, ++user);
          step.what.list = below(4) == 0 ? kOverflow : kPriority;
          if (step.what.list == kOverflow) step.what.options &= ~std::uint32_t{kUseOnce};
          Session session(benches_[rank]->view);
          const auto appended = append(session, step.what);
          step.done = appended.ok();
          note(session, rank, step);
          if (appended.ok()) mine.emplace_back(user, appended.value());
          break;
        }
        case 3: {
          step.kind = Kind::search;
          step.what = entry(random, rank, ++user);
          step.remove = below(2) == 0;
          Session session(benches_[rank]->view);
          step.done = search(session, step.what, step.remove).ok();
          note(session, rank, step);
          break;
        }
        case 4: {
          if (mine.empty()) break;
          const auto& [which, name] = mine[below(mine.size())];
          step.kind = Kind::unlink;
          step.user = which;
          Session session(benches_[rank]->view);
          step.done = unlink(session, name.entry, name.generation).ok();
          note(session, rank, step);
          break;
        }
        default: {
          const int target = static_cast<int>(below(kProcesses));
          step.kind = Kind::send;
          step.arrival = benches_[target]->message(below(6), below(40));
          step.arrival.move = below(4) == 0 ? Move::get : Move::put;
          step.arrival.initiator = {static_cast<std::uint32_t>(rank), 1};
          Session session(benches_[target]->view);
          Place place;
          if (below(2) == 0 || !deliver_plain(session, step.arrival, &place,
                                              [](std::uint64_t, std::uint64_t) { return true; })) {
            const Verdict verdict = decide(session, step.arrival);
            if (verdict.fail == kDelivered) finish(session, step.arrival, verdict, kDelivered);
            step.fail = verdict.fail;
          }
          note(session, target, step);
        }
      }
    }
  }

  std::string replay(int rank) override {
    Lists lists;
    const std::vector<EventRecord> events = events_of(rank);
    std::size_t taken = 0;
    const std::uint64_t steps = steps_of(rank);
    for (std::uint64_t n = 0; n < steps; ++n) {
      const Step& step = step_of(rank, n);
      const std::string where = " in unit " + std::to_string(rank) + " at step " + std::to_string(n);
      switch (step.kind) {
        case Kind::append:
          if (!step.done) return "append failed" + where;
          lists.append(step.what, {});
          break;
        case Kind::search:
          if (!step.done) return "search failed" + where;
          lists.search(step.what, step.remove);
          break;
        case Kind::unlink: {
          const auto item = std::find_if(lists.items.begin(), lists.items.end(),
                                         [&](const auto& one) { return one.what.user == step.user; });
          if (step.done != (item != lists.items.end() && lists.unlink(&*item)))
            return "unlink differs" + where;
          break;
        }
        case Kind::send:
          if (const Fail expected = lists.send(step.arrival); expected != step.fail)
            return "fail " + std::to_string(step.fail) + " instead of " + std::to_string(expected) + where;
      }
      const std::string differs = compare(lists, events, &taken, [](const EventRecord& event) {
        return Told{event.type, event.list, event.user, event.moved, event.fail};
      });
      if (!differs.empty()) return differs + where;
    }
    return taken == events.size() ? "" : "events too many in unit " + std::to_string(rank);
  }
};

TEST(MatchStress, EveryEventOfEightProcessesIsTheModels) {
  box::for_every_seed(20, 5'000, [](std::uint64_t seed) { return Processes(seed, false).run(); });
}

TEST(MatchStress, ProcessesThatAreKilledLeaveWholeChanges) {
  box::for_every_seed(20, 5'000, [](std::uint64_t seed) { return Processes(seed, true).run(); });
}

}  // namespace
}  // namespace orrery::nic::match
