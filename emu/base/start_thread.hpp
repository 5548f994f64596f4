// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include <pthread.h>

namespace orrery {

inline constexpr std::int64_t kThreadPatienceNs = 100'000'000;

// Starts `thread`, which must not be joinable, with `body`. std::thread's own constructor throws where the
// kernel or a limit of the user (RLIMIT_NPROC, a cgroup's pids.max) has no room for a thread, which ends a
// program built without exceptions. False: there was no room for `patience_ns`, `thread` is as it was. Any
// thread.
bool start_thread(std::thread& thread, std::function<void()> body,
                  std::int64_t patience_ns = kThreadPatienceNs);

// pthread_create(3) for a thread of the runtime's, through a sanitizer's where there is one.
int create_runtime_thread(pthread_t* thread, void* (*body)(void*), void* argument);

// Whether the calling thread is in one of these: what is created then is no thread of the program's.
bool starts_runtime_thread();

// As start_thread(), detached, and waits as long as it takes; says in the log that it waits. `name`: the
// thread's, as the kernel shows it: "orrery-" and 8 characters at most (last_thread.hpp).
void start_detached_thread(const char* name, const std::function<void()>& body);

}  // namespace orrery
