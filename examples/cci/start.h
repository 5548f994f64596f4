/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* What all of these programs begin and end with: the library, an endpoint, its URI, a connection. */
#pragma once

#include <cci.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cci_endpoint_t* endpoint;

static inline void must(int status, const char* call) {
  if (status == CCI_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", call, cci_strerror(endpoint, (enum cci_status)status));
  exit(1);
}
#define MUST(call) must(call, #call)

/* An endpoint of the default device. `handle`: null, or where the descriptor goes that clients sleep on. */
static inline void start(cci_os_handle_t* handle) {
  uint32_t capabilities;
  MUST(cci_init(CCI_ABI_VERSION, 0, &capabilities));
  MUST(cci_create_endpoint(NULL, 0, &endpoint, handle));
}

static inline void finish(void) {
  MUST(cci_destroy_endpoint(endpoint));
  MUST(cci_finalize());
}

/* What clients need to know of this endpoint. */
static inline void print_uri(void) {
  char* uri;
  MUST(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri));
  printf("%s\n", uri);
  fflush(stdout);
  free(uri);
}

/* The next event. The call that takes it never waits: a program that has nothing else to do looks again. */
static inline cci_event_t* next_event(cci_endpoint_t* of) {
  cci_event_t* event;
  while (cci_get_event(of, &event) != CCI_SUCCESS) sched_yield();
  return event;
}

/* A connection of that kind, once the server has accepted it. */
static inline cci_connection_t* connect_to(cci_endpoint_t* from, const char* uri, cci_conn_attribute_t kind) {
  MUST(cci_connect(from, uri, NULL, 0, kind, NULL, 0, NULL));
  cci_event_t* event = next_event(from);
  if (event->type != CCI_EVENT_CONNECT) exit(1);
  must(event->connect.status, "the connection");
  cci_connection_t* const connection = event->connect.connection;
  MUST(cci_return_event(event));
  return connection;
}

/* A program that is a server without an argument, and with a server's URI its client. Gives the exit code. */
static inline int serve_or_ask(int argc, char** argv, int (*serve)(void), int (*ask)(const char* uri)) {
  start(NULL);
  const int failed = argc > 1 ? ask(argv[1]) : serve();
  finish();
  return failed;
}
