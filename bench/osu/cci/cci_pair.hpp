// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "bench/osu/model.hpp"
#include "bench/osu/table.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include <cci.h>
#include <pmi.h>

namespace bench {

// Two PEs with a connection: rank 1 is its server. Messages end in an event at the receiver alone.
struct CciPair {
  static constexpr std::size_t kUriBytes = 256;

  int rank = 0, size = 1;
  bool first = false;
  bool reliable;
  std::optional<Model> model;
  cci_endpoint_t* endpoint = nullptr;
  cci_connection_t* connection = nullptr;
  std::vector<char> bytes;

  CciPair(const OsuOptions& options, bool is_reliable) : reliable(is_reliable), bytes(options.largest) {
    int spawned = 0;
    if (PMI_Init(&spawned) != PMI_SUCCESS || PMI_Get_rank(&rank) != PMI_SUCCESS ||
        PMI_Get_size(&size) != PMI_SUCCESS) {
      std::fprintf(stderr, "PMI_Init failed: start this with `orrery run -n 2`\n");
      std::exit(2);
    }
    if (size != 2) {
      if (rank == 0) std::fprintf(stderr, "%d PEs: 2 PEs\n", size);
      PMI_Finalize();
      std::exit(2);
    }
    first = rank == 0;
    if (options.model) model.emplace(rank, size);
    std::uint32_t caps = 0;
    require(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    require(cci_create_endpoint(nullptr, 0, &endpoint, nullptr), "cci_create_endpoint");
    connect();
    if (options.largest > connection->max_send_size) {
      if (first)
        std::fprintf(stderr, "messages up to %zu: %u at the most, as the device has them\n", options.largest,
                     connection->max_send_size);
      PMI_Finalize();
      std::exit(2);
    }
    PMI_Barrier();
  }
  ~CciPair() {
    PMI_Barrier();
    cci_disconnect(connection);
    cci_destroy_endpoint(endpoint);
    cci_finalize();
    PMI_Finalize();
  }
  CciPair(const CciPair&) = delete;
  CciPair& operator=(const CciPair&) = delete;

  void require(int status, const char* call) const {
    if (status == CCI_SUCCESS) return;
    std::fprintf(stderr, "%s: %s\n", call, cci_strerror(endpoint, static_cast<cci_status>(status)));
    PMI_Abort(1, call);
    std::exit(1);
  }
  void send(std::size_t length) const {
    require(cci_send(connection, bytes.data(), static_cast<std::uint32_t>(length), nullptr, CCI_FLAG_SILENT),
            "cci_send");
  }
  void receive(int messages) {
    for (; messages > 0; --messages) await(CCI_EVENT_RECV);
  }

 private:
  void connect() {
    char* own = nullptr;
    require(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &own), "cci_get_opt");
    std::array<char, kUriBytes> mine{};
    mine[0] = first ? 'c' : 's';  // the pieces come in no rank's order
    std::snprintf(mine.data() + 1, mine.size() - 1, "%s", own);
    std::free(own);
    std::array<std::array<char, kUriBytes>, 2> both{};
    if (PMI_Allgather(mine.data(), both.data(), kUriBytes) != PMI_SUCCESS)
      require(CCI_ERROR, "PMI_Allgather");
    const char* const server = (both[0][0] == 's' ? both[0] : both[1]).data() + 1;
    if (!first) return await(CCI_EVENT_ACCEPT);
    require(cci_connect(endpoint, server, nullptr, 0, reliable ? CCI_CONN_ATTR_RO : CCI_CONN_ATTR_UU, nullptr,
                        0, nullptr),
            "cci_connect");
    await(CCI_EVENT_CONNECT);
  }
  // Takes events until one of that kind has come.
  void await(cci_event_type_t kind) {
    for (;;) {
      cci_event_t* event = nullptr;
      if (cci_get_event(endpoint, &event) != CCI_SUCCESS) continue;
      const cci_event_type_t came = event->type;
      if (came == CCI_EVENT_CONNECT_REQUEST) require(cci_accept(event, nullptr), "cci_accept");
      if (came == CCI_EVENT_ACCEPT) connection = event->accept.connection;
      if (came == CCI_EVENT_CONNECT) {
        require(event->connect.status, "cci_connect");
        connection = event->connect.connection;
      }
      require(cci_return_event(event), "cci_return_event");
      if (came == kind) return;
    }
  }
};

}  // namespace bench
