// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "bench/common/session.hpp"
#include "bench/ratios/stage.hpp"
#include "bench/ratios/tests.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cci.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

// CCI: messages beside the raw line, RMA beside memcpy, a wake by the endpoint's handle beside one by an
// eventfd.
namespace bench {

namespace {

constexpr int kInFlight = 16;
constexpr std::size_t kRmaBytes = std::size_t{1} << 20;
constexpr int kCciTurns = 5;
constexpr int kWakes = 400;

void require_success(int status, const char* call) {
  if (status == CCI_SUCCESS) return;
  std::fprintf(stderr, "%s: %s\n", call, cci_strerror(nullptr, static_cast<cci_status>(status)));
  std::exit(1);
}
#define BENCH_CCI(call) require_success(call, #call)

using CciUri = std::array<char, 128>;

// An endpoint, and what it takes from it.
struct CciEnd {
  cci_endpoint_t* endpoint = nullptr;
  cci_os_handle_t handle = -1;

  explicit CciEnd(bool sleeps) {
    std::uint32_t caps = 0;
    BENCH_CCI(cci_init(CCI_ABI_VERSION, 0, &caps));
    BENCH_CCI(cci_create_endpoint(nullptr, 0, &endpoint, sleeps ? &handle : nullptr));
  }
  ~CciEnd() {
    cci_destroy_endpoint(endpoint);
    cci_finalize();
  }
  CciEnd(const CciEnd&) = delete;
  CciEnd& operator=(const CciEnd&) = delete;

  CciUri uri() const {
    char* text = nullptr;
    BENCH_CCI(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &text));
    CciUri copy{};
    std::snprintf(copy.data(), copy.size(), "%s", text);
    std::free(text);
    return copy;
  }
  cci_event_t* next() const {
    cci_event_t* event = nullptr;
    while (cci_get_event(endpoint, &event) != CCI_SUCCESS) {
    }
    return event;
  }
  cci_event_t* next_asleep() const {
    cci_event_t* event = nullptr;
    do {
      pollfd watched{handle, POLLIN, 0};
      poll(&watched, 1, -1);
    } while (cci_get_event(endpoint, &event) != CCI_SUCCESS);
    return event;
  }
  // `peer` is empty where this end waits to be connected to.
  cci_connection_t* connect(const char* peer, cci_conn_attribute_t kind) const {
    if (peer[0] != 0) BENCH_CCI(cci_connect(endpoint, peer, nullptr, 0, kind, nullptr, 0, nullptr));
    cci_connection_t* connection = nullptr;
    while (connection == nullptr) {
      cci_event_t* const event = next();
      if (event->type == CCI_EVENT_CONNECT_REQUEST) BENCH_CCI(cci_accept(event, nullptr));
      if (event->type == CCI_EVENT_CONNECT) connection = event->connect.connection;
      if (event->type == CCI_EVENT_ACCEPT) connection = event->accept.connection;
      BENCH_CCI(cci_return_event(event));
    }
    return connection;
  }
};

// CciMessages of 8 bytes over one connection.
struct CciMessages {
  const CciEnd& node;
  cci_connection_t* connection;

  void send(int count) const {
    const std::uint64_t word = 1;
    for (int i = 0; i < count; ++i)
      BENCH_CCI(cci_send(connection, &word, sizeof word, nullptr, CCI_FLAG_SILENT));
  }
  void receive(int count) const {
    for (int i = 0; i < count; ++i) cci_return_event(node.next());
  }
};

struct CciMemory {
  std::byte* bytes;
  cci_rma_handle_t* handle = nullptr;

  explicit CciMemory(const CciEnd& node)
      : bytes(static_cast<std::byte*>(std::aligned_alloc(4096, kRmaBytes))) {
    std::memset(bytes, 1, kRmaBytes);
    BENCH_CCI(cci_rma_register(node.endpoint, bytes, kRmaBytes, CCI_FLAG_READ | CCI_FLAG_WRITE, &handle));
  }
};

void cci_write(Stage& stage, const CciEnd& node, cci_connection_t* connection, int rank, int size) {
  const CciMemory mine(node);
  const CciMemory copy(node);
  const auto handles = all_gather(*mine.handle, rank, size);
  struct cci_rma_handle theirs = handles[static_cast<std::size_t>((rank + 1) % size)];
  std::vector<double> limits, times;
  for (int turn = 0; turn < kCciTurns; ++turn) {
    const auto time = [&](auto step) {
      return median(stage.run(
          4, kTestMs / kCciTurns, 1,
          [&](int n) {
            for (int i = 0; i < n; ++i) step();
          },
          [](int) {}));
    };
    limits.push_back(time([&] {
      std::memcpy(copy.bytes, mine.bytes, kRmaBytes);
      asm volatile("" ::"r"(copy.bytes) : "memory");
    }));
    times.push_back(time([&] {
      BENCH_CCI(
          cci_rma(connection, nullptr, 0, mine.handle, 0, &theirs, 0, kRmaBytes, nullptr, CCI_FLAG_WRITE));
      cci_return_event(node.next());
    }));
  }
  // As bandwidths, so that more is better: ours over memcpy's.
  row(rank, "cci_rma_write_1_mib", static_cast<double>(kRmaBytes) / median(times),
      static_cast<double>(kRmaBytes) / median(limits));
}

// Half a round trip of two processes that sleep; `active` sends first.
template <typename Send, typename Await>
double asleep(bool active, Send send, Await await) {
  std::vector<double> times;
  for (int i = 0; i < kWakes; ++i) {
    const double begin = now_ns();
    if (active) send();
    await();
    if (!active) send();
    times.push_back((now_ns() - begin) / 2);
  }
  return median(times);
}

}  // namespace

void measure_cci(int repetitions) {
  int spawned = 0, rank = 0, size = 0;
  if (PMI_Init(&spawned) != PMI_SUCCESS) std::exit(2);
  PMI_Get_rank(&rank);
  PMI_Get_size(&size);
  {
    const CciEnd node(false);
    const auto uris = all_gather(node.uri(), rank, size);
    const char* const peer = rank == 0 ? uris[1].data() : "";
    const CciMessages ordered{node, node.connect(peer, CCI_CONN_ATTR_RO)};
    const CciMessages unreliable{node, node.connect(peer, CCI_CONN_ATTR_UU)};
    Stage stage(rank);
    pin(rank);
    for (int i = 0; i < repetitions; ++i) {
      double raw = stage.raw_half_round_trip(kRawMs);
      row(rank, "cci_ro_8", half_round_trip(stage, ordered, kTestMs), raw);
      raw = stage.raw_half_round_trip(kRawMs);
      row(rank, "cci_uu_8", half_round_trip(stage, unreliable, kTestMs), raw);
      raw = stage.raw_half_round_trip(kRawMs);
      row(rank, "cci_ro_8_window_16", window(stage, ordered, kInFlight, kTestMs), raw);
      cci_write(stage, node, ordered.connection, rank, size);
    }
    PMI_Barrier();
  }
  PMI_Finalize();
}

// One PE, and a process that it makes: they need eventfds of both.
void measure_cci_asleep(int repetitions) {
  const int bells[2] = {eventfd(0, 0), eventfd(0, 0)};
  int ends[2];
  if (bells[0] < 0 || bells[1] < 0 || pipe(ends) != 0) std::exit(2);
  const pid_t child = fork();
  const bool active = child != 0;
  pin(active ? 0 : 1);
  const CciEnd node(true);
  CciUri uri = node.uri();
  if (!active && write(ends[1], uri.data(), uri.size()) < 0) _exit(1);
  if (active && read(ends[0], uri.data(), uri.size()) <= 0) std::exit(2);
  cci_connection_t* const connection = node.connect(active ? uri.data() : "", CCI_CONN_ATTR_RO);
  for (int i = 0; i < repetitions; ++i) {
    const double raw = asleep(
        active, [&] { eventfd_write(bells[active ? 1 : 0], 1); },
        [&] {
          pollfd watched{bells[active ? 0 : 1], POLLIN, 0};
          poll(&watched, 1, -1);
          eventfd_t value = 0;
          eventfd_read(watched.fd, &value);
        });
    const double ours = asleep(
        active, [&] { BENCH_CCI(cci_send(connection, "wake up", 8, nullptr, CCI_FLAG_SILENT)); },
        [&] { cci_return_event(node.next_asleep()); });
    row(active ? 0 : 1, "cci_wake", ours, raw);
  }
  if (!active) _exit(0);
  waitpid(child, nullptr, 0);
}

}  // namespace bench
