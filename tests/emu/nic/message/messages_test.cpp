// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/message/messages.hpp"

#include "tests/emu/nic/parts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace orrery::nic {
namespace {

constexpr MailboxShape kShape{.credits = 2, .max_bytes = 64};

std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// One end of a connection.
struct End {
  explicit End(parts::Node& node)
      : poster(node),
        messages(node.regions, poster.initiator, node.moves),
        key(node.expose(box, sizeof box)) {}
  parts::Poster poster;
  Messages messages;
  alignas(4096) std::byte box[4096] = {};
  MemKey key;
  MailboxPlace place() const { return {.key = key, .address = reinterpret_cast<std::uint64_t>(box)}; }
  Mailbox& mailbox() { return *poster.endpoint.mailbox; }
  // The word of its next message; 0: none has come.
  std::uint64_t next_word() {
    std::uint64_t word = 0;
    std::memcpy(&word, mailbox().next_slot(), sizeof word);
    return word;
  }
  std::string_view next_text() {
    return {reinterpret_cast<const char*>(mailbox().next_slot()) + kMessageHeaderBytes,
            message_word::bytes(next_word())};
  }
};

struct Connected : ::testing::Test {
  parts::Pair pair;
  End a{pair.a};
  End b{pair.b};
  void open() {
    ASSERT_EQ(a.messages.open(a.poster.endpoint, kShape, a.place(), b.place()), Errc::ok);
    ASSERT_EQ(b.messages.open(b.poster.endpoint, kShape, b.place(), a.place()), Errc::ok);
  }
  Errc send(std::string_view header, std::string_view data, std::uint8_t tag = 3) {
    return a.messages.send_slowly(a.poster.endpoint, bytes_of(header), bytes_of(data), 77, tag);
  }
};

TEST_F(Connected, AMessageIsItsHeaderAndItsDataAndEndsInAnEvent) {
  open();
  ASSERT_EQ(send("head", "data"), Errc::ok);
  pair.settle();
  const std::uint64_t word = b.next_word();
  ASSERT_TRUE(message_word::is(word, 0));
  EXPECT_EQ(message_word::tag(word), 3u);
  EXPECT_EQ(b.next_text(), "headdata");
  Event event;
  ASSERT_EQ(a.poster.queue->take(&event), Errc::ok);
  EXPECT_EQ(event.kind, EventKind::message_sent);
  EXPECT_EQ(event.data, 77u);
}

TEST_F(Connected, WithoutCreditNothingIsSentAndTheNicIsMoved) {
  open();
  ASSERT_EQ(send("", "one"), Errc::ok);
  ASSERT_EQ(send("", "two"), Errc::ok);
  const int before = pair.a.moves.calls;
  EXPECT_EQ(send("", "three"), Errc::not_done);
  EXPECT_GT(pair.a.moves.calls, before);
  pair.settle();
  EXPECT_EQ(a.mailbox().sent, 2u);
  // The receiver lets the first go.
  b.mailbox().count_next();
  b.messages.send_credit_slowly(b.poster.endpoint);
  pair.settle();
  EXPECT_EQ(send("", "three"), Errc::ok);
  pair.settle();
  EXPECT_EQ(b.next_text(), "two");
}

TEST_F(Connected, TheSourceMayChangeOnceTheMessageWasAccepted) {
  open();
  std::array<char, 3> text{'o', 'n', 'e'};
  ASSERT_EQ(send("", {text.data(), text.size()}), Errc::ok);
  text = {'x', 'x', 'x'};
  pair.settle();
  EXPECT_EQ(b.next_text(), "one");
}

TEST_F(Connected, AReleaseThatThePeerCannotHaveMadeBreaksTheConnection) {
  open();
  ASSERT_EQ(send("", "one"), Errc::ok);
  ASSERT_EQ(send("", "two"), Errc::ok);
  a.mailbox().released_word().store(9);
  EXPECT_EQ(send("", "three"), Errc::invalid_state);
  a.mailbox().released_word().store(2);
  EXPECT_EQ(send("", "three"), Errc::invalid_state) << "for good";
}

TEST_F(Connected, ADeadPeerIsSentNothingMore) {
  open();
  a.mailbox().peer->dead.store(true);
  EXPECT_EQ(send("", "one"), Errc::invalid_state);
  EXPECT_EQ(a.mailbox().sent, 0u);
}

TEST_F(Connected, ACreditThatIsOwedGoesWithTheNextLook) {
  open();
  b.mailbox().count_next();
  b.mailbox().credit_owed = true;
  EXPECT_EQ(b.messages.find_none(b.poster.endpoint), Errc::not_done);
  EXPECT_FALSE(b.mailbox().credit_owed);
  pair.settle();
  EXPECT_EQ(a.mailbox().released_word().load(), 1u);
  b.mailbox().garbled = true;
  EXPECT_EQ(b.messages.find_none(b.poster.endpoint), Errc::invalid_state);
}

TEST_F(Connected, OpensOnceAndOnlyWhatFits) {
  Endpoint& endpoint = a.poster.endpoint;
  const auto open_as = [&](const MailboxShape& shape, const MailboxPlace& local, const MailboxPlace& remote) {
    return a.messages.open(endpoint, shape, local, remote);
  };
  EXPECT_EQ(open_as({.credits = 0, .max_bytes = 8}, a.place(), b.place()), Errc::invalid_param);
  EXPECT_EQ(open_as({.credits = 1, .max_bytes = kMaxMessageBytes + 1}, a.place(), b.place()),
            Errc::invalid_param);
  EXPECT_EQ(open_as(kShape, a.place(), {}), Errc::invalid_param) << "a mailbox of no key";
  EXPECT_EQ(open_as({.credits = 100, .max_bytes = 64}, a.place(), b.place()), Errc::bounds);
  EXPECT_EQ(endpoint.mailbox, nullptr);
  EXPECT_EQ(open_as(kShape, a.place(), b.place()), Errc::ok);
  EXPECT_EQ(open_as(kShape, a.place(), b.place()), Errc::invalid_state);
}

TEST_F(Connected, APeerThatIsGoneMayHaveSentBefore) {
  pair.a.host.others[1] = nullptr;
  ASSERT_EQ(a.messages.open(a.poster.endpoint, kShape, a.place(), b.place()), Errc::ok);
  EXPECT_TRUE(a.mailbox().broken.load());
  EXPECT_EQ(a.messages.find_none(a.poster.endpoint), Errc::not_done);
  EXPECT_EQ(send("", "one"), Errc::invalid_state);
}

}  // namespace
}  // namespace orrery::nic
