// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/peer_watch.hpp"

#include "tests/emu/job/child.hpp"

#include <gtest/gtest.h>

#include <future>

#include <sys/resource.h>

namespace orrery::job {
namespace {

using test::Child;

class PeerWatchTest : public ::testing::TestWithParam<PeerWatch::Means> {
 protected:
  PeerWatchTest()
      : loop_(std::move(EventLoop::start("orrery-test")).value()),
        directory_(std::move(HostDirectory::create({})).value()) {}
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<HostDirectory> directory_;
};

TEST_P(PeerWatchTest, KilledPeerIsMarkedDeadAndThenReported) {
  PeerWatch watch(*loop_, *directory_, GetParam());
  Child child([&] { return directory_->join({.rank = 3}).ok() ? 0 : 1; });
  ASSERT_EQ(child.code(), 0);
  const ProcessRef peer = directory_->process_of_rank(3).value();
  std::promise<bool> live_when_told;
  ASSERT_TRUE(watch
                  .add(peer,
                       [&](ProcessRef dead) {
                         EXPECT_EQ(dead, peer);
                         live_when_told.set_value(directory_->is_live(dead));
                       })
                  .ok());
  child.kill_only();  // not reaped: a zombie is dead
  EXPECT_FALSE(live_when_told.get_future().get());
}

TEST_P(PeerWatchTest, EveryWatcherOfAPeerIsTold) {
  PeerWatch watch(*loop_, *directory_, GetParam());
  Child child([&] { return directory_->join({.rank = 3}).ok() ? 0 : 1; });
  const ProcessRef peer = directory_->process_of_rank(3).value();
  std::promise<void> first;
  std::promise<void> second;
  ASSERT_TRUE(watch.add(peer, [&](ProcessRef) { first.set_value(); }).ok());
  ASSERT_TRUE(watch.add(peer, [&](ProcessRef) { second.set_value(); }).ok());
  child.kill_and_reap();
  first.get_future().wait();
  second.get_future().wait();
}

TEST_P(PeerWatchTest, PeerThatDiedBeforeItWasWatchedIsReported) {
  PeerWatch watch(*loop_, *directory_, GetParam());
  Child child([&] { return directory_->join({.rank = 3}).ok() ? 0 : 1; });
  const ProcessRef peer = directory_->process_of_rank(3).value();
  child.kill_and_reap();
  std::promise<void> told;
  ASSERT_TRUE(watch.add(peer, [&](ProcessRef) { told.set_value(); }).ok());
  told.get_future().wait();
  EXPECT_EQ(watch.add(peer, [](ProcessRef) {}).code(), Errc::unreachable);
}

TEST_P(PeerWatchTest, RemovedWatchIsNotTold) {
  std::promise<void> other_told;
  std::atomic<bool> told{false};
  {
    PeerWatch watch(*loop_, *directory_, GetParam());
    Child child([&] { return directory_->join({.rank = 3}).ok() ? 0 : 1; });
    Child other([&] { return directory_->join({.rank = 4}).ok() ? 0 : 1; });
    const ProcessRef peer = directory_->process_of_rank(3).value();
    ASSERT_TRUE(watch.add(peer, [&](ProcessRef) { told = true; }).ok());
    ASSERT_TRUE(
        watch.add(directory_->process_of_rank(4).value(), [&](ProcessRef) { other_told.set_value(); }).ok());
    watch.remove(peer);
    child.kill_and_reap();
    other.kill_and_reap();
    other_told.get_future().wait();
  }
  EXPECT_FALSE(told);
}

TEST_P(PeerWatchTest, WatchThatCannotBeginCanBeAskedForAgain) {
  std::promise<void> told;
  PeerWatch watch(*loop_, *directory_, GetParam());
  Child child([&] { return directory_->join({.rank = 3}).ok() ? 0 : 1; });
  const ProcessRef peer = directory_->process_of_rank(3).value();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Status refused = watch.add(peer, [](ProcessRef) {});
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(refused.code(), Errc::system);
  ASSERT_TRUE(watch.add(peer, [&](ProcessRef) { told.set_value(); }).ok());
  child.kill_and_reap();
  told.get_future().wait();
}

INSTANTIATE_TEST_SUITE_P(Means, PeerWatchTest,
                         ::testing::Values(PeerWatch::Means::automatic, PeerWatch::Means::poll_only_for_test),
                         [](const auto& info) {
                           return info.param == PeerWatch::Means::automatic ? "Pidfd" : "Polling";
                         });

}  // namespace
}  // namespace orrery::job
