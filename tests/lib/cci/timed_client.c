/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* Two PEs in the SeaStar's time: ping-pong and stream. The exit code counts the figures that are not those of
 * its paper (machines/seastar.toml names it). */
#include <cci.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 20
#define MESSAGES 100

static cci_endpoint_t* endpoint;
static cci_os_handle_t handle;
static cci_connection_t* connection;
static char bytes[8192];

static void must(int status, const char* call) {
  if (status == CCI_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", call, cci_strerror(endpoint, (enum cci_status)status));
  exit(1);
}
#define MUST(call) must(call, #call)

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* Takes events until one of that kind has come. */
static void await(cci_event_type_t type) {
  for (;;) {
    cci_event_t* event;
    if (cci_get_event(endpoint, &event) != CCI_SUCCESS) continue;
    const cci_event_type_t came = event->type;
    if (came == CCI_EVENT_CONNECT_REQUEST) MUST(cci_accept(event, NULL));
    if (came == CCI_EVENT_ACCEPT) connection = event->accept.connection;
    if (came == CCI_EVENT_CONNECT) {
      must(event->connect.status, "the connection");
      connection = event->connect.connection;
    }
    MUST(cci_return_event(event));
    if (came == type) return;
  }
}

static int wrong;

/* A figure of the machine's paper, between these two. */
static void expect(const char* what, const char* kind, uint32_t size, double value, double low, double high) {
  const int right = value >= low && value <= high;
  printf("%s %s %u B: %.3f%s\n", kind, what, size, value, right ? "" : " WRONG");
  wrong += !right;
}

/* A message there and back: what the client's clock says, halved. */
static double half_round_trip(int is_client, uint32_t size) {
  const double begin = now_us();
  for (int round = 0; round < ROUNDS; round++) {
    if (is_client) MUST(cci_send(connection, bytes, size, NULL, CCI_FLAG_SILENT));
    await(CCI_EVENT_RECV);
    if (!is_client) MUST(cci_send(connection, bytes, size, NULL, CCI_FLAG_SILENT));
  }
  return (now_us() - begin) / ROUNDS / 2;
}

/* Messages in a row: us between two arrivals, at the server. */
static double interval(int is_client, uint32_t size) {
  double first = 0;
  for (int i = 0; i < MESSAGES; i++) {
    if (is_client) {
      MUST(cci_send(connection, bytes, size, NULL, CCI_FLAG_SILENT));
    } else {
      await(CCI_EVENT_RECV);
      if (i == 0) first = now_us();
    }
  }
  const double last = now_us();
  /* The next row begins when this one has ended. */
  if (is_client) await(CCI_EVENT_RECV);
  if (!is_client) MUST(cci_send(connection, "", 0, NULL, CCI_FLAG_SILENT));
  return (last - first) / (MESSAGES - 1);
}

static void measure(int is_client, int is_ordered) {
  const char* const kind = is_ordered ? "RO" : "UU";
  const double none = half_round_trip(is_client, 0);
  const double middle = half_round_trip(is_client, 512);
  const double page = half_round_trip(is_client, 4096);
  if (is_client) {
    expect("us", kind, 0, none, is_ordered ? 2.98 : 2.82, is_ordered ? 3.0 : 2.84);
    if (!is_ordered) expect("us", kind, 512, middle, 2.83, 3.0);
    expect("us", kind, 4096, page, is_ordered ? 5.25 : 4.98, is_ordered ? 5.27 : 5.0);
  }
  const double empty_every = interval(is_client, 0);
  const double page_every = interval(is_client, 4096);
  if (!is_client) {
    expect("thousand/s", kind, 0, 1e3 / empty_every, is_ordered ? 640 : 1000, is_ordered ? 660 : 1050);
    expect("GB/s", kind, 4096, 4.096 / page_every, 1.95, 2.05);
  }
}

/* Sleeps at the handle, after many looks in vain in the handshakes: the next message makes it readable. */
static void await_asleep(void) {
  cci_event_t* event;
  while (cci_get_event(endpoint, &event) != CCI_SUCCESS) {
    struct pollfd readable = {.fd = handle, .events = POLLIN, .revents = 0};
    if (poll(&readable, 1, -1) != 1) exit(1);
  }
  if (event->type != CCI_EVENT_RECV) exit(1);
  MUST(cci_return_event(event));
}

static void ping_asleep(int is_client) {
  for (int round = 0; round < ROUNDS; round++) {
    if (is_client) MUST(cci_send(connection, bytes, 8, NULL, CCI_FLAG_SILENT));
    await_asleep();
    if (!is_client) MUST(cci_send(connection, bytes, 8, NULL, CCI_FLAG_SILENT));
  }
}

/* A send that waited for room wakes the server, which waits for it alone; the server is not taken for one
 * that is gone while it sleeps, and is once it has disconnected. */
static void live_and_go(int is_client) {
  if (!is_client) {
    usleep(5000);
    for (uint32_t length = 1; length != 0;) {
      cci_event_t* event;
      if (cci_get_event(endpoint, &event) != CCI_SUCCESS) continue;
      if (event->type == CCI_EVENT_RECV) length = event->recv.len;
      MUST(cci_return_event(event));
    }
    return;
  }
  const uint32_t alive_us = 100;
  MUST(cci_set_opt(connection, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &alive_us));
  int gone = 0;
  for (int i = 0; i < 60; i++) MUST(cci_send(connection, bytes, i < 59 ? 8 : 0, NULL, 0));
  for (int sends = 0; sends < 60;) {
    cci_event_t* event;
    if (cci_get_event(endpoint, &event) != CCI_SUCCESS) continue;
    gone += event->type == CCI_EVENT_KEEPALIVE_TIMEDOUT;
    sends += event->type == CCI_EVENT_SEND;
    MUST(cci_return_event(event));
  }
  expect("peers that are gone", "RO", 8, gone, 0, 0);
  usleep(1000); /* the server disconnects meanwhile */
  const int status = cci_send(connection, bytes, 8, NULL, 0);
  expect("status of a send to one that is gone", "RO", 8, status, CCI_ERR_DISCONNECTED, CCI_ERR_DISCONNECTED);
}

/* The server looks at nothing for a second. The messages that its ring has no room for end when their time is
 * over, which is the program's, as are those of calls that wait. */
static void run_out_of_time(int is_client) {
  enum { kMessages = 60 };
  if (!is_client) {
    usleep(1000 * 1000);
    for (unsigned length = 0; length != 1;) {
      cci_event_t* event;
      if (cci_get_event(endpoint, &event) != CCI_SUCCESS) continue;
      if (event->type == CCI_EVENT_RECV) length = event->recv.len;
      MUST(cci_return_event(event));
    }
    return;
  }
  uint32_t limit = 100 * 1000;
  MUST(cci_set_opt(connection, CCI_OPT_CONN_SEND_TIMEOUT, &limit));
  const double begin = now_us();
  for (int i = 0; i < kMessages; i++) MUST(cci_send(connection, bytes, 8, NULL, 0));
  int sent = 0, refused = 0;
  while (sent + refused < kMessages) {
    cci_event_t* event;
    if (cci_get_event(endpoint, &event) != CCI_SUCCESS) continue;
    if (event->type == CCI_EVENT_SEND && event->send.status == CCI_SUCCESS) sent++;
    if (event->type == CCI_EVENT_SEND && event->send.status == CCI_ERR_RNR) refused++;
    MUST(cci_return_event(event));
  }
  /* The ring has 48 places, of which some hold what the server has had, until it looks. */
  expect("sent", "RO", 8, sent, 40, 48);
  expect("ms until the others end", "RO", 8, (now_us() - begin) / 1e3, 100, 102);
  const int status = cci_send(connection, bytes, 8, NULL, CCI_FLAG_BLOCKING);
  expect("blocking", "RO", 8, status, CCI_ERR_RNR, CCI_ERR_RNR);
  expect("ms until it ends", "RO", 8, (now_us() - begin) / 1e3, 200, 204);
  limit = 0;
  MUST(cci_set_opt(connection, CCI_OPT_CONN_SEND_TIMEOUT, &limit));
  MUST(cci_send(connection, bytes, 1, NULL, CCI_FLAG_BLOCKING));
  expect("ms until one is taken", "RO", 1, (now_us() - begin) / 1e3, 900, 1010);
}

int main(void) {
  uint32_t caps;
  cci_device_t* const* devices;
  const char* const rank = getenv("PMI_RANK");
  const int is_client = rank != NULL && *rank == '1';
  char port[16], uri[256], *own;
  snprintf(port, sizeof port, "%d", 20000 + (int)getppid() % 12000);
  setvbuf(stdout, NULL, _IOLBF, 0);
  MUST(cci_init(CCI_ABI_VERSION, 0, &caps));
  MUST(cci_get_devices(&devices));
  if (is_client)
    MUST(cci_create_endpoint(devices[0], 0, &endpoint, &handle));
  else
    MUST(cci_create_endpoint_at(devices[0], port, 0, &endpoint, &handle));
  MUST(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &own));
  snprintf(uri, sizeof uri, "%.*s%s", (int)(strrchr(own, ':') + 1 - own), own, port);
  free(own);
  for (int kind = 0; kind < 2; kind++) {
    if (is_client)
      MUST(cci_connect(endpoint, uri, NULL, 0, kind == 0 ? CCI_CONN_ATTR_UU : CCI_CONN_ATTR_RO, NULL, 0,
                       NULL));
    await(is_client ? CCI_EVENT_CONNECT : CCI_EVENT_ACCEPT);
    measure(is_client, kind);
  }
  ping_asleep(is_client);
  run_out_of_time(is_client);
  live_and_go(is_client);
  MUST(cci_disconnect(connection));
  MUST(cci_destroy_endpoint(endpoint));
  MUST(cci_finalize());
  return wrong;
}
