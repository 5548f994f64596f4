// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/last_thread.hpp"

#include "emu/base/start_thread.hpp"
#include "emu/base/wait.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace orrery {

namespace {

constexpr std::int64_t kLookNs = 50'000'000;

// The first thread is left as a zombie: "pid (name) Z". Another one that ends just now may have started one
// that the list does not have yet: it counts until a later look.
bool is_of_the_program(const char* task) {
  std::array<char, 300> path;
  std::snprintf(path.data(), path.size(), "/proc/self/task/%s/stat", task);
  const int fd = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  std::array<char, 128> text;
  const ssize_t got = read(fd, text.data(), text.size());
  close(fd);
  const std::string_view stat(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  const std::size_t name = stat.find('('), end = stat.rfind(')');
  if (name == stat.npos || end == stat.npos || end + 2 >= stat.size()) return true;
  const bool is_first = std::strtol(task, nullptr, 10) == getpid();
  return !(is_first && stat[end + 2] == 'Z') && stat.substr(name + 1, 7) != "orrery-";
}

bool some_of_the_program_are_left() {
  DIR* const tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return true;  // nothing is known
  bool some = false;
  while (const dirent* const task = readdir(tasks))
    some = some || (task->d_name[0] != '.' && is_of_the_program(task->d_name));
  closedir(tasks);
  return some;
}

void* wait_for_the_last(void*) {
  mark_runtime_thread();
  FutexWord never{0};
  while (some_of_the_program_are_left()) (void)futex_wait_for(never, 0, kLookNs);
  std::exit(0);
}

// Runs when the first thread calls pthread_exit, and not when the process ends otherwise.
void first_thread_has_ended(void*) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  if (create_runtime_thread(&thread, wait_for_the_last, nullptr) == 0) {
    pthread_setname_np(thread, "orrery-last");
    pthread_detach(thread);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void end_with_the_programs_last_thread() {
  static pthread_key_t key;
  static const bool has_key = pthread_key_create(&key, first_thread_has_ended) == 0;
  if (has_key && gettid() == getpid()) pthread_setspecific(key, &key);
}

}  // namespace orrery
