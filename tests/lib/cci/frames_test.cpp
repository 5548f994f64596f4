// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/require.hpp"
#include "world.hpp"

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/stat.h>

// What a client sees of a server that shares no memory with it, and fails: one of another user of this host,
// or, where tests/hosts/two_hosts.sh made them, one of another host.
namespace cci_test {
namespace {

constexpr uid_t kNobody = 65'534;
constexpr auto kLong = std::chrono::seconds(60);

// Echoes, and gives its memory. Never returns.
[[noreturn]] void serve(int out) {
  std::uint32_t caps;
  cci_endpoint_t* endpoint = nullptr;
  if (cci_init(CCI_ABI_VERSION, 0, &caps) != 0 || cci_create_endpoint(nullptr, 0, &endpoint, nullptr) != 0)
    ::_exit(1);
  std::vector<char> memory(1 << 20);
  cci_rma_handle_t* handle = nullptr;
  if (cci_rma_register(endpoint, memory.data(), memory.size(), CCI_FLAG_READ | CCI_FLAG_WRITE, &handle) != 0)
    ::_exit(1);
  const std::string line = std::to_string(::getpid()) + " " + uri_of(endpoint) + "\n";
  if (::write(out, line.data(), line.size()) < 0) ::_exit(1);
  for (;;) {
    cci_event_t* event = nullptr;
    if (cci_get_event(endpoint, &event) != CCI_SUCCESS) {
      ::usleep(50);
      continue;
    }
    if (event->type == CCI_EVENT_CONNECT_REQUEST) cci_accept(event, nullptr);
    if (event->type == CCI_EVENT_ACCEPT && event->accept.connection != nullptr)
      cci_send(event->accept.connection, handle, sizeof *handle, nullptr, CCI_FLAG_SILENT);
    if (event->type == CCI_EVENT_RECV)
      cci_send(event->recv.connection, event->recv.ptr, event->recv.len, nullptr, CCI_FLAG_SILENT);
    cci_return_event(event);
  }
}

class Frames : public testing::Test {
 protected:
  static bool two_hosts() { return std::getenv("TWO_HOSTS") != nullptr; }
  static std::string word(const char* name) {
    const char* const text = std::getenv(name);
    return text == nullptr ? "" : text;
  }

  void SetUp() override {
    if (::geteuid() != 0) ORRERY_SKIP("root") << "only root can start a server of another user";
    if (!two_hosts()) {
      file_ = testing::TempDir() + "cci_frames." + std::to_string(::getpid()) + ".ini";
      std::ofstream(file_) << "[n]\ntransport = nic\nip = 127.0.0.1\nallow = any\n";
      ::chmod(file_.c_str(), 0644);
      ::setenv("CCI_CONFIG", file_.c_str(), 1);
    }
    ASSERT_NO_FATAL_FAILURE(start());
    ASSERT_EQ(cci_init(CCI_ABI_VERSION, 0, &caps_), CCI_SUCCESS);
    ASSERT_EQ(cci_create_endpoint(nullptr, 0, &client_, nullptr), CCI_SUCCESS);
  }
  void TearDown() override {
    end_server();
    if (client_ != nullptr) cci_finalize();
    if (!file_.empty()) ::unlink(file_.c_str());
    ::unsetenv("CCI_CONFIG");
  }

  void start() {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      if (two_hosts()) {
        ::dup2(ends[1], STDOUT_FILENO);
        const std::string exec = word("HOST_EXEC"), host = word("HOST_B");
        ::execl(exec.c_str(), exec.c_str(), host.c_str(), program.c_str(), "--serve", nullptr);
        ::_exit(1);
      }
      if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(1);
      serve(ends[1]);
    }
    ::close(ends[1]);
    std::FILE* const in = ::fdopen(ends[0], "r");
    char uri[256] = {};
    ASSERT_EQ(std::fscanf(in, "%d %255s", &server_, uri), 2);
    std::fclose(in);
    uri_ = uri;
  }
  void end_server() {
    if (server_ > 0) ::kill(server_, SIGKILL);
    if (child_ > 0) ::waitpid(child_, nullptr, 0);
    server_ = child_ = -1;
  }

  // No thread of the server runs when this returns: what is sent from now on is not answered.
  void stop() const {
    ::kill(server_, SIGSTOP);
    const std::string tasks = "/proc/" + std::to_string(server_) + "/task";
    for (bool runs = true; runs;) {
      runs = false;
      for (const auto& task : std::filesystem::directory_iterator(tasks)) {
        std::ifstream file(task.path() / "status");
        for (std::string line; std::getline(file, line);)
          if (line.rfind("State:", 0) == 0) runs = runs || line.find('T') == std::string::npos;
      }
    }
  }
  // The status of the CONNECT event. With success: the server's memory is known.
  cci_status_t connect(cci_conn_attribute_t kind, const timeval* limit = nullptr) {
    EXPECT_EQ(cci_connect(client_, uri_.c_str(), nullptr, 0, kind, this, 0, limit), CCI_SUCCESS);
    cci_event_t* event = next_event(client_, kLong);
    if (event == nullptr || event->type != CCI_EVENT_CONNECT) return CCI_ERROR;
    const cci_status_t status = event->connect.status;
    connection_ = event->connect.connection;
    EXPECT_EQ(event->connect.context, this);
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
    if (status != CCI_SUCCESS) return status;
    event = next_event(client_, kLong);
    if (event == nullptr || event->type != CCI_EVENT_RECV || event->recv.len != sizeof theirs_)
      return CCI_ERROR;
    std::memcpy(&theirs_, event->recv.ptr, sizeof theirs_);
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
    return CCI_SUCCESS;
  }
  // The next event is the completion of a send.
  cci_status_t completion(const void* context) {
    cci_event_t* const event = next_event(client_, kLong);
    if (event == nullptr || event->type != CCI_EVENT_SEND || event->send.context != context) return CCI_ERROR;
    const cci_status_t status = event->send.status;
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
    return status;
  }
  void echo() {
    ASSERT_EQ(cci_send(connection_, "echo", 4, nullptr, CCI_FLAG_SILENT), CCI_SUCCESS);
    cci_event_t* const event = next_event(client_, kLong);
    ASSERT_NE(event, nullptr);
    ASSERT_EQ(event->type, CCI_EVENT_RECV);
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  }

 public:
  static std::string program;

 protected:
  std::uint32_t caps_ = 0;
  std::string file_, uri_;
  pid_t child_ = -1;
  int server_ = -1;
  cci_endpoint_t* client_ = nullptr;
  cci_connection_t* connection_ = nullptr;
  struct cci_rma_handle theirs_ {};
};
std::string Frames::program;

TEST_F(Frames, AStoppedServerIsToldByTimeoutsAndGoesOn) {
  // A connection is not made in time.
  stop();
  const timeval limit{0, 300'000};
  auto begin = Clock::now();
  EXPECT_EQ(connect(CCI_CONN_ATTR_RO, &limit), CCI_ETIMEDOUT);
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(300));
  ::kill(server_, SIGCONT);
  for (const cci_conn_attribute_t kind : {CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU}) {
    ASSERT_EQ(connect(kind), CCI_SUCCESS);
    ASSERT_NO_FATAL_FAILURE(echo());
    // Nothing is heard.
    const std::uint32_t period = 300'000;
    ASSERT_EQ(cci_set_opt(connection_, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &period), CCI_SUCCESS);
    stop();
    cci_event_t* event = next_event(client_, kLong);
    ASSERT_NE(event, nullptr);
    ASSERT_EQ(event->type, CCI_EVENT_KEEPALIVE_TIMEDOUT);
    EXPECT_EQ(event->keepalive.connection, connection_);
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
    // A send, and an RMA, that are not answered in time.
    const std::uint32_t patience = 200'000;
    ASSERT_EQ(cci_set_opt(connection_, CCI_OPT_CONN_SEND_TIMEOUT, &patience), CCI_SUCCESS);
    begin = Clock::now();
    ASSERT_EQ(cci_send(connection_, "late", 4, &begin, 0), CCI_SUCCESS);
    EXPECT_EQ(completion(&begin), CCI_ETIMEDOUT);
    EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(200));
    std::vector<char> mine(1000);
    cci_rma_handle_t* local = nullptr;
    ASSERT_EQ(cci_rma_register(client_, mine.data(), mine.size(), 0, &local), CCI_SUCCESS);
    ASSERT_EQ(cci_rma(connection_, nullptr, 0, local, 0, &theirs_, 0, mine.size(), local, CCI_FLAG_READ),
              CCI_SUCCESS);
    EXPECT_EQ(completion(local), CCI_ETIMEDOUT);
    // The connection is usable still: what was late comes, and is echoed.
    const std::uint32_t never = 0;
    ASSERT_EQ(cci_set_opt(connection_, CCI_OPT_CONN_SEND_TIMEOUT, &never), CCI_SUCCESS);
    ::kill(server_, SIGCONT);
    event = next_event(client_, kLong);
    ASSERT_NE(event, nullptr);
    ASSERT_EQ(event->type, CCI_EVENT_RECV);
    EXPECT_EQ(event->recv.len, 4u);
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
    EXPECT_EQ(cci_rma(connection_, nullptr, 0, local, 0, &theirs_, 0, mine.size(), nullptr,
                      CCI_FLAG_READ | CCI_FLAG_BLOCKING),
              CCI_SUCCESS);
    ASSERT_NO_FATAL_FAILURE(echo());
    ASSERT_EQ(cci_rma_deregister(client_, local), CCI_SUCCESS);
    ASSERT_EQ(cci_disconnect(connection_), CCI_SUCCESS);
  }
}

TEST_F(Frames, AKilledServerEndsWhatIsUnderWayAndNothingListensAfterIt) {
  ASSERT_EQ(connect(CCI_CONN_ATTR_RO), CCI_SUCCESS);
  std::vector<char> mine(1 << 20);
  cci_rma_handle_t* local = nullptr;
  ASSERT_EQ(cci_rma_register(client_, mine.data(), mine.size(), 0, &local), CCI_SUCCESS);
  stop();
  ASSERT_EQ(cci_send(connection_, "word", 4, &mine, 0), CCI_SUCCESS);
  ASSERT_EQ(cci_rma(connection_, "done", 4, local, 0, &theirs_, 0, mine.size(), local, CCI_FLAG_WRITE),
            CCI_SUCCESS);
  end_server();
  EXPECT_EQ(completion(&mine), CCI_ERR_DISCONNECTED);
  EXPECT_EQ(completion(local), CCI_ERR_DISCONNECTED);
  EXPECT_EQ(cci_send(connection_, "a", 1, nullptr, 0), CCI_ERR_DISCONNECTED);
  EXPECT_EQ(cci_rma(connection_, nullptr, 0, local, 0, &theirs_, 0, 1, nullptr, CCI_FLAG_READ),
            CCI_ERR_DISCONNECTED);
  EXPECT_EQ(cci_disconnect(connection_), CCI_SUCCESS);
  EXPECT_EQ(connect(CCI_CONN_ATTR_RO), CCI_ETIMEDOUT) << "the listener is gone";
  cci_event_t* event = nullptr;
  EXPECT_EQ(cci_get_event(client_, &event), CCI_EAGAIN);
}

// The network between two hosts loses everything for a while; then this host loses its interface.
TEST_F(Frames, LostFramesAreToldByTimeoutsAndALostAddressByTheDevice) {
  if (!two_hosts()) GTEST_SKIP() << "there is one host";
  ASSERT_EQ(connect(CCI_CONN_ATTR_RO), CCI_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(echo());

  // What either host sends goes to a card that is not there.
  const auto both = [](const std::string& what, const std::string& end) {
    const std::string ip = "ip -n ", verb = " neigh " + what + " ";
    return std::system((ip + word("NETNS_A") + verb + word("HOST_B") + end + " && " + ip + word("NETNS_B") +
                        verb + word("HOST_A") + end)
                           .c_str());
  };
  ASSERT_EQ(both("replace", " lladdr 02:00:00:00:00:01 dev cable nud permanent"), 0);
  const std::uint32_t period = 300'000, patience = 200'000;
  ASSERT_EQ(cci_set_opt(connection_, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &period), CCI_SUCCESS);
  ASSERT_EQ(cci_set_opt(connection_, CCI_OPT_CONN_SEND_TIMEOUT, &patience), CCI_SUCCESS);
  ASSERT_EQ(cci_send(connection_, "late", 4, &period, 0), CCI_SUCCESS);
  bool late = false, quiet = false;
  while (!late || !quiet) {
    cci_event_t* const event = next_event(client_, kLong);
    ASSERT_NE(event, nullptr);
    if (event->type == CCI_EVENT_KEEPALIVE_TIMEDOUT) quiet = true;
    if (event->type == CCI_EVENT_SEND) {
      late = true;
      EXPECT_EQ(event->send.status, CCI_ETIMEDOUT);
    }
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  }
  const timeval limit{0, 300'000};
  cci_connection_t* const old = connection_;
  EXPECT_EQ(connect(CCI_CONN_ATTR_RO, &limit), CCI_ETIMEDOUT);
  ASSERT_EQ(both("del", " dev cable"), 0);
  // TCP brings the late one.
  cci_event_t* event = next_event(client_, kLong);
  ASSERT_NE(event, nullptr);
  ASSERT_EQ(event->type, CCI_EVENT_RECV);
  EXPECT_EQ(event->recv.connection, old);
  EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  ASSERT_EQ(std::system(("ip -n " + word("NETNS_A") + " link set cable down").c_str()), 0);
  event = next_event(client_, kLong);
  ASSERT_NE(event, nullptr);
  ASSERT_EQ(event->type, CCI_EVENT_ENDPOINT_DEVICE_FAILED);
  EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  EXPECT_EQ(cci_send(old, "a", 1, nullptr, 0), CCI_ERR_DEVICE_DEAD);
}

}  // namespace
}  // namespace cci_test

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--serve") cci_test::serve(STDOUT_FILENO);
  testing::InitGoogleTest(&argc, argv);
  char path[4096] = {};
  if (::readlink("/proc/self/exe", path, sizeof path - 1) > 0) cci_test::Frames::program = path;
  return RUN_ALL_TESTS();
}
