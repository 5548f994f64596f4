// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A process whose place in the job was another's before, which this one knew.
#include "emu/base/wait.hpp"
#include "emu/job/job.hpp"
#include "emu/job/placement.hpp"
#include "emu/nic/host/runtime.hpp"
#include "emu/nic/state/hazard.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace orrery::nic {
namespace {

// A process of the job, from join() to end().
class Member {
 public:
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;
  Member() {
    EXPECT_EQ(pipe(to_.data()), 0);
    EXPECT_EQ(pipe(from_.data()), 0);
    pid_ = fork();
    if (pid_ != 0) return;
    char go = 0;
    if (read(to_[0], &go, 1) != 1) _exit(2);
    setenv("PMI_RANK", "1", 1);
    const auto runtime = Runtime::of_process();
    if (!runtime.ok()) _exit(3);
    const auto parent = runtime.value()->process_in(0);
    if (!parent.ok() || !runtime.value()->connect(parent.value()).ok()) _exit(5);
    const ProcessName self = runtime.value()->self();
    if (write(from_[1], &self, sizeof self) != sizeof self) _exit(4);
    (void)!read(to_[0], &go, 1);
    _exit(0);
  }
  ~Member() {
    for (const int end : {to_[0], to_[1], from_[0]}) close(end);
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  ProcessName join() {
    ProcessName name;
    EXPECT_EQ(write(to_[1], "g", 1), 1);
    close(from_[1]);
    EXPECT_EQ(read(from_[0], &name, sizeof name), static_cast<ssize_t>(sizeof name));
    return name;
  }
  void end() {
    int status = 0;
    EXPECT_EQ(write(to_[1], "e", 1), 1);
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    EXPECT_EQ(status, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  std::array<int, 2> to_{-1, -1}, from_{-1, -1};
};

TEST(SlotReuse, TheNextProcessOfASlotIsNotTakenForTheOneBefore) {
  // PEs of a launcher have the slot of their rank.
  std::string why;
  const auto directory =
      job::HostDirectory::create({.pes = job::Placement::blocks(2, 1, &why).value().pes()});
  ASSERT_TRUE(directory.ok());
  setenv("ORRERY_JOB_FD", fmt::format("{}", directory.value()->fd()).c_str(), 1);
  setenv("PMI_FD", "0", 1);  // never touched here
  setenv("PMI_SIZE", "2", 1);
  setenv("PMI_RANK", "0", 1);
  Member first, next;
  const auto made = Runtime::of_process();
  ASSERT_TRUE(made.ok());
  Runtime& runtime = *made.value();
  ASSERT_EQ(runtime.self().slot, 0);
  const ProcessName before = first.join();
  ASSERT_TRUE(runtime.connect(before).ok());
  EXPECT_TRUE(runtime.slot_alive(before.slot));
  first.end();
  while (runtime.slot_alive(before.slot)) yield_cpu();
  // As of one that was killed in the middle of an access.
  auto& touches = runtime.nic().view().hazards(before.slot).slot[1];
  touches.store(hazard_word(7));
  const ProcessName after = next.join();
  EXPECT_EQ(touches.load(), 0u);
  ASSERT_EQ(after.slot, before.slot);
  ASSERT_NE(after.generation, before.generation);
  // It may be at this process's memory, though this one never spoke to it.
  EXPECT_TRUE(runtime.slot_alive(after.slot));
  auto link = runtime.connect(after);
  ASSERT_TRUE(link.ok());
  // What is meant for the one before does not reach it.
  std::uint64_t word = 0;
  const std::uint64_t there = link.value().nic.header().attach_word_address;
  if (runtime.attach_read(after, reinterpret_cast<std::byte*>(&word), there, sizeof word) == Errc::ok) {
    EXPECT_EQ(word, link.value().nic.header().attach_word);
  }
  EXPECT_EQ(runtime.attach_read(before, reinterpret_cast<std::byte*>(&word), there, sizeof word),
            Errc::unreachable);
  EXPECT_EQ(runtime.attach_write(before, link.value().nic.region(0), 0, there,
                                 reinterpret_cast<const std::byte*>(&word), sizeof word),
            Errc::unreachable);
  next.end();
}

}  // namespace
}  // namespace orrery::nic
