/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Remote procedure calls with bulk data. A request is a short message. It has the handles of the client's
 * memory, out of which the server reads the argument, and into which it writes the result. The answer is the
 * message that comes behind that write: when the client has it, the result is there.
 * Run: ./rpc > uri &     then     ./rpc $(cat uri)
 */
#include "start.h"

enum { kMostBytes = 4 << 20, kCalls = 20 };

/* What the server is to do, and what it has done. */
struct call {
  uint32_t number;
  uint32_t is_last;
  uint64_t length;                        /* bytes of the argument, and of the result */
  struct cci_rma_handle argument, result; /* the client's memory: 32 bytes each, to be copied */
  uint64_t checksum;                      /* the answer's */
};

static uint64_t checksum_of(const unsigned char* bytes, uint64_t length) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < length; i++) sum = sum * 31 + bytes[i];
  return sum;
}

/* ---- the server: one call at a time ---- */

static struct call current;
static cci_connection_t* caller;
static unsigned char* work;
static cci_rma_handle_t* work_handle;

/* The context of an RMA operation says what has ended when its event comes. */
static char has_argument, has_answered;

static void turn_around(uint64_t length) {
  for (uint64_t i = 0; i < length / 2; i++) {
    const unsigned char byte = work[i];
    work[i] = work[length - 1 - i];
    work[length - 1 - i] = byte;
  }
}

static int serve(void) {
  print_uri();
  work = (unsigned char*)malloc(kMostBytes);
  MUST(cci_rma_register(endpoint, work, kMostBytes, 0, &work_handle));
  for (int is_over = 0; !is_over;) {
    cci_event_t* event = next_event(endpoint);
    if (event->type == CCI_EVENT_CONNECT_REQUEST) {
      MUST(cci_accept(event, NULL));
    } else if (event->type == CCI_EVENT_RECV) {
      if (event->recv.len != sizeof current) exit(1);
      memcpy(&current, event->recv.ptr, sizeof current);
      caller = event->recv.connection;
      if (current.length > kMostBytes) exit(1);
      MUST(cci_rma(caller, NULL, 0, work_handle, 0, &current.argument, 0, current.length, &has_argument,
                   CCI_FLAG_READ));
    } else if (event->type == CCI_EVENT_SEND) {
      must(event->send.status, "an RMA operation");
      if (event->send.context == &has_argument) {
        turn_around(current.length);
        current.checksum = checksum_of(work, current.length);
        /* The message arrives when the data is there. */
        MUST(cci_rma(caller, &current, sizeof current, work_handle, 0, &current.result, 0, current.length,
                     &has_answered, CCI_FLAG_WRITE));
      } else {
        is_over = current.is_last != 0;
      }
    }
    MUST(cci_return_event(event));
  }
  MUST(cci_rma_deregister(endpoint, work_handle));
  free(work);
  return 0;
}

/* ---- the client ---- */

static int ask(const char* uri) {
  cci_connection_t* connection = connect_to(endpoint, uri, CCI_CONN_ATTR_RO);
  unsigned char* const argument = (unsigned char*)malloc(kMostBytes);
  unsigned char* const result = (unsigned char*)malloc(kMostBytes);
  cci_rma_handle_t *readable, *writable;
  /* The server may read the one and write the other. */
  MUST(cci_rma_register(endpoint, argument, kMostBytes, CCI_FLAG_READ, &readable));
  MUST(cci_rma_register(endpoint, result, kMostBytes, CCI_FLAG_WRITE, &writable));

  int wrong = 0;
  for (uint32_t number = 0; number < kCalls; number++) {
    const uint64_t length = number + 1 == kCalls ? kMostBytes : (uint64_t)number * 40009 + 1;
    for (uint64_t i = 0; i < length; i++) argument[i] = (unsigned char)(i * number + i / 256);
    const struct call call = {number, number + 1 == kCalls, length, *readable, *writable, 0};
    MUST(cci_send(connection, &call, sizeof call, NULL, CCI_FLAG_SILENT));

    struct call answer;
    cci_event_t* event = next_event(endpoint);
    if (event->type != CCI_EVENT_RECV || event->recv.len != sizeof answer) return 1;
    memcpy(&answer, event->recv.ptr, sizeof answer);
    MUST(cci_return_event(event));
    wrong += answer.number != number || answer.checksum != checksum_of(result, length);
    for (uint64_t i = 0; i < length; i++) wrong += result[i] != argument[length - 1 - i];
  }
  MUST(cci_disconnect(connection));
  MUST(cci_rma_deregister(endpoint, readable));
  MUST(cci_rma_deregister(endpoint, writable));
  free(argument);
  free(result);
  printf("rpc: %s\n", wrong == 0 ? "right" : "WRONG");
  return wrong != 0;
}

int main(int argc, char** argv) { return serve_or_ask(argc, argv, serve, ask); }
