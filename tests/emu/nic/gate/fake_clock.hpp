// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/clock/agenda.hpp"
#include "emu/clock/clock.hpp"

#include <cstdint>
#include <vector>

namespace orrery::nic::box {

// A clock that stands still until a test lets time pass: every operation takes `times` from when it is
// posted. One thread.
class FakeClock final : public clock::Clock {
 public:
  clock::Times times{Picos{100}, Picos{200}, Picos{300}, Picos{400}};
  Picos collective{1000};
  std::vector<std::uint32_t> touched;  // process slots, in order
  int touched_all = 0, idled = 0;
  bool turned_round = false;  // processes come in the order from the last slot to the first

  // Does everything that is due by then.
  void pass_to(std::int64_t at) {
    while (agenda_.first() <= at) {
      now_ = std::max(now_, agenda_.first());
      agenda_.take()->run();
    }
    now_ = at;
  }
  bool quiet() const { return agenda_.empty(); }

  clock::Kind kind() const override { return clock::Kind::virtual_time; }
  Picos now() override { return Picos{now_}; }
  void enter() override {}
  clock::Times start(const clock::Operation&) override {
    const Picos n{now_};
    return {n + times.turn_at, n + times.data_at, n + times.remote_event_at, n + times.local_event_at};
  }
  void schedule(Picos at, clock::Task* task, clock::Concerns) override { agenda_.add(at.count(), task); }
  void schedule_there(Picos at, clock::Task* task, std::uint32_t) override { agenda_.add(at.count(), task); }
  void settle(std::uint32_t) override {}
  void leave() override {}
  Picos collective_time(model::Collective, std::uint64_t) override { return collective; }
  std::uint32_t place_of(std::uint32_t slot) const override {
    return turned_round ? UINT32_MAX - slot : slot;
  }
  void touch(std::uint32_t process_slot) override { touched.push_back(process_slot); }
  void touch_all() override { ++touched_all; }
  void idle(const void*) override { ++idled; }
  bool wait(std::optional<Picos>) override { return false; }
  void barrier_arrive() override {}
  void barrier_wait(Picos) override {}
  void watch(std::uint64_t, std::uint64_t) override {}
  void unwatch(std::uint64_t, std::uint64_t) override {}
  void set_look(void (*)(void*), void*) override {}
  void before_inspection() override {}
  void finish() override {}

 private:
  clock::Agenda agenda_;
  std::int64_t now_ = 0;
};

}  // namespace orrery::nic::box
