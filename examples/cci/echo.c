/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * An echo: a server sends every message back, and a client checks what comes. No launcher starts them, and
 * they share nothing but the server's URI. The client may run on another host.
 * Run: ./echo > uri &     then     ./echo $(cat uri)
 */
#include "start.h"

#define MESSAGES 1000

static int serve(void) {
  print_uri();
  for (;;) {
    cci_event_t* event = next_event(endpoint);
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
  while ((event = next_event(endpoint))->type != CCI_EVENT_RECV) MUST(cci_return_event(event));
  const int same = event->recv.len == length && (length == 0 || memcmp(event->recv.ptr, bytes, length) == 0);
  MUST(cci_return_event(event));
  return same;
}

static int ask(const char* uri) {
  /* RO: nothing is lost, and messages arrive in order. */
  cci_connection_t* connection = connect_to(endpoint, uri, CCI_CONN_ATTR_RO);
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

int main(int argc, char** argv) { return serve_or_ask(argc, argv, serve, ask); }
