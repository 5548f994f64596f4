// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/tools/orrery/tool.hpp"

#include "emu/base/unique_fd.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::tool::test {

namespace {

// In the environment of everything that descends from this run of the tests: others of the same tree may run
// beside it.
constexpr const char* kMark = "TESTED_BY";
std::string mark_of(pid_t pid) { return std::to_string(pid); }

std::string contents(const std::filesystem::path& path) {
  // By hand: a stream would throw when the process that a file of /proc is about ends meanwhile.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> bytes;
  for (ssize_t got = 0; (got = read(fd.get(), bytes.data(), bytes.size())) > 0;)
    text.append(bytes.data(), static_cast<std::size_t>(got));
  return text;
}

}  // namespace

pid_t fork_marked(const std::function<void()>& child) {
  const std::string mark = mark_of(getpid());
  const pid_t pid = fork();
  if (pid != 0) return pid;
  setenv(kMark, mark.c_str(), 1);
  child();
  _exit(127);
}

void execute_tool(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(std::getenv("TESTED_TOOL"), argv.data());
}

Ran orrery(std::vector<std::string> args, const std::function<void(pid_t)>& meanwhile, int ignored) {
  const char* tool = std::getenv("TESTED_TOOL");
  EXPECT_NE(tool, nullptr) << "run this test with ctest";
  if (tool == nullptr) return {};
  int out[2];
  int err[2];
  EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
  EXPECT_EQ(pipe2(err, O_CLOEXEC), 0);
  UniqueFd ends[2] = {UniqueFd(out[0]), UniqueFd(err[0])};
  args.insert(args.begin(), tool);
  const pid_t pid = fork_marked([&] {
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD})
      signal(number, number == ignored ? SIG_IGN : SIG_DFL);
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    execute_tool(args);
  });
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

std::set<std::string> left_in_shared_places(const std::set<std::string>& before) {
  std::set<std::string> left;
  for (const std::string& name : shared_places()) {
    // The folder of this user's sockets stays.
    if (name == "/tmp/orrery-" + std::to_string(geteuid())) continue;
    if (before.count(name) == 0 && name.find("orrery") != std::string::npos) left.insert(name);
  }
  // What other tests of this user made meanwhile goes; what was left behind stays.
  for (int i = 0; i < 600 && !left.empty(); ++i) {
    usleep(100'000);
    const auto now = shared_places();
    std::erase_if(left, [&](const std::string& name) { return now.count(name) == 0; });
  }
  return left;
}

bool process_with(const std::string& word) {
  // Variables end with a zero each.
  const std::string mark = std::string(kMark) + "=" + mark_of(getpid()) + std::string(1, '\0');
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    if (contents(entry.path() / "cmdline").find(word) != std::string::npos &&
        contents(entry.path() / "environ").find(mark) != std::string::npos)
      return true;
  }
  return false;
}

TempFile::TempFile(const std::string& text) : path_(::testing::TempDir() + "tool-test-XXXXXX") {
  const UniqueFd fd(mkstemp(path_.data()));
  EXPECT_EQ(write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}
TempFile::~TempFile() { unlink(path_.c_str()); }

}  // namespace orrery::tool::test
