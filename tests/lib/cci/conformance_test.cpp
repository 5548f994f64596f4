// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "world.hpp"

#include <filesystem>

#include <sys/mman.h>
#include <unistd.h>

namespace cci_test {
namespace {

// What both kinds of reliable connections and the unreliable one do alike.
class Connections : public testing::TestWithParam<cci_conn_attribute_t> {};

TEST_P(Connections, MessagesOfEverySizeArriveWhole) {
  const Started started;
  Pair pair;
  ASSERT_NO_FATAL_FAILURE(open(&pair, GetParam()));
  const std::uint32_t longest = pair.to_server->max_send_size;
  std::vector<unsigned char> bytes(longest);
  for (std::uint32_t size : {0u, 1u, 7u, 55u, 56u, 57u, 64u, 1000u, longest - 1, longest}) {
    for (std::uint32_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(i * 7 + size);
    const void* const context = &bytes[size % 3];
    ASSERT_EQ(cci_send(pair.to_server, bytes.data(), size, context, 0), CCI_SUCCESS);
    cci_event_t* event = next_event(pair.server);
    ASSERT_NE(event, nullptr) << size;
    ASSERT_EQ(event->type, CCI_EVENT_RECV);
    ASSERT_EQ(event->recv.len, size);
    EXPECT_EQ(event->recv.connection, pair.to_client);
    if (size == 0) {
      EXPECT_EQ(event->recv.ptr, nullptr);
    } else {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(event->recv.ptr) % 8, 0u);
      EXPECT_EQ(std::memcmp(event->recv.ptr, bytes.data(), size), 0);
    }
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
    event = next_event(pair.client);
    ASSERT_NE(event, nullptr);
    ASSERT_EQ(event->type, CCI_EVENT_SEND);
    EXPECT_EQ(event->send.status, CCI_SUCCESS);
    EXPECT_EQ(event->send.context, context);
    EXPECT_EQ(event->send.connection, pair.to_server);
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  }
  EXPECT_EQ(cci_send(pair.to_server, bytes.data(), longest + 1, nullptr, 0), CCI_EMSGSIZE);
}

TEST_P(Connections, FlagsSayWhetherThereIsAnEvent) {
  const Started started;
  Pair pair;
  ASSERT_NO_FATAL_FAILURE(open(&pair, GetParam()));
  for (int flags : {CCI_FLAG_SILENT, CCI_FLAG_BLOCKING, CCI_FLAG_BLOCKING | CCI_FLAG_NO_COPY}) {
    ASSERT_EQ(cci_send(pair.to_server, "abc", 3, nullptr, flags), CCI_SUCCESS);
    cci_event_t* event = next_event(pair.server);
    ASSERT_NE(event, nullptr);
    EXPECT_EQ(event->recv.len, 3u);
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
    EXPECT_EQ(cci_get_event(pair.client, &event), CCI_EAGAIN) << flags;
    EXPECT_EQ(event, nullptr);
  }
  const iovec pieces[3] = {{const_cast<char*>("ab"), 2}, {nullptr, 0}, {const_cast<char*>("cde"), 3}};
  ASSERT_EQ(cci_sendv(pair.to_server, pieces, 3, nullptr, CCI_FLAG_SILENT), CCI_SUCCESS);
  cci_event_t* const event = next_event(pair.server);
  ASSERT_NE(event, nullptr);
  ASSERT_EQ(event->recv.len, 5u);
  EXPECT_EQ(std::memcmp(event->recv.ptr, "abcde", 5), 0);
  EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(All, Connections,
                         testing::Values(CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU, CCI_CONN_ATTR_UU));

TEST(Connecting, AServerMayRefuse) {
  const Started started;
  Pair pair;
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &pair.client, nullptr), CCI_SUCCESS);
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &pair.server, nullptr), CCI_SUCCESS);
  int context = 0;
  ASSERT_EQ(cci_connect(pair.client, uri_of(pair.server).c_str(), nullptr, 0, CCI_CONN_ATTR_RO, &context, 0,
                        nullptr),
            CCI_SUCCESS);
  cci_event_t* event = next_event(pair.server);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->request.data_ptr, nullptr);
  EXPECT_EQ(cci_return_event(event), CCI_EINVAL) << "not decided";
  EXPECT_EQ(cci_reject(event), CCI_SUCCESS);
  EXPECT_EQ(cci_reject(event), CCI_EINVAL) << "decided";
  EXPECT_EQ(cci_accept(event, nullptr), CCI_EINVAL) << "decided";
  EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  event = next_event(pair.client);
  ASSERT_NE(event, nullptr);
  ASSERT_EQ(event->type, CCI_EVENT_CONNECT);
  EXPECT_EQ(event->connect.status, CCI_ECONNREFUSED);
  EXPECT_EQ(event->connect.connection, nullptr);
  EXPECT_EQ(event->connect.context, &context);
  EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
}

TEST(Connecting, NoAnswerInTimeIsSaid) {
  const Started started;
  Pair pair;
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &pair.client, nullptr), CCI_SUCCESS);
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &pair.server, nullptr), CCI_SUCCESS);
  const timeval limit{0, 100'000};
  const auto begin = Clock::now();
  ASSERT_EQ(
      cci_connect(pair.client, uri_of(pair.server).c_str(), nullptr, 0, CCI_CONN_ATTR_RU, nullptr, 0, &limit),
      CCI_SUCCESS);
  cci_event_t* event = next_event(pair.client);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->connect.status, CCI_ETIMEDOUT);
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(100));
  EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  // The request is still there; to accept it tells that the client is gone.
  event = next_event(pair.server);
  ASSERT_NE(event, nullptr);
  ::usleep(20'000);
  EXPECT_EQ(cci_accept(event, &pair), CCI_SUCCESS);
  EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  event = next_event(pair.server);
  ASSERT_NE(event, nullptr);
  ASSERT_EQ(event->type, CCI_EVENT_ACCEPT);
  EXPECT_EQ(event->accept.status, CCI_ERR_DISCONNECTED);
  EXPECT_EQ(event->accept.context, &pair);
  EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
}

TEST(Connecting, AListenerThatIsGoneIsSaid) {
  const Started started;
  Pair pair;
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &pair.client, nullptr), CCI_SUCCESS);
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &pair.server, nullptr), CCI_SUCCESS);
  const std::string uri = uri_of(pair.server);
  ASSERT_EQ(cci_destroy_endpoint(pair.server), CCI_SUCCESS);
  ASSERT_EQ(cci_connect(pair.client, uri.c_str(), nullptr, 0, CCI_CONN_ATTR_RO, nullptr, 0, nullptr),
            CCI_SUCCESS);
  cci_event_t* const event = next_event(pair.client);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->connect.status, CCI_ETIMEDOUT);
  EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
}

TEST(Rma, WritesReadsAndTellsThePeerBehindTheData) {
  const Started started;
  Pair pair;
  ASSERT_NO_FATAL_FAILURE(open(&pair, CCI_CONN_ATTR_RO));
  std::vector<char> here(3'000'000), there(3'000'000, 'z');
  for (std::size_t i = 0; i < here.size(); ++i) here[i] = static_cast<char>(i * 31);
  cci_rma_handle_t* local = nullptr;
  cci_rma_handle_t* remote = nullptr;
  ASSERT_EQ(cci_rma_register(pair.client, here.data(), here.size(), 0, &local), CCI_SUCCESS);
  ASSERT_EQ(cci_rma_register(pair.server, there.data(), there.size(), CCI_FLAG_WRITE, &remote), CCI_SUCCESS);
  struct cci_rma_handle copy;
  std::memcpy(&copy, remote, sizeof copy);
  ASSERT_EQ(cci_send(pair.to_server, "1", 1, nullptr, CCI_FLAG_SILENT), CCI_SUCCESS);
  ASSERT_EQ(
      cci_rma(pair.to_server, "2", 1, local, 5, &copy, 9, 2'500'000, &copy, CCI_FLAG_WRITE | CCI_FLAG_FENCE),
      CCI_SUCCESS);
  ASSERT_EQ(cci_send(pair.to_server, "3", 1, nullptr, CCI_FLAG_SILENT), CCI_SUCCESS);
  for (char expected : {'1', '2', '3'}) {
    cci_event_t* const event = next_event(pair.server);
    ASSERT_NE(event, nullptr);
    ASSERT_EQ(event->type, CCI_EVENT_RECV);
    EXPECT_EQ(*static_cast<const char*>(event->recv.ptr), expected);
    if (expected == '2') {
      EXPECT_EQ(std::memcmp(&there[9], &here[5], 2'500'000), 0);
    }
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  }
  cci_event_t* event = next_event(pair.client);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->send.status, CCI_SUCCESS);
  EXPECT_EQ(event->send.context, &copy);
  EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  EXPECT_EQ(there[8], 'z');
  EXPECT_EQ(there[9 + 2'500'000], 'z');
  // A right that the registration does not give, a range outside it, and a handle of the past.
  const auto refused = [&](std::uint64_t offset, std::uint64_t bytes, int flags) {
    ASSERT_EQ(cci_rma(pair.to_server, "x", 1, local, 0, &copy, offset, bytes, nullptr, flags), CCI_SUCCESS);
    event = next_event(pair.client);
    ASSERT_NE(event, nullptr);
    EXPECT_EQ(event->send.status, CCI_ERR_RMA_HANDLE);
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  };
  ASSERT_NO_FATAL_FAILURE(refused(0, 8, CCI_FLAG_READ));
  ASSERT_NO_FATAL_FAILURE(refused(there.size() - 7, 8, CCI_FLAG_WRITE));
  ASSERT_NO_FATAL_FAILURE(refused(UINT64_MAX - 3, 8, CCI_FLAG_WRITE));
  ASSERT_EQ(cci_rma_deregister(pair.server, remote), CCI_SUCCESS);
  EXPECT_EQ(cci_rma_deregister(pair.server, remote), CCI_EINVAL);
  ASSERT_NO_FATAL_FAILURE(refused(0, 8, CCI_FLAG_WRITE));
  EXPECT_EQ(cci_get_event(pair.server, &event), CCI_EAGAIN) << "no message after RMA that failed";
  ASSERT_EQ(cci_rma_register(pair.server, there.data(), there.size(), CCI_FLAG_READ, &remote), CCI_SUCCESS);
  EXPECT_EQ(cci_rma(pair.to_server, nullptr, 0, local, 0, remote, 9, 1000, nullptr,
                    CCI_FLAG_READ | CCI_FLAG_BLOCKING),
            CCI_SUCCESS);
  EXPECT_EQ(std::memcmp(here.data(), &there[9], 1000), 0);
}

TEST(Rma, MemoryThatItsOwnerTookAwayIsAnErrorAndNotACrash) {
  const Started started;
  Pair pair;
  ASSERT_NO_FATAL_FAILURE(open(&pair, CCI_CONN_ATTR_RO));
  constexpr std::size_t kBytes = 1 << 20;
  std::vector<char> here(kBytes, 'h');
  void* const there = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(there, MAP_FAILED);
  cci_rma_handle_t* local = nullptr;
  cci_rma_handle_t* remote = nullptr;
  ASSERT_EQ(cci_rma_register(pair.client, here.data(), kBytes, 0, &local), CCI_SUCCESS);
  ASSERT_EQ(cci_rma_register(pair.server, there, kBytes, CCI_FLAG_READ | CCI_FLAG_WRITE, &remote),
            CCI_SUCCESS);
  for (const int flags : {CCI_FLAG_WRITE, CCI_FLAG_READ}) {
    const auto transfer = [&] {
      // Taken by the peer's thread where frames carry it.
      EXPECT_EQ(cci_rma(pair.to_server, nullptr, 0, local, 0, remote, 0, kBytes, nullptr, flags),
                CCI_SUCCESS);
      cci_event_t* event = nullptr;
      for (int looks = 0; looks < 20'000 && event == nullptr; ++looks) {
        cci_event_t* nothing = nullptr;
        (void)cci_get_event(pair.server, &nothing);
        (void)cci_get_event(pair.client, &event);
        if (event == nullptr) usleep(500);
      }
      if (event == nullptr) return CCI_ETIMEDOUT;
      const cci_status status = event->send.status;
      EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
      return status;
    };
    EXPECT_EQ(transfer(), CCI_SUCCESS) << flags;
    // Without a gap, which another thread's allocator might take.
    ASSERT_EQ(mmap(there, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), there);
    EXPECT_EQ(transfer(), CCI_ERR_RMA_HANDLE) << flags;
    ASSERT_EQ(mmap(there, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              there);
  }
  munmap(there, kBytes);
}

// Reads of the handle, as clients that block do it: a wake, one event, a wake.
TEST(Handle, IsReadableWhileThereAreEvents) {
  const Started started;
  Pair pair;
  int client_fd = -1, server_fd = -1;
  ASSERT_NO_FATAL_FAILURE(open(&pair, CCI_CONN_ATTR_RO, &client_fd, &server_fd));
  const auto readable = [](int fd, int ms) {
    pollfd watched{fd, POLLIN, 0};
    return ::poll(&watched, 1, ms) == 1;
  };
  cci_event_t* event = nullptr;
  EXPECT_EQ(cci_get_event(pair.server, &event), CCI_EAGAIN);
  EXPECT_FALSE(readable(server_fd, 50));
  for (int i = 0; i < 5; ++i) ASSERT_EQ(cci_send(pair.to_server, &i, 4, nullptr, 0), CCI_SUCCESS);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(readable(server_fd, 10'000)) << i;
    ASSERT_EQ(cci_get_event(pair.server, &event), CCI_SUCCESS) << i;
    EXPECT_EQ(std::memcmp(event->recv.ptr, &i, 4), 0);
    ASSERT_EQ(cci_return_event(event), CCI_SUCCESS);
  }
  EXPECT_EQ(cci_get_event(pair.server, &event), CCI_EAGAIN);
  EXPECT_FALSE(readable(server_fd, 20));
  ASSERT_TRUE(readable(client_fd, 10'000));
  // A client that polled for long, and then sleeps.
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(cci_get_event(pair.server, &event), CCI_EAGAIN);
  EXPECT_EQ(cci_arm_os_handle(pair.server, 0), CCI_SUCCESS);
  ASSERT_EQ(cci_send(pair.to_server, "a", 1, nullptr, 0), CCI_SUCCESS);
  EXPECT_TRUE(readable(server_fd, 10'000));
  ASSERT_EQ(cci_get_event(pair.server, &event), CCI_SUCCESS);
  ASSERT_EQ(cci_return_event(event), CCI_SUCCESS);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(cci_get_event(pair.server, &event), CCI_EAGAIN);
  ASSERT_EQ(cci_send(pair.to_server, "b", 1, nullptr, 0), CCI_SUCCESS);
  EXPECT_TRUE(readable(server_fd, 10'000)) << "not armed by the client";
}

TEST(Limits, AReceiverThatIsNotReadyIsSaidInTime) {
  const Started started;
  Pair pair;
  ASSERT_NO_FATAL_FAILURE(open(&pair, CCI_CONN_ATTR_RO));
  const std::uint32_t limit = 50'000, buffers = 2;
  ASSERT_EQ(cci_set_opt(pair.to_server, CCI_OPT_CONN_SEND_TIMEOUT, &limit), CCI_SUCCESS);
  ASSERT_EQ(cci_set_opt(pair.server, CCI_OPT_ENDPT_RECV_BUF_COUNT, &buffers), CCI_SUCCESS);
  char bytes[100] = {};
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(cci_send(pair.to_server, bytes, sizeof bytes, nullptr, 0), CCI_SUCCESS);
  for (cci_status_t expected : {CCI_SUCCESS, CCI_SUCCESS, CCI_ERR_RNR}) {
    cci_event_t* const event = next_event(pair.client);
    ASSERT_NE(event, nullptr);
    EXPECT_EQ(event->send.status, expected);
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  }
  EXPECT_EQ(cci_send(pair.to_server, bytes, sizeof bytes, nullptr, CCI_FLAG_BLOCKING), CCI_ERR_RNR);
}

TEST(Limits, SendBuffersAreCounted) {
  const Started started;
  Pair pair;
  ASSERT_NO_FATAL_FAILURE(open(&pair, CCI_CONN_ATTR_RU));
  const std::uint32_t buffers = 3;
  ASSERT_EQ(cci_set_opt(pair.client, CCI_OPT_ENDPT_SEND_BUF_COUNT, &buffers), CCI_SUCCESS);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cci_send(pair.to_server, "a", 1, nullptr, 0), CCI_SUCCESS);
  EXPECT_EQ(cci_send(pair.to_server, "a", 1, nullptr, 0), CCI_ENOBUFS);
  cci_event_t* const event = next_event(pair.client);
  ASSERT_NE(event, nullptr);
  ASSERT_EQ(cci_return_event(event), CCI_SUCCESS);
  EXPECT_EQ(cci_send(pair.to_server, "a", 1, nullptr, 0), CCI_SUCCESS);
}

TEST(Multicast, AMessageReachesEveryMember) {
  const Started started;
  cci_endpoint_t* publisher = nullptr;
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &publisher, nullptr), CCI_SUCCESS);
  Pair members[3], sender;
  for (Pair& member : members) {
    member.server = publisher;
    ASSERT_EQ(cci_create_endpoint(nullptr, 0, &member.client, nullptr), CCI_SUCCESS);
    ASSERT_NO_FATAL_FAILURE(connect(&member, CCI_CONN_ATTR_UU_MC_RX));
    EXPECT_EQ(cci_send(member.to_server, "x", 1, nullptr, 0), CCI_EINVAL) << "it only receives";
  }
  sender.server = publisher;
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &sender.client, nullptr), CCI_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(connect(&sender, CCI_CONN_ATTR_UU_MC_TX));
  const std::string text(200, 'm');
  ASSERT_EQ(cci_send(sender.to_server, text.data(), 200, nullptr, CCI_FLAG_SILENT), CCI_SUCCESS);
  cci_event_t* event = nullptr;
  EXPECT_EQ(cci_get_event(publisher, &event), CCI_EAGAIN) << "the owner of the group is no member";
  for (Pair& member : members) {
    event = next_event(member.client);
    ASSERT_NE(event, nullptr);
    ASSERT_EQ(event->recv.len, 200u);
    EXPECT_EQ(std::memcmp(event->recv.ptr, text.data(), 200), 0);
    EXPECT_EQ(event->recv.connection, member.to_server);
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  }
}

// Both ends sleep on their handles and take one event at each wake, from the first request on.
TEST(Handle, TwoClientsThatSleepMakeAConnectionAndExchangeMessages) {
  const Started started;
  Pair pair;
  int fds[2] = {-1, -1};
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &pair.client, &fds[0]), CCI_SUCCESS);
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &pair.server, &fds[1]), CCI_SUCCESS);
  ASSERT_EQ(cci_connect(pair.client, uri_of(pair.server).c_str(), nullptr, 0, CCI_CONN_ATTR_RO, nullptr, 0,
                        nullptr),
            CCI_SUCCESS);
  int left = 200;
  const auto end = Clock::now() + std::chrono::seconds(30);
  while (left > 0) {
    ASSERT_LT(Clock::now(), end) << left << " messages are left";
    pollfd watched[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
    ASSERT_GE(::poll(watched, 2, 10'000), 1) << left << " messages are left";
    for (int i = 0; i < 2; ++i) {
      if (watched[i].revents == 0) continue;
      cci_event_t* event = nullptr;
      if (cci_get_event(i == 0 ? pair.client : pair.server, &event) != CCI_SUCCESS) continue;
      if (event->type == CCI_EVENT_CONNECT_REQUEST) {
        ASSERT_EQ(cci_accept(event, nullptr), CCI_SUCCESS);
      } else if (event->type == CCI_EVENT_CONNECT) {
        ASSERT_EQ(event->connect.status, CCI_SUCCESS);
        ASSERT_EQ(cci_send(event->connect.connection, "ball", 4, nullptr, 0), CCI_SUCCESS);
      } else if (event->type == CCI_EVENT_RECV) {
        --left;
        ASSERT_EQ(cci_send(event->recv.connection, event->recv.ptr, event->recv.len, nullptr, 0),
                  CCI_SUCCESS);
      }
      ASSERT_EQ(cci_return_event(event), CCI_SUCCESS);
    }
  }
}

// Each endpoint has a thread for as long as it lives, however soon that thread runs.
TEST(Handle, EveryEndpointHasItsThread) {
  const Started started;
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  const auto before = threads();
  std::vector<cci_endpoint_t*> endpoints(50);
  for (cci_endpoint_t*& endpoint : endpoints)
    ASSERT_EQ(cci_create_endpoint(nullptr, 0, &endpoint, nullptr), CCI_SUCCESS);
  ::usleep(50'000);
  EXPECT_EQ(threads(), before + 50);
  for (cci_endpoint_t* endpoint : endpoints) ASSERT_EQ(cci_destroy_endpoint(endpoint), CCI_SUCCESS);
  EXPECT_EQ(threads(), before);
}

}  // namespace
}  // namespace cci_test
