// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "cci.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

// Endpoints of one process, or of a fork()ed server, as clients of CCI use them.
namespace cci_test {

using Clock = std::chrono::steady_clock;

inline std::string uri_of(cci_endpoint_t* endpoint) {
  char* text = nullptr;
  EXPECT_EQ(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &text), CCI_SUCCESS);
  std::string uri = text == nullptr ? "" : text;
  std::free(text);
  return uri;
}

// The next event, within ten seconds; null after that.
inline cci_event_t* next_event(cci_endpoint_t* endpoint,
                               std::chrono::milliseconds within = std::chrono::seconds(10)) {
  const auto end = Clock::now() + within;
  cci_event_t* event = nullptr;
  while (cci_get_event(endpoint, &event) != CCI_SUCCESS) {
    if (Clock::now() > end) return nullptr;
    ::usleep(10);
  }
  return event;
}

// Started with the first, ended with the last one.
class Started {
 public:
  Started() {
    std::uint32_t caps = 0;
    status = cci_init(CCI_ABI_VERSION, 0, &caps);
  }
  ~Started() {
    if (status == CCI_SUCCESS) cci_finalize();
  }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  int status;
};

// Two endpoints and a connection between them.
struct Pair {
  cci_endpoint_t* client = nullptr;
  cci_endpoint_t* server = nullptr;
  cci_connection_t* to_server = nullptr;
  cci_connection_t* to_client = nullptr;
};

// Takes the events of a connection that is being made; `pair` has both endpoints already.
inline void connect(Pair* pair, cci_conn_attribute_t attribute, const void* context = nullptr) {
  const std::string uri = uri_of(pair->server);
  ASSERT_EQ(cci_connect(pair->client, uri.c_str(), "hello", 5, attribute, context, 0, nullptr), CCI_SUCCESS);
  cci_event_t* event = next_event(pair->server);
  ASSERT_NE(event, nullptr);
  ASSERT_EQ(event->type, CCI_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(event->request.data_len, 5u);
  EXPECT_EQ(std::memcmp(event->request.data_ptr, "hello", 5), 0);
  EXPECT_EQ(event->request.attribute, attribute);
  ASSERT_EQ(cci_accept(event, nullptr), CCI_SUCCESS);
  EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  // One endpoint may be both.
  for (int i = 0; i < 2; ++i) {
    event = next_event(i == 0 ? pair->client : pair->server);
    ASSERT_NE(event, nullptr);
    if (event->type == CCI_EVENT_CONNECT) {
      EXPECT_EQ(event->connect.status, CCI_SUCCESS);
      EXPECT_EQ(event->connect.context, context);
      pair->to_server = event->connect.connection;
    } else {
      ASSERT_EQ(event->type, CCI_EVENT_ACCEPT);
      EXPECT_EQ(event->accept.status, CCI_SUCCESS);
      pair->to_client = event->accept.connection;
    }
    EXPECT_EQ(cci_return_event(event), CCI_SUCCESS);
  }
  ASSERT_NE(pair->to_server, nullptr);
  ASSERT_NE(pair->to_client, nullptr);
}

inline void open(Pair* pair, cci_conn_attribute_t attribute, int* client_fd = nullptr,
                 int* server_fd = nullptr, cci_device_t* device = nullptr) {
  ASSERT_EQ(cci_create_endpoint(device, 0, &pair->client, client_fd), CCI_SUCCESS);
  ASSERT_EQ(cci_create_endpoint(device, 0, &pair->server, server_fd), CCI_SUCCESS);
  connect(pair, attribute);
}

}  // namespace cci_test
