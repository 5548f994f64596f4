// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "stranger.hpp"
#include "world.hpp"

#include <cstdio>
#include <fstream>
#include <functional>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

// A peer that lies is refused, and the connections of others go on.
namespace cci_test {
namespace {

using namespace orrery::cci;

// A server with memory that peers may write, an honest client of it, and what came from anybody else.
struct Victim {
  Started started;
  Pair honest;
  std::vector<std::byte> memory = std::vector<std::byte>(8192, std::byte{0x5a});
  cci_rma_handle_t* registered = nullptr;
  cci_rma_handle_t* only_read = nullptr;
  int foreign = 0;  // messages of strangers that the server was given
  int echoes = 0;

  void open() {
    ASSERT_NO_FATAL_FAILURE(cci_test::open(&honest, CCI_CONN_ATTR_RO));
    ASSERT_EQ(cci_rma_register(honest.server, memory.data() + 4096, 64, CCI_FLAG_WRITE, &registered),
              CCI_SUCCESS);
    ASSERT_EQ(cci_rma_register(honest.server, memory.data(), 64, CCI_FLAG_READ, &only_read), CCI_SUCCESS);
  }
  void serve() {
    for (int in_vain = 0; in_vain < 3;) {
      cci_event_t* event = nullptr;
      if (cci_get_event(honest.server, &event) != CCI_SUCCESS) {
        ++in_vain;
        continue;
      }
      if (event->type == CCI_EVENT_CONNECT_REQUEST) {
        EXPECT_EQ(cci_accept(event, nullptr), CCI_SUCCESS);
      } else if (event->type == CCI_EVENT_RECV && event->recv.connection == honest.to_client) {
        EXPECT_EQ(cci_send(honest.to_client, event->recv.ptr, event->recv.len, nullptr, CCI_FLAG_SILENT),
                  CCI_SUCCESS);
      } else if (event->type == CCI_EVENT_RECV) {
        ++foreign;
      }
      EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
    }
  }
  // A short message, and one that lies in a buffer.
  void expect_honest_service(const std::string& after) {
    for (const std::uint32_t bytes : {8u, 3000u}) {
      const std::string text(bytes, static_cast<char>('a' + echoes++ % 26));
      ASSERT_EQ(cci_send(honest.to_server, text.data(), bytes, nullptr, CCI_FLAG_SILENT), CCI_SUCCESS)
          << after;
      cci_event_t* event = nullptr;
      const auto end = Clock::now() + std::chrono::seconds(60);
      while (cci_get_event(honest.client, &event) != CCI_SUCCESS) {
        ASSERT_LT(Clock::now(), end) << after;
        serve();
      }
      ASSERT_EQ(event->type, CCI_EVENT_RECV) << after;
      EXPECT_TRUE(event->recv.len == bytes && std::memcmp(event->recv.ptr, text.data(), bytes) == 0) << after;
      EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
    }
    for (const std::byte each : memory) ASSERT_EQ(each, std::byte{0x5a}) << after;
  }
};

using Peer = orrery::cci::test::Stranger<std::function<void()>>;

// 127.0.0.2 is no address of an interface, and every user of the host may have it.
TEST(Strangers, AProcessOfThisHostAtAnotherOfItsAddressesIsNoOtherHost) {
  const std::string file = testing::TempDir() + "cci_address." + std::to_string(::getpid()) + ".ini";
  for (const bool allowed : {false, true}) {
    std::ofstream(file) << "[n]\ntransport = nic\nip = 127.0.0.1\n" << (allowed ? "allow = any\n" : "");
    ::setenv("CCI_CONFIG", file.c_str(), 1);
    const Started started;
    ::unsetenv("CCI_CONFIG");
    cci_endpoint_t* server = nullptr;
    ASSERT_EQ(cci_create_endpoint(nullptr, 0, &server, nullptr), CCI_SUCCESS);
    const auto uri = parse_uri(uri_of(server));
    ASSERT_TRUE(uri.ok());
    const orrery::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in from{}, to{};
    from.sin_family = to.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(0x7f000002);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(uri.value().port);
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&from), sizeof from), 0);
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    struct {
      FrameHeader header;
      Hello hello;
    } frame;
    frame.header.kind = FrameKind::connect;
    frame.header.sequence = 1;
    frame.header.payload_bytes = sizeof(Hello);
    frame.hello = {.endpoint = 1, .nonce = 2, .max_send_size = 4096, .attribute = CCI_CONN_ATTR_RO};
    seal(&frame.header, nullptr);
    (void)!::write(socket.get(), &frame, sizeof frame);
    cci_event_t* const event = next_event(server, std::chrono::seconds(allowed ? 60 : 2));
    EXPECT_EQ(event != nullptr, allowed);
    if (event != nullptr) {
      EXPECT_EQ(event->type, CCI_EVENT_CONNECT_REQUEST);
      EXPECT_EQ(cci_reject(event), CCI_SUCCESS);
      EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
    }
    EXPECT_EQ(cci_destroy_endpoint(server), CCI_SUCCESS);
  }
  std::remove(file.c_str());
}

Hello hello_of(bool shares) {
  Hello hello{
      .endpoint = 77, .nonce = 99, .max_send_size = 4096, .generation = 1, .shares = shares ? 1u : 0u};
  hello.attribute = CCI_CONN_ATTR_RO;
  return hello;
}

// Whether the endpoint closes the stranger's socket, within a minute.
bool is_refused(Peer& peer, Victim& victim) {
  const auto end = Clock::now() + std::chrono::seconds(60);
  while (Clock::now() < end) {
    victim.serve();
    std::byte bytes[4096];
    const ssize_t n = ::recv(peer.socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno == ECONNRESET)) return true;
  }
  return false;
}

TEST(Hostile, HandshakesThatLieAreRefused) {
  Victim victim;
  ASSERT_NO_FATAL_FAILURE(victim.open());
  const std::pair<const char*, void (*)(Hello*)> lies[] = {
      {"no nonce", [](Hello* h) { h->nonce = 0; }},
      {"no endpoint", [](Hello* h) { h->endpoint = 0; }},
      {"an unknown kind", [](Hello* h) { h->attribute = 5; }},
      {"no message size", [](Hello* h) { h->max_send_size = 0; }},
      {"a huge message size", [](Hello* h) { h->max_send_size = UINT32_MAX; }},
      {"more data than there is", [](Hello* h) { h->data_bytes = 1000; }},
      {"shares neither", [](Hello* h) { h->shares = 2; }}};
  for (const auto& [what, lie] : lies) {
    Peer peer(victim.honest.server, [&] { victim.serve(); });
    Hello hello = hello_of(false);
    lie(&hello);
    peer.greet(hello, nullptr, 0, false);
    EXPECT_TRUE(is_refused(peer, victim)) << what;
    ASSERT_NO_FATAL_FAILURE(victim.expect_honest_service(what));
  }
}

TEST(Hostile, FramesThatLieEndTheirConnectionAndNoOther) {
  Victim victim;
  ASSERT_NO_FATAL_FAILURE(victim.open());
  const FrameHeader message{.kind = FrameKind::message, .a = 1};
  const std::pair<const char*, void (*)(Peer&, const FrameHeader&)> lies[] = {
      {"length",
       [](Peer& p, const FrameHeader& m) {
         p.frame(m, "x", 1, [](FrameHeader* h) { h->payload_bytes = kLongestPayload + 1; });
       }},
      {"length of a message",
       [](Peer& p, const FrameHeader& m) {
         const std::vector<std::byte> long_one(100'000);
         p.frame(m, long_one.data(), long_one.size());
       }},
      {"generation",
       [](Peer& p, const FrameHeader& m) { p.frame(m, "x", 1, [](FrameHeader* h) { h->generation += 1; }); }},
      {"sequence",
       [](Peer& p, const FrameHeader& m) { p.frame(m, "x", 1, [](FrameHeader* h) { h->sequence += 1; }); }},
      {"number of a message",
       [](Peer& p, const FrameHeader&) { p.frame({.kind = FrameKind::message, .a = 7}, "x", 1); }},
      {"nonce",
       [](Peer& p, const FrameHeader& m) {
         p.mine.nonce += 1;
         p.keys = session_keys(p.mine, p.answer);
         p.frame(m, "x", 1);
       }},
      {"a second handshake",
       [](Peer& p, const FrameHeader&) { p.frame({.kind = FrameKind::connect}, &p.mine, sizeof p.mine); }},
      {"an answer to no operation",
       [](Peer& p, const FrameHeader&) { p.frame({.kind = FrameKind::rma_data, .a = 5}, "x", 1); }},
      {"an end of no operation",
       [](Peer& p, const FrameHeader&) { p.frame({.kind = FrameKind::rma_done, .a = 5}, nullptr, 0); }}};
  for (const auto& [what, lie] : lies) {
    Peer peer(victim.honest.server, [&] { victim.serve(); });
    peer.greet(hello_of(false), nullptr, 0, false);
    ASSERT_TRUE(peer.hear_accept()) << what;
    lie(peer, message);
    EXPECT_TRUE(is_refused(peer, victim)) << what;
    ASSERT_NO_FATAL_FAILURE(victim.expect_honest_service(what));
  }
  EXPECT_EQ(victim.foreign, 0);
}

// The status of the answer to a transfer; -1: none came.
int answered(Peer& peer, Victim& victim) {
  std::vector<std::byte> bytes;
  const auto end = Clock::now() + std::chrono::seconds(60);
  while (Clock::now() < end) {
    victim.serve();
    std::byte some[4096];
    const ssize_t n = ::recv(peer.socket.get(), some, sizeof some, MSG_DONTWAIT);
    if (n == 0) return -1;
    if (n > 0) bytes.insert(bytes.end(), some, some + n);
    if (bytes.size() < sizeof(FrameHeader)) continue;
    FrameHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.kind == FrameKind::rma_data) return CCI_SUCCESS;
    if (header.kind != FrameKind::rma_done) return -1;
    return static_cast<int>(header.b);
  }
  return -1;
}

TEST(Hostile, TransfersThatLieTouchNothing) {
  Victim victim;
  ASSERT_NO_FATAL_FAILURE(victim.open());
  const std::uint64_t name = victim.registered->stuff[1], read_name = victim.only_read->stuff[1];
  Peer peer(victim.honest.server, [&] { victim.serve(); });
  peer.greet(hello_of(false), nullptr, 0, false);
  ASSERT_TRUE(peer.hear_accept());
  const std::vector<std::byte> data(4096, std::byte{0x11});
  const struct {
    const char* what;
    std::uint64_t name, offset;
    std::size_t bytes;
  } writes[] = {{"offset", name, 65, 1},
                {"length", name, 0, 65},
                {"offset and length beyond all numbers", name, UINT64_MAX - 3, 8},
                {"generation", name + (std::uint64_t{2} << 32), 0, 8},
                {"no generation", name & UINT32_MAX, 0, 8},
                {"index", name + 1000, 0, 8},
                {"index beyond the table", name | UINT32_MAX, 0, 8},
                {"right", read_name, 0, 8}};
  std::uint64_t operation = 0;
  for (const auto& lie : writes) {
    peer.frame(
        {.kind = FrameKind::rma_write, .flags = kFrameLast, .a = ++operation, .b = lie.name, .c = lie.offset},
        data.data(), lie.bytes);
    EXPECT_EQ(answered(peer, victim), CCI_ERR_RMA_HANDLE) << lie.what;
    ASSERT_NO_FATAL_FAILURE(victim.expect_honest_service(lie.what));
  }
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{65}, UINT64_MAX}) {
    peer.frame({.kind = FrameKind::rma_read, .a = ++operation, .b = read_name}, &length, sizeof length);
    EXPECT_EQ(answered(peer, victim), CCI_ERR_RMA_HANDLE) << length;
  }
  const std::uint64_t length = 64;
  peer.frame({.kind = FrameKind::rma_read, .a = ++operation, .b = name}, &length, sizeof length);
  EXPECT_EQ(answered(peer, victim), CCI_ERR_RMA_HANDLE) << "no right to read";
  peer.frame({.kind = FrameKind::rma_read, .a = ++operation, .b = read_name}, &length, sizeof length);
  EXPECT_EQ(answered(peer, victim), CCI_SUCCESS) << "what is allowed";
  ASSERT_NO_FATAL_FAILURE(victim.expect_honest_service("reads"));
}

TEST(Hostile, LinesThatLieEndTheirConnectionAndNoOther) {
  Victim victim;
  ASSERT_NO_FATAL_FAILURE(victim.open());
  const struct {
    const char* what;
    LineKind kind;
    int generation;  // beside the right one
    std::uint16_t bytes;
    BufferedMessage message;
    bool claims;
  } lies[] = {
      {"generation", LineKind::message, 1, 8, {}, false},
      {"length of a line", LineKind::message, 0, 57, {}, false},
      {"kind", static_cast<LineKind>(3), 0, 8, {}, false},
      {"buffer beyond the slab", LineKind::buffered, 0, 16, {UINT32_MAX, 0, 100, 0}, false},
      {"buffer that it did not claim", LineKind::buffered, 0, 16, {0, 0, 100, 0}, false},
      {"length of a buffer", LineKind::buffered, 0, 16, {0, 0, 1u << 20, 0}, true},
      {"length of none", LineKind::buffered, 0, 16, {0, 0, 0, 0}, true},
      {"serial of a claim", LineKind::buffered, 0, 16, {0, 77, 100, 0}, true},
  };
  for (const auto& lie : lies) {
    Peer peer(victim.honest.server, [&] { victim.serve(); });
    peer.greet(hello_of(true), nullptr, 0, true);
    ASSERT_TRUE(peer.hear_accept()) << lie.what;
    ASSERT_NE(peer.theirs, nullptr) << lie.what;
    BufferedMessage message = lie.message;
    if (lie.claims) {
      const auto claim = peer.theirs->claim(peer.answer.generation << 14 | peer.answer.slot);
      ASSERT_TRUE(claim.ok());
      message.buffer = claim.value().buffer;
      message.serial += claim.value().serial;
    }
    Line& line = peer.theirs->ring(peer.answer.slot).lines[0];
    std::memcpy(line.bytes, &message, sizeof message);
    const auto generation =
        static_cast<std::uint8_t>(static_cast<int>(peer.answer.generation) + lie.generation);
    line.mark.store(line_mark(0, lie.kind, generation, lie.bytes), std::memory_order_seq_cst);
    (void)peer.theirs->announce(peer.answer.slot);
    EXPECT_TRUE(is_refused(peer, victim)) << lie.what;
    ASSERT_NO_FATAL_FAILURE(victim.expect_honest_service(lie.what));
  }
  EXPECT_EQ(victim.foreign, 0);
}

}  // namespace
}  // namespace cci_test
