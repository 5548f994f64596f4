// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/host_directory.hpp"

#include "emu/base/wait.hpp"
#include "tests/emu/job/child.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>

namespace orrery::job {
namespace {

using test::Child;
using ::testing::HasSubstr;

std::unique_ptr<HostDirectory> make(const DirectorySpec& spec = {}) {
  auto directory = HostDirectory::create(spec);
  EXPECT_TRUE(directory.ok());
  return std::move(directory).value();
}

std::unique_ptr<HostDirectory> open_again(const HostDirectory& directory) {
  auto opened = HostDirectory::open(UniqueFd(fcntl(directory.fd(), F_DUPFD_CLOEXEC, 0)));
  EXPECT_TRUE(opened.ok());
  return std::move(opened).value();
}

ProcessRef join(HostDirectory& directory, int rank = -1) {
  const auto self = directory.join({.rank = rank, .socket_name = "nobody"});
  EXPECT_TRUE(self.ok());
  return self.value();
}

TEST(HostDirectory, SecondMappingSeesWhatTheFirstWrote) {
  const auto mine = make({.pes = {{5, 0x12, 0}, {6, 0x13, 1}}, .allowed_cores = 3});
  const auto theirs = open_again(*mine);
  EXPECT_EQ(theirs->job_id(), mine->job_id());
  EXPECT_EQ(theirs->pe_count(), 2u);
  EXPECT_EQ(theirs->node_count(), 2u);
  EXPECT_EQ(theirs->allowed_cores(), 3u);
  ASSERT_TRUE(theirs->place_of(1).ok());
  EXPECT_EQ(theirs->place_of(1).value().nid, 6u);
  EXPECT_EQ(theirs->place_of(1).value().nic_address, 0x13u);
  EXPECT_EQ(theirs->place_of(2).code(), Errc::no_match);
}

TEST(HostDirectory, PesOfAJobGetTheSlotsOfTheirRanksAndOthersComeBehind) {
  const auto directory = make();
  const auto enter = [&](int rank) { return directory->join({.rank = rank, .pes = 4}).value(); };
  EXPECT_EQ(enter(2).index, 2u);
  EXPECT_EQ(enter(0).index, 0u);
  EXPECT_EQ(enter(2).index, 4u) << "another process of that rank";
  EXPECT_EQ(enter(-1).index, 5u);
  const ProcessRef first = enter(3);
  directory->leave(first);
  const ProcessRef second = enter(3);
  EXPECT_EQ(second.index, 3u) << "a later life";
  EXPECT_NE(second.generation, first.generation);
}

TEST(HostDirectory, AddressesOfOtherHostsAreKeptBesideOurOwn) {
  const auto directory = make();
  const ProcessRef self = directory->join({.rank = 1, .pes = 3}).value();
  const std::vector<std::byte> ours(40, std::byte{7});
  const std::vector<std::byte> theirs(layout::kWireAddressBytes, std::byte{9});
  EXPECT_EQ(directory->wire_address(1).code(), Errc::no_match);
  ASSERT_TRUE(directory->publish_wire_address(self, ours).ok());
  ASSERT_TRUE(directory->add_remote({.index = 2, .generation = 77}, 3, theirs).ok());
  const auto other = open_again(*directory);
  EXPECT_EQ(other->wire_address(1).value().bytes, ours);
  EXPECT_EQ(other->wire_address(1).value().generation, self.generation);
  EXPECT_EQ(other->wire_address(2).value().bytes, theirs);
  std::uint32_t generation = 0;
  EXPECT_EQ(other->remote_host_of(2, &generation), 3u);
  EXPECT_EQ(generation, 77u);
  EXPECT_EQ(other->remote_host_of(1, &generation), 0u);
  EXPECT_EQ(other->remote_host_of(HostDirectory::kMaxProcesses, &generation), 0u);
  EXPECT_EQ(directory->add_remote(self, 2, theirs).code(), Errc::invalid_param) << "lives here";
  EXPECT_EQ(directory->add_remote({.index = 0, .generation = 1}, 0, theirs).code(), Errc::invalid_param);
  const std::vector<std::byte> too_long(layout::kWireAddressBytes + 1);
  EXPECT_EQ(directory->publish_wire_address(self, too_long).code(), Errc::size);
}

TEST(HostDirectory, WhoSaysFirstWhichJobThisIsDecides) {
  const auto directory = make();
  EXPECT_FALSE(directory->wire_job().has_value());
  directory->set_wire_job({.job = 5, .secret = {6, 7}, .hosts = 2});
  directory->set_wire_job({.job = 50, .secret = {60, 70}, .hosts = 1});
  const auto job = open_again(*directory)->wire_job();
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->job, 5u);
  EXPECT_EQ(job->secret[1], 7u);
  EXPECT_EQ(job->hosts, 2u);
}

// The wire of a job on one host alone: 128 bits that no process outside can tell from what frames say.
TEST(HostDirectory, AJobThatAgreedWithNobodyHasASecretOfItsOwn) {
  const auto one = make();
  const auto two = make();
  one->set_wire_job({.job = one->job_id()});
  open_again(*one)->set_wire_job({.job = one->job_id()});
  two->set_wire_job({.job = two->job_id()});
  const auto job = one->wire_job();
  for (const std::uint64_t word : job->secret) {
    EXPECT_NE(word, 0u);
    EXPECT_NE(word, one->job_id());
    EXPECT_NE(word, one->secret());
  }
  EXPECT_NE(job->secret[0], job->secret[1]);
  EXPECT_NE(job->secret[0], two->wire_job()->secret[0]);
  EXPECT_EQ(job->secret[1], open_again(*one)->wire_job()->secret[1]);
}

TEST(HostDirectory, RefusesDescriptorsThatAreNoDirectory) {
  EXPECT_EQ(HostDirectory::open(UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC))).code(), Errc::corrupt);
  UniqueFd unsealed(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), layout::kBytes), 0);
  EXPECT_EQ(HostDirectory::open(std::move(unsealed)).code(), Errc::corrupt);
  UniqueFd zeros(memfd_create("zeros", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(zeros.get(), layout::kBytes), 0);
  ASSERT_EQ(fcntl(zeros.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  EXPECT_EQ(HostDirectory::open(std::move(zeros)).code(), Errc::corrupt);
}

TEST(HostDirectory, RefusesMorePesThanItHasPlacesFor) {
  EXPECT_EQ(HostDirectory::create({.pes = std::vector<PePlace>(HostDirectory::kMaxPes + 1)}).code(),
            Errc::size);
}

TEST(HostDirectory, JoinedProcessIsFoundByRankUntilItLeaves) {
  const auto directory = make();
  const ProcessRef self = join(*directory, 7);
  ASSERT_TRUE(directory->process_of_rank(7).ok());
  EXPECT_EQ(directory->process_of_rank(7).value(), self);
  const auto info = directory->info_of(self);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info.value().pid, getpid());
  EXPECT_EQ(info.value().socket_name, "nobody");
  directory->leave(self);
  EXPECT_FALSE(directory->is_live(self));
  EXPECT_EQ(directory->info_of(self).code(), Errc::unreachable);
  EXPECT_EQ(directory->process_of_rank(7).code(), Errc::no_match);
}

TEST(HostDirectory, ReusedSlotDoesNotRevivePreviousProcess) {
  const auto directory = make();
  const ProcessRef keeper = join(*directory);
  const ProcessRef first = join(*directory);
  directory->leave(first);
  ProcessRef second;
  // It died in the middle of something.
  directory->board()[1 + first.index].word[3] = 41;
  directory->board()[1 + first.index].word[5] = 42;
  while (second.index != first.index) second = join(*directory);  // unused slots go first
  EXPECT_EQ(directory->board()[1 + first.index].word[3], 42u);
  EXPECT_EQ(directory->board()[1 + first.index].word[5], 42u);
  EXPECT_NE(second.generation, first.generation);
  EXPECT_FALSE(directory->is_live(first));
  EXPECT_TRUE(directory->is_live(second));
  EXPECT_TRUE(directory->is_live(keeper));
  EXPECT_FALSE(directory->mark_dead(first));
  EXPECT_EQ(directory->join({}).code(), Errc::no_resource);  // all are live now
}

TEST(HostDirectory, SlotOfAKilledProcessIsTakenOverWhenNothingElseIsFree) {
  const auto directory = make();
  Child child([&] { return directory->join({.rank = 1}).ok() ? 0 : 1; });
  ASSERT_EQ(child.code(), 0);
  for (std::uint32_t i = 1; i < HostDirectory::kMaxProcesses; ++i) join(*directory);
  ASSERT_EQ(directory->join({}).code(), Errc::no_resource);
  child.kill_and_reap();
  EXPECT_TRUE(directory->join({}).ok());
}

TEST(HostDirectory, DomainsKeepTheirNumbersAndStrangersAreRefused) {
  const auto directory = make();
  ASSERT_TRUE(directory->declare_domain(10, 77).ok());
  const DomainId second = directory->declare_domain(11, 78).value();
  EXPECT_EQ(directory->declare_domain(11, 78).value(), second);
  EXPECT_EQ(open_again(*directory)->find_domain(11, 78).value(), second);
  EXPECT_EQ(directory->find_domain(10, 78).code(), Errc::permission);
  EXPECT_EQ(directory->find_domain(12, 77).code(), Errc::permission);
  EXPECT_EQ(directory->find_ptag(78).value(), 11);
  EXPECT_EQ(directory->find_ptag(79).code(), Errc::no_match);
  // Tag 0 with cookie 0 is a domain like any other.
  EXPECT_EQ(directory->find_domain(0, 0).code(), Errc::permission);
  EXPECT_TRUE(directory->declare_domain(0, 0).ok());
  EXPECT_TRUE(directory->find_domain(0, 0).ok());
}

TEST(HostDirectory, DomainTableIsFullAfter256) {
  const auto directory = make();
  for (std::uint32_t i = 0; i < 256; ++i) ASSERT_TRUE(directory->declare_domain(1, i).ok());
  EXPECT_EQ(directory->declare_domain(1, 256).code(), Errc::no_resource);
  EXPECT_TRUE(directory->declare_domain(1, 255).ok());
}

TEST(HostDirectory, EndpointIsFoundByDomainAddressAndInstanceOnly) {
  const auto directory = make();
  const ProcessRef self = join(*directory);
  const EndpointKey key{1, 0x12, 5};
  ASSERT_TRUE(directory->publish_endpoint(self, key, 3).ok());
  const auto found = directory->find_endpoint(key);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found.value().process, self);
  EXPECT_EQ(found.value().nic_index, 3u);
  EXPECT_EQ(directory->find_endpoint({2, 0x12, 5}).code(), Errc::no_match);
  EXPECT_EQ(directory->find_endpoint({1, 0x13, 5}).code(), Errc::no_match);
  EXPECT_EQ(directory->find_endpoint({1, 0x12, 6}).code(), Errc::no_match);
}

TEST(HostDirectory, EndpointKeyIsHeldOnceAndFreeAfterWithdrawal) {
  const auto directory = make();
  const ProcessRef self = join(*directory);
  const ProcessRef other = join(*directory);
  const EndpointKey key{0, 1, 1};
  const auto first = directory->publish_endpoint(self, key, 0);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(directory->publish_endpoint(other, key, 0).code(), Errc::invalid_state);
  directory->withdraw_endpoint(first.value());
  EXPECT_EQ(directory->find_endpoint(key).code(), Errc::no_match);
  const auto second = directory->publish_endpoint(other, key, 0);
  ASSERT_TRUE(second.ok());
  directory->withdraw_endpoint(first.value());  // an old reference does no harm
  EXPECT_TRUE(directory->find_endpoint(key).ok());
}

TEST(HostDirectory, EndpointOfADeadProcessIsUnreachableAndCanBeReplaced) {
  const auto directory = make();
  const ProcessRef self = join(*directory);
  const ProcessRef other = join(*directory);
  const EndpointKey key{0, 1, 1};
  ASSERT_TRUE(directory->publish_endpoint(other, key, 9).ok());
  EXPECT_TRUE(directory->mark_dead(other));
  EXPECT_EQ(directory->find_endpoint(key).code(), Errc::unreachable);
  ASSERT_TRUE(directory->publish_endpoint(self, key, 2).ok());
  EXPECT_EQ(directory->find_endpoint(key).value().nic_index, 2u);
}

TEST(HostDirectory, KilledPublisherThatNobodyWatchedDoesNotHoldItsKey) {
  const auto directory = make();
  const ProcessRef self = join(*directory);
  const EndpointKey key{0, 1, 1};
  Child child([&] {
    const auto there = directory->join({});
    return there.ok() && directory->publish_endpoint(there.value(), key, 9).ok() ? 0 : 1;
  });
  ASSERT_EQ(child.code(), 0);
  EXPECT_EQ(directory->publish_endpoint(self, key, 2).code(), Errc::invalid_state);
  child.kill_and_reap();
  EXPECT_TRUE(directory->publish_endpoint(self, key, 2).ok());
}

TEST(HostDirectory, EndpointTableTakesItsFullNumberAndServesAfterwards) {
  const auto directory = make();
  const ProcessRef self = join(*directory);
  std::vector<EndpointRef> all;
  for (std::uint32_t i = 0; i < layout::kMaxEndpoints; ++i) {
    const auto endpoint = directory->publish_endpoint(self, {0, 1, i}, i);
    ASSERT_TRUE(endpoint.ok()) << i;
    all.push_back(endpoint.value());
  }
  EXPECT_EQ(directory->publish_endpoint(self, {0, 2, 0}, 0).code(), Errc::no_resource);
  for (std::uint32_t i = 0; i < layout::kMaxEndpoints; i += 100) {
    EXPECT_EQ(directory->find_endpoint({0, 1, i}).value().nic_index, i);
  }
  directory->withdraw_endpoint(all[17]);
  EXPECT_TRUE(directory->publish_endpoint(self, {0, 2, 0}, 4).ok());
  EXPECT_EQ(directory->find_endpoint({0, 2, 0}).value().nic_index, 4u);
}

// Property: of rivals that publish one key at once exactly one holds it. Each winner counts itself in while
// it holds the key.
TEST(HostDirectory, ConcurrentPublishersOfOneKeyNeverHoldItTogether) {
  const auto directory = make();
  const EndpointKey key{0, 1, 1};
  std::atomic<int> holders{0};
  std::atomic<int> most{0};
  std::atomic<int> wins{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const ProcessRef self = join(*directory);
      for (int i = 0; i < 500; ++i) {
        const auto endpoint = directory->publish_endpoint(self, key, 0);
        if (!endpoint.ok()) continue;
        const int now = ++holders;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        ++wins;
        --holders;
        directory->withdraw_endpoint(endpoint.value());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
  EXPECT_GT(wins, 0);
}

TEST(HostDirectory, WaiterIsWokenByThePublisher) {
  const auto directory = make();
  const ProcessRef self = join(*directory);
  const EndpointKey key{0, 1, 1};
  std::thread publisher([&] {
    const ProcessRef other = join(*directory);
    ASSERT_TRUE(directory->publish_endpoint(other, key, 5).ok());
  });
  const auto found = directory->wait_endpoint(self, key, monotonic_ns() + 20'000'000'000);
  publisher.join();
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found.value().nic_index, 5u);
}

TEST(HostDirectory, DeadlineOfAWaiterPassesAndTheMissingAreNamed) {
  const auto directory = make({.pes = {{1, 1, 0}, {1, 1, 0}, {1, 1, 0}}});
  const ProcessRef self = join(*directory, 0);
  const DomainId domain = directory->declare_domain(1, 2).value();
  ASSERT_TRUE(directory->publish_endpoint(self, {domain, 1, 0}, 0).ok());
  join(*directory, 1);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(directory->wait_endpoint(self, {domain, 1, 2}, monotonic_ns() + 1'000'000).code(), Errc::timeout);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr(fmt::format("PE 1 (pid {}, running)", getpid())));
  EXPECT_THAT(said, HasSubstr("PE 2 (never joined, or died)"));
  EXPECT_THAT(said, ::testing::Not(HasSubstr("PE 0")));
}

// Property: whatever instruction a process is killed at, the others find a usable table. Children publish and
// withdraw keys of their own and one common key until they are killed at a random time.
TEST(HostDirectory, SurvivesKillsAtRandomTimes) {
  const char* text = std::getenv("ORRERY_TEST_SEED");
  const auto seed = text == nullptr ? std::random_device{}() : static_cast<unsigned>(std::atoi(text));
  std::mt19937 random(seed);
  SCOPED_TRACE(fmt::format("ORRERY_TEST_SEED={}", seed));
  const auto directory = make();
  const ProcessRef self = join(*directory);
  const EndpointKey common{0, 1, 1};
  for (std::uint32_t round = 0; round < 60; ++round) {
    const pid_t victim = fork();
    if (victim == 0) {
      for (std::uint32_t i = 0;; ++i) {
        const auto there = directory->join({});
        if (!there.ok()) _exit(1);
        const auto one = directory->publish_endpoint(there.value(), common, 0);
        const auto two = directory->publish_endpoint(there.value(), {0, 2, i % 4}, 0);
        if (!two.ok()) _exit(2);
        if (one.ok()) directory->withdraw_endpoint(one.value());
        directory->withdraw_endpoint(two.value());
        directory->leave(there.value());
      }
    }
    usleep(random() % 3000);
    ASSERT_EQ(kill(victim, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(victim, &status, 0), victim);
    ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    const auto mine = directory->publish_endpoint(self, common, round);
    ASSERT_TRUE(mine.ok()) << round;
    ASSERT_EQ(directory->find_endpoint(common).value().nic_index, round);
    directory->withdraw_endpoint(mine.value());
  }
  ASSERT_TRUE(directory->join({}).ok());
}

}  // namespace
}  // namespace orrery::job
