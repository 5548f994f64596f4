// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/tools/orrery/tool.hpp"

#include "emu/base/unique_fd.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::tool::test {

Ran orrery(std::vector<std::string> args, const std::function<void(pid_t)>& meanwhile) {
  const char* tool = std::getenv("TESTED_TOOL");
  EXPECT_NE(tool, nullptr) << "run this test with ctest";
  if (tool == nullptr) return {};
  int out[2];
  int err[2];
  EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
  EXPECT_EQ(pipe2(err, O_CLOEXEC), 0);
  UniqueFd ends[2] = {UniqueFd(out[0]), UniqueFd(err[0])};
  const pid_t pid = fork();
  if (pid == 0) {
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    std::vector<char*> argv{const_cast<char*>(tool)};
    for (std::string& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    execv(tool, argv.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  Ran ran;
  std::string* const texts[2] = {&ran.out, &ran.err};
  bool told = false;
  while (ends[0].valid() || ends[1].valid()) {
    pollfd fds[2] = {{ends[0].get(), POLLIN, 0}, {ends[1].get(), POLLIN, 0}};
    poll(fds, 2, -1);
    for (int i = 0; i < 2; ++i) {
      if (fds[i].revents == 0) continue;
      std::array<char, 4096> bytes;
      const auto got = read(fds[i].fd, bytes.data(), bytes.size());
      if (got <= 0) {
        ends[i].reset();
      } else {
        texts[i]->append(bytes.data(), static_cast<std::size_t>(got));
      }
      if (i == 0 && !told && meanwhile) {
        told = true;
        meanwhile(pid);
      }
    }
  }
  int status = 0;
  waitpid(pid, &status, 0);
  ran.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return ran;
}

std::set<std::string> shared_places() {
  std::set<std::string> names;
  for (const char* folder : {"/dev/shm", "/tmp"}) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) names.insert(entry.path());
  }
  return names;
}

bool process_with(const std::string& word) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    const std::string line{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (line.find(word) != std::string::npos) return true;
  }
  return false;
}

TempFile::TempFile(const std::string& text) : path_(::testing::TempDir() + "orrery-test-XXXXXX") {
  const UniqueFd fd(mkstemp(path_.data()));
  EXPECT_EQ(write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}
TempFile::~TempFile() { unlink(path_.c_str()); }

}  // namespace orrery::tool::test
