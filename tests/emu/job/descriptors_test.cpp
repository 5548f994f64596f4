// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/descriptors.hpp"

#include "emu/base/wait.hpp"
#include "emu/job/abstract_socket.hpp"
#include "emu/job/user_directory.hpp"
#include "emu/job/wireup_record.hpp"
#include "tests/emu/job/child.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace orrery::job {
namespace {

using test::Child;

using test::kLong;

bool same_file(int a, int b) {
  struct stat one {};
  struct stat two {};
  return fstat(a, &one) == 0 && fstat(b, &two) == 0 && one.st_ino == two.st_ino && one.st_dev == two.st_dev;
}

// This process has no descriptor left until the end of its scope, but for `left`.
class DescriptorsUsedUp {
 public:
  explicit DescriptorsUsedUp(int left = 0) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit few = before_;
    few.rlim_cur = 128;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int fd = 0; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) taken_.emplace_back(fd);
    EXPECT_EQ(errno, EMFILE);
    for (; left > 0; --left) taken_.pop_back();
  }
  ~DescriptorsUsedUp() { setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorsUsedUp(const DescriptorsUsedUp&) = delete;
  DescriptorsUsedUp& operator=(const DescriptorsUsedUp&) = delete;

 private:
  rlimit before_{};
  std::vector<UniqueFd> taken_;
};

class DescriptorsTest : public ::testing::Test {
 protected:
  DescriptorsTest()
      : loop_(std::move(EventLoop::start("orrery-test")).value()),
        directory_(std::move(HostDirectory::create({})).value()),
        server_(std::move(DescriptorServer::listen(*loop_, member_socket_name("orrery-test"))).value()),
        self_(directory_->join({.rank = 0, .socket_name = server_->socket_name()}).value()) {
    EXPECT_TRUE(server_->serve(*directory_, self_).ok());
  }

  // Sends `bytes` to the server and returns what came back, 0 for a disconnect.
  std::size_t raw_exchange(std::span<const std::byte> bytes) {
    const auto fd = connect_abstract(server_->socket_name(), monotonic_ns() + kLong);
    EXPECT_TRUE(fd.ok());
    EXPECT_EQ(send(fd.value().get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    std::array<std::byte, 256> answer;
    std::vector<UniqueFd> fds;
    const auto got = receive_with_fds(fd.value().get(), answer, 8, monotonic_ns() + kLong, &fds);
    EXPECT_TRUE(got.ok());
    if (got.value() == 0) {
      EXPECT_TRUE(fds.empty());
    }
    return got.value();
  }
  WireupRequest good_request() {
    return {Wanted::descriptors, directory_->job_id(), self_,
            directory_->info_of(self_).value().request_nonce, directory_->secret()};
  }

  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<HostDirectory> directory_;
  std::unique_ptr<DescriptorServer> server_;
  ProcessRef self_;
};

TEST_F(DescriptorsTest, PeerGetsTheVeryFilesThatWereOffered) {
  const UniqueFd segment(memfd_create("segment", MFD_CLOEXEC));
  const UniqueFd memory(memfd_create("memory", MFD_CLOEXEC));
  server_->offer(DescriptorKind::nic_segment, segment.get());
  server_->offer(DescriptorKind::memory_file, memory.get());
  const auto fetched = fetch_descriptors(*directory_, self_, monotonic_ns() + kLong);
  ASSERT_TRUE(fetched.ok());
  EXPECT_TRUE(same_file(fetched.value().nic_segment.get(), segment.get()));
  EXPECT_TRUE(same_file(fetched.value().memory_file.get(), memory.get()));
  EXPECT_FALSE(fetched.value().doorbell.valid());
  server_->offer(DescriptorKind::memory_file, -1);
  EXPECT_FALSE(fetch_descriptors(*directory_, self_, monotonic_ns() + kLong).value().memory_file.valid());
}

TEST_F(DescriptorsTest, OtherProcessGetsTheFilesToo) {
  const UniqueFd bell(eventfd(0, EFD_CLOEXEC));
  server_->offer(DescriptorKind::doorbell, bell.get());
  const Child child([&] {
    const auto fetched = fetch_descriptors(*directory_, self_, monotonic_ns() + kLong);
    const std::uint64_t three = 3;
    return fetched.ok() && write(fetched.value().doorbell.get(), &three, sizeof three) == sizeof three ? 0
                                                                                                       : 1;
  });
  ASSERT_EQ(child.code(), 0);
  std::uint64_t value = 0;
  ASSERT_EQ(read(bell.get(), &value, sizeof value), static_cast<ssize_t>(sizeof value));
  EXPECT_EQ(value, 3u);
}

TEST_F(DescriptorsTest, ProcessWithoutADescriptorLeftAnswersAllTheSame) {
  const UniqueFd bell(eventfd(0, EFD_CLOEXEC));
  server_->offer(DescriptorKind::doorbell, bell.get());
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd used_up(ends[0]);
  const UniqueFd say_used_up(ends[1]);
  pid_t clients[4];
  for (pid_t& client : clients) {
    client = fork();
    if (client != 0) continue;
    char byte = 0;
    if (read(used_up.get(), &byte, 1) != 1) _exit(1);
    const auto fetched = fetch_descriptors(*directory_, self_, monotonic_ns() + kLong);
    _exit(fetched.ok() && same_file(fetched.value().doorbell.get(), bell.get()) ? 0 : 2);
  }
  const DescriptorsUsedUp none;
  EXPECT_EQ(write(say_used_up.get(), "1234", 4), 4);
  for (const pid_t client : clients) {
    int status = -1;
    ASSERT_EQ(waitpid(client, &status, 0), client);
    EXPECT_EQ(status, 0);
  }
}

TEST_F(DescriptorsTest, AProcessWithoutRoomForThemIsToldSo) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd from(ends[0]);
  const UniqueFd to(ends[1]);
  const int both[] = {from.get(), to.get()};
  for (const int left : {0, 1}) {
    ASSERT_TRUE(send_with_fds(to.get(), std::array<std::byte, 1>{}, both));
    const DescriptorsUsedUp used_up(left);
    std::array<std::byte, 8> bytes;
    std::vector<UniqueFd> fds;
    EXPECT_EQ(receive_with_fds(from.get(), bytes, 8, monotonic_ns() + kLong, &fds).code(), Errc::system);
    EXPECT_TRUE(fds.empty());
  }
}

TEST_F(DescriptorsTest, WrongCredentialsGetNoAnswer) {
  EXPECT_EQ(raw_exchange(encode(good_request())), kReplyBytes);
  const auto refused = [&](auto damage) {
    WireupRequest request = good_request();
    damage(request);
    return raw_exchange(encode(request)) == 0;
  };
  EXPECT_TRUE(refused([](WireupRequest& r) { ++r.secret; }));
  EXPECT_TRUE(refused([](WireupRequest& r) { ++r.job_id; }));
  EXPECT_TRUE(refused([](WireupRequest& r) { ++r.request_nonce; }));
  EXPECT_TRUE(refused([](WireupRequest& r) { ++r.process.generation; }));
  EXPECT_TRUE(refused([](WireupRequest& r) { ++r.process.index; }));
  EXPECT_TRUE(refused([](WireupRequest& r) { r.wanted = Wanted::directory; }));  // not shared here
}

TEST_F(DescriptorsTest, MalformedRecordsGetNoAnswer) {
  EXPECT_EQ(raw_exchange(std::vector<std::byte>(kRequestBytes, std::byte{0})), 0u);
  EXPECT_EQ(raw_exchange(std::vector<std::byte>(1, std::byte{1})), 0u);
  EXPECT_EQ(raw_exchange(std::vector<std::byte>(5000, std::byte{1})), 0u);
  auto longer = std::vector<std::byte>(kRequestBytes + 1);
  const auto good = encode(good_request());
  std::copy(good.begin(), good.end(), longer.begin());
  EXPECT_EQ(raw_exchange(longer), 0u);
}

TEST_F(DescriptorsTest, SilentClientsDoNotKeepOthersOut) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(std::move(connect_abstract(server_->socket_name(), monotonic_ns() + kLong)).value());
  }
  EXPECT_TRUE(fetch_descriptors(*directory_, self_, monotonic_ns() + kLong).ok());
}

TEST_F(DescriptorsTest, ANameThatIsTakenIsRefusedAndTheLoserGoesOn) {
  // In any order: that is how the processes of a job find out which one leads.
  const auto second = DescriptorServer::listen(*loop_, server_->socket_name());
  EXPECT_EQ(second.code(), Errc::no_resource);
}

TEST_F(DescriptorsTest, DirectoryIsHandedOutOnceItIsShared) {
  EXPECT_EQ(fetch_directory(server_->socket_name(), monotonic_ns() + kLong).code(), Errc::not_done);
  server_->share_directory();
  auto fd = fetch_directory(server_->socket_name(), monotonic_ns() + kLong);
  ASSERT_TRUE(fd.ok());
  EXPECT_EQ(HostDirectory::open(std::move(fd).value()).value()->job_id(), directory_->job_id());
}

TEST_F(DescriptorsTest, StoppedTargetLetsTheDeadlinePass) {
  Child child([&] {
    auto loop = std::move(EventLoop::start("orrery-child")).value();
    auto server = std::move(DescriptorServer::listen(*loop, member_socket_name("orrery-test"))).value();
    const auto self = directory_->join({.rank = 1, .socket_name = server->socket_name()}).value();
    const bool good = server->serve(*directory_, self).ok();
    (void)loop.release();
    (void)server.release();
    return good ? 0 : 1;
  });
  ASSERT_EQ(child.code(), 0);
  const ProcessRef target = directory_->process_of_rank(1).value();
  EXPECT_TRUE(fetch_descriptors(*directory_, target, monotonic_ns() + kLong).ok());
  ASSERT_EQ(kill(child.pid(), SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child.pid(), &status, WUNTRACED), child.pid());
  EXPECT_EQ(fetch_descriptors(*directory_, target, monotonic_ns() + 30'000'000).code(), Errc::timeout);
  child.kill_and_reap();
  EXPECT_EQ(fetch_descriptors(*directory_, target, monotonic_ns() + kLong).code(), Errc::unreachable);
}

TEST_F(DescriptorsTest, ImpostorAtTheSocketIsRefused) {
  // A process of our user listens where another says it does, and answers without knowing the nonce.
  const std::string name = member_socket_name("orrery-test");
  const UniqueFd listener = std::move(listen_abstract(name)).value();
  const ProcessRef victim = directory_->join({.rank = 5, .socket_name = name}).value();
  const Child child([&] {
    if (fork() != 0) return 0;
    int fd = -1;
    while ((fd = accept(listener.get(), nullptr, nullptr)) < 0) usleep(1000);
    std::array<std::byte, 64> request;
    if (recv(fd, request.data(), request.size(), 0) < 0) _exit(1);
    const auto lie = encode(WireupReply{1, directory_->job_id(), 12345});
    const int fds[] = {0};
    send_with_fds(fd, lie, fds);
    _exit(0);
  });
  EXPECT_EQ(fetch_descriptors(*directory_, victim, monotonic_ns() + kLong).code(), Errc::corrupt);
}

// It takes the question and is killed before it has answered: its end is not taken for a refusal.
TEST_F(DescriptorsTest, AProcessThatEndsWhileItIsAskedIsUnreachable) {
  const std::string name = member_socket_name("orrery-test");
  const UniqueFd listener = std::move(listen_abstract(name)).value();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Child child([&] {
    if (fork() != 0) return 0;
    const char ready = directory_->join({.rank = 6, .socket_name = name}).ok() ? 1 : 0;
    if (write(ends[1], &ready, 1) != 1) _exit(1);
    int fd = -1;
    while ((fd = accept(listener.get(), nullptr, nullptr)) < 0) usleep(1000);
    // As at the end of a process that is killed: the socket is closed, and a little later it is gone.
    shutdown(fd, SHUT_RDWR);
    usleep(5000);
    ::kill(getpid(), SIGKILL);
    return 1;
  });
  char ready = 0;
  ASSERT_EQ(read(ends[0], &ready, 1), 1);
  ASSERT_EQ(ready, 1);
  const ProcessRef ending = directory_->process_of_rank(6).value();
  EXPECT_EQ(fetch_descriptors(*directory_, ending, monotonic_ns() + kLong).code(), Errc::unreachable);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace orrery::job
