// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/unique_fd.hpp"
#include "tests/emu/wire/ofi_pair.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::wire {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// The other end is a process that is killed: while frames are under way to it, and while we only wait for it.
void kill_peer_and_wait(bool with_frames) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
  const UniqueFd ours(sockets[0]);
  UniqueFd theirs(sockets[1]);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Collect sink;
    auto wire = open_wire(options_of(11), sink);
    const auto address = wire->address();
    std::byte other[512];
    if (write(theirs.get(), address.data(), address.size()) < 0) _exit(1);
    const ssize_t got = read(theirs.get(), other, sizeof other);
    if (got <= 0 || !wire->add_peer(2, {other, static_cast<std::size_t>(got)}).ok()) _exit(1);
    sink.on_packet = [&](const Packet&) { (void)wire->try_send(2, header_of(Verb::response, 1, 0), {}); };
    for (;;) wire->poll(16);
  }
  Collect sink;
  Losses losses;
  OfiWireOptions options = options_of(10);
  options.unreachable_after_ns = 1'500'000'000;
  options.retransmit_after_ns = 10'000'000;
  auto wire = open_wire(options, sink, &losses);
  std::byte other[512];
  const ssize_t got = read(ours.get(), other, sizeof other);
  ASSERT_GT(got, 0);
  ASSERT_TRUE(wire->add_peer(5, {other, static_cast<std::size_t>(got)}).ok());
  const auto mine = wire->address();
  ASSERT_GT(write(ours.get(), mine.data(), mine.size()), 0);
  ASSERT_TRUE(wire->try_send(5, header_of(Verb::put, 0, 0), {}).ok());
  const std::int64_t start = monotonic_ns();
  while ((sink.count == 0 || !wire->is_idle()) && monotonic_ns() - start < kPatience) wire->poll(16);
  ASSERT_EQ(sink.count, 1u);

  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const std::int64_t killed = monotonic_ns();
  if (with_frames) {
    for (int i = 0; i < 200; ++i)
      (void)wire->try_send(5, header_of(Verb::put, 1, 1000), std::vector<std::byte>(1000));
  } else {
    wire->watch(5, true);
  }
  ::testing::internal::CaptureStderr();
  while (losses.slots.empty() && monotonic_ns() - killed < kPatience) wire->poll(16);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), EndsWith("it counts as dead\n"));
  ASSERT_EQ(losses.slots, std::vector<ProcessSlot>{5});
  EXPECT_GE(monotonic_ns() - killed, options.unreachable_after_ns);
  EXPECT_TRUE(wire->is_lost(5));
  EXPECT_TRUE(wire->is_idle());
  EXPECT_EQ(wire->try_send(5, header_of(Verb::put, 1, 0), {}).code(), Errc::unreachable);
  EXPECT_EQ(wire->poll(16), 0);
}

TEST(OfiWireDeath, FramesToAKilledPeerEndInUnreachable) {
  SKIP_WITHOUT_PROVIDER();
  kill_peer_and_wait(true);
}

TEST(OfiWireDeath, AWatchedPeerThatIsKilledIsNoticed) {
  SKIP_WITHOUT_PROVIDER();
  kill_peer_and_wait(false);
}

// As behind a firewall: no connection ever comes about.
TEST(OfiWireDeath, APeerThatNothingEverCameFromIsNamedWithItsAddress) {
  SKIP_WITHOUT_PROVIDER();
  Collect sink;
  Losses losses;
  OfiWireOptions options = options_of(10);
  options.unreachable_after_ns = 300'000'000;
  auto wire = open_wire(options, sink, &losses);
  auto gone = open_wire(options_of(11), sink);
  ASSERT_TRUE(wire->add_peer(5, gone->address()).ok());
  gone.reset();
  ASSERT_TRUE(wire->try_send(5, header_of(Verb::put, 0, 0), {}).ok());
  ::testing::internal::CaptureStderr();
  const std::int64_t start = monotonic_ns();
  while (losses.slots.empty() && monotonic_ns() - start < kPatience) wire->poll(16);
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      HasSubstr("process 11 did not answer for 300 ms; it counts as dead; nothing ever came from it, at "
                "127.0.0.1:"));
}

}  // namespace
}  // namespace orrery::wire
