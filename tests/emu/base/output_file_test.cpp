// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/output_file.hpp"

#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace orrery {
namespace {

struct Folder : ::testing::Test {
  void SetUp() override {
    path = (std::filesystem::temp_directory_path() / "orrery-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    std::ofstream(path + "/precious") << "precious";
  }
  void TearDown() override { std::filesystem::remove_all(path); }
  std::string at(const char* name) const { return path + "/" + name; }
  std::string read(const char* name) const {
    std::stringstream text;
    text << std::ifstream(at(name)).rdbuf();
    return text.str();
  }
  std::string path;
};

using OutputFile = Folder;

void write_and_close(int fd, const char* text) {
  ASSERT_GE(fd, 0);
  ASSERT_GT(write(fd, text, std::string_view(text).size()), 0);
  close(fd);
}

TEST_F(OutputFile, ANewFileReplacesOnesOwnAndNothingElse) {
  write_and_close(create_file(at("pe.0").c_str()), "first");
  write_and_close(create_file(at("pe.0").c_str()), "2nd");
  EXPECT_EQ(read("pe.0"), "2nd");
  write_and_close(append_to_file(at("pe.0").c_str()), "+");
  EXPECT_EQ(read("pe.0"), "2nd+");
}

TEST_F(OutputFile, ALinkThatAnotherUserHasPutThereIsNotFollowed) {
  ASSERT_EQ(symlink(at("precious").c_str(), at("pe.0").c_str()), 0);
  EXPECT_EQ(create_file(at("pe.0").c_str()), -1);
  EXPECT_EQ(errno, EEXIST);
  EXPECT_EQ(append_to_file(at("pe.0").c_str()), -1);
  EXPECT_EQ(open_created(at("pe.0").c_str()), -1);
  ASSERT_EQ(symlink("/nowhere/at/all", at("pe.1").c_str()), 0);
  EXPECT_EQ(create_file(at("pe.1").c_str()), -1);
  ASSERT_EQ(link(at("precious").c_str(), at("pe.2").c_str()), 0);
  EXPECT_EQ(append_to_file(at("pe.2").c_str()), -1) << "another name of a file is not added to";
  EXPECT_EQ(read("precious"), "precious");
}

TEST_F(OutputFile, AnotherUsersFileIsLeftAlone) {
  if (geteuid() != 0) ORRERY_SKIP("root") << "no file of another user can be made";
  ASSERT_EQ(chown(at("precious").c_str(), 61234, 61234), 0);
  EXPECT_EQ(create_file(at("precious").c_str()), -1);
  EXPECT_EQ(append_to_file(at("precious").c_str()), -1);
  EXPECT_EQ(open_created(at("precious").c_str()), -1);
  EXPECT_EQ(read("precious"), "precious");
}

TEST_F(OutputFile, AFifoIsNotWaitedFor) {
  ASSERT_EQ(mkfifo(at("fifo").c_str(), 0600), 0);
  EXPECT_EQ(open_output(at("fifo").c_str()), -1);
  EXPECT_EQ(errno, ENXIO);
  EXPECT_EQ(create_file(at("fifo").c_str()), -1);
  EXPECT_EQ(append_to_file(at("fifo").c_str()), -1);
  EXPECT_EQ(open_created(at("fifo").c_str()), -1);
  // One with a reader is written to, and the file that the user named, too, by whatever name.
  const int reader = open(at("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  write_and_close(open_output(at("fifo").c_str()), "x");
  close(reader);
  ASSERT_EQ(symlink(at("precious").c_str(), at("named").c_str()), 0);
  write_and_close(open_output(at("named").c_str()), "new");
  EXPECT_EQ(read("precious"), "new");
}

}  // namespace
}  // namespace orrery
