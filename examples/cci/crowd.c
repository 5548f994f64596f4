/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * One server for many clients, all asleep when there is nothing to do. The server waits in epoll for its
 * endpoint's handle, beside a timer: any other descriptor of a program can stand there too. Each client is a
 * process, and waits for its own handle.
 * Run: ./crowd.sh ./crowd 1000     or     ./crowd 2 > uri &     and twice     ./crowd $(cat uri)
 */
#include "start.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { kQuestions = 20, kPatienceSeconds = 120 };

/* One for each client, from its acceptance to its end. */
struct client {
  uint32_t asked;
};

static cci_os_handle_t handle;
static int clients_left, answered, wrong;

/* One event, if there is one. The handle stays readable while there are more. */
static void take_event(void) {
  cci_event_t* event;
  if (cci_get_event(endpoint, &event) != CCI_SUCCESS) return;
  if (event->type == CCI_EVENT_CONNECT_REQUEST) {
    /* The connection's context leads from its messages to what the server knows of the client. */
    MUST(cci_accept(event, calloc(1, sizeof(struct client))));
  } else if (event->type == CCI_EVENT_RECV) {
    cci_connection_t* const connection = event->recv.connection;
    struct client* const client = (struct client*)connection->context;
    client->asked++;
    answered++;
    MUST(cci_send(connection, &client->asked, sizeof client->asked, NULL, CCI_FLAG_SILENT));
    if (client->asked == kQuestions) {
      clients_left--;
      free(client);
    }
  }
  MUST(cci_return_event(event));
}

static void watch(int queue, int fd) {
  struct epoll_event event = {EPOLLIN, {.fd = fd}};
  if (epoll_ctl(queue, EPOLL_CTL_ADD, fd, &event) != 0) exit(1);
}

static int serve(int clients) {
  const int queue = epoll_create1(EPOLL_CLOEXEC);
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  const struct itimerspec patience = {{0, 0}, {kPatienceSeconds, 0}};
  timerfd_settime(timer, 0, &patience, NULL);
  watch(queue, handle);
  watch(queue, timer);
  print_uri();
  clients_left = clients;
  long wakes = 0;
  while (clients_left > 0) {
    struct epoll_event ready[2];
    const int count = epoll_wait(queue, ready, 2, -1);
    wakes++;
    for (int i = 0; i < count; i++) {
      if (ready[i].data.fd == handle) {
        take_event();
      } else {
        fprintf(stderr, "%d of %d clients have not ended after %d s\n", clients_left, clients,
                kPatienceSeconds);
        return 1;
      }
    }
  }
  printf("%d clients, %d answers, %ld wakes\n", clients, answered, wakes);
  return answered != clients * kQuestions;
}

/* Sleeps until there is an event. */
static cci_event_t* awaited_event(void) {
  cci_event_t* event;
  struct pollfd watched = {handle, POLLIN, 0};
  while (cci_get_event(endpoint, &event) != CCI_SUCCESS) {
    if (poll(&watched, 1, kPatienceSeconds * 1000) == 0) exit(1);
  }
  return event;
}

static int ask(const char* uri) {
  MUST(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL));
  cci_event_t* event = awaited_event();
  must(event->connect.status, "the connection");
  cci_connection_t* const connection = event->connect.connection;
  MUST(cci_return_event(event));
  for (uint32_t i = 1; i <= kQuestions; i++) {
    MUST(cci_send(connection, "how many?", 9, NULL, CCI_FLAG_SILENT));
    event = awaited_event();
    wrong += event->type != CCI_EVENT_RECV || event->recv.len != sizeof i ||
             memcmp(event->recv.ptr, &i, sizeof i) != 0;
    MUST(cci_return_event(event));
  }
  MUST(cci_disconnect(connection));
  return wrong != 0;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: crowd CLIENTS (the server), or crowd URI\n");
    return 2;
  }
  start(&handle);
  const int failed = strstr(argv[1], "://") != NULL ? ask(argv[1]) : serve(atoi(argv[1]));
  finish();
  return failed;
}
