// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/user_directory.hpp"

#include "emu/base/wait.hpp"
#include "emu/job/abstract_socket.hpp"
#include "emu/job/random.hpp"
#include "emu/job/socket_folder.hpp"
#include "emu/job/wireup_record.hpp"
#include "tests/emu/job/child.hpp"
#include "tests/require.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace orrery::job {
namespace {

using test::Child;

using test::kLong;

class UserDirectoryTest : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("ORRERY_SOCKETS"); }
  std::string name_ = fmt::format("test-{}", random_nonzero());

  // What a process does: join under `rank` and stay. Never returns the memory: the child is killed.
  int be_member(int rank) {
    auto* loop = std::move(EventLoop::start("orrery-child")).value().release();
    auto found = open_user_directory(*loop, name_, monotonic_ns() + kLong);
    if (!found.ok()) return 1;
    auto* directory = found.value().directory.release();
    (void)found.value().leader.release();
    auto server = DescriptorServer::listen(*loop, member_socket_name(socket_prefix(name_)));
    if (!server.ok()) return 2;
    const auto self = directory->join({.rank = rank, .socket_name = server.value()->socket_name()});
    if (!self.ok() || !server.value()->serve(*directory, self.value()).ok()) return 3;
    server.value()->share_directory();
    (void)server.value().release();
    return 0;
  }
};

// Runs `body` as a child that has ended; its value.
int ended(const std::function<int()>& body) {
  Child child(body, false);
  return child.code();
}

// A container that shares the network namespace, and with it the sockets' names, and whose root has root's
// number.
TEST_F(UserDirectoryTest, AProcessOfOtherNamespacesGetsNoDirectory) {
  if (geteuid() != 0) ORRERY_SKIP("root") << "only root makes the namespaces that this is about";
  setenv("ORRERY_SOCKETS", "abstract", 1);  // within reach of the other
  Child member([&] { return be_member(1); });
  ASSERT_EQ(member.code(), 0);
  const std::string leader = socket_prefix(name_) + ".leader";
  const auto asked = [&] {
    const auto directory = fetch_directory(leader, monotonic_ns() + kLong);
    return directory.ok() ? 1 : 0;
  };
  EXPECT_EQ(ended(asked), 1);
  const int other_users = ended([&] { return unshare(CLONE_NEWUSER) != 0 ? 77 : asked(); });
  if (other_users == 77) ORRERY_SKIP("namespaces") << "no user namespace can be made";
  EXPECT_EQ(other_users, 0);
  EXPECT_EQ(ended([&] {
              if (unshare(CLONE_NEWPID) != 0) return 77;
              const pid_t inside = fork();
              if (inside == 0) _exit(asked());
              int status = 0;
              waitpid(inside, &status, 0);
              return WEXITSTATUS(status);
            }),
            0);
}

// Of a process whose user namespace maps no user, every other user seems to be its own.
TEST_F(UserDirectoryTest, AnotherUserIsNotTakenForOneWithoutANumber) {
  if (geteuid() != 0) ORRERY_SKIP("root") << "only root can become another user";
  const std::string name = fmt::format("orrery-{}", name_);
  Child member([&] {
    if (unshare(CLONE_NEWUSER) != 0) return 77;
    auto* loop = std::move(EventLoop::start("orrery-child")).value().release();
    auto* directory = std::move(HostDirectory::create({})).value().release();
    auto server = DescriptorServer::listen(*loop, name);
    if (!server.ok() || !server.value()->serve(*directory, ProcessRef{}).ok()) return 1;
    server.value()->share_directory();
    (void)server.value().release();
    return 0;
  });
  if (member.code() == 77) ORRERY_SKIP("namespaces") << "no user namespace can be made";
  ASSERT_EQ(member.code(), 0);
  const auto descriptors_got = [&] {
    if (setuid(61234) != 0) return 77;
    const auto fd = connect_abstract(name, monotonic_ns() + kLong);
    const auto record = encode(WireupRequest{.wanted = Wanted::directory, .process = {0, 0}});
    if (!fd.ok()) return 78;
    // It is disconnected at once, or after it has asked.
    if (send(fd.value().get(), record.data(), record.size(), MSG_NOSIGNAL) < 0)
      return errno == EPIPE ? 0 : 79;
    std::array<std::byte, 256> answer;
    std::vector<UniqueFd> fds;
    (void)receive_with_fds(fd.value().get(), answer, 8, monotonic_ns() + kLong, &fds);
    return static_cast<int>(fds.size());
  };
  EXPECT_EQ(ended(descriptors_got), 0);
  // What keeps it out is its number, before its namespaces are looked at.
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  EXPECT_TRUE(peer_of(ends[0]).has_value());
  EXPECT_EQ(ended([&] { return unshare(CLONE_NEWUSER) != 0    ? 77
                               : peer_of(ends[0]).has_value() ? 1
                                                              : 0; }),
            0);
}

// Where there is a folder of the user, no other user has a name to take.
TEST_F(UserDirectoryTest, AnotherUserThatTakesEveryNameKeepsNoJobFromStarting) {
  if (geteuid() != 0) ORRERY_SKIP("root") << "only root can become another user";
  setenv("ORRERY_SOCKETS", "abstract", 1);
  const std::string abstract = socket_prefix(name_) + ".leader";
  unsetenv("ORRERY_SOCKETS");
  const std::string leader = socket_prefix(name_) + ".leader";
  ASSERT_TRUE(leader.starts_with("/"));
  Child squatter([&] {
    if (setuid(61234) != 0) return 77;
    if (listen_abstract(abstract).value().release() < 0) return 1;
    for (const char c : std::string("123456789abcdef")) {
      if (listen_abstract(abstract + c).value().release() < 0) return 2;
    }
    return 0;
  });
  ASSERT_EQ(squatter.code(), 0);
  Child first([&] { return be_member(1); });
  ASSERT_EQ(first.code(), 0);
  Child second([&] { return be_member(2); });
  ASSERT_EQ(second.code(), 0);
  EXPECT_EQ(ended([&] {
              const std::string path = socket_folder() + leader;
              if (setuid(61234) != 0) return 77;
              sockaddr_un at{};
              at.sun_family = AF_UNIX;
              path.copy(at.sun_path, sizeof at.sun_path - 1);
              const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
              return connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 ? 1 : 0;
            }),
            0)
      << "another user reaches the leader's socket";
}

// A name that can be foretold is one that another user can take first.
TEST_F(UserDirectoryTest, AnotherUserThatTakesTheLeadersNameKeepsNoJobFromStarting) {
  if (geteuid() != 0) ORRERY_SKIP("root") << "only root can become another user";
  setenv("ORRERY_SOCKETS", "abstract", 1);
  const std::string leader = socket_prefix(name_) + ".leader";
  Child squatter([&] {
    if (setuid(61234) != 0) return 77;
    const int taken[] = {listen_abstract(leader).value().release(),
                         listen_abstract(leader + "1").value().release()};
    return taken[0] >= 0 && taken[1] >= 0 ? 0 : 1;
  });
  ASSERT_EQ(squatter.code(), 0);
  const std::int64_t begin = monotonic_ns();
  Child first([&] { return be_member(1); });
  ASSERT_EQ(first.code(), 0);
  Child second([&] { return be_member(2); });
  ASSERT_EQ(second.code(), 0);
  EXPECT_LT(monotonic_ns() - begin, kLong / 2);
  auto loop = std::move(EventLoop::start("orrery-test")).value();
  auto found = open_user_directory(*loop, name_, monotonic_ns() + kLong);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found.value().directory->process_of_rank(1).ok());
  EXPECT_TRUE(found.value().directory->process_of_rank(2).ok());
}

TEST_F(UserDirectoryTest, ProcessesThatNameTheSameJobMeet) {
  Child first([&] { return be_member(1); });
  Child second([&] { return be_member(2); });
  ASSERT_EQ(first.code(), 0);
  ASSERT_EQ(second.code(), 0);
  auto loop = std::move(EventLoop::start("orrery-test")).value();
  auto found = open_user_directory(*loop, name_, monotonic_ns() + kLong);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found.value().leader, nullptr);
  EXPECT_TRUE(found.value().directory->process_of_rank(1).ok());
  EXPECT_TRUE(found.value().directory->process_of_rank(2).ok());
  auto other = open_user_directory(*loop, name_ + "x", monotonic_ns() + kLong);
  ASSERT_TRUE(other.ok());
  EXPECT_NE(other.value().leader, nullptr);
  EXPECT_FALSE(other.value().directory->process_of_rank(1).ok());
}

TEST_F(UserDirectoryTest, ALeaderThatDoesNotShareYetIsAskedAgain) {
  auto loop = std::move(EventLoop::start("orrery-test")).value();
  const auto directory = std::move(HostDirectory::create({})).value();
  auto leader = std::move(DescriptorServer::listen(*loop, socket_prefix(name_) + ".leader")).value();
  ASSERT_TRUE(leader->serve(*directory, ProcessRef{}).ok());
  std::atomic<bool> ended{false};
  Result<UserDirectory> found = Errc::not_done;
  std::thread newcomer([&] {
    found = open_user_directory(*loop, name_, monotonic_ns() + kLong);
    ended = true;
  });
  while (fetch_directory(leader->socket_name(), monotonic_ns() + kLong).code() == Errc::not_done && !ended) {
    // It has been refused by now, or will be.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    leader->share_directory();
  }
  newcomer.join();
  ASSERT_TRUE(found.ok()) << errc_name(found.code());
  EXPECT_EQ(found.value().directory->job_id(), directory->job_id());
}

TEST_F(UserDirectoryTest, DeathOfTheLeaderDoesNotSplitTheJob) {
  Child leader([&] { return be_member(1); });
  Child member([&] { return be_member(2); });
  ASSERT_EQ(member.code(), 0);
  leader.kill_and_reap();
  auto loop = std::move(EventLoop::start("orrery-test")).value();
  auto found = open_user_directory(*loop, name_, monotonic_ns() + kLong);
  ASSERT_TRUE(found.ok());
  EXPECT_NE(found.value().leader, nullptr);
  EXPECT_TRUE(found.value().directory->process_of_rank(2).ok());
}

TEST_F(UserDirectoryTest, AJobWhoseProcessesAreGoneStartsAfresh) {
  std::uint64_t first_id = 0;
  for (int round = 0; round < 2; ++round) {
    auto loop = std::move(EventLoop::start("orrery-test")).value();
    auto found = open_user_directory(*loop, name_, monotonic_ns() + kLong);
    ASSERT_TRUE(found.ok());
    EXPECT_NE(found.value().directory->job_id(), first_id);
    first_id = found.value().directory->job_id();
  }
}

TEST_F(UserDirectoryTest, ManyAtOnceAgreeOnOneDirectory) {
  std::vector<std::unique_ptr<Child>> children;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  for (int i = 0; i < 6; ++i) {
    children.push_back(std::make_unique<Child>([&, i] {
      if (fork() != 0) return 0;  // the parent says ready at once, the child races
      const int code = be_member(i);
      if (write(ends[1], &code, sizeof code) < 0) _exit(1);
      char wait = 0;
      (void)!read(STDIN_FILENO, &wait, 0);
      sleep(60);
      _exit(0);
    }));
  }
  for (int i = 0; i < 6; ++i) {
    int code = -1;
    ASSERT_EQ(read(ends[0], &code, sizeof code), static_cast<ssize_t>(sizeof code));
    EXPECT_EQ(code, 0);
  }
  auto loop = std::move(EventLoop::start("orrery-test")).value();
  auto found = open_user_directory(*loop, name_, monotonic_ns() + kLong);
  ASSERT_TRUE(found.ok());
  for (int i = 0; i < 6; ++i) {
    const auto member = found.value().directory->process_of_rank(i);
    ASSERT_TRUE(member.ok()) << i;
    kill(found.value().directory->info_of(member.value()).value().pid, SIGKILL);
  }
}

}  // namespace
}  // namespace orrery::job
