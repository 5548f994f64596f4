// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Portals 3.3 in the match unit: six processes with a unit each change their own entries and descriptors and
// send to all, at random by seed; messages are under way while others come. Each change is noted in a log in
// the session that makes it. The model goes through the log afterwards and predicts every outcome and every
// event, in order. Processes that are killed at any time leave whole changes.
#include "emu/nic/target/match_classic.hpp"

#include "tests/emu/nic/seeds.hpp"
#include "tests/emu/nic/target/match_classic_bench.hpp"
#include "tests/emu/nic/target/match_classic_model.hpp"
#include "tests/emu/nic/target/match_processes.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace orrery::nic::match::classic {
namespace {

constexpr int kProcesses = 6;
constexpr int kSteps = 400;  // of each process
enum class Kind { insert, attach, bind, detach, remove, update, access, accept, finish, begin, end };

struct Step {
  Kind kind;
  std::uint64_t id;  // of the entry or descriptor
  std::uint64_t base;
  std::uint64_t message;
  NewMatch what;
  Memory memory;
  Arrival arrival;
  Access access;
  std::uint32_t which_access;
  bool flag;   // unlinks, acknowledged
  bool found;  // the handle named something
  Errc code;
  Fail fail;
};

// What a process holds of its own entry: as its handle does, the generations say whether it is still there.
struct Own {
  std::uint64_t id;
  std::uint32_t index;
  std::uint32_t generation;
  std::uint32_t memory_generation;
  std::uint32_t portal;
  bool bound;
};

bool is_there(const View& view, const Own& own) {
  return view.entry(own.index).state != kFree && view.entry(own.index).generation == own.generation;
}
bool has_memory(const View& view, const Own& own) {
  return is_there(view, own) && view.descriptor(own.index).attached != 0 &&
         view.descriptor(own.index).generation == own.memory_generation;
}

class Processes final : public LoggedProcesses<Bench3, Step, kProcesses, kProcesses * kSteps * 2> {
 public:
  Processes(std::uint64_t seed, bool killed)
      : LoggedProcesses(seed, killed, [] { return std::make_unique<Bench3>(); }) {}

 private:
  Memory memory(std::mt19937_64& random, int rank, std::uint64_t user) const {
    const auto below = [&](std::uint64_t n) { return random() % n; };
    Memory what;
    what.start = 0x10000;
    what.length = what.given_length = below(100);
    what.threshold = below(3) == 0 ? -1 : static_cast<std::int32_t>(below(4));
    what.max_size = below(40);
    what.options = static_cast<std::uint32_t>(random()) & (kAllowPut | kAllowGet | kManageRemote | kTruncate |
                                                           kNoAck | kMaxSize | kNoStart | kNoEnd);
    what.user = user;
    what.queue = below(6) == 0 ? 0 : benches_[rank]->queue;
    return what;
  }

  struct Flight {
    int target;
    Step step;
    Verdict verdict;
    Side side;
  };

  void work(int rank) override {
    std::mt19937_64 random(seed_ * kProcesses + static_cast<std::uint64_t>(rank));
    const auto below = [&](std::uint64_t n) { return random() % n; };
    std::vector<Own> own;
    std::vector<Flight> flights;
    std::uint64_t number = 0;
    start_together();
    for (int i = 0; i < kSteps; ++i) {
      Step step{};
      step.id = ++number;
      step.message = static_cast<std::uint64_t>(rank) << 32 | number;
      step.flag = below(2) == 0;
      const std::uint64_t choice = below(16);
      if (choice < 8 && choice != 0) {
        send(random, rank, step, &flights);
      } else if (choice == 8 || flights.size() > 20) {
        if (!flights.empty()) finish_one(flights, below(flights.size()), below(8) == 0 ? kSegv : kDelivered);
      } else if (choice < 12) {
        make(random, rank, step, &own);
      } else {
        change(random, rank, step, &own, &flights);
      }
    }
    while (!flights.empty()) finish_one(flights, 0, kDelivered);
  }

  void send(std::mt19937_64& random, int rank, Step& step, std::vector<Flight>* flights) {
    const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
    const int target = static_cast<int>(below(kProcesses));
    step.kind = Kind::accept;
    step.arrival.move = below(3) == 0 ? Move::get : below(4) == 0 ? Move::fetch_atomic : Move::put;
    step.arrival.portal = below(12) == 0 ? Lists::kPortals + below(3) : below(2);
    step.arrival.match_bits = below(4);
    step.arrival.length = below(40);
    step.arrival.remote_offset = below(60);
    step.arrival.initiator = {static_cast<std::uint32_t>(rank), 1};
    step.arrival.access = below(4) == 0 ? below(Lists::kAccesses + 2) : 0;
    Flight flight{target, step, {}, {}};
    Session session(benches_[target]->view);
    if (below(2) == 0 && deliver_in_one(session, target, step)) return;
    flight.verdict = match::accept(session, step.arrival);
    step.fail = flight.verdict.fail;
    note(session, target, step);
    if (step.fail != kDelivered) return;
    flight.step = step;
    if (below(2) == 0) return flights->push_back(flight);  // others come meanwhile
    step.kind = Kind::finish;
    match::finish(session, step.arrival, flight.verdict, kDelivered);
    note(session, target, step);
  }

  // What the short way does is what accept() and finish() do, one after the other.
  bool deliver_in_one(Session& session, int target, Step& step) {
    constexpr Mover kMoves{[](void*, std::uint64_t, std::uint64_t) { return true; }, nullptr};
    int behind = 0;
    if (!deliver_shortly(session, step.arrival, kMoves, &behind)) return false;
    step.fail = kDelivered;
    note(session, target, step);
    step.kind = Kind::finish;
    note(session, target, step);
    return true;
  }

  void finish_one(std::vector<Flight>& flights, std::size_t which, Fail outcome) {
    Flight flight = flights[which];
    flights.erase(flights.begin() + static_cast<std::ptrdiff_t>(which));
    Session session(benches_[flight.target]->view);
    if (flight.step.kind == Kind::begin) {
      flight.step.kind = Kind::end;
      const Report report{.asked = flight.step.arrival.length, .moved = flight.step.arrival.length};
      end(session, flight.side, kSend, report, kDelivered);
      if (flight.step.flag) acknowledge(session, flight.side, report);
      let_go(session, flight.side);
    } else {
      flight.step.kind = Kind::finish;
      flight.step.fail = outcome;
      match::finish(session, flight.step.arrival, flight.verdict, outcome);
    }
    note(session, flight.target, flight.step);
  }

  // A new entry, or a descriptor that is bound to none.
  void make(std::mt19937_64& random, int rank, Step& step, std::vector<Own>* own) {
    const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
    Session session(benches_[rank]->view);
    const View& view = session.view();
    step.memory = memory(random, rank, step.id);
    if (below(4) == 0) {
      step.kind = Kind::bind;
      const auto index = bind(session, 0, step.memory, step.flag);
      step.code = index.code();
      if (index.ok())
        own->push_back({step.id, index.value(), view.entry(index.value()).generation,
                        view.descriptor(index.value()).generation, 0, true});
      return note(session, rank, step);
    }
    step.kind = Kind::insert;
    step.what = {.portal = below(2),
                 .source = {below(3) == 0 ? below(kProcesses) : kAny, kAny},
                 .match_bits = below(4),
                 .ignore_bits = below(3) == 0 ? below(4) : 0,
                 .unlinks = step.flag,
                 .before = below(2) == 0};
    if (below(3) == 0 && !own->empty()) {
      const Own& base = (*own)[below(own->size())];
      if (!base.bound && is_there(view, base)) {
        step.base = base.id;
        step.what.portal = base.portal;
        step.what.base = base.index;
      }
    }
    const auto index = insert(session, step.what);
    step.code = index.code();
    note(session, rank, step);
    if (!index.ok()) return;
    own->push_back(
        {step.id, index.value(), view.entry(index.value()).generation, 0, step.what.portal, false});
    if (below(4) == 0) return;
    attach_to(session, rank, step, own->back());
  }

  void attach_to(Session& session, int rank, Step step, Own& own) {
    step.kind = Kind::attach;
    step.id = own.id;
    step.found = is_there(session.view(), own);
    if (step.found) {
      step.code = attach(session, own.index, step.memory, step.flag).code();
      if (step.code == Errc::ok) own.memory_generation = session.view().descriptor(own.index).generation;
    }
    note(session, rank, step);
  }

  void change(std::mt19937_64& random, int rank, Step& step, std::vector<Own>* own,
              std::vector<Flight>* flights) {
    const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
    Session session(benches_[rank]->view);
    const View& view = session.view();
    step.memory = memory(random, rank, step.id);
    if (below(8) == 0) {
      step.kind = Kind::access;
      step.which_access = 1 + below(Lists::kAccesses - 1);
      step.access = everyone();
      step.access.allows = below(3) == 0 ? 0 : 1;
      if (below(2) == 0) step.access.source.nid = below(kProcesses);
      if (below(2) == 0) step.access.portal = below(2);
      Access& access = view.access(step.which_access);
      session.set(access.allows, step.access.allows);
      session.set(access.source.nid, step.access.source.nid);
      session.set(access.source.pid, step.access.source.pid);
      session.set(access.uid, step.access.uid);
      session.set(access.jid, step.access.jid);
      session.set(access.portal, step.access.portal);
      return note(session, rank, step);
    }
    if (own->empty()) return;
    Own& one = (*own)[below(own->size())];
    step.id = one.id;
    switch (below(5)) {
      case 0:
        step.kind = Kind::detach;
        step.found = has_memory(view, one);
        if (step.found) step.code = detach(session, one.index).code();
        break;
      case 1:
        if (one.bound) return;
        step.kind = Kind::remove;
        step.found = is_there(view, one);
        if (step.found) step.code = remove(session, one.index).code();
        break;
      case 2:
        step.kind = Kind::update;
        step.found = has_memory(view, one);
        if (step.found) step.code = update(session, one.index, step.memory).code();
        break;
      case 3:
        if (!one.bound) return attach_to(session, rank, step, one);
        [[fallthrough]];
      default:
        step.kind = Kind::begin;
        step.found = has_memory(view, one) && is_active(view, one.index);
        step.arrival.length = below(50);
        if (!step.found) break;
        Flight flight{rank, step, {}, hold(session, one.index)};
        begin(session, flight.side, kSend, {.asked = step.arrival.length, .moved = step.arrival.length},
              true);
        flights->push_back(flight);
    }
    note(session, rank, step);
  }

  // What the model says to a step, as text; empty: the same.
  static std::string follow(Lists& lists, const Step& step) {
    const auto named = [&](bool found) -> std::string {
      return found == step.found ? "" : "a handle that names nothing differs";
    };
    const auto same = [&](Errc code) -> std::string {
      return code == step.code ? "" : "outcome " + std::to_string(static_cast<int>(step.code));
    };
    std::string wrong;
    switch (step.kind) {
      case Kind::insert:
        return same(lists.insert(step.id, step.what, step.base));
      case Kind::bind:
        return same(lists.bind(step.id, step.memory, step.flag));
      case Kind::attach:
        wrong = named(lists.is_there(step.id));
        return !wrong.empty() || !step.found ? wrong : same(lists.attach(step.id, step.memory, step.flag));
      case Kind::detach:
        wrong = named(lists.has_memory(step.id));
        return !wrong.empty() || !step.found ? wrong : same(lists.detach(step.id));
      case Kind::remove:
        wrong = named(lists.is_there(step.id));
        return !wrong.empty() || !step.found ? wrong : same(lists.remove(step.id));
      case Kind::update:
        wrong = named(lists.has_memory(step.id));
        return !wrong.empty() || !step.found ? wrong : same(lists.update(step.id, step.memory));
      case Kind::access:
        lists.accesses[step.which_access] = step.access;
        return "";
      case Kind::accept:
        return lists.accept(step.message, step.arrival) == step.fail ? "" : "taken or not differs";
      case Kind::finish:
        lists.finish(step.message, step.arrival, step.fail);
        return "";
      case Kind::begin:
        wrong = named(lists.is_active(step.id));
        if (wrong.empty() && step.found) lists.begin(step.id, step.message, step.arrival.length);
        return wrong;
      default:
        lists.end(step.message, step.flag);
        return "";
    }
  }

  std::string replay(int rank) override {
    Lists lists;
    lists.accesses[0] = everyone();
    const std::vector<EventRecord> events = events_of(rank);
    std::size_t taken = 0;
    const std::uint64_t steps = steps_of(rank);
    for (std::uint64_t n = 0; n < steps; ++n) {
      const Step& step = step_of(rank, n);
      const std::string where = " in unit " + std::to_string(rank) + " at step " + std::to_string(n) +
                                " of kind " + std::to_string(static_cast<int>(step.kind));
      const std::string wrong = follow(lists, step);
      if (!wrong.empty()) return wrong + where;
      const std::string differs = compare(lists, events, &taken, [](const EventRecord& event) {
        return Told{event.type, event.user,      event.moved, event.remote_offset,
                    event.fail, event.threshold, event.link};
      });
      if (!differs.empty()) return differs + where;
    }
    if (lists.dropped != benches_[rank]->view.interface(0).status[0])
      return "count of dropped messages differs";
    return taken == events.size() ? "" : "events too many in unit " + std::to_string(rank);
  }
};

TEST(MatchClassic, EveryEventOfSixProcessesIsTheModels) {
  box::for_every_seed(20, 5'000, [](std::uint64_t seed) { return Processes(seed, false).run(); });
}

TEST(MatchClassic, ProcessesThatAreKilledLeaveWholeChanges) {
  box::for_every_seed(20, 5'000, [](std::uint64_t seed) { return Processes(seed, true).run(); });
}

}  // namespace
}  // namespace orrery::nic::match::classic
