// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

namespace orrery::tool::test {

struct Ran {
  int code = -1;  // exit code; 128 + n when killed by signal n
  std::string out;
  std::string err;
};

// Runs the command of this build (TESTED_TOOL) with `args`, and waits for it. `meanwhile` is called with its
// pid once it has written something to stdout, or has ended. Input is empty.
// `ignored`: a signal that it is started to ignore; others are not, whatever this test was started to.
Ran orrery(std::vector<std::string> args, const std::function<void(pid_t)>& meanwhile = nullptr,
           int ignored = 0);

// Runs `child` in a new process, which ends after it with 127; process_with() finds it and what descends from
// it. Returns its pid, -1 (errno) when there is none.
pid_t fork_marked(const std::function<void()>& child);

// Becomes the command of this build with `words` as its argv; returns when it cannot.
void execute_tool(std::vector<std::string> words);

// Names in /dev/shm and /tmp.
std::set<std::string> shared_places();

// Those with our name in them that are new since `before` and stay for a minute.
std::set<std::string> left_in_shared_places(const std::set<std::string>& before);

// Whether a process whose command line has `word` descends from this test; zombies do not count.
bool process_with(const std::string& word);

// A file in the system's temporary folder with `text` in it, removed at the end.
class TempFile {
 public:
  explicit TempFile(const std::string& text);
  ~TempFile();
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace orrery::tool::test
