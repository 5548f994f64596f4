// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A flood of strangers beside two processes that talk: connections, garbage, half messages and slow senders.
// Nothing is lost. How fast the talk goes beside it is printed and not asserted: that is the machine's.
#include "tests/emu/wire/ofi_pair.hpp"
#include "tests/emu/wire/stranger.hpp"
#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>

namespace orrery::wire {
namespace {

constexpr std::size_t kStrangers = 100;  // at a time
constexpr std::size_t kPayload = 4000;

// Processor time of the calling thread.
std::int64_t thread_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// What a talk brought over in its time, and in the processor time that it got.
struct Talk {
  std::uint64_t puts = 0;
  std::int64_t ns = 0;
  std::int64_t busy_ns = 0;
  double rate() const { return static_cast<double>(puts) / static_cast<double>(ns) * 1e9; }
  double busy_rate() const { return static_cast<double>(puts) / static_cast<double>(busy_ns) * 1e9; }
};

// Does all of it to both processes, as fast as it goes.
[[noreturn]] void flood(const std::array<sockaddr_in, 2>& victims) {
  std::vector<int> fds(kStrangers, -1);
  std::array<std::byte, 512> garbage{};
  std::uint32_t random = 1;
  for (std::size_t i = 0;; i = (i + 1) % kStrangers) {
    random = random * 1664525 + 1013904223;
    for (auto& byte : garbage) byte = static_cast<std::byte>(random >> (&byte - garbage.data()) % 24);
    const std::uint32_t what = random >> 28;
    if (fds[i] < 0) {
      fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      const sockaddr_in& to = victims[random >> 27 & 1];
      (void)connect(fds[i], reinterpret_cast<const sockaddr*>(&to), sizeof to);
      continue;
    }
    ssize_t sent = 0;
    if (what < 4) {  // goes away
      close(fds[i]);
      fds[i] = -1;
    } else if (what < 8) {
      sent = send(fds[i], garbage.data(), garbage.size(), MSG_NOSIGNAL);
    } else if (what < 12) {  // a byte at a time
      sent = send(fds[i], garbage.data(), 1, MSG_NOSIGNAL);
    } else {  // what libfabric says first, with a hello that is none
      ControlHeader header;
      header.data_bytes = htons(64);
      sent = send(fds[i], &header, sizeof header, MSG_NOSIGNAL | MSG_MORE);
      if (sent > 0) sent = send(fds[i], garbage.data(), 64, MSG_NOSIGNAL);
    }
    if (sent < 0 && errno != EAGAIN && errno != ENOTCONN) {
      close(fds[i]);
      fds[i] = -1;
    }
  }
}

class Flood : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto names = OfiEndpoint::usable_providers();
    if (std::find(names.begin(), names.end(), GetParam()) == names.end())
      ORRERY_SKIP("provider") << "libfabric has no provider " << GetParam() << " here";
  }
};

TEST_P(Flood, LosesNothingOfATalk) {
  const char* const longer = std::getenv("ORRERY_LONG_TESTS");
  const bool is_long = longer != nullptr && *longer != '\0' && *longer != '0';
  const std::int64_t slice_ns = is_long ? 5'000'000'000 : 700'000'000;
  constexpr int kTurns = 4;
  Pair pair([](OfiWireOptions& options, int) { options.provider = GetParam(); });
  const std::array<sockaddr_in, 2> victims{socket_address_of(pair.end[0]->address()),
                                           socket_address_of(pair.end[1]->address())};
  std::uint64_t wrong = 0;
  std::array<std::uint64_t, 2> next{};
  for (std::size_t i = 0; i < 2; ++i) {
    pair.sink[i].on_packet = [&, i](const Packet& packet) {
      const std::uint64_t number = packet.header.event_data;
      wrong += number != next[i]++ || packet.payload.size() != kPayload ||
               packet.payload[number % kPayload] != byte_of(number % 16, number % kPayload);
    };
  }
  std::vector<std::vector<std::byte>> payloads;
  for (std::uint64_t i = 0; i < 16; ++i) payloads.push_back(payload_of(i, kPayload));
  std::array<std::uint64_t, 2> sent{};
  // Adds the puts that arrived, both ways, in a slice of time.
  const auto talk = [&](Talk& all) {
    const std::uint64_t before = pair.sink[0].count + pair.sink[1].count;
    const std::int64_t begin = monotonic_ns();
    const std::int64_t begin_busy = thread_ns();
    const std::int64_t until = begin + slice_ns;
    while (monotonic_ns() < until) {
      for (int from = 0; from < 2; ++from) {
        std::uint64_t& number = sent[static_cast<std::size_t>(from)];
        while (number < pair.sink[1 - from].count + 64 &&
               pair.end[from]
                   ->try_send(Pair::slot_of_other(from), header_of(Verb::put, number, kPayload),
                              payloads[number % 16])
                   .ok())
          ++number;
      }
      pair.poll();
    }
    all.puts += pair.sink[0].count + pair.sink[1].count - before;
    all.ns += monotonic_ns() - begin;
    all.busy_ns += thread_ns() - begin_busy;
  };
  Talk alone;
  Talk beside;
  // The talk beside a process that floods, and beside one that only takes as much of the machine.
  const auto talk_beside = [&](bool floods) {
    const pid_t parent = getpid();
    const pid_t other = fork();
    if (other == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(0);
      if (floods) flood(victims);
      while (true) asm volatile("");
    }
    talk(floods ? beside : alone);
    kill(other, SIGKILL);
    waitpid(other, nullptr, 0);
  };
  for (int turn = 0; turn < kTurns; ++turn) {
    talk_beside(false);
    talk_beside(true);
  }
  EXPECT_TRUE(pair.until([&] { return pair.sink[1].count == sent[0] && pair.sink[0].count == sent[1]; }));
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(beside.puts, 0u);
  EXPECT_TRUE(pair.losses[0].slots.empty() && pair.losses[1].slots.empty());
  std::printf(
      "%s: %.0f puts/s beside a busy process, %.0f beside the flood: %.2f; of its processor time %.2f\n",
      GetParam(), alone.rate(), beside.rate(), beside.rate() / alone.rate(),
      beside.busy_rate() / alone.busy_rate());
}

INSTANTIATE_TEST_SUITE_P(Over, Flood, ::testing::Values("net", "tcp;ofi_rxm"), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), ';', '_');
  return name;
});

}  // namespace
}  // namespace orrery::wire
