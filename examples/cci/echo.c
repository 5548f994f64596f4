/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * An echo: a server sends every message back, and a client checks what comes. No launcher starts them, and
 * they share nothing but the server's URI. The client may run on another host.
 * Run: ./echo > uri &     then     ./echo $(cat uri)
 */
#include <cci.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES 1000

static cci_endpoint_t* endpoint;

static void must(int status, const char* call) {
  if (status == CCI_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", call, cci_strerror(endpoint, (enum cci_status)status));
  exit(1);
}
#define MUST(call) must(call, #call)

/* The next event. The call that takes it never waits: a program that has nothing else to do looks again. */
static cci_event_t* next_event(void) {
  cci_event_t* event;
  while (cci_get_event(endpoint, &event) != CCI_SUCCESS) sched_yield();
  return event;
}

static int serve(void) {
  char* uri;
  MUST(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri));
  printf("%s\n", uri);
  fflush(stdout);
  free(uri);
  for (;;) {
    cci_event_t* event = next_event();
    int is_over = 0;
    switch (event->type) {
      case CCI_EVENT_CONNECT_REQUEST:
        MUST(cci_accept(event, NULL));
        break;
      case CCI_EVENT_RECV:
        is_over = event->recv.len == 3 && memcmp(event->recv.ptr, "bye", 3) == 0;
        /* SILENT: no event tells that the answer is sent. The bytes of the event are copied before it is
         * returned. */
        MUST(cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL,
                      is_over ? CCI_FLAG_SILENT | CCI_FLAG_BLOCKING : CCI_FLAG_SILENT));
        break;
      default:
        break; /* accepted; a client that went */
    }
    MUST(cci_return_event(event));
    if (is_over) return 0;
  }
}

/* Sends a message and waits for its echo. */
static int echo(cci_connection_t* connection, const char* bytes, uint32_t length) {
  MUST(cci_send(connection, bytes, length, NULL, CCI_FLAG_SILENT));
  cci_event_t* event;
  while ((event = next_event())->type != CCI_EVENT_RECV) MUST(cci_return_event(event));
  const int same = event->recv.len == length && (length == 0 || memcmp(event->recv.ptr, bytes, length) == 0);
  MUST(cci_return_event(event));
  return same;
}

static int ask(const char* uri) {
  /* RO: nothing is lost, and messages arrive in order. */
  MUST(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL));
  cci_event_t* event = next_event();
  if (event->type != CCI_EVENT_CONNECT) return 1;
  must(event->connect.status, "the connection");
  cci_connection_t* connection = event->connect.connection;
  MUST(cci_return_event(event));

  const uint32_t longest = connection->max_send_size;
  char* bytes = (char*)malloc(longest);
  int wrong = 0;
  for (uint32_t i = 0; i < MESSAGES; i++) {
    const uint32_t length = i * 37 % (longest + 1);
    memset(bytes, (int)('a' + i % 26), length);
    wrong += !echo(connection, bytes, length);
  }
  wrong += !echo(connection, "bye", 3);
  free(bytes);
  MUST(cci_disconnect(connection));
  printf("echo: %s\n", wrong == 0 ? "right" : "WRONG");
  return wrong != 0;
}

int main(int argc, char** argv) {
  uint32_t capabilities;
  MUST(cci_init(CCI_ABI_VERSION, 0, &capabilities));
  MUST(cci_create_endpoint(NULL, 0, &endpoint, NULL));
  const int failed = argc > 1 ? ask(argv[1]) : serve();
  MUST(cci_destroy_endpoint(endpoint));
  MUST(cci_finalize());
  return failed;
}
