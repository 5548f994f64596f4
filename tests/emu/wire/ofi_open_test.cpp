// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What is opened, and what is said about what is not.
#include "tests/emu/wire/ofi_pair.hpp"
#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::wire {
namespace {

TEST(OfiWireOpen, RefusedProviderComesWithReasonAndChoices) {
  SKIP_WITHOUT_PROVIDER();
  Collect sink;
  std::string why;
  OfiWireOptions options = options_of(1);
  options.provider = "carrier_pigeon";
  EXPECT_EQ(OfiWire::open(options, sink, nullptr, &why).code(), Errc::unsupported);
  EXPECT_NE(why.find("carrier_pigeon"), std::string::npos) << why;
  EXPECT_NE(why.find(kProvider), std::string::npos) << why;
  options = options_of(1);
  options.interface = "nosuch0";
  EXPECT_EQ(OfiWire::open(options, sink, nullptr, &why).code(), Errc::unsupported);
  EXPECT_NE(why.find("nosuch0"), std::string::npos) << why;
  EXPECT_NE(why.find("lo"), std::string::npos) << why;
  // Of the documentation's range: no host has it.
  options.interface = "192.0.2.1";
  EXPECT_EQ(OfiWire::open(options, sink, nullptr, &why).code(), Errc::unsupported);
  EXPECT_EQ(why.find("192.0.2.1 is no address of this host; it has: "), 0u) << why;
}

TEST(OfiWireOpen, WithoutAWayToOtherHostsAllProvidersTogetherTakeThreeSeconds) {
  // A host of its own that has the loopback alone.
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!provider_is_here() || unshare(CLONE_NEWNET) != 0) _exit(77);
    Collect sink;
    std::string why;
    OfiWireOptions options = options_of(1);
    options.provider = kAutomatic;
    options.interface.clear();
    options.other_hosts = true;
    const std::int64_t start = monotonic_ns();
    const bool refused = OfiWire::open(options, sink, nullptr, &why).code() == Errc::unsupported;
    const std::int64_t took = monotonic_ns() - start;
    std::fprintf(stderr, "%s, after %lld ms\n", why.c_str(), static_cast<long long>(took / 1'000'000));
    _exit(refused && took < 6'000'000'000 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
    ORRERY_SKIP("namespaces") << "no provider, or no network namespace may be made";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace orrery::wire
