// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "world.hpp"

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>

// What outlives what: events, connections, registrations, endpoints, and children of the process.
namespace cci_test {
namespace {

long descriptors_now() { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); }

TEST(Events, NameTheirConnectionUntilTheyAreReturned) {
  const Started started;
  Pair pair;
  int context = 0;
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &pair.client, nullptr), CCI_SUCCESS);
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &pair.server, nullptr), CCI_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(connect(&pair, CCI_CONN_ATTR_RO, &context));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cci_send(pair.to_client, "word", 4, nullptr, 0), CCI_SUCCESS);
  ASSERT_EQ(cci_send(pair.to_server, "word", 4, nullptr, 0), CCI_SUCCESS);
  // One is held, one is queued with it, and the connection ends under both.
  cci_event_t* const held = next_event(pair.client);
  ASSERT_NE(held, nullptr);
  ASSERT_EQ(cci_disconnect(pair.to_server), CCI_SUCCESS);
  ASSERT_EQ(cci_destroy_endpoint(pair.server), CCI_SUCCESS);
  std::vector<cci_event_t*> rest;
  for (int look = 0; look < 2000; ++look) {
    cci_event_t* event = nullptr;
    if (cci_get_event(pair.client, &event) == CCI_SUCCESS) rest.push_back(event);
    if (look % 100 == 0) ::usleep(1000);
  }
  rest.push_back(held);
  for (cci_event_t* const event : rest) {
    cci_connection_t* const named = event->type == CCI_EVENT_SEND   ? event->send.connection
                                    : event->type == CCI_EVENT_RECV ? event->recv.connection
                                                                    : nullptr;
    ASSERT_EQ(named, pair.to_server);
    EXPECT_EQ(named->context, &context);
    EXPECT_EQ(named->endpoint, pair.client);
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  }
}

TEST(Events, AreReturnedOnce) {
  const Started started;
  Pair pair;
  ASSERT_NO_FATAL_FAILURE(open(&pair, CCI_CONN_ATTR_RO));
  ASSERT_EQ(cci_send(pair.to_server, "word", 4, nullptr, CCI_FLAG_SILENT), CCI_SUCCESS);
  cci_event_t* const event = next_event(pair.server);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  EXPECT_EQ(cci_return_event(event), CCI_EINVAL);
}

// A sender's completions do not wait for the receiver's program: only for its receive buffers.
TEST(Events, OfSendsComeWhileTheReceiverDoesNotPoll) {
  const Started started;
  for (const cci_conn_attribute_t kind : {CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU}) {
    Pair pair;
    ASSERT_NO_FATAL_FAILURE(open(&pair, kind));
    constexpr int kMessages = 1000;
    std::vector<char> bytes(400);
    for (int i = 0; i < kMessages; ++i) {
      std::memcpy(bytes.data(), &i, sizeof i);
      ASSERT_EQ(cci_send(pair.to_server, bytes.data(), i % 3 == 0 ? 4 : 400, nullptr, 0), CCI_SUCCESS);
    }
    for (int i = 0; i < kMessages; ++i) {
      cci_event_t* const event = next_event(pair.client, std::chrono::seconds(60));
      ASSERT_NE(event, nullptr) << i;
      ASSERT_EQ(event->type, CCI_EVENT_SEND);
      EXPECT_EQ(event->send.status, CCI_SUCCESS);
      EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
    }
    for (int i = 0; i < kMessages; ++i) {
      cci_event_t* const event = next_event(pair.server, std::chrono::seconds(60));
      ASSERT_NE(event, nullptr) << i;
      int number = -1;
      std::memcpy(&number, event->recv.ptr, sizeof number);
      ASSERT_EQ(number, i);
      EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
    }
  }
}

TEST(Endpoints, TakeTheirRegistrationsWithThem) {
  const Started started;
  for (int round = 0; round < 50; ++round) {
    Pair pair;
    ASSERT_NO_FATAL_FAILURE(open(&pair, CCI_CONN_ATTR_RO));
    char here[64], there[64];
    std::memset(here, 'h', sizeof here);
    std::memset(there, 't', sizeof there);
    cci_rma_handle_t *local = nullptr, *remote = nullptr;
    ASSERT_EQ(cci_rma_register(pair.client, here, sizeof here, 0, &local), CCI_SUCCESS);
    ASSERT_EQ(cci_rma_register(pair.server, there, sizeof there, CCI_FLAG_WRITE, &remote), CCI_SUCCESS);
    struct cci_rma_handle copy = *remote;
    ASSERT_EQ(cci_destroy_endpoint(pair.server), CCI_SUCCESS);
    const int status = cci_rma(pair.to_server, nullptr, 0, local, 0, &copy, 0, sizeof here, nullptr,
                               CCI_FLAG_WRITE | CCI_FLAG_BLOCKING);
    EXPECT_TRUE(status == CCI_ERR_RMA_HANDLE || status == CCI_ERR_DISCONNECTED) << status;
    for (const char each : there) ASSERT_EQ(each, 't') << "after the endpoint was destroyed";
    ASSERT_EQ(cci_destroy_endpoint(pair.client), CCI_SUCCESS);
  }
}

TEST(Endpoints, ComeAndGoInThousandsAndLeaveNothing) {
  const Started started;
  Pair pair;
  ASSERT_NO_FATAL_FAILURE(open(&pair, CCI_CONN_ATTR_RO));
  const int rounds = 300;
  long first = 0;
  for (int round = 0; round < rounds; ++round) {
    // A client that comes, asks, is accepted, and goes again: the server stays.
    Pair guest{nullptr, pair.server, nullptr, nullptr};
    int fd = -1;
    ASSERT_EQ(cci_create_endpoint(nullptr, 0, &guest.client, round % 2 == 0 ? &fd : nullptr), CCI_SUCCESS);
    ASSERT_NO_FATAL_FAILURE(connect(&guest, CCI_CONN_ATTR_RU)) << round;
    ASSERT_EQ(cci_send(guest.to_server, "guest", 5, nullptr, CCI_FLAG_SILENT), CCI_SUCCESS);
    cci_event_t* const event = next_event(pair.server);
    ASSERT_NE(event, nullptr);
    ASSERT_EQ(event->type, CCI_EVENT_RECV);
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
    ASSERT_EQ(cci_disconnect(guest.to_client), CCI_SUCCESS);
    ASSERT_EQ(cci_destroy_endpoint(guest.client), CCI_SUCCESS);
    if (round == 10) first = descriptors_now();
  }
  const auto end = Clock::now() + std::chrono::seconds(60);
  // Its thread closes them when it has seen the peers' ends.
  while (descriptors_now() > first && Clock::now() < end) ::usleep(1000);
  EXPECT_LE(descriptors_now(), first);
}

// CCI has no part in a job: a connection opens nothing of one.
TEST(Endpoints, NeedNoJob) {
  const Started started;
  Pair pair;
  ASSERT_NO_FATAL_FAILURE(open(&pair, CCI_CONN_ATTR_RO));
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string what = std::filesystem::read_symlink(each.path(), gone).string();
    EXPECT_EQ(what.find("orrery-directory"), std::string::npos) << each.path();
  }
}

// One thread polls by select, one by poll, one by epoll; each message wakes one of them at least.
TEST(Handle, WakesThreadsThatWaitInDifferentWays) {
  const Started started;
  Pair pair;
  int fd = -1;
  ASSERT_NO_FATAL_FAILURE(open(&pair, CCI_CONN_ATTR_RO, nullptr, &fd));
  constexpr int kMessages = 300;
  std::atomic<int> came{0};
  const int epoll = ::epoll_create1(0);
  epoll_event watched{};
  watched.events = EPOLLIN;
  ASSERT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &watched), 0);
  const auto wait_by = [&](int way) {
    if (way == 0) {
      fd_set set;
      FD_ZERO(&set);
      FD_SET(fd, &set);
      timeval limit{0, 50'000};
      ::select(fd + 1, &set, nullptr, nullptr, &limit);
    } else if (way == 1) {
      pollfd one{fd, POLLIN, 0};
      ::poll(&one, 1, 50);
    } else {
      epoll_event ready{};
      ::epoll_wait(epoll, &ready, 1, 50);
    }
  };
  std::vector<std::thread> threads;
  for (int way = 0; way < 3; ++way) {
    threads.emplace_back([&, way] {
      while (came.load() < kMessages) {
        wait_by(way);
        cci_event_t* event = nullptr;
        if (cci_get_event(pair.server, &event) != CCI_SUCCESS) continue;
        EXPECT_EQ(event->type, CCI_EVENT_RECV);
        EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
        came.fetch_add(1);
      }
    });
  }
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_EQ(cci_send(pair.to_server, "wake", 4, nullptr, CCI_FLAG_SILENT), CCI_SUCCESS);
    if (i % 10 == 0) ::usleep(1000);
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(came.load(), kMessages);
  ::close(epoll);
}

TEST(Connecting, AHostMayBeNamed) {
  const std::string file = testing::TempDir() + "cci_host." + std::to_string(::getpid()) + ".ini";
  std::ofstream(file) << "[n]\ntransport = nic\nip = 127.0.0.1\n";
  ::setenv("CCI_CONFIG", file.c_str(), 1);
  const Started started;
  ::unsetenv("CCI_CONFIG");
  ::unlink(file.c_str());
  Pair pair;
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &pair.client, nullptr), CCI_SUCCESS);
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &pair.server, nullptr), CCI_SUCCESS);
  const std::string uri = uri_of(pair.server);
  const std::string port = uri.substr(uri.rfind(':'));
  for (const char* host : {"localhost", "no-such-host.invalid"}) {
    ASSERT_EQ(cci_connect(pair.client, ("nic://" + (host + port)).c_str(), nullptr, 0, CCI_CONN_ATTR_RO,
                          nullptr, 0, nullptr),
              CCI_SUCCESS);
    const bool named = std::string(host) == "localhost";
    if (named) {
      cci_event_t* const request = next_event(pair.server, std::chrono::seconds(60));
      ASSERT_NE(request, nullptr);
      ASSERT_EQ(cci_accept(request, nullptr), CCI_SUCCESS);
      EXPECT_EQ(cci_return_event(request), CCI_SUCCESS);
    }
    cci_event_t* const event = next_event(pair.client, std::chrono::seconds(60));
    ASSERT_NE(event, nullptr) << host;
    EXPECT_EQ(event->connect.status, named ? CCI_SUCCESS : CCI_ETIMEDOUT);
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  }
}

TEST(Connecting, ATimeoutMayBeAsLongAsItsTypeGoes) {
  const Started started;
  Pair pair;
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &pair.client, nullptr), CCI_SUCCESS);
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &pair.server, nullptr), CCI_SUCCESS);
  const timeval longest{INT64_MAX, INT64_MAX};
  ASSERT_EQ(cci_connect(pair.client, uri_of(pair.server).c_str(), nullptr, 0, CCI_CONN_ATTR_RO, nullptr, 0,
                        &longest),
            CCI_SUCCESS);
  EXPECT_EQ(next_event(pair.client, std::chrono::milliseconds(100)), nullptr) << "the server has not decided";
}

// More requests than the kernel queues for a server that is stopped: each is made when it goes on.
TEST(Connecting, AStormWaitsForAServerThatIsStopped) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  constexpr int kAsked = 4200;
  if (limit.rlim_max < 2 * kAsked) GTEST_SKIP() << "descriptors: at most " << limit.rlim_max;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t server = ::fork();
  ASSERT_GE(server, 0);
  if (server == 0) {
    ::close(ends[0]);
    std::uint32_t caps;
    cci_endpoint_t* endpoint = nullptr;
    if (cci_init(CCI_ABI_VERSION, 0, &caps) != 0 || cci_create_endpoint(nullptr, 0, &endpoint, nullptr) != 0)
      ::_exit(1);
    const std::string uri = uri_of(endpoint);
    if (::write(ends[1], uri.c_str(), uri.size() + 1) < 0) ::_exit(1);
    for (;;) {
      cci_event_t* event = nullptr;
      if (cci_get_event(endpoint, &event) != CCI_SUCCESS) {
        ::sched_yield();
        continue;
      }
      if (event->type == CCI_EVENT_CONNECT_REQUEST) cci_accept(event, nullptr);
      cci_return_event(event);
    }
  }
  ::close(ends[1]);
  char uri[256] = {};
  ASSERT_GT(::read(ends[0], uri, sizeof uri - 1), 0);
  ::close(ends[0]);
  ::kill(server, SIGSTOP);
  {
    const Started started;
    cci_endpoint_t* client = nullptr;
    ASSERT_EQ(cci_create_endpoint(nullptr, 0, &client, nullptr), CCI_SUCCESS);
    for (int i = 0; i < kAsked; ++i)
      ASSERT_EQ(cci_connect(client, uri, nullptr, 0, CCI_CONN_ATTR_RO, nullptr, 0, nullptr), CCI_SUCCESS)
          << i;
    cci_event_t* event = nullptr;
    EXPECT_EQ(cci_get_event(client, &event), CCI_EAGAIN) << "refused before the server could answer";
    if (event != nullptr) cci_return_event(event);
    ::kill(server, SIGCONT);
    for (int i = 0; i < kAsked; ++i) {
      event = next_event(client, std::chrono::seconds(60));
      ASSERT_NE(event, nullptr) << i;
      ASSERT_EQ(event->type, CCI_EVENT_CONNECT);
      ASSERT_EQ(event->connect.status, CCI_SUCCESS) << i;
      ASSERT_EQ(cci_return_event(event), CCI_SUCCESS);
    }
  }
  ::kill(server, SIGKILL);
  EXPECT_EQ(::waitpid(server, nullptr, 0), server);
}

// ---- children ----

int child_of(const Pair& parent, const std::string& uri) {
  cci_event_t* event = nullptr;
  // The parent's: not the child's to take from, to send by or to end.
  if (cci_get_event(parent.server, &event) != CCI_EAGAIN) return 1;
  if (cci_send(parent.to_server, "child", 5, nullptr, 0) == CCI_SUCCESS) return 2;
  if (cci_destroy_endpoint(parent.client) != CCI_EINVAL) return 3;
  if (cci_finalize() != CCI_ERROR) return 4;
  // One of its own.
  const Started started;
  Pair own;
  if (started.status != CCI_SUCCESS) return 5;
  if (cci_create_endpoint(nullptr, 0, &own.client, nullptr) != CCI_SUCCESS) return 6;
  if (cci_connect(own.client, uri.c_str(), nullptr, 0, CCI_CONN_ATTR_RO, nullptr, 0, nullptr) != CCI_SUCCESS)
    return 7;
  event = next_event(own.client, std::chrono::seconds(60));
  if (event == nullptr || event->connect.status != CCI_SUCCESS) return 8;
  own.to_server = event->connect.connection;
  cci_return_event(event);
  return cci_send(own.to_server, "child", 5, nullptr, CCI_FLAG_BLOCKING) == CCI_SUCCESS ? 0 : 9;
}

TEST(Children, HaveNoPartInTheirParentsEndpointsAndMayHaveTheirOwn) {
  const Started started;
  Pair pair;
  ASSERT_NO_FATAL_FAILURE(open(&pair, CCI_CONN_ATTR_RO));
  const std::string uri = uri_of(pair.server);
  // This one waits in the ring while the child is made.
  ASSERT_EQ(cci_send(pair.to_server, "before", 6, nullptr, CCI_FLAG_SILENT), CCI_SUCCESS);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(child_of(pair, uri));
  std::vector<std::string> words;
  const auto end = Clock::now() + std::chrono::seconds(60);
  while (words.size() < 2 && Clock::now() < end) {
    cci_event_t* const event = next_event(pair.server);
    if (event == nullptr) continue;
    if (event->type == CCI_EVENT_CONNECT_REQUEST) {
      EXPECT_EQ(cci_accept(event, nullptr), CCI_SUCCESS);
    }
    if (event->type == CCI_EVENT_RECV)
      words.emplace_back(static_cast<const char*>(event->recv.ptr), event->recv.len);
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  }
  EXPECT_EQ(words, (std::vector<std::string>{"before", "child"}));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// The child has what its parent had open, but not the connection: the peer sees that the parent is gone.
TEST(Children, DoNotHideTheirParentsDeath) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Started started;
  cci_endpoint_t* server = nullptr;
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &server, nullptr), CCI_SUCCESS);
  const std::string uri = uri_of(server);
  const pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    const Started own;
    cci_endpoint_t* client = nullptr;
    if (cci_create_endpoint(nullptr, 0, &client, nullptr) != CCI_SUCCESS) ::_exit(1);
    if (cci_connect(client, uri.c_str(), nullptr, 0, CCI_CONN_ATTR_RO, nullptr, 0, nullptr) != CCI_SUCCESS)
      ::_exit(2);
    cci_event_t* const event = next_event(client, std::chrono::seconds(60));
    if (event == nullptr || event->connect.status != CCI_SUCCESS) ::_exit(3);
    const pid_t child = ::fork();
    if (child == 0) {
      ::pause();
      ::_exit(0);
    }
    if (::write(ends[1], &child, sizeof child) != sizeof child) ::_exit(4);
    ::_exit(0);
  }
  cci_connection_t* to_client = nullptr;
  while (to_client == nullptr) {
    cci_event_t* const event = next_event(server, std::chrono::seconds(60));
    ASSERT_NE(event, nullptr);
    if (event->type == CCI_EVENT_CONNECT_REQUEST) {
      EXPECT_EQ(cci_accept(event, nullptr), CCI_SUCCESS);
    }
    if (event->type == CCI_EVENT_ACCEPT) to_client = event->accept.connection;
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  }
  pid_t child = -1;
  ASSERT_EQ(::read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const auto end = Clock::now() + std::chrono::seconds(60);
  int sent = CCI_SUCCESS;
  while ((sent = cci_send(to_client, "a", 1, nullptr, CCI_FLAG_SILENT)) == CCI_SUCCESS && Clock::now() < end)
    ::usleep(1000);
  EXPECT_EQ(sent, CCI_ERR_DISCONNECTED) << "while the child lives";
  ::kill(child, SIGKILL);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace cci_test
