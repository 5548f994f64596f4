// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/event_loop.hpp"

#include "emu/base/wait.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <fstream>
#include <future>
#include <string>
#include <thread>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery {
namespace {

std::unique_ptr<EventLoop> start() {
  auto loop = EventLoop::start("orrery-test");
  EXPECT_TRUE(loop.ok());
  return std::move(loop).value();
}

void poke(int fd) {
  const std::uint64_t one = 1;
  ASSERT_EQ(write(fd, &one, sizeof one), static_cast<ssize_t>(sizeof one));
}

TEST(EventLoop, CallsBackOnItsThreadWhenADescriptorIsReady) {
  const auto loop = start();
  const UniqueFd fd(eventfd(0, 0));
  std::promise<bool> on_loop;
  ASSERT_TRUE(loop->add(fd.get(), EPOLLIN,
                        [&](std::uint32_t events) {
                          EXPECT_NE(events & EPOLLIN, 0u);
                          std::uint64_t value = 0;
                          EXPECT_EQ(read(fd.get(), &value, sizeof value), static_cast<ssize_t>(sizeof value));
                          on_loop.set_value(loop->on_loop_thread());
                        })
                  .ok());
  poke(fd.get());
  EXPECT_TRUE(on_loop.get_future().get());
  EXPECT_FALSE(loop->on_loop_thread());
  loop->remove(fd.get());
}

TEST(EventLoop, RemoveOfNoDescriptorReturns) {
  const auto loop = start();
  loop->remove(-1);
}

TEST(EventLoop, RemoveReturnsOnlyWhenTheCallbackHasEnded) {
  const auto loop = start();
  const UniqueFd fd(eventfd(0, 0));
  std::promise<void> entered;
  std::promise<void> go_on;
  std::atomic<bool> ended{false};
  ASSERT_TRUE(loop->add(fd.get(), EPOLLIN,
                        [&](std::uint32_t) {
                          std::uint64_t value = 0;  // taken, so that it runs once
                          EXPECT_EQ(read(fd.get(), &value, sizeof value), static_cast<ssize_t>(sizeof value));
                          entered.set_value();
                          go_on.get_future().wait();
                          ended = true;
                        })
                  .ok());
  poke(fd.get());
  entered.get_future().wait();
  std::thread releaser([&] { go_on.set_value(); });
  loop->remove(fd.get());
  EXPECT_TRUE(ended);
  releaser.join();
}

TEST(EventLoop, ACallbackMayRemoveItself) {
  const auto loop = start();
  const UniqueFd fd(eventfd(0, 0));
  std::atomic<int> calls{0};
  ASSERT_TRUE(loop->add(fd.get(), EPOLLIN,
                        [&](std::uint32_t) {
                          ++calls;
                          loop->remove(fd.get());
                        })
                  .ok());
  poke(fd.get());  // stays readable: without the removal it would be called for ever
  while (calls == 0) std::this_thread::yield();
  EXPECT_TRUE(loop->run_and_wait([] {}));
  EXPECT_TRUE(loop->run_and_wait([] {}));
  EXPECT_EQ(calls, 1);
}

TEST(EventLoop, RefusesADescriptorTwiceAndWhatIsNone) {
  const auto loop = start();
  const UniqueFd fd(eventfd(0, 0));
  ASSERT_TRUE(loop->add(fd.get(), EPOLLIN, [](std::uint32_t) {}).ok());
  EXPECT_EQ(loop->add(fd.get(), EPOLLIN, [](std::uint32_t) {}).code(), Errc::invalid_param);
  EXPECT_EQ(loop->add(-1, EPOLLIN, [](std::uint32_t) {}).code(), Errc::system);
  loop->remove(fd.get());
}

TEST(EventLoop, RunsQueuedWorkInOrder) {
  const auto loop = start();
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) loop->run_soon([&order, i] { order.push_back(i); });
  ASSERT_TRUE(loop->run_and_wait([] {}));
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(EventLoop, TicksUntilTheFunctionSaysNoAndCanBeSetAgain) {
  const auto loop = start();
  for (int round = 0; round < 2; ++round) {
    std::promise<void> third;
    std::atomic<int> ticks{0};
    loop->set_tick(std::chrono::microseconds(200), [&] {
      if (++ticks < 3) return true;
      third.set_value();
      return false;
    });
    third.get_future().wait();
    EXPECT_TRUE(loop->run_and_wait([] {}));
    EXPECT_EQ(ticks, 3);
  }
}

TEST(EventLoop, ATickThatIsPutOffComesAfterThatDelay) {
  const auto loop = start();
  std::promise<void> ticked;
  // Without one it is nothing.
  loop->postpone_tick(std::chrono::microseconds(1));
  loop->set_tick(std::chrono::hours(1), [&] {
    ticked.set_value();
    return false;
  });
  // Not in an hour. Again, as it is nothing while the loop has its lock.
  auto came = ticked.get_future();
  auto status = std::future_status::timeout;
  for (int i = 0; i < 60 && status != std::future_status::ready; ++i) {
    loop->postpone_tick(std::chrono::milliseconds(1));
    status = came.wait_for(std::chrono::seconds(1));
  }
  EXPECT_EQ(status, std::future_status::ready);
}

TEST(EventLoop, BlocksEverySignalOnItsThread) {
  const auto loop = start();
  sigset_t mask;
  sigemptyset(&mask);
  ASSERT_TRUE(loop->run_and_wait([&] { pthread_sigmask(SIG_SETMASK, nullptr, &mask); }));
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM})
    EXPECT_EQ(sigismember(&mask, signal), 1);
}

// State and voluntary switches of a thread of this process, as /proc has them.
std::string sleep_of(pid_t thread) {
  std::ifstream status(fmt::format("/proc/self/task/{}/status", thread));
  std::string line;
  std::string found;
  while (std::getline(status, line)) {
    if (line.starts_with("State:") || line.starts_with("voluntary_ctxt_switches:")) found += line;
  }
  return found;
}

TEST(EventLoop, SleepsWhileNothingHappens) {
  const auto loop = start();
  pid_t thread = 0;
  ASSERT_TRUE(loop->run_and_wait([&] { thread = gettid(); }));
  std::string before = sleep_of(thread);
  for (const std::int64_t limit = monotonic_ns() + 60'000'000'000;
       before.find("State:\tS") == std::string::npos && monotonic_ns() < limit; before = sleep_of(thread)) {
    yield_cpu();
  }
  EXPECT_NE(before.find("State:\tS"), std::string::npos) << before;
  usleep(50'000);
  EXPECT_EQ(sleep_of(thread), before) << "one sleep lasts for as long as nothing happens";
}

TEST(EventLoop, ChangedEventsAreThoseThatCallBack) {
  const auto loop = start();
  const UniqueFd fd(eventfd(0, EFD_NONBLOCK));
  std::atomic<int> calls{0};
  std::promise<void> called;
  ASSERT_TRUE(loop->add(fd.get(), EPOLLET,
                        [&](std::uint32_t) {
                          if (calls.fetch_add(1) == 0) called.set_value();
                        })
                  .ok());
  poke(fd.get());
  ASSERT_TRUE(loop->run_and_wait([] {}));
  EXPECT_EQ(calls.load(), 0);
  // What is there already counts, and once: the descriptor stays readable.
  ASSERT_TRUE(loop->change(fd.get(), EPOLLIN | EPOLLET).ok());
  called.get_future().wait();
  ASSERT_TRUE(loop->run_and_wait([] {}));
  ASSERT_TRUE(loop->run_and_wait([] {}));
  EXPECT_EQ(calls.load(), 1);
  loop->remove(fd.get());
  EXPECT_EQ(loop->change(fd.get(), EPOLLIN).code(), Errc::invalid_param);
}

TEST(EventLoop, WithNoEventsADescriptorIsNotWatchedUntilItGetsSome) {
  const UniqueFd fd(eventfd(1, 0));  // ready
  std::atomic<int> calls{0};
  std::promise<void> again;
  const auto loop = start();
  ASSERT_TRUE(loop->add(fd.get(), 0,
                        [&](std::uint32_t) {
                          if (calls.fetch_add(1) == 1) again.set_value();
                        })
                  .ok());
  ASSERT_TRUE(loop->run_and_wait([] {}));
  ASSERT_TRUE(loop->change(fd.get(), 0).ok());
  EXPECT_EQ(calls.load(), 0);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(loop->change(fd.get(), EPOLLIN | EPOLLET).ok());
    while (calls.load() == i) ASSERT_TRUE(loop->run_and_wait([] {}));
    ASSERT_TRUE(loop->change(fd.get(), 0).ok());
    poke(fd.get());
    ASSERT_TRUE(loop->run_and_wait([] {}));
    EXPECT_EQ(calls.load(), i + 1) << "it is not watched";
  }
  again.get_future().wait();
  loop->remove(fd.get());
  EXPECT_EQ(loop->change(fd.get(), 0).code(), Errc::invalid_param);
}

// Two descriptors are ready in one round. The callback that runs first closes the other one, and something
// else gets its number: what was ready there is not its event.
TEST(EventLoop, AnEventOfAClosedDescriptorDoesNotReachItsSuccessor) {
  std::array<UniqueFd, 2> fds{UniqueFd(eventfd(1, 0)), UniqueFd(eventfd(1, 0))};  // both ready
  const UniqueFd quiet(eventfd(0, 0));
  std::atomic<int> calls{0};
  std::atomic<int> successor_calls{0};
  const auto loop = start();
  ASSERT_TRUE(loop->run_and_wait([&] {
    for (std::size_t i = 0; i < fds.size(); ++i) {
      const Status added = loop->add(fds[i].get(), EPOLLIN, [&, i](std::uint32_t) {
        ++calls;
        const int other = fds[1 - i].get();
        loop->remove(fds[i].get());
        loop->remove(other);
        EXPECT_EQ(dup2(quiet.get(), other), other);
        EXPECT_TRUE(loop->add(other, EPOLLIN, [&](std::uint32_t) { ++successor_calls; }).ok());
      });
      EXPECT_TRUE(added.ok());
    }
  }));
  while (calls == 0) std::this_thread::yield();
  EXPECT_TRUE(loop->run_and_wait([] {}));
  EXPECT_TRUE(loop->run_and_wait([] {}));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(successor_calls, 0);
}

TEST(EventLoop, AForkedChildHasNoLoop) {
  auto loop = start();
  const UniqueFd fd(eventfd(0, 0));
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = loop->add(fd.get(), EPOLLIN, [](std::uint32_t) {}).code() == Errc::invalid_state &&
                         !loop->run_and_wait([] {}) && !loop->on_loop_thread();
    loop->remove(fd.get());
    loop->run_soon([] {});
    loop.reset();  // returns: there is nothing to join
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace orrery
