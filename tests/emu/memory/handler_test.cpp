// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
// The SIGSEGV handler beside the program's own. Each case runs in a child process, since most of them end it.
#include "emu/memory/fault_handler.hpp"
#include "emu/memory/guarded.hpp"
#include "tests/emu/memory/memory_fixture.hpp"
#include "tests/require.hpp"

#include <atomic>
#include <csetjmp>
#include <cstdint>
#include <thread>

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::memory {
namespace {

// A real fault, at an address that the compiler does not know.
void write_to_nowhere() {
  volatile std::uintptr_t nowhere = 8;
  *reinterpret_cast<volatile char*>(nowhere) = 1;
}

// Sanitizers have handlers of their own that report and exit.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

std::atomic<int> g_program_faults{0};
std::atomic<void*> g_fault_address{nullptr};
sigjmp_buf g_back;

void program_handler(int, siginfo_t* info, void*) {
  ++g_program_faults;
  g_fault_address = info->si_addr;
  siglongjmp(g_back, 1);
}

void install_program_handler() {
  struct sigaction action {};
  action.sa_sigaction = &program_handler;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
}

struct sigaction g_saved {};
// A library's handler that looks and passes on to the one before it.
void passing_handler(int number, siginfo_t* info, void* context) {
  ++g_program_faults;
  if ((g_saved.sa_flags & SA_SIGINFO) != 0)
    g_saved.sa_sigaction(number, info, context);
  else
    signal(number, SIG_DFL);
}

void install_passing_handler() {
  struct sigaction action {};
  action.sa_sigaction = &passing_handler;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, &g_saved);
}

// Adopts while a thread writes, so that faults of ours certainly happen; whether no write was lost.
bool adopt_beside_writer(Rig& rig, char* at) {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> writes{0};
  auto* const word = reinterpret_cast<std::atomic<std::uint64_t>*>(at);
  word->store(0);
  std::thread writer([&] {
    while (!stop) {
      word->fetch_add(1, std::memory_order_relaxed);
      ++writes;
    }
  });
  bool good = true;
  const std::uint64_t waited = rig.space->stats().faults_waited;
  for (int round = 0; good && (round < 50 || rig.space->stats().faults_waited == waited); ++round) {
    good = rig.adopt(at, kBytes).ok() && rig.release(at, kBytes).ok();
    if (round > 100'000) good = false;
  }
  stop = true;
  writer.join();
  return good && word->load() == writes;
}

int real_fault_is_the_programs(Rig& rig, char* at) {
  static char* no_access;
  no_access = at + 3 * kPageBytes;
  ORRERY_CHILD_REQUIRE(rig.adopt(at, kBytes).ok());
  ORRERY_CHILD_REQUIRE(mprotect(no_access, kPageBytes, PROT_NONE) == 0);
  for (int times = 1; times <= 3; ++times) {
    if (sigsetjmp(g_back, 1) == 0) {
      *static_cast<volatile char*>(no_access) = 1;
      return 2;
    }
    ORRERY_CHILD_REQUIRE(g_program_faults == times);
    ORRERY_CHILD_REQUIRE(g_fault_address == no_access);
  }
  return 0;
}

TEST(Handler, InstalledBeforeOursGetsOnlyRealFaults) {
  ORRERY_SKIP_WITHOUT(Method::protect);
  EXPECT_EQ(in_child([] {
              install_program_handler();
              Rig rig(Method::protect);
              Pages pages(kBytes);
              ORRERY_CHILD_REQUIRE(adopt_beside_writer(rig, pages.data()));
              ORRERY_CHILD_REQUIRE(g_program_faults == 0);
              return real_fault_is_the_programs(rig, pages.data());
            }),
            0);
}

TEST(Handler, InstalledAfterOursGetsOnlyRealFaults) {
  ORRERY_SKIP_WITHOUT(Method::protect);
  EXPECT_EQ(in_child([] {
              Rig rig(Method::protect);
              Pages pages(kBytes);
              ORRERY_CHILD_REQUIRE(rig.adopt(pages.data(), 1).ok());
              install_program_handler();
              ORRERY_CHILD_REQUIRE(adopt_beside_writer(rig, pages.data()));
              ORRERY_CHILD_REQUIRE(g_program_faults == 0);
              return real_fault_is_the_programs(rig, pages.data());
            }),
            0);
}

TEST(Handler, ThatPassesOnToOursEndsInTheDefaultAction) {
  // Dying of SIGSEGV is what is tested, and a sanitizer turns that into a report and an exit code. The
  // release suite runs it.
  if (kSanitized) GTEST_SKIP() << "the sanitizer's own handler is the default action";
  EXPECT_EQ(in_child([] {
              Rig rig(Method::protect);
              Pages pages(kBytes);
              ORRERY_CHILD_REQUIRE(rig.adopt(pages.data(), 1).ok());
              install_passing_handler();
              // Ours goes in front again; the chain is now a ring.
              ORRERY_CHILD_REQUIRE(adopt_beside_writer(rig, pages.data()));
              ORRERY_CHILD_REQUIRE(g_program_faults == 0);
              write_to_nowhere();
              return 0;
            }),
            1000 + SIGSEGV);
}

TEST(Handler, LetsARealFaultKill) {
  // As above: the death itself is tested, by the release suite.
  if (kSanitized) GTEST_SKIP() << "the sanitizer reports and exits";
  for (const Method method : {Method::userfault, Method::protect}) {
    EXPECT_EQ(in_child([&] {
                Rig rig(method);
                Pages pages(kBytes);
                ORRERY_CHILD_REQUIRE(rig.adopt(pages.data(), kBytes).ok());
                write_to_nowhere();
                return 0;
              }),
              1000 + SIGSEGV);
    EXPECT_EQ(in_child([&] {
                Rig rig(method);
                Pages pages(kBytes, PROT_READ | PROT_WRITE);
                ORRERY_CHILD_REQUIRE(rig.adopt(pages.data(), kBytes).ok());
                raise(SIGSEGV);
                return 0;
              }),
              1000 + SIGSEGV);
  }
}

TEST(Handler, IsNotNeededWhereUserfaultHoldsWriters) {
  const int code = in_child([] {
    Rig rig;
    if (rig.space->stats().blocker == Blocker::protect) return kSkip;
    Pages pages(kBytes);
    std::atomic<bool> stop{false}, ready{false};
    std::uint64_t writes = 0;
    auto* const word = reinterpret_cast<std::atomic<std::uint64_t>*>(pages.data());
    // A fault by signal would kill this thread.
    std::thread writer([&] {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_BLOCK, &all, nullptr);
      ready = true;
      for (; !stop; ++writes) word->fetch_add(1, std::memory_order_relaxed);
    });
    while (!ready) std::this_thread::yield();
    for (int round = 0; round < 200; ++round) {
      ORRERY_CHILD_REQUIRE(rig.adopt(pages.data(), kBytes).ok());
      ORRERY_CHILD_REQUIRE(rig.release(pages.data(), kBytes).ok());
    }
    stop = true;
    writer.join();
    ORRERY_CHILD_REQUIRE(word->load() == writes);
    return 0;
  });
  // Old kernels and containers refuse the call; the method by mprotect has tests of its own.
  if (code == kSkip) ORRERY_SKIP("userfaultfd") << "no userfaultfd here";
  EXPECT_EQ(code, 0);
}

TEST(Handler, AThreadThatBlocksFaultsKeepsMemoryOutOfTheFile) {
  ORRERY_SKIP_WITHOUT(Method::protect);
  EXPECT_EQ(in_child([] {
              Rig rig(Method::protect);
              Pages pages(kBytes);
              std::atomic<bool> stop{false}, ready{false};
              std::thread blocker([&] {
                sigset_t all;
                sigfillset(&all);
                pthread_sigmask(SIG_BLOCK, &all, nullptr);
                ready = true;
                while (!stop) pages.data()[0] = static_cast<char>(pages.data()[0] + 1);
              });
              while (!ready) std::this_thread::yield();
              const Status status = rig.adopt(pages.data(), kBytes);
              stop = true;
              blocker.join();
              ORRERY_CHILD_REQUIRE(status == Status(Errc::invalid_state));
              ORRERY_CHILD_REQUIRE(rig.adopt(pages.data(), kBytes).ok());
              return 0;
            }),
            0);
}

// Whether a guarded run that follows puts our handler in front of one that the program has just installed.
bool a_guarded_run_looks() {
  install_program_handler();
  run_guarded([](void*) {}, nullptr);
  struct sigaction now {};
  sigaction(SIGSEGV, nullptr, &now);
  return now.sa_sigaction != &program_handler;
}

TEST(Handler, OfManyGuardedRunsOneLooksForEachCallWhileSomebodyCalls) {
  EXPECT_EQ(in_child([] {
              ORRERY_CHILD_REQUIRE(a_guarded_run_looks());
              ORRERY_CHILD_REQUIRE(a_guarded_run_looks());
              for (int calls = 0; calls < 3; ++calls) {
                call_for_fault_handler_look();
                ORRERY_CHILD_REQUIRE(a_guarded_run_looks());
                ORRERY_CHILD_REQUIRE(!a_guarded_run_looks());
              }
              renew_fault_handler_look();
              ORRERY_CHILD_REQUIRE(a_guarded_run_looks());
              ORRERY_CHILD_REQUIRE(!a_guarded_run_looks());
              look_for_fault_handler_each_time();
              renew_fault_handler_look();  // by a thread that does not know that no other calls any more
              ORRERY_CHILD_REQUIRE(a_guarded_run_looks());
              ORRERY_CHILD_REQUIRE(a_guarded_run_looks());
              // There are no calls in a process that is forked from one where a thread makes them.
              call_for_fault_handler_look();
              ORRERY_CHILD_REQUIRE(a_guarded_run_looks());
              Rig rig(Method::protect);
              const pid_t child = fork();
              if (child == 0) _exit(a_guarded_run_looks() ? 0 : 1);
              int status = -1;
              ORRERY_CHILD_REQUIRE(waitpid(child, &status, 0) == child);
              ORRERY_CHILD_REQUIRE(status == 0);
              return 0;
            }),
            0);
}

}  // namespace
}  // namespace orrery::memory
