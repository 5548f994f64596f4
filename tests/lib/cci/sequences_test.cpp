// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "world.hpp"

#include <map>
#include <random>

// Random legal sequences by seed, against what the kind of connection promises.
namespace cci_test {
namespace {

// Sends, polls and returns in any order, against a count of what is due.
class Sequences : public testing::TestWithParam<std::tuple<cci_conn_attribute_t, unsigned>> {};

TEST_P(Sequences, NothingIsLostDoubledOrOutOfOrderThatMayNotBe) {
  const auto [attribute, seed] = GetParam();
  const Started started;
  Pair pair;
  ASSERT_NO_FATAL_FAILURE(open(&pair, attribute));
  std::mt19937 random(seed);
  const std::uint32_t buffers = 1 + random() % 200;
  ASSERT_EQ(cci_set_opt(pair.server, CCI_OPT_ENDPT_RECV_BUF_COUNT, &buffers), CCI_SUCCESS);
  const std::uint32_t longest = pair.to_server->max_send_size;
  std::vector<std::uint32_t> message(longest / 4 + 1);
  constexpr std::uint32_t kMessages = 3000;
  std::uint32_t sent = 0, received = 0, completed = 0;
  std::vector<bool> seen(kMessages);
  std::int64_t last = -1, last_sent = -1;
  std::vector<cci_event_t*> held;
  const auto end = Clock::now() + std::chrono::seconds(60);
  const bool reliable = attribute != CCI_CONN_ATTR_UU;
  while (sent < kMessages || completed < kMessages || (reliable && received < kMessages)) {
    ASSERT_LT(Clock::now(), end) << sent << ' ' << completed << ' ' << received;
    const std::uint32_t choice = random() % 8;
    if (choice < 3 && sent < kMessages) {
      const std::uint32_t bytes = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(longest, 4 + (random() % 3 == 0 ? random() % longest : random() % 80)));
      message[0] = sent;
      const int status =
          cci_send(pair.to_server, message.data(), bytes, reinterpret_cast<void*>(std::uintptr_t{sent}), 0);
      ASSERT_TRUE(status == CCI_SUCCESS || status == CCI_ENOBUFS) << status;
      if (status == CCI_SUCCESS) ++sent;
    } else if (choice < 6) {
      cci_event_t* event = nullptr;
      const int status = cci_get_event(pair.server, &event);
      if (status == CCI_ENOBUFS) {
        EXPECT_EQ(held.size(), buffers);
      }
      if (status == CCI_SUCCESS) {
        ASSERT_EQ(event->type, CCI_EVENT_RECV);
        std::uint32_t number;
        std::memcpy(&number, event->recv.ptr, 4);
        ASSERT_LT(number, sent);
        ASSERT_FALSE(seen[number]) << number;
        seen[number] = true;
        if (attribute == CCI_CONN_ATTR_RO) {
          ASSERT_EQ(number, last + 1);
        }
        last = number;
        ++received;
        held.push_back(event);
      }
    } else if (choice == 6) {
      cci_event_t* event = nullptr;
      if (cci_get_event(pair.client, &event) == CCI_SUCCESS) {
        ASSERT_EQ(event->type, CCI_EVENT_SEND);
        EXPECT_EQ(event->send.status, CCI_SUCCESS);
        const auto number = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(event->send.context));
        if (attribute == CCI_CONN_ATTR_RO) {
          ASSERT_EQ(number, last_sent + 1);
        }
        last_sent = number;
        ++completed;
        ASSERT_EQ(cci_return_event(event), CCI_SUCCESS);
      }
    }
    if (!held.empty() && random() % 3 == 0) {
      std::swap(held[random() % held.size()], held.back());
      ASSERT_EQ(cci_return_event(held.back()), CCI_SUCCESS);
      held.pop_back();
    }
  }
  EXPECT_LE(received, sent);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Sequences,
                         testing::Combine(testing::Values(CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU,
                                                          CCI_CONN_ATTR_UU),
                                          testing::Range(1u, 6u)));

// RMA among messages of one connection. Each transfer has a cell of its own in the server's memory until its
// message has come, and a number: that message carries it, and so does what is written.
class RmaSequences : public testing::TestWithParam<std::tuple<cci_conn_attribute_t, unsigned>> {
 protected:
  static constexpr std::uint32_t kCells = 16;
  static constexpr std::uint64_t kCellWords = 4096;
  static constexpr std::uint32_t kOperations = 1500;

  // Of a send or a transfer, by its number, which is the context of its completion.
  struct Due {
    bool is_rma = false, is_write = false, has_message = false, arrived = false;
    std::uint32_t cell = 0;
    std::uint64_t words = 0;
    bool may_fail = false;  // the registration ended while it was under way
  };
  struct Message {
    std::uint32_t number;
    std::uint32_t cell;
    std::uint64_t words;
  };

  void SetUp() override { ASSERT_NO_FATAL_FAILURE(open(&pair, std::get<0>(GetParam()))); }

  std::uint64_t* cell_of(std::vector<std::uint64_t>& memory, std::uint32_t cell) {
    return memory.data() + cell * kCellWords;
  }
  void register_there() {
    const int rights = CCI_FLAG_READ | CCI_FLAG_WRITE;
    ASSERT_EQ(cci_rma_register(pair.server, there.data(), there.size() * 8, rights, &remote), CCI_SUCCESS);
    copy = *remote;
  }
  static std::uint64_t word(std::uint32_t number, std::uint64_t i) { return std::uint64_t{number} << 32 | i; }

  void post_message() {
    const Message message{next, 0, 0};
    const int status = cci_send(pair.to_server, &message, sizeof message, context(next), 0);
    ASSERT_TRUE(status == CCI_SUCCESS || status == CCI_ENOBUFS) << status;
    if (status == CCI_SUCCESS) due[next++] = {.has_message = true};
  }
  void post_rma(std::mt19937& random) {
    std::uint32_t cell = random() % kCells;
    while (busy[cell] && cell < kCells) ++cell;
    if (cell >= kCells) return;
    Due one{.is_rma = true, .is_write = random() % 2 == 0, .has_message = random() % 2 == 0, .cell = cell};
    one.words = random() % 8 == 0 ? kCellWords : 1 + random() % 200;
    if (one.is_write) {
      for (std::uint64_t i = 0; i < one.words; ++i) cell_of(here, cell)[i] = word(next, i);
    }
    const Message message{next, cell, one.words};
    const int flags =
        (one.is_write ? CCI_FLAG_WRITE : CCI_FLAG_READ) | (random() % 3 == 0 ? CCI_FLAG_FENCE : 0);
    const std::uint64_t at = cell * kCellWords * 8;
    const int status =
        cci_rma(pair.to_server, one.has_message ? &message : nullptr, one.has_message ? sizeof message : 0,
                local, at, &copy, at, one.words * 8, context(next), flags);
    ASSERT_TRUE(status == CCI_SUCCESS || status == CCI_ENOBUFS) << status;
    if (status != CCI_SUCCESS) return;
    busy[cell] = true;
    due[next++] = one;
  }
  // What is under way may end in an error; what has ended has not touched the memory afterwards.
  void end_registration() {
    for (auto& [number, one] : due) one.may_fail = one.may_fail || one.is_rma;
    ASSERT_EQ(cci_rma_deregister(pair.server, remote), CCI_SUCCESS);
    const std::vector<std::uint64_t> before = there;
    for (int i = 0; i < 50; ++i) {
      ASSERT_NO_FATAL_FAILURE(take_client());
      ASSERT_NO_FATAL_FAILURE(take_server());
    }
    ASSERT_EQ(there, before) << "a transfer to memory that is not registered any more";
    ASSERT_NO_FATAL_FAILURE(register_there());
  }

  void take_server() {
    cci_event_t* event = nullptr;
    if (cci_get_event(pair.server, &event) != CCI_SUCCESS) return;
    ASSERT_EQ(event->type, CCI_EVENT_RECV);
    ASSERT_EQ(event->recv.len, sizeof(Message));
    Message message;
    std::memcpy(&message, event->recv.ptr, sizeof message);
    ASSERT_TRUE(due.count(message.number)) << message.number;
    Due& one = due[message.number];
    ASSERT_TRUE(one.has_message && !one.arrived) << message.number;
    one.arrived = true;
    if (one.is_write) {
      // The data came before the message.
      for (std::uint64_t i = 0; i < one.words; ++i)
        ASSERT_EQ(cell_of(there, one.cell)[i], word(message.number, i)) << message.number;
    }
    if (std::get<0>(GetParam()) == CCI_CONN_ATTR_RO) {
      ASSERT_GT(static_cast<std::int64_t>(message.number), last_message);
    }
    last_message = message.number;
    ++messages;
    ASSERT_EQ(cci_return_event(event), CCI_SUCCESS);
    end_of(message.number);
  }
  void take_client() {
    cci_event_t* event = nullptr;
    if (cci_get_event(pair.client, &event) != CCI_SUCCESS) return;
    ASSERT_EQ(event->type, CCI_EVENT_SEND);
    const auto number = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(event->send.context));
    ASSERT_TRUE(due.count(number)) << number;
    Due& one = due[number];
    ASSERT_EQ(completed.count(number), 0u) << number;
    if (std::get<0>(GetParam()) == CCI_CONN_ATTR_RO) {
      ASSERT_EQ(static_cast<std::int64_t>(number), last_completed + 1);
    }
    last_completed = number;
    const cci_status_t status = event->send.status;
    ASSERT_TRUE(status == CCI_SUCCESS || (one.may_fail && status == CCI_ERR_RMA_HANDLE)) << status;
    if (status != CCI_SUCCESS) one.has_message = false;  // RMA that fails tells the peer nothing
    if (status == CCI_SUCCESS && one.is_rma && !one.is_write) {
      for (std::uint64_t i = 0; i < one.words; ++i)
        ASSERT_EQ(cell_of(here, one.cell)[i], cell_of(there, one.cell)[i]) << number;
    }
    completed[number] = true;
    ASSERT_EQ(cci_return_event(event), CCI_SUCCESS);
    end_of(number);
  }
  void end_of(std::uint32_t number) {
    Due& one = due[number];
    if (!completed.count(number) || (one.has_message && !one.arrived)) return;
    if (one.is_rma) busy[one.cell] = false;
    completed.erase(number);
    due.erase(number);
  }

  static void* context(std::uint32_t number) { return reinterpret_cast<void*>(std::uintptr_t{number}); }

  const Started started;
  Pair pair;
  std::vector<std::uint64_t> here = std::vector<std::uint64_t>(kCells * kCellWords);
  std::vector<std::uint64_t> there = std::vector<std::uint64_t>(kCells * kCellWords);
  cci_rma_handle_t* local = nullptr;
  cci_rma_handle_t* remote = nullptr;
  struct cci_rma_handle copy {};
  std::map<std::uint32_t, Due> due;
  std::map<std::uint32_t, bool> completed;
  bool busy[kCells] = {};
  std::uint32_t next = 0;
  std::int64_t last_message = -1, last_completed = -1;
  std::uint64_t messages = 0;
};

TEST_P(RmaSequences, DataComesBeforeItsMessageAndNeverAfterTheRegistration) {
  std::mt19937 random(std::get<1>(GetParam()));
  ASSERT_EQ(cci_rma_register(pair.client, here.data(), here.size() * 8, 0, &local), CCI_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(register_there());
  const std::uint32_t buffers = 1 + random() % 100;
  ASSERT_EQ(cci_set_opt(pair.server, CCI_OPT_ENDPT_RECV_BUF_COUNT, &buffers), CCI_SUCCESS);
  const auto end = Clock::now() + std::chrono::seconds(90);
  while (next < kOperations || !due.empty()) {
    ASSERT_LT(Clock::now(), end) << next << ' ' << due.size();
    const std::uint32_t choice = random() % 100;
    if (choice < 15 && next < kOperations) {
      ASSERT_NO_FATAL_FAILURE(post_message());
    } else if (choice < 40 && next < kOperations) {
      ASSERT_NO_FATAL_FAILURE(post_rma(random));
    } else if (choice < 42) {
      ASSERT_NO_FATAL_FAILURE(end_registration());
    } else if (choice < 70) {
      ASSERT_NO_FATAL_FAILURE(take_client());
    } else {
      ASSERT_NO_FATAL_FAILURE(take_server());
    }
  }
  EXPECT_GT(messages, kOperations / 4);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RmaSequences,
                         testing::Combine(testing::Values(CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU),
                                          testing::Range(1u, 6u)));

}  // namespace
}  // namespace cci_test
