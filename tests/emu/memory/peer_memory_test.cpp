// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/cross_attach.hpp"
#include "tests/emu/memory/memory_fixture.hpp"
#include "tests/require.hpp"

#include <atomic>
#include <thread>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace orrery::memory {
namespace {

TEST(PeerMemory, RefusesWhatIsNotAMemoryFile) {
  const int plain = open("/dev/null", O_RDWR);
  EXPECT_EQ(PeerMemory::open(plain, AddressSpace::kSpan).code(), Errc::corrupt);
  close(plain);
  EXPECT_EQ(PeerMemory::open(-1, AddressSpace::kSpan).code(), Errc::corrupt);

  // Not sealed: its owner could cut it off under our loads.
  const int unsealed = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(unsealed, AddressSpace::kSpan), 0);
  EXPECT_EQ(PeerMemory::open(unsealed, AddressSpace::kSpan).code(), Errc::corrupt);
  ASSERT_EQ(fcntl(unsealed, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_TRUE(PeerMemory::open(unsealed, AddressSpace::kSpan).ok());
  EXPECT_EQ(PeerMemory::open(unsealed, AddressSpace::kSpan / 2).code(), Errc::corrupt);
  EXPECT_EQ(PeerMemory::open(unsealed, AddressSpace::kSpan * 2).code(), Errc::corrupt);
  EXPECT_EQ(PeerMemory::open(unsealed, 0).code(), Errc::corrupt);
  EXPECT_EQ(PeerMemory::open(unsealed, 4096).code(), Errc::corrupt);
  close(unsealed);
}

TEST(PeerMemory, GivesTheSameWindowToEveryThread) {
  Rig rig;
  ASSERT_NE(rig.peer, nullptr);
  Pages pages(kBytes);
  std::atomic<std::byte*> first{nullptr};
  std::atomic<int> different{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      std::byte* const base = rig.peer->window(address_of(pages.data())).value().base;
      std::byte* expected = nullptr;
      if (!first.compare_exchange_strong(expected, base) && expected != base) ++different;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(different, 0);
}

TEST(PeerMemory, HasBounds) {
  Rig rig;
  ASSERT_NE(rig.peer, nullptr);
  EXPECT_EQ(rig.peer->window(AddressSpace::kSpan).code(), Errc::bounds);
  EXPECT_EQ(rig.peer->window(~std::uint64_t{0}).code(), Errc::bounds);
  const Window last = rig.peer->window(AddressSpace::kSpan - 1).value();
  EXPECT_EQ(last.va_end, AddressSpace::kSpan);
}

TEST(PeerMemory, OfTheSameProcessIsTheProcess) {
  auto self = PeerMemory::same_process();
  ASSERT_TRUE(self.ok());
  int word = 5;
  EXPECT_EQ(static_cast<void*>(self.value()->window(address_of(&word)).value().at(address_of(&word))), &word);
}

TEST(PeerMemory, OutlivesItsOwnerAndIsNotInherited) {
  // The child is the owner here: adopts, hands the descriptor over (inherited in reverse through /proc) and
  // dies.
  int ready[2], done[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(done), 0);
  const pid_t owner = fork();
  if (owner == 0) {
    Rig rig;
    Pages pages(kBytes);
    std::memset(pages.data(), 'o', kBytes);
    struct {
      std::uint64_t address;
      int file;
    } hello{address_of(pages.data()), rig.space->file()};
    const bool sent =
        rig.adopt(pages.data(), kBytes).ok() && write(ready[1], &hello, sizeof hello) == sizeof hello;
    char byte = 0;
    const bool told = read(done[0], &byte, 1) == 1;
    _exit(sent && told && pages.data()[100] == 'v' ? 0 : 1);
  }
  struct {
    std::uint64_t address;
    int file;
  } hello{};
  ASSERT_EQ(read(ready[0], &hello, sizeof hello), static_cast<ssize_t>(sizeof hello));
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", owner, hello.file);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  ASSERT_GE(file, 0);
  auto peer = PeerMemory::open(file, AddressSpace::kSpan);
  ASSERT_TRUE(peer.ok());
  close(file);
  std::byte* const at = peer.value()->window(hello.address).value().at(hello.address);
  EXPECT_EQ(static_cast<char>(at[7]), 'o');
  at[100] = static_cast<std::byte>('v');
  // A child of the visitor has no window: it cannot scribble over the peer.
  EXPECT_EQ(in_child([&] {
              unsigned char there = 0;
              const int probe =
                  mincore(reinterpret_cast<void*>(address_of(at) & ~(kPageBytes - 1)), 1, &there);
              return probe == -1 ? 0 : 1;
            }),
            0);
  ASSERT_EQ(write(done[1], "x", 1), 1);
  int status = 0;
  waitpid(owner, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(static_cast<char>(at[7]), 'o');
  at[8] = static_cast<std::byte>('x');
  for (const int end : {ready[0], ready[1], done[0], done[1]}) close(end);
}

TEST(CrossAttach, CopiesBothWaysAndTellsWhatIsNotThere) {
  Pages shared_nonce(kPageBytes);
  auto* const nonce = reinterpret_cast<std::uint64_t*>(shared_nonce.data());
  *nonce = 0x1234567890abcdef;
  Pages pages(kBytes);
  std::memset(pages.data(), 'p', kBytes);
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    (void)!read(go[0], &byte, 1);
    _exit(pages.data()[kBytes - 1] == 'w' ? 0 : 1);
  }
  auto peer = CrossAttach::probe(child, address_of(nonce), *nonce);
  // Where ptrace rights are taken away attach is never used: frames are, which other tests hold.
  if (peer.code() == Errc::permission || peer.code() == Errc::unsupported) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    ORRERY_SKIP("attach") << "attach is not allowed here";
  }
  ASSERT_TRUE(peer.ok());
  EXPECT_EQ(CrossAttach::probe(child, address_of(nonce), 1).code(), Errc::no_match);
  EXPECT_EQ(CrossAttach::probe(child, 8, 1).code(), Errc::no_match);
  std::string here(kBytes, 0);
  EXPECT_TRUE(peer.value().read(here.data(), address_of(pages.data()), kBytes).ok());
  EXPECT_EQ(here, std::string(kBytes, 'p'));
  EXPECT_EQ(peer.value().read(here.data(), 8, 16), Status(Errc::bounds));
  std::atomic<std::uint64_t> word{7};
  const auto write_while = [&](std::uint64_t expected, std::uint64_t at, char value) {
    const std::string bytes(kBytes, value);
    return peer.value().write_while(word, expected, at, bytes.data(), kBytes);
  };
  if (CrossAttach::can_write()) {
    EXPECT_TRUE(write_while(7, address_of(pages.data()), 'w').ok());
    EXPECT_EQ(write_while(8, address_of(pages.data()), 'x'), Status(Errc::not_done));
    // Begins well, ends beyond what is mapped.
    EXPECT_EQ(write_while(7, AddressSpace::kSpan - kPageBytes, 'y'), Status(Errc::bounds));
  } else {
    EXPECT_EQ(write_while(7, address_of(pages.data()), 'w'), Status(Errc::unsupported));
  }
  ASSERT_EQ(write(go[1], "x", 1), 1);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), CrossAttach::can_write() ? 0 : 1);
  EXPECT_EQ(peer.value().read(here.data(), address_of(pages.data()), 8), Status(Errc::unreachable));
  EXPECT_EQ(CrossAttach::probe(child, address_of(nonce), *nonce).code(), Errc::unreachable);
  close(go[0]);
  close(go[1]);
}

TEST(CrossAttach, IsToldApartFromNotAllowed) {
  EXPECT_EQ(in_child([] {
              sock_filter program[] = {
                  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
                  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
              };
              const sock_fprog filter{.len = 4, .filter = program};
              prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
              if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) return kSkip;
              std::uint64_t word = 7;
              ORRERY_CHILD_REQUIRE(CrossAttach::probe(getpid(), address_of(&word), word).code() ==
                                   Errc::permission);
              return 0;
            }),
            0);
}

}  // namespace
}  // namespace orrery::memory
