// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/events/completion.hpp"

#include "emu/nic/events/port.hpp"
#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace orrery::nic {
namespace {

struct Heard final : Listener {
  void ended(const Completion& completion, const Ending& ending) override {
    statuses.push_back(ending.status);
    target = completion.target;
  }
  std::vector<Errc> statuses;
  std::uint16_t target = 0;
};

class Completions : public ::testing::Test {
 protected:
  Completions() : queue_(*world_[0].nic().create_queue(8, 0).value()) { queue_.become_source(); }
  ~Completions() override { EXPECT_EQ(queue_.posts_open(), 0u); }

  Completion told(std::uint32_t events) {
    Completion c{.queue = &queue_, .events = static_cast<std::uint8_t>(events), .value = 77, .context = this};
    EXPECT_EQ(reserve(c), Errc::ok);
    return c;
  }
  // The next event, which must be of our context.
  Event next() {
    Event event;
    EXPECT_EQ(queue_.take(&event), Errc::ok);
    const bool message = event.kind == EventKind::message_sent;
    void* context = nullptr;
    EXPECT_TRUE(queue_.collect(message ? static_cast<std::uint32_t>(event.data >> 32) : event.transaction(),
                               &context));
    EXPECT_EQ(context, this);
    return event;
  }
  bool is_empty() {
    Event event;
    return queue_.take(&event) == Errc::not_done;
  }

  box::World world_{1, box::Path::direct};
  CompletionQueue& queue_;
};

TEST_F(Completions, TellTheQueueWhatWasAskedForFromEveryThread) {
  for (const Teller teller : {Teller::owner, Teller::owner_behind, Teller::other}) {
    complete(told(kLocalEvent), Errc::ok, teller);
    Event event = next();
    EXPECT_FALSE(event.global());
    EXPECT_EQ(event.user_value(), 77u);
    complete(told(kGlobalEvent), Errc::bounds, teller);
    event = next();
    EXPECT_TRUE(event.global());
    EXPECT_EQ(event.status, Errc::bounds);
    complete(told(kLocalEvent | kGlobalEvent), Errc::ok, teller);
    EXPECT_FALSE(next().global());
    EXPECT_TRUE(next().global());
    EXPECT_TRUE(is_empty());
  }
}

TEST_F(Completions, OfASilentOperationReachTheQueueOnlyWhenItFailedAndItsThreadIsThere) {
  for (const Teller teller : {Teller::owner, Teller::owner_behind, Teller::other}) {
    complete(told(0), Errc::ok, teller);
    EXPECT_TRUE(is_empty());
    complete(told(0), Errc::unreachable, teller);
    if (teller != Teller::other) {
      EXPECT_EQ(next().status, Errc::unreachable);
    }
    EXPECT_TRUE(is_empty());
  }
}

TEST_F(Completions, OfAMessageSayItsIdOnceAndAFailureBreaksTheConnection) {
  std::atomic<bool> broken{false};
  Completion c{.queue = &queue_,
               .kind = EventKind::message_sent,
               .events = kGlobalEvent,
               .value = 5,
               .context = this,
               .broken = &broken};
  ASSERT_EQ(reserve(c), Errc::ok);
  complete(c, Errc::ok, Teller::other);
  EXPECT_EQ(static_cast<std::uint32_t>(next().data), 5u);
  EXPECT_FALSE(broken.load());
  ASSERT_EQ(reserve(c), Errc::ok);
  complete(c, Errc::corrupt, Teller::owner);
  EXPECT_EQ(next().status, Errc::corrupt);
  EXPECT_TRUE(broken.load());
  EXPECT_TRUE(is_empty());
}

TEST_F(Completions, TellAListenerAndThePortsErrorHookToo) {
  Heard heard;
  ErrorLog log;
  Port port;
  port.domain = 3;
  port.errors = &log;
  std::vector<Errc> hooked;
  port.on_error = [](void* self, const ErrorEvent& event) {
    static_cast<std::vector<Errc>*>(self)->push_back(event.status);
  };
  port.on_error_self = &hooked;
  Completion c = told(kGlobalEvent);
  c.target = 9;
  c.nic_address = 4;
  c.port = &port;
  c.listener = &heard;
  EXPECT_TRUE(c.tells_of_success());
  complete(c, Errc::timeout, Teller::owner);
  EXPECT_EQ(next().status, Errc::timeout);
  EXPECT_EQ(heard.statuses, std::vector{Errc::timeout});
  EXPECT_EQ(heard.target, 9u);
  EXPECT_EQ(hooked, std::vector{Errc::timeout});
  const auto logged = log.next(0);
  ASSERT_TRUE(logged.has_value());
  EXPECT_EQ(logged->domain, 3u);
  EXPECT_EQ(logged->nic_address, 4u);
  EXPECT_EQ(logged->transaction, c.transaction);
  complete(Completion{.port = &port, .listener = &heard}, Errc::ok, Teller::other);
  EXPECT_EQ(heard.statuses.back(), Errc::ok);
  EXPECT_EQ(hooked.size(), 1u) << "no failure";
}

TEST_F(Completions, AreRefusedWhereNobodyCanBeToldAndGiveTheirNamesBack) {
  Completion none{.events = kLocalEvent};
  EXPECT_EQ(reserve(none), Errc::invalid_param);
  std::vector<Completion> open;
  for (std::uint32_t i = 0; i < queue_.depth(); ++i) open.push_back(told(kGlobalEvent));
  Completion more{.queue = &queue_, .events = kGlobalEvent};
  EXPECT_EQ(reserve(more), Errc::no_resource);
  EXPECT_FALSE(more.has_transaction());
  abandon(more);
  for (const Completion& c : open) abandon(c);
}

TEST_F(Completions, KeepTheirQueueAndCountTheirOperationUntilTheyAreReleased) {
  std::atomic<std::uint32_t> in_flight{0};
  Completion c = told(kGlobalEvent);
  c.in_flight = &in_flight;
  const std::uint32_t before = queue_.references.load();
  retain(c);
  EXPECT_EQ(in_flight.load(), 1u);
  EXPECT_EQ(queue_.references.load(), before + 1);
  complete(c, Errc::ok, Teller::other);
  EXPECT_EQ(in_flight.load(), 1u);
  release(c);
  EXPECT_EQ(in_flight.load(), 0u);
  EXPECT_EQ(queue_.references.load(), before);
  (void)next();
}

}  // namespace
}  // namespace orrery::nic
