// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/socket_folder.hpp"

#include "emu/base/wait.hpp"
#include "emu/job/abstract_socket.hpp"
#include "tests/emu/job/child.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace orrery::job {
namespace {

using test::Child;
using test::kLong;

class SocketFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() / "orrery-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(path_.data()), nullptr);
    setenv("ORRERY_SOCKETS", path_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("ORRERY_SOCKETS");
    unsetenv("XDG_RUNTIME_DIR");
    std::filesystem::remove_all(path_);
  }
  bool is_there(const std::string& name) const { return access((path_ + name).c_str(), F_OK) == 0; }
  // As if the last look for what was left behind were long ago.
  void let_sweep() const {
    const timespec long_ago[2] = {{1, 0}, {1, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, (path_ + "/.lock").c_str(), long_ago, 0), 0);
  }
  std::string path_;
};

TEST_F(SocketFolder, WhatListensIsReachedAndNamed) {
  const auto listener = listen_at("/one.leader");
  ASSERT_TRUE(listener.ok());
  EXPECT_EQ(listen_at("/one.leader").code(), Errc::no_resource);
  EXPECT_TRUE(connect_to("/one.leader", monotonic_ns() + kLong).ok());
  EXPECT_EQ(connect_to("/one.other", monotonic_ns() + kLong).code(), Errc::unreachable);
  EXPECT_EQ(socket_names("/one."), std::vector<std::string>{"/one.leader"});
  EXPECT_TRUE(socket_names("/two.").empty());
  remove_from_folder("/one.leader");
  EXPECT_EQ(connect_to("/one.leader", monotonic_ns() + kLong).code(), Errc::unreachable);
}

TEST_F(SocketFolder, NamesLeadNowhereElse) {
  for (const char* const name : {"/", "/..", "/../x", "/a/b", "/.lock", "x"}) {
    EXPECT_FALSE(is_in_folder(name)) << name;
    EXPECT_EQ(listen_in_folder(name).code(), Errc::invalid_param) << name;
    EXPECT_EQ(connect_in_folder(name, monotonic_ns() + kLong).code(), Errc::invalid_param) << name;
  }
  EXPECT_EQ(listen_at("/" + std::string(120, 'x')).code(), Errc::size);
}

TEST_F(SocketFolder, WhatAKilledProcessLeftIsTakenOverAndRemoved) {
  {
    Child killed([&] {
      return listen_at("/a").value().release() >= 0 && listen_at("/b").value().release() >= 0 ? 0 : 1;
    });
    ASSERT_EQ(killed.code(), 0);
    EXPECT_EQ(listen_at("/a").code(), Errc::no_resource);
    let_sweep();
    EXPECT_TRUE(listen_at("/c").ok());
    EXPECT_TRUE(is_there("/a") && is_there("/b")) << "they live";
  }
  EXPECT_EQ(connect_to("/a", monotonic_ns() + kLong).code(), Errc::unreachable);
  const auto again = listen_at("/a");
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(connect_to("/a", monotonic_ns() + kLong).ok());
  EXPECT_TRUE(is_there("/b"));
  let_sweep();
  const auto later = listen_at("/d");
  EXPECT_FALSE(is_there("/b") || is_there("/c")) << "no process listens there any more";
  EXPECT_TRUE(is_there("/a") && is_there("/d"));
}

TEST_F(SocketFolder, OfManyAtOnceOneGetsTheName) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(std::make_unique<Child>([&] {
      if (fork() != 0) return 0;  // the parent says ready at once, the child races
      auto fd = listen_at("/raced");
      const char won = fd.ok() ? 1 : fd.code() == Errc::no_resource ? 0 : 2;
      if (write(ends[1], &won, 1) != 1) _exit(1);
      sleep(20);
      _exit(0);
    }));
  }
  int winners = 0;
  for (int i = 0; i < 8; ++i) {
    char won = 2;
    ASSERT_EQ(read(ends[0], &won, 1), 1);
    EXPECT_NE(won, 2);
    winners += won;
  }
  EXPECT_EQ(winners, 1);
}

TEST_F(SocketFolder, AFolderThatOthersMayEnterIsNone) {
  ASSERT_EQ(chmod(path_.c_str(), 0755), 0);
  EXPECT_EQ(socket_folder(), "");
  EXPECT_EQ(listen_at("/x").code(), Errc::invalid_param);
  setenv("ORRERY_SOCKETS", "abstract", 1);
  EXPECT_EQ(socket_folder(), "");
  // Unset: one that the session made, and another one where that is not private.
  unsetenv("ORRERY_SOCKETS");
  setenv("XDG_RUNTIME_DIR", path_.c_str(), 1);
  EXPECT_EQ(socket_folder(), path_ + "/orrery");
  const auto listener = listen_at("/y");
  ASSERT_TRUE(listener.ok());
  // A process of the job without that variable makes its own elsewhere and finds this one all the same.
  ASSERT_EQ(chmod((path_ + "/orrery").c_str(), 0777), 0);
  EXPECT_NE(socket_folder(), path_ + "/orrery");
  ASSERT_EQ(chmod((path_ + "/orrery").c_str(), 0700), 0);
  EXPECT_TRUE(connect_to("/y", monotonic_ns() + kLong).ok());
}

TEST(SocketName, OfALineOfTheKernels) {
  EXPECT_EQ(listening_name("0000000000000000: 00000002 00000000 00010000 0005 01 12345 @orrery.0.x\n"),
            "orrery.0.x");
  EXPECT_FALSE(listening_name("0000000000000000: 00000002 00000000 00000000 0005 03 12345 @orrery.0.x\n"));
  EXPECT_FALSE(listening_name("0000000000000000: 00000002 00000000 00000000 0005 03 1 @x 00010000 y\n"))
      << "the flag stands in a name";
  EXPECT_FALSE(listening_name(""));
  EXPECT_FALSE(listening_name("\n"));
}

}  // namespace
}  // namespace orrery::job
