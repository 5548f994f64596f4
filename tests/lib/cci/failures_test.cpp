// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/require.hpp"
#include "world.hpp"

#include <csignal>
#include <fstream>

#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace cci_test {
namespace {

// A server in a process of its own, which is then stopped or killed.
struct Server {
  pid_t pid = -1;
  std::string uri;
};

// `user`: of the server, when it is not ours.
void start_server(Server* server, uid_t user = 0) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  server->pid = ::fork();
  ASSERT_GE(server->pid, 0);
  if (server->pid == 0) {
    if (user != 0 && ::setuid(user) != 0) ::_exit(1);
    std::uint32_t caps;
    cci_endpoint_t* endpoint = nullptr;
    if (cci_init(CCI_ABI_VERSION, 0, &caps) != 0 || cci_create_endpoint(nullptr, 0, &endpoint, nullptr) != 0)
      ::_exit(1);
    char* uri = nullptr;
    cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri);
    if (::write(ends[1], uri, std::strlen(uri) + 1) < 0) ::_exit(1);
    for (;;) {
      cci_event_t* event = nullptr;
      if (cci_get_event(endpoint, &event) != CCI_SUCCESS) continue;
      if (event->type == CCI_EVENT_CONNECT_REQUEST) cci_accept(event, nullptr);
      if (event->type == CCI_EVENT_RECV)
        cci_send(event->recv.connection, event->recv.ptr, event->recv.len, nullptr, CCI_FLAG_SILENT);
      cci_return_event(event);
    }
  }
  char text[256] = {};
  ASSERT_GT(::read(ends[0], text, sizeof text - 1), 0);
  ::close(ends[0]);
  ::close(ends[1]);
  server->uri = text;
}

TEST(Failures, AKilledServerIsToldAndAStoppedOneRunsIntoKeepalive) {
  Server server;
  ASSERT_NO_FATAL_FAILURE(start_server(&server));
  {
    const Started started;
    cci_endpoint_t* client = nullptr;
    ASSERT_EQ(cci_create_endpoint(nullptr, 0, &client, nullptr), CCI_SUCCESS);
    ASSERT_EQ(cci_connect(client, server.uri.c_str(), nullptr, 0, CCI_CONN_ATTR_RO, nullptr, 0, nullptr),
              CCI_SUCCESS);
    cci_event_t* event = next_event(client);
    ASSERT_NE(event, nullptr);
    ASSERT_EQ(event->connect.status, CCI_SUCCESS);
    cci_connection_t* const connection = event->connect.connection;
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
    ASSERT_EQ(cci_send(connection, "echo", 4, nullptr, CCI_FLAG_SILENT), CCI_SUCCESS);
    event = next_event(client);
    ASSERT_NE(event, nullptr);
    ASSERT_EQ(event->type, CCI_EVENT_RECV);
    EXPECT_EQ(std::memcmp(event->recv.ptr, "echo", 4), 0);
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);

    const std::uint32_t period = 200'000;
    ASSERT_EQ(cci_set_opt(connection, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &period), CCI_SUCCESS);
    EXPECT_EQ(next_event(client, std::chrono::milliseconds(600)), nullptr) << "the server answers";
    ::kill(server.pid, SIGSTOP);
    event = next_event(client);
    ASSERT_NE(event, nullptr);
    ASSERT_EQ(event->type, CCI_EVENT_KEEPALIVE_TIMEDOUT);
    EXPECT_EQ(event->keepalive.connection, connection);
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
    std::uint32_t left = 1;
    EXPECT_EQ(cci_get_opt(connection, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &left), CCI_SUCCESS);
    EXPECT_EQ(left, 0u);

    ::kill(server.pid, SIGKILL);
    ASSERT_EQ(::waitpid(server.pid, nullptr, 0), server.pid);
    // Until the thread has seen it, messages still go into the ring of the dead.
    int status = CCI_SUCCESS;
    const auto end = Clock::now() + std::chrono::seconds(10);
    while ((status = cci_send(connection, "a", 1, nullptr, CCI_FLAG_SILENT)) == CCI_SUCCESS &&
           Clock::now() < end)
      ::usleep(1000);
    EXPECT_EQ(status, CCI_ERR_DISCONNECTED);
    EXPECT_EQ(cci_disconnect(connection), CCI_SUCCESS);
  }
}

TEST(Failures, APortThatIsTakenIsSaidAndFreeAgainWithItsEndpoint) {
  const Started started;
  cci_device_t* const* devices = nullptr;
  ASSERT_EQ(cci_get_devices(&devices), CCI_SUCCESS);
  cci_endpoint_t *first = nullptr, *second = nullptr;
  ASSERT_EQ(cci_create_endpoint(devices[0], 0, &first, nullptr), CCI_SUCCESS);
  const std::string uri = uri_of(first);
  const std::string port = uri.substr(uri.rfind(':') + 1);
  EXPECT_EQ(cci_create_endpoint_at(devices[0], port.c_str(), 0, &second, nullptr), CCI_EADDRNOTAVAIL);
  ASSERT_EQ(cci_destroy_endpoint(first), CCI_SUCCESS);
  EXPECT_EQ(cci_create_endpoint_at(devices[0], port.c_str(), 0, &second, nullptr), CCI_SUCCESS);
  EXPECT_EQ(uri_of(second), uri);
}

// A network of its own, with an address and a device of it. False: none can be made.
bool own_network(const std::string& transport) {
  if (::unshare(CLONE_NEWNET) != 0 ||
      std::system("ip link set lo up && ip addr add 10.99.0.1/32 dev lo") != 0)
    return false;
  const std::string file = testing::TempDir() + "cci_address." + std::to_string(::getpid()) + ".ini";
  std::ofstream(file) << "[n]\ntransport = " << transport << "\nip = 10.99.0.1\n";
  return ::setenv("CCI_CONFIG", file.c_str(), 1) == 0;
}

// Its only address is taken away. The exit code says what was wrong first.
int lose_address(const std::string& transport) {
  if (!own_network(transport)) return 77;
  const Started started;
  ::unlink(std::getenv("CCI_CONFIG"));
  Pair pair;
  int fds[2] = {-1, -1};
  open(&pair, CCI_CONN_ATTR_RO, &fds[0], &fds[1]);
  if (pair.to_client == nullptr) return 1;
  // One that waits for a buffer for ever.
  const std::uint32_t one = 1;
  cci_set_opt(pair.server, CCI_OPT_ENDPT_RECV_BUF_COUNT, &one);
  const std::string bytes(1000, 'x');
  for (int i = 0; i < 2; ++i)
    if (cci_send(pair.to_server, bytes.data(), 1000, nullptr, 0) != CCI_SUCCESS) return 2;
  cci_event_t* event = next_event(pair.client);
  if (event == nullptr || event->send.status != CCI_SUCCESS) return 3;
  cci_return_event(event);
  if (std::system("ip addr del 10.99.0.1/32 dev lo") != 0) return 4;
  pollfd watched{fds[0], POLLIN, 0};
  if (::poll(&watched, 1, 60'000) != 1) return 5;
  event = next_event(pair.client, std::chrono::seconds(60));
  // The server's endpoint fails too, and may have closed the connection before.
  if (event == nullptr || event->type != CCI_EVENT_SEND) return 6;
  if (event->send.status != CCI_ERR_DEVICE_DEAD && event->send.status != CCI_ERR_DISCONNECTED) return 6;
  cci_return_event(event);
  event = next_event(pair.client, std::chrono::seconds(60));
  if (event == nullptr || event->type != CCI_EVENT_ENDPOINT_DEVICE_FAILED) return 7;
  if (event->dev_failed.endpoint != pair.client) return 8;
  cci_return_event(event);
  if (cci_send(pair.to_server, "x", 1, nullptr, 0) != CCI_ERR_DEVICE_DEAD) return 9;
  const std::string uri = uri_of(pair.server);
  if (cci_connect(pair.client, uri.c_str(), nullptr, 0, CCI_CONN_ATTR_RO, nullptr, 0, nullptr) !=
      CCI_ERR_DEVICE_DEAD)
    return 10;
  if (cci_get_event(pair.client, &event) != CCI_EAGAIN) return 11;
  return cci_disconnect(pair.to_server) == CCI_SUCCESS && cci_destroy_endpoint(pair.client) == CCI_SUCCESS
             ? 0
             : 12;
}

// Something about addresses changes while no descriptor is left to look them up with: the device stays. When
// the address goes after that, it is said.
int keep_address(const std::string& transport) {
  if (!own_network(transport)) return 77;
  const Started started;
  ::unlink(std::getenv("CCI_CONFIG"));
  Pair pair;
  open(&pair, CCI_CONN_ATTR_RO);
  if (pair.to_client == nullptr) return 1;
  const int next = ::dup(0);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit before = limit;
  ::close(next);
  limit.rlim_cur = static_cast<rlim_t>(next);
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0 || ::dup(0) >= 0) return 2;
  if (std::system("ip addr add 10.99.0.2/32 dev lo") != 0) return 3;
  if (next_event(pair.client, std::chrono::milliseconds(300)) != nullptr) return 4;
  if (cci_send(pair.to_server, "still", 5, nullptr, CCI_FLAG_SILENT) != CCI_SUCCESS) return 5;
  cci_event_t* event = next_event(pair.server, std::chrono::seconds(60));
  if (event == nullptr || event->type != CCI_EVENT_RECV) return 6;
  cci_return_event(event);
  if (::setrlimit(RLIMIT_NOFILE, &before) != 0 || std::system("ip addr del 10.99.0.1/32 dev lo") != 0)
    return 7;
  event = next_event(pair.client, std::chrono::seconds(60));
  // The message has come, but its acknowledgement perhaps not: a silent send that fails is told.
  if (event != nullptr && event->type == CCI_EVENT_SEND) {
    cci_return_event(event);
    event = next_event(pair.client, std::chrono::seconds(60));
  }
  return event != nullptr && event->type == CCI_EVENT_ENDPOINT_DEVICE_FAILED ? 0 : 8;
}

// Every transport whose devices have addresses.
class Devices : public testing::TestWithParam<const char*> {
 protected:
  void in_child(int (*run)(const std::string&)) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) ::_exit(run(GetParam()));
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) ORRERY_SKIP("namespaces") << "no network of its own can be made";
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
};
TEST_P(Devices, ThatLoseTheirAddressSaySo) { in_child(lose_address); }
TEST_P(Devices, StayWhileTheirAddressCannotBeLookedUp) { in_child(keep_address); }
INSTANTIATE_TEST_SUITE_P(All, Devices, testing::Values("nic", "tcp", "sock", "gni"));

// Two users of one host share no memory: everything goes by frames.
TEST(OtherUsers, AreRefusedUnlessTheServerSaysSoAndThenSpeakByFrames) {
  if (::geteuid() != 0) ORRERY_SKIP("root") << "only root can start a server of another user";
  constexpr uid_t kNobody = 65'534;
  const std::string file = testing::TempDir() + "cci_users." + std::to_string(::getpid()) + ".ini";
  for (const bool allowed : {false, true}) {
    std::ofstream(file) << "[n]\ntransport = nic\nip = 127.0.0.1\nallow = " << (allowed ? "any" : "user")
                        << "\n";
    ::chmod(file.c_str(), 0644);
    ::setenv("CCI_CONFIG", file.c_str(), 1);
    Server server;
    ASSERT_NO_FATAL_FAILURE(start_server(&server, kNobody));
    {
      const Started started;
      ASSERT_EQ(started.status, CCI_SUCCESS);
      cci_endpoint_t* client = nullptr;
      ASSERT_EQ(cci_create_endpoint(nullptr, 0, &client, nullptr), CCI_SUCCESS);
      for (cci_conn_attribute_t attribute : {CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU, CCI_CONN_ATTR_UU}) {
        ASSERT_EQ(cci_connect(client, server.uri.c_str(), nullptr, 0, attribute, nullptr, 0, nullptr),
                  CCI_SUCCESS);
        cci_event_t* event = next_event(client);
        ASSERT_NE(event, nullptr);
        ASSERT_EQ(event->type, CCI_EVENT_CONNECT);
        if (!allowed) {
          EXPECT_EQ(event->connect.status, CCI_ETIMEDOUT);
          EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
          continue;
        }
        ASSERT_EQ(event->connect.status, CCI_SUCCESS);
        cci_connection_t* const connection = event->connect.connection;
        EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
        std::vector<char> bytes(connection->max_send_size);
        for (std::uint32_t size : {0u, 1u, 56u, 57u, 1000u, connection->max_send_size}) {
          for (std::uint32_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i + size);
          ASSERT_EQ(cci_send(connection, bytes.data(), size, &bytes, 0), CCI_SUCCESS);
          bool back = false, completed = false;
          while (!back || !completed) {
            event = next_event(client);
            ASSERT_NE(event, nullptr) << size << ' ' << back << ' ' << completed;
            if (event->type == CCI_EVENT_RECV) {
              back = true;
              ASSERT_EQ(event->recv.len, size);
              EXPECT_TRUE(size == 0 || std::memcmp(event->recv.ptr, bytes.data(), size) == 0);
            } else {
              completed = true;
              EXPECT_EQ(event->send.status, CCI_SUCCESS);
              EXPECT_EQ(event->send.context, &bytes);
            }
            EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
          }
        }
      }
    }
    ::kill(server.pid, SIGKILL);
    EXPECT_EQ(::waitpid(server.pid, nullptr, 0), server.pid);
    ::unsetenv("CCI_CONFIG");
  }
  ::unlink(file.c_str());
}

// From a pid namespace of its own a process shows this user's number, and reaches the abstract names.
TEST(OtherUsers, AProcessOfOtherNamespacesIsNoneOfOurUser) {
  if (::geteuid() != 0) ORRERY_SKIP("root") << "only root makes the namespaces that this is about";
  Server server;
  ASSERT_NO_FATAL_FAILURE(start_server(&server));
  // The status of its connection.
  const auto asked = [&] {
    const Started started;
    cci_endpoint_t* client = nullptr;
    cci_event_t* event = nullptr;
    if (cci_create_endpoint(nullptr, 0, &client, nullptr) != CCI_SUCCESS ||
        cci_connect(client, server.uri.c_str(), nullptr, 0, CCI_CONN_ATTR_RO, nullptr, 0, nullptr) !=
            CCI_SUCCESS ||
        (event = next_event(client, std::chrono::seconds(60))) == nullptr)
      return 78;
    return static_cast<int>(event->connect.status);
  };
  for (const int flags : {0, CLONE_NEWPID, CLONE_NEWUSER}) {
    const pid_t outside = ::fork();
    if (outside == 0) {
      if (flags != 0 && ::unshare(flags) != 0) ::_exit(77);
      const pid_t inside = ::fork();
      if (inside == 0) ::_exit(asked());
      int status = 0;
      ::waitpid(inside, &status, 0);
      ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 79);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(outside, &status, 0), outside);
    if (flags != 0 && WEXITSTATUS(status) == 77) continue;  // cannot be made here
    EXPECT_EQ(WEXITSTATUS(status), flags == 0 ? CCI_SUCCESS : CCI_ETIMEDOUT) << flags;
  }
  ::kill(server.pid, SIGKILL);
  EXPECT_EQ(::waitpid(server.pid, nullptr, 0), server.pid);
}

}  // namespace
}  // namespace cci_test
