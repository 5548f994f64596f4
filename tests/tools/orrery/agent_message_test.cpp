// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/hosts/agent_message.hpp"

#include <gtest/gtest.h>

namespace orrery::tool {
namespace {

StartRequest example() {
  StartRequest request;
  request.size = 5;
  request.first = 3;
  request.count = 2;
  request.bind_to_cores = true;
  request.folder = "/tmp";
  request.command = {"program", "", "two words"};
  request.environment = {"A=1", "B="};
  return request;
}

TEST(AgentMessage, ComesOutAsItWentInHoweverItIsCut) {
  std::string stream;
  write_message(stream, AgentKind::hello, 0, kAgentHello);
  write_message(stream, AgentKind::out, 7, std::string(100'000, 'x'));
  write_message(stream, AgentKind::bye, 0, {});
  for (const std::size_t piece : {std::size_t{1}, std::size_t{4}, std::size_t{4096}, stream.size()}) {
    AgentMessageBuffer buffer;
    std::vector<AgentMessage> got;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      buffer.push(std::string_view(stream).substr(at, piece));
      while (auto message = buffer.pop()) got.push_back(std::move(*message));
    }
    ASSERT_EQ(got.size(), 3u);
    EXPECT_EQ(got[0].bytes, kAgentHello);
    EXPECT_EQ(got[1].rank, 7u);
    EXPECT_EQ(got[1].bytes, std::string(100'000, 'x'));
    EXPECT_EQ(got[2].kind, AgentKind::bye);
    EXPECT_FALSE(buffer.broken());
  }
}

TEST(AgentMessage, WhatIsNoneBreaksTheStream) {
  for (const std::string& bytes :
       {std::string("Welcome to this host\n"), std::string("\x04\0\0\0\x10", 5),
        std::string("\x05\0\0\0\x63\0\0\0\0", 9), std::string("\xff\xff\xff\xff", 4)}) {
    AgentMessageBuffer buffer;
    buffer.push(bytes);
    EXPECT_FALSE(buffer.pop());
    EXPECT_TRUE(buffer.broken());
  }
}

TEST(AgentMessage, StartRequestsRoundTrip) {
  const auto back = decode_start(encode_start(example()));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->size, 5u);
  EXPECT_EQ(back->first, 3u);
  EXPECT_EQ(back->count, 2u);
  EXPECT_TRUE(back->bind_to_cores);
  EXPECT_EQ(back->folder, "/tmp");
  EXPECT_EQ(back->command, example().command);
  EXPECT_EQ(back->environment, example().environment);
}

TEST(AgentMessage, StartRequestsThatSayWhatCannotBeAreRefused) {
  const std::string good = encode_start(example());
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(decode_start(std::string_view(good).substr(0, length))) << length;
  EXPECT_FALSE(decode_start(good + "x"));
  for (const auto change :
       {+[](StartRequest& r) { r.size = 0; }, +[](StartRequest& r) { r.count = 0; },
        +[](StartRequest& r) { r.first = 4; }, +[](StartRequest& r) { r.size = 1u << 20; },
        +[](StartRequest& r) { r.command.clear(); },
        +[](StartRequest& r) { r.folder = std::string("a\0b", 3); }}) {
    StartRequest request = example();
    change(request);
    EXPECT_FALSE(decode_start(encode_start(request)));
  }
}

}  // namespace
}  // namespace orrery::tool
