// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/require.hpp"
#include "world.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

// Many connections, many deaths, many messages. ORRERY_LONG_TESTS=1: 10,000, 100, and as many as three
// minutes take; ORRERY_SOAK_MESSAGES=N: N of them, however long that takes.
namespace cci_test {
namespace {

bool is_long() {
  const char* const text = std::getenv("ORRERY_LONG_TESTS");
  return text != nullptr && *text == '1';
}

// A sanitizer keeps memory that was freed: what a process has then says nothing of what it needs.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryTells = false;
#else
constexpr bool kMemoryTells = true;
#endif

// Of this process, in KiB: all that is in memory, and of it what is shared.
struct Memory {
  long all = 0, shared = 0;
};
Memory memory_now() {
  ::malloc_trim(0);  // what an earlier test has freed is not in memory any more
  Memory now;
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    if (word == "VmRSS:") file >> now.all;
    if (word == "RssShmem:") file >> now.shared;
  }
  return now;
}
long descriptors_now() { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); }

// Starts `run(endpoint)` in a process of its own, and gives its URI. `service`: the port, or null.
template <typename Run>
pid_t start(std::string* uri, const char* service, Run run) {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::uint32_t caps;
    cci_endpoint_t* endpoint = nullptr;
    cci_device_t* const* devices = nullptr;
    if (cci_init(CCI_ABI_VERSION, 0, &caps) != 0 || cci_get_devices(&devices) != 0) ::_exit(1);
    const int status = service == nullptr
                           ? cci_create_endpoint(nullptr, 0, &endpoint, nullptr)
                           : cci_create_endpoint_at(devices[0], service, 0, &endpoint, nullptr);
    if (status != CCI_SUCCESS) ::_exit(2);
    const std::string text = uri_of(endpoint);
    if (::write(ends[1], text.c_str(), text.size() + 1) < 0) ::_exit(3);
    ::close(ends[0]);
    ::close(ends[1]);
    run(endpoint);
    ::_exit(0);
  }
  ::close(ends[1]);
  char text[256] = {};
  if (::read(ends[0], text, sizeof text - 1) <= 0) text[0] = 0;
  ::close(ends[0]);
  *uri = text;
  return pid;
}

// Accepts all, and sends back what comes.
void echo(cci_endpoint_t* endpoint) {
  for (;;) {
    cci_event_t* event = nullptr;
    if (cci_get_event(endpoint, &event) != CCI_SUCCESS) {
      ::sched_yield();
      continue;
    }
    if (event->type == CCI_EVENT_CONNECT_REQUEST) cci_accept(event, nullptr);
    if (event->type == CCI_EVENT_RECV)
      cci_send(event->recv.connection, event->recv.ptr, event->recv.len, nullptr, CCI_FLAG_SILENT);
    cci_return_event(event);
  }
}

void stop(pid_t pid) {
  ::kill(pid, SIGKILL);
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
}

// Accepts so many connections, and takes a message of each.
void take_crowd(cci_endpoint_t* server, std::size_t count) {
  std::size_t accepted = 0, messages = 0;
  const auto end = Clock::now() + std::chrono::seconds(200);
  while (accepted < count || messages < count) {
    ASSERT_LT(Clock::now(), end) << accepted << ' ' << messages;
    cci_event_t* event = nullptr;
    if (cci_get_event(server, &event) != CCI_SUCCESS) {
      ::sched_yield();
      continue;
    }
    if (event->type == CCI_EVENT_CONNECT_REQUEST) {
      ASSERT_EQ(cci_accept(event, nullptr), CCI_SUCCESS);
    }
    accepted += event->type == CCI_EVENT_ACCEPT && event->accept.status == CCI_SUCCESS;
    messages += event->type == CCI_EVENT_RECV;
    ASSERT_EQ(cci_return_event(event), CCI_SUCCESS);
  }
}

int crowd(const char* uri, std::size_t count);

TEST(Endurance, ThousandsOfConnectionsOfOneEndpointAreSmall) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const std::size_t wanted = is_long() ? 10'000 : 500;
  const std::size_t count = std::min<std::size_t>(wanted, limit.rlim_max - 200);
  const Started started;
  cci_endpoint_t* server = nullptr;
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &server, nullptr), CCI_SUCCESS);
  const std::string to = uri_of(server);
  const Memory before = memory_now();
  // Each connection carries a message, so each ring has been used.
  const pid_t client = ::fork();
  if (client == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::execl("/proc/self/exe", "client", "--crowd", to.c_str(), std::to_string(count).c_str(), nullptr);
    ::_exit(127);
  }
  ASSERT_GT(client, 0);
  ASSERT_NO_FATAL_FAILURE(take_crowd(server, count));
  const Memory after = memory_now();
  const double each = static_cast<double>(after.all - before.all) / static_cast<double>(count);
  std::printf("%zu connections: %ld KiB, of it %ld shared; %.2f KiB each\n", count, after.all - before.all,
              after.shared - before.shared, each);
  stop(client);
  // What an endpoint has for all of them weighs more where they are few.
  if (kMemoryTells) {
    EXPECT_LE(each, is_long() ? 4 : 6);
  }
}

// Peers of another user share no memory with the endpoint: each is known by its frames alone.
TEST(Endurance, ThousandsOfPeersByFramesAreSmaller) {
  if (::geteuid() != 0) ORRERY_SKIP("root") << "only root can start a client of another user";
  constexpr uid_t kNobody = 65'534;
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const std::size_t count = std::min<std::size_t>(is_long() ? 10'000 : 500, limit.rlim_max - 200);
  const std::string file = testing::TempDir() + "cci_crowd." + std::to_string(::getpid()) + ".ini";
  std::ofstream(file) << "[n]\ntransport = nic\nip = 127.0.0.1\nallow = any\n";
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  ::setenv("CCI_CONFIG", file.c_str(), 1);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t client = ::fork();
  if (client == 0) {
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(126);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    char uri[256] = {};
    if (::read(ends[0], uri, sizeof uri - 1) <= 0) ::_exit(125);
    ::_exit(crowd(uri, count));
  }
  ASSERT_GT(client, 0);
  {
    const Started started;
    cci_endpoint_t* server = nullptr;
    ASSERT_EQ(cci_create_endpoint(nullptr, 0, &server, nullptr), CCI_SUCCESS);
    const std::string to = uri_of(server);
    const Memory before = memory_now();
    ASSERT_EQ(::write(ends[1], to.data(), to.size()), static_cast<ssize_t>(to.size()));
    ASSERT_NO_FATAL_FAILURE(take_crowd(server, count));
    const Memory after = memory_now();
    const double each = static_cast<double>(after.all - before.all) / static_cast<double>(count);
    std::printf("%zu peers: %ld KiB, of it %ld shared; %.2f KiB each\n", count, after.all - before.all,
                after.shared - before.shared, each);
    // What an endpoint has for all of them weighs more where they are few.
    if (kMemoryTells) {
      EXPECT_LE(each, is_long() ? 1 : 3);
    }
    stop(client);
  }
  ::close(ends[0]);
  ::close(ends[1]);
  ::unsetenv("CCI_CONFIG");
  ::unlink(file.c_str());
}

TEST(Endurance, AServerThatIsKilledAgainAndAgainIsFoundAgain) {
  const int rounds = is_long() ? 100 : 10;
  const std::string port = std::to_string(21'000 + ::getpid() % 10'000);
  std::string uri;
  pid_t server = start(&uri, port.c_str(), echo);
  ASSERT_FALSE(uri.empty());
  const Started started;
  cci_endpoint_t* client = nullptr;
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &client, nullptr), CCI_SUCCESS);
  Memory first;
  long first_descriptors = 0;
  for (int round = 0; round < rounds; ++round) {
    ASSERT_EQ(cci_connect(client, uri.c_str(), nullptr, 0, CCI_CONN_ATTR_RO, nullptr, 0, nullptr),
              CCI_SUCCESS);
    cci_event_t* event = next_event(client, std::chrono::seconds(60));
    ASSERT_NE(event, nullptr) << round;
    ASSERT_EQ(event->type, CCI_EVENT_CONNECT) << round;
    ASSERT_EQ(event->connect.status, CCI_SUCCESS) << round;
    cci_connection_t* const connection = event->connect.connection;
    ASSERT_EQ(cci_return_event(event), CCI_SUCCESS);
    const std::vector<char> bytes(connection->max_send_size, static_cast<char>(round));
    for (const std::uint32_t size : {8u, connection->max_send_size}) {
      ASSERT_EQ(cci_send(connection, bytes.data(), size, nullptr, CCI_FLAG_SILENT), CCI_SUCCESS);
      event = next_event(client, std::chrono::seconds(60));
      ASSERT_NE(event, nullptr) << round;
      ASSERT_EQ(event->type, CCI_EVENT_RECV);
      ASSERT_EQ(event->recv.len, size);
      EXPECT_EQ(std::memcmp(event->recv.ptr, bytes.data(), size), 0);
      ASSERT_EQ(cci_return_event(event), CCI_SUCCESS);
    }
    stop(server);
    // What is under way ends, and says so.
    int status = CCI_SUCCESS;
    const auto end = Clock::now() + std::chrono::seconds(60);
    while ((status = cci_send(connection, "a", 1, nullptr, CCI_FLAG_SILENT)) != CCI_ERR_DISCONNECTED) {
      ASSERT_LT(Clock::now(), end) << round << ": " << status;
      cci_event_t* left = nullptr;
      if (cci_get_event(client, &left) == CCI_SUCCESS) {
        ASSERT_EQ(left->type, CCI_EVENT_SEND);
        EXPECT_EQ(left->send.status, CCI_ERR_DISCONNECTED);
        ASSERT_EQ(cci_return_event(left), CCI_SUCCESS);
      }
      ::usleep(100);
    }
    while (cci_get_event(client, &event) == CCI_SUCCESS) {
      ASSERT_EQ(event->type, CCI_EVENT_SEND);
      EXPECT_EQ(event->send.status, CCI_ERR_DISCONNECTED);
      ASSERT_EQ(cci_return_event(event), CCI_SUCCESS);
    }
    ASSERT_EQ(cci_disconnect(connection), CCI_SUCCESS);
    std::string again;
    server = start(&again, port.c_str(), echo);
    ASSERT_EQ(again, uri) << round;
    if (round == rounds / 10) {
      first = memory_now();
      first_descriptors = descriptors_now();
    }
  }
  std::printf("%d deaths: %ld KiB more, %ld descriptors more\n", rounds, memory_now().all - first.all,
              descriptors_now() - first_descriptors);
  if (kMemoryTells) {
    EXPECT_LE(memory_now().all - first.all, 2048);
  }
  EXPECT_LE(descriptors_now() - first_descriptors, 1);
  stop(server);
}

// Numbers on two reliable connections, short and long ones in turns, many in flight.
TEST(Endurance, NoMessageIsLostOrDoubledAndMemoryStaysTheSame) {
  const char* const wanted = std::getenv("ORRERY_SOAK_MESSAGES");
  const std::uint64_t count = wanted == nullptr ? 0 : std::strtoull(wanted, nullptr, 10);
  const auto lasts = is_long() ? std::chrono::seconds(180) : std::chrono::seconds(2);
  std::string uri;
  const pid_t server = start(&uri, nullptr, [](cci_endpoint_t* endpoint) {
    std::uint64_t due[2] = {0, 0};
    long first = 0;
    for (;;) {
      cci_event_t* event = nullptr;
      if (cci_get_event(endpoint, &event) != CCI_SUCCESS) {
        ::sched_yield();
        continue;
      }
      if (event->type == CCI_EVENT_CONNECT_REQUEST) cci_accept(event, nullptr);
      if (event->type == CCI_EVENT_RECV) {
        std::uint64_t number = 0;
        std::memcpy(&number, event->recv.ptr, sizeof number);
        cci_connection_t* const from = event->recv.connection;
        std::uint64_t& next = due[from->attribute];
        // The way by memory keeps the order of both.
        if (number == UINT64_MAX) {
          const std::uint64_t came_and_more[] = {
              next, first == 0 ? 0 : static_cast<std::uint64_t>(std::max(0L, memory_now().all - first))};
          cci_send(from, came_and_more, sizeof came_and_more, nullptr, CCI_FLAG_SILENT);
        } else if (number != next++) {
          ::_exit(9);
        }
        if (first == 0 && next == 50'000) first = memory_now().all;
      }
      cci_return_event(event);
    }
  });
  ASSERT_FALSE(uri.empty());
  const Started started;
  cci_endpoint_t* client = nullptr;
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &client, nullptr), CCI_SUCCESS);
  cci_connection_t* to[2] = {};
  for (const cci_conn_attribute_t kind : {CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU}) {
    ASSERT_EQ(cci_connect(client, uri.c_str(), nullptr, 0, kind, nullptr, 0, nullptr), CCI_SUCCESS);
    cci_event_t* const event = next_event(client, std::chrono::seconds(60));
    ASSERT_NE(event, nullptr);
    ASSERT_EQ(event->connect.status, CCI_SUCCESS);
    to[kind] = event->connect.connection;
    ASSERT_EQ(cci_return_event(event), CCI_SUCCESS);
  }
  std::vector<char> bytes(4096);
  std::uint64_t sent[2] = {0, 0}, completed = 0;
  Memory first;
  const auto begin = Clock::now();
  for (std::uint64_t i = 0;; ++i) {
    if (i % 1024 == 0) {
      const auto passed = Clock::now() - begin;
      if (count == 0 ? passed > lasts : sent[0] + sent[1] >= count) break;
      if (first.all == 0 && passed > lasts / 10) first = memory_now();
    }
    const std::uint64_t kind = i & 1;
    if (sent[0] + sent[1] - completed < 256) {
      std::memcpy(bytes.data(), &sent[kind], 8);
      const std::uint32_t size = i % 16 == 0 ? 4096 : 8 + static_cast<std::uint32_t>(i % 40);
      ASSERT_EQ(cci_send(to[kind], bytes.data(), size, nullptr, 0), CCI_SUCCESS);
      ++sent[kind];
      continue;
    }
    cci_event_t* event = nullptr;
    const std::uint64_t before = completed;
    while (cci_get_event(client, &event) == CCI_SUCCESS) {
      ASSERT_EQ(event->send.status, CCI_SUCCESS);
      ASSERT_EQ(cci_return_event(event), CCI_SUCCESS);
      if (++completed % 10'000'000 == 0) {
        std::printf("%llu completed, client %ld KiB\n", static_cast<unsigned long long>(completed),
                    memory_now().all);
        std::fflush(stdout);
      }
    }
    if (completed == before) ::sched_yield();
  }
  long servers_more = 0;
  for (int kind = 0; kind < 2; ++kind) {
    const std::uint64_t over = UINT64_MAX;
    ASSERT_EQ(cci_send(to[kind], &over, 8, nullptr, CCI_FLAG_SILENT), CCI_SUCCESS);
    for (bool has_answer = false; !has_answer;) {
      cci_event_t* const event = next_event(client, std::chrono::seconds(60));
      ASSERT_NE(event, nullptr);
      if (event->type == CCI_EVENT_RECV) {
        std::uint64_t came_and_more[2] = {};
        ASSERT_EQ(event->recv.len, sizeof came_and_more);
        std::memcpy(came_and_more, event->recv.ptr, sizeof came_and_more);
        EXPECT_EQ(came_and_more[0], sent[kind]);
        servers_more = static_cast<long>(came_and_more[1]);
        has_answer = true;
      } else {
        ASSERT_EQ(event->send.status, CCI_SUCCESS);
        ++completed;
      }
      ASSERT_EQ(cci_return_event(event), CCI_SUCCESS);
    }
  }
  while (completed < sent[0] + sent[1]) {
    cci_event_t* const event = next_event(client, std::chrono::seconds(60));
    ASSERT_NE(event, nullptr);
    ++completed;
    ASSERT_EQ(cci_return_event(event), CCI_SUCCESS);
  }
  const long more = memory_now().all - first.all;
  std::printf("RO %llu, RU %llu messages; client %ld, server %ld KiB more\n",
              static_cast<unsigned long long>(sent[0]), static_cast<unsigned long long>(sent[1]), more,
              servers_more);
  if (kMemoryTells) {
    EXPECT_LE(more, 4096);
    EXPECT_LE(servers_more, 4096);
  }
  EXPECT_EQ(::waitpid(server, nullptr, WNOHANG), 0) << "the server has seen a number twice, or missed one";
  stop(server);
}

// The other side of the many connections: a process of its own, since each connection has a descriptor.
int crowd(const char* uri, std::size_t count) {
  std::uint32_t caps;
  cci_endpoint_t* endpoint = nullptr;
  if (cci_init(CCI_ABI_VERSION, 0, &caps) != 0 || cci_create_endpoint(nullptr, 0, &endpoint, nullptr) != 0)
    return 1;
  std::size_t asked = 0, made = 0;
  for (;;) {
    if (asked < count && asked - made < 100) {
      if (cci_connect(endpoint, uri, nullptr, 0, CCI_CONN_ATTR_RO, nullptr, 0, nullptr) != CCI_SUCCESS)
        return 1;
      ++asked;
    }
    cci_event_t* event = nullptr;
    if (cci_get_event(endpoint, &event) != CCI_SUCCESS) {
      if (asked == count) ::usleep(1000);
      continue;
    }
    if (event->type == CCI_EVENT_CONNECT) {
      if (event->connect.status != CCI_SUCCESS) return 1;
      ++made;
      cci_send(event->connect.connection, "here", 4, nullptr, CCI_FLAG_SILENT);
    }
    cci_return_event(event);
  }
}

}  // namespace
}  // namespace cci_test

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--crowd")
    return cci_test::crowd(argv[2], static_cast<std::size_t>(std::atoi(argv[3])));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
