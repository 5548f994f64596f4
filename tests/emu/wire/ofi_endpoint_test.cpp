// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Messages between two bare endpoints of one process.
#include "emu/wire/ofi_endpoint.hpp"

#include "tests/emu/wire/ofi_pair.hpp"
#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace orrery::wire {
namespace {

struct End final : OfiEvents {
  std::unique_ptr<OfiEndpoint> endpoint;
  std::vector<std::string> received;
  int reported = 0;

  explicit End(const std::string& provider) {
    std::string why;
    auto opened = OfiEndpoint::open(
        {.provider = provider, .interface = "127.0.0.1", .message_bytes = 4096, .receives = 8, .sends = 4},
        &why);
    EXPECT_TRUE(opened.ok()) << why;
    if (opened.ok()) endpoint = std::move(opened).value();
  }
  void arrived(std::span<const std::byte> message) override {
    received.emplace_back(reinterpret_cast<const char*>(message.data()), message.size());
  }
  void sent(OfiOperation&) override { ++reported; }
  void poll() { endpoint->poll(*this, 16); }
};

class EndpointOf : public ::testing::TestWithParam<const char*> {};

TEST_P(EndpointOf, WhatIsInjectedIsTheCallersAgainAtOnceAndKeepsItsPlace) {
  const auto usable = OfiEndpoint::usable_providers();
  if (std::find(usable.begin(), usable.end(), GetParam()) == usable.end())
    ORRERY_SKIP("provider") << "libfabric has no provider " << GetParam() << " here";
  End from(GetParam());
  End to(GetParam());
  ASSERT_TRUE(from.endpoint && to.endpoint);
  const auto peer = from.endpoint->insert(to.endpoint->address());
  ASSERT_TRUE(peer.ok());
  if (from.endpoint->longest_injected() < 16) GTEST_SKIP() << "the provider injects nothing";

  std::vector<std::string> expected;
  OfiOperation operation;
  for (int i = 0; i < 40; ++i) {
    // Every tenth one is sent the other way, between them.
    const bool injected = i % 10 != 9;
    char text[16];
    const int length = std::snprintf(text, sizeof text, "message %d", i);
    expected.emplace_back(text, static_cast<std::size_t>(length));
    const int reported = from.reported;
    const std::span bytes(from.endpoint->send_buffer(0), static_cast<std::size_t>(length));
    std::memcpy(bytes.data(), text, bytes.size());
    const auto attempt = [&] {
      return injected ? from.endpoint->inject(peer.value(), bytes)
                      : from.endpoint->send(peer.value(), bytes, operation);
    };
    Status status = attempt();
    for (; status.code() == Errc::not_done; status = attempt()) {
      from.poll();
      to.poll();
    }
    ASSERT_TRUE(status.ok()) << i;
    if (injected) std::memset(bytes.data(), '#', bytes.size());
    while (!injected && from.reported == reported) {
      from.poll();
      to.poll();
    }
  }
  while (to.received.size() < expected.size()) {
    from.poll();
    to.poll();
  }
  EXPECT_EQ(to.received, expected);
  EXPECT_EQ(from.reported, 4);
  // What has come about is looked for no more.
  EXPECT_FALSE(from.endpoint->is_connecting());
  EXPECT_FALSE(to.endpoint->is_connecting());
}

INSTANTIATE_TEST_SUITE_P(Providers, EndpointOf, ::testing::Values("net", kProvider));

}  // namespace
}  // namespace orrery::wire
