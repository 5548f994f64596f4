// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

// Four processes that post datagrams to each other.
namespace orrery::nic {

struct Mail {
  std::array<std::byte, kDatagramBytes> in{};
  std::uint64_t value() const {
    std::uint64_t v = 0;
    std::memcpy(&v, in.data(), sizeof v);
    return v;
  }
};

class Datagrams : public ::testing::Test {
 protected:
  explicit Datagrams(clock::Clock* clock = nullptr)
      : world(4, box::Path::frame, {}, MAP_PRIVATE, box::World::kLaneBytes, clock) {}
  std::unique_ptr<Endpoint> bound(int from, int to) {
    auto endpoint = world.endpoint(from, to, nullptr);
    endpoint->remote_instance = static_cast<std::uint32_t>(to);
    return endpoint;
  }
  std::unique_ptr<Endpoint> wildcard(int from) {
    auto endpoint = std::make_unique<Endpoint>();
    endpoint->port = &world[from].port();
    return endpoint;
  }
  Errc post(int node, Endpoint& endpoint, std::uint64_t value, Mail& mail,
            std::optional<std::uint64_t> name = std::nullopt) {
    return world[node].nic().datagrams().post(endpoint, std::as_bytes(std::span(&value, 1)), name, mail.in);
  }
  DatagramOutcome test(int node, Endpoint& endpoint) {
    DatagramOutcome outcome;
    EXPECT_EQ(world[node].nic().datagrams().test(endpoint, std::nullopt, &outcome), Errc::ok);
    return outcome;
  }
  DatagramPost& at(int node, std::uint32_t index) {
    return datagrams_of(world[node].nic().view()).posts[index];
  }
  void expect_met(int node, Endpoint& endpoint, int partner, const Mail& mail, std::uint64_t value) {
    const DatagramOutcome outcome = test(node, endpoint);
    EXPECT_EQ(outcome.status, DatagramStatus::completed);
    EXPECT_EQ(outcome.remote_address, static_cast<std::uint32_t>(partner));
    EXPECT_EQ(outcome.remote_instance, static_cast<std::uint32_t>(partner));
    EXPECT_EQ(outcome.bytes, 8u);
    EXPECT_EQ(mail.value(), value);
  }

  box::World world;  // how memory is reached does not matter to them
  Mail a, b, c, d;
};

}  // namespace orrery::nic
