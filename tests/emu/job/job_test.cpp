// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/job.hpp"

#include "emu/base/wait.hpp"
#include "emu/job/random.hpp"
#include "tests/emu/job/child.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include <fcntl.h>

namespace orrery::job {
namespace {

using test::Child;

using test::kLong;

TEST(Job, ManyInOneProcessFindEachOther) {
  auto loop = std::move(EventLoop::start("orrery-test")).value();
  std::string why;
  const auto placement = Placement::blocks(4, 2, &why).value();
  auto directory = std::move(HostDirectory::create({.pes = placement.pes(), .allowed_cores = 2})).value();
  const DomainId domain = directory->declare_domain(10, 20).value();
  std::vector<std::unique_ptr<Job>> jobs;
  for (int rank = 0; rank < 4; ++rank) {
    Launch launch;
    launch.rank = rank;
    launch.size = 4;
    auto job = Job::join({.loop = loop.get(), .directory = directory.get(), .launch = launch});
    ASSERT_TRUE(job.ok());
    ASSERT_TRUE(job.value()->publish(domain, 0, static_cast<std::uint32_t>(rank)).ok() || rank % 2 == 1);
    if (rank % 2 == 1) {  // the same instance on the same node is taken
      ASSERT_TRUE(job.value()->publish(domain, 1, static_cast<std::uint32_t>(rank)).ok());
    }
    jobs.push_back(std::move(job).value());
  }
  EXPECT_EQ(jobs[0]->nic_address(), jobs[1]->nic_address());
  EXPECT_NE(jobs[0]->nic_address(), jobs[2]->nic_address());
  const auto found = jobs[0]->find({domain, jobs[3]->nic_address(), 1});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found.value().process, jobs[3]->self());
  EXPECT_EQ(jobs[0]->wait_budget().spins, 0u);  // four PEs on two cores
  jobs.pop_back();
  EXPECT_EQ(jobs[0]->find({domain, jobs[2]->nic_address(), 1}).code(), Errc::unreachable);
}

TEST(Job, FetchesDescriptorsOfAPeer) {
  auto loop = std::move(EventLoop::start("orrery-test")).value();
  auto directory = std::move(HostDirectory::create({})).value();
  auto one = std::move(Job::join({.loop = loop.get(), .directory = directory.get(), .launch = {}})).value();
  auto two = std::move(Job::join({.loop = loop.get(), .directory = directory.get(), .launch = {}})).value();
  one->offer(DescriptorKind::nic_segment, directory->fd());
  const auto fetched = two->fetch(one->self(), monotonic_ns() + kLong);
  ASSERT_TRUE(fetched.ok());
  EXPECT_TRUE(fetched.value().nic_segment.valid());
}

TEST(Job, ProcessJoinsTheDirectoryThatItsLauncherNames) {
  std::string why;
  auto directory =
      std::move(HostDirectory::create({.pes = Placement::blocks(2, 2, &why).value().pes()})).value();
  const Child child([&] {
    setenv("ORRERY_JOB_FD", std::to_string(directory->fd()).c_str(), 1);
    setenv("PMI_FD", "0", 1);  // never touched here
    setenv("PMI_RANK", "1", 1);
    setenv("PMI_SIZE", "2", 1);
    auto job = Job::of_process();
    if (!job.ok()) return 1;
    if (Job::of_process().value() != job.value() || Job::if_joined() != job.value()) return 2;
    return job.value()->nic_address() == 2 && job.value()->rank() == 1 ? 0 : 3;
  });
  ASSERT_EQ(child.code(), 0);
  EXPECT_TRUE(directory->process_of_rank(1).ok());
}

TEST(Job, ForkedChildIsAMemberOfItsOwn) {
  auto directory = std::move(HostDirectory::create({})).value();
  const Child child([&] {
    setenv("ORRERY_JOB_FD", std::to_string(directory->fd()).c_str(), 1);
    auto parent = Job::of_process();
    if (!parent.ok()) return 1;
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      if (Job::if_joined() != nullptr) _exit(1);
      auto own = Job::of_process();
      _exit(own.ok() && own.value()->self() != parent.value()->self() ? 0 : 2);
    }
    int status = 0;
    waitpid(grandchild, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 9;
  });
  EXPECT_EQ(child.code(), 0);
}

TEST(Job, ClosedDirectoryDescriptorIsAnError) {
  const Child child([] {
    setenv("ORRERY_JOB_FD", "917", 1);
    return Job::of_process().code() == Errc::invalid_state ? 0 : 1;
  });
  EXPECT_EQ(child.code(), 0);
}

// A job of the same user that was suspended (^Z) held up every later one for 10 s, and then failed it.
TEST(Job, OfAnotherMpirunIsNotHeldUpByOneThatIsStopped) {
  const auto joins = [](const char* server) {
    return [server] {
      unsetenv("ORRERY_JOB");
      setenv("PMIX_NAMESPACE", "1", 1);
      setenv("PMIX_RANK", "0", 1);
      setenv("PMIX_SERVER_URI2", server, 1);
      return Job::of_process().ok() ? 0 : 1;
    };
  };
  const std::string first = fmt::format("{}.0;tcp4://127.0.0.1:1", getpid());
  const std::string second = fmt::format("{}.1;tcp4://127.0.0.1:1", getpid());
  Child stopped(joins(first.c_str()));
  ASSERT_EQ(stopped.code(), 0);
  ASSERT_EQ(kill(stopped.pid(), SIGSTOP), 0);
  Child other(joins(second.c_str()));
  EXPECT_EQ(other.code(), 0);
}

TEST(Job, WithoutALauncherTheVariablesOfTheJobDeclareItsDomains) {
  const std::string name = fmt::format("test-{}", random_nonzero());
  const Child child([&] {
    setenv("ORRERY_JOB", name.c_str(), 1);
    setenv("PMI_GNI_PTAG", "12:13", 1);
    setenv("PMI_GNI_COOKIE", "100:101", 1);
    auto job = Job::of_process();
    if (!job.ok()) return 1;
    if (!job.value()->find_domain(13, 101).ok()) return 2;
    if (job.value()->find_domain(13, 102).code() != Errc::permission) return 3;
    return job.value()->nic_address() <= Placement::kMaxAddress ? 0 : 4;
  });
  EXPECT_EQ(child.code(), 0);
}

}  // namespace
}  // namespace orrery::job
