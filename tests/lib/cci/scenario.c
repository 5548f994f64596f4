/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* What clients of CCI do with a server of another process, each byte checked: a message back and forth in
 * every size with every flag, many in flight, RMA both ways with and without a message behind it, a refusal.
 *   scenario serve poll|block
 *   scenario ask URI RO|RU|UU poll|block       the exit code is 0 when everything was right */
#include <cci.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kEcho = 1, kCount, kCounted, kRegister, kRegistered, kCheck, kChecked, kRefuse, kBye };
enum { kRegion = 3 << 20, kInFlight = 64, kStreamed = 3000 };

/* What a message begins with. */
struct order {
  uint32_t what;
  uint32_t number;
  uint64_t offset, length;
  struct cci_rma_handle handle;
};

static cci_endpoint_t* endpoint;
static int handle = -1; /* the client sleeps on it; -1: it polls */
static unsigned char* region;
static int wrong;

static void must(int status, const char* call) {
  if (status == CCI_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", call, cci_strerror(endpoint, (enum cci_status)status));
  exit(1);
}
#define MUST(call) must(call, #call)

static void expect(int is_right, const char* what, unsigned long which) {
  if (is_right) return;
  fprintf(stderr, "WRONG: %s (%lu)\n", what, which);
  wrong++;
}

static void fill(unsigned char* bytes, uint64_t from, uint64_t length, uint32_t seed) {
  for (uint64_t i = from; i < length; i++) bytes[i] = (unsigned char)(i * 7 + seed);
}

static int is_filled(const unsigned char* bytes, uint64_t from, uint64_t length, uint32_t seed) {
  for (uint64_t i = from; i < length; i++) {
    if (bytes[i] != (unsigned char)(i * 7 + seed)) return 0;
  }
  return 1;
}

/* The next event, or none in that time. One look at the endpoint for each wake, as clients do it. */
static cci_event_t* event_within(int seconds) {
  const time_t end = time(NULL) + seconds + 1;
  cci_event_t* event = NULL;
  do {
    struct pollfd watched = {handle, POLLIN, 0};
    if (handle >= 0) poll(&watched, 1, 1000);
    if (cci_get_event(endpoint, &event) == CCI_SUCCESS) return event;
    if (handle < 0) sched_yield();
  } while (time(NULL) < end);
  return NULL;
}

/* ---- the server ---- */

static void answer(cci_connection_t* connection, const struct order* order) {
  MUST(cci_send(connection, order, sizeof *order, NULL, CCI_FLAG_SILENT));
}

static int serve(void) {
  uint32_t counted = 0;
  cci_rma_handle_t* mine = NULL;
  region = (unsigned char*)calloc(1, kRegion);
  MUST(cci_rma_register(endpoint, region, kRegion, CCI_FLAG_READ | CCI_FLAG_WRITE, &mine));
  for (;;) {
    cci_event_t* const event = event_within(60);
    if (event == NULL) return 1;
    int is_over = 0;
    if (event->type == CCI_EVENT_CONNECT_REQUEST) {
      const uint32_t* const what = (const uint32_t*)event->request.data_ptr;
      if (event->request.data_len == sizeof *what && *what == kRefuse)
        MUST(cci_reject(event));
      else
        MUST(cci_accept(event, NULL));
    } else if (event->type == CCI_EVENT_RECV) {
      struct order order = {kEcho, 0, 0, 0, {{0}}};
      if (event->recv.len >= sizeof order) memcpy(&order, event->recv.ptr, sizeof order);
      switch (order.what) {
        case kCount:
          expect(
              is_filled((const unsigned char*)event->recv.ptr, sizeof order, event->recv.len, order.number),
              "bytes of a streamed message", order.number);
          counted++;
          if (order.length == 0) break;
          order.what = kCounted;
          order.length = counted;
          counted = 0;
          answer(event->recv.connection, &order);
          break;
        case kRegister:
          order.what = kRegistered;
          order.handle = *mine;
          answer(event->recv.connection, &order);
          break;
        case kCheck:
          order.what = kChecked;
          order.length = (uint64_t)is_filled(region + order.offset, 0, order.length, order.number);
          answer(event->recv.connection, &order);
          break;
        default:
          is_over = order.what == kBye;
          MUST(cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL,
                        is_over ? CCI_FLAG_SILENT | CCI_FLAG_BLOCKING : CCI_FLAG_SILENT));
      }
    }
    MUST(cci_return_event(event));
    if (is_over) return wrong != 0;
  }
}

/* ---- the client ---- */

static cci_connection_t* connection;
static unsigned char* bytes;
static uint32_t completed; /* sends and RMA */
static enum cci_status last_status;

/* Takes one event. A message is copied to *order, and to `whole` where that is not null. Returns its length,
 * or -1 when it was something else, or nothing came. */
static int64_t take(struct order* order, unsigned char* whole, int seconds) {
  int64_t length = -1;
  cci_event_t* const event = event_within(seconds);
  if (event == NULL) return -1;
  if (event->type == CCI_EVENT_SEND) {
    completed++;
    last_status = event->send.status;
    expect(event->send.connection == connection, "the connection of a completion", completed);
  } else if (event->type == CCI_EVENT_RECV) {
    length = event->recv.len;
    if (event->recv.len >= sizeof *order) memcpy(order, event->recv.ptr, sizeof *order);
    if (whole != NULL && length != 0) memcpy(whole, event->recv.ptr, (size_t)length);
  } else {
    expect(0, cci_event_type_str(event->type), 0);
  }
  MUST(cci_return_event(event));
  return length;
}

/* Waits for an answer of that kind. */
static struct order await(uint32_t what) {
  struct order order = {0, 0, 0, 0, {{0}}};
  for (int looks = 0; looks < 100000; looks++) {
    if (take(&order, NULL, 30) >= (int64_t)sizeof order && order.what == what) return order;
  }
  fprintf(stderr, "no answer %u\n", what);
  exit(1);
}

static void send_pieces(uint32_t length, void* context, int flags) {
  const struct iovec pieces[3] = {{bytes, length / 3}, {bytes, 0}, {bytes + length / 3, length - length / 3}};
  int status;
  while ((status = (flags & CCI_FLAG_FENCE) != 0
                       ? cci_sendv(connection, pieces, 3, context, flags & ~CCI_FLAG_FENCE)
                       : cci_send(connection, bytes, length, context, flags)) == CCI_ENOBUFS)
    (void)take(NULL, NULL, 0);
  must(status, "cci_send");
}

/* Each size with each flag, there and back; CCI_FLAG_FENCE stands for cci_sendv here. */
static void ping_pong(cci_conn_attribute_t kind) {
  static const int flags[] = {0,
                              CCI_FLAG_SILENT,
                              CCI_FLAG_BLOCKING,
                              CCI_FLAG_NO_COPY,
                              CCI_FLAG_BLOCKING | CCI_FLAG_NO_COPY,
                              CCI_FLAG_FENCE,
                              CCI_FLAG_SILENT | CCI_FLAG_FENCE,
                              CCI_FLAG_SILENT | CCI_FLAG_NO_COPY};
  const int count = kind == CCI_CONN_ATTR_RO ? 8 : 7;
  const uint32_t longest = connection->max_send_size;
  unsigned char* const back = (unsigned char*)malloc(longest);
  for (uint32_t size = 0;; size = size < 4 ? size + 1 : size == 55 ? 56 : size * 9 / 8 + 1) {
    if (size > 50 && size < 55) size = 55;
    if (size > longest) size = longest;
    for (int i = 0; i < count; i++) {
      const uint32_t before = completed;
      const int tells = (flags[i] & (CCI_FLAG_SILENT | CCI_FLAG_BLOCKING)) == 0;
      struct order order;
      fill(bytes, 0, size, size + (uint32_t)i);
      /* The first word may not be an order. */
      if (size >= 4) memset(bytes, 0, 4);
      send_pieces(size, NULL, flags[i]);
      int64_t came = -1;
      for (int looks = 0; looks < 100 && (came < 0 || completed - before < (uint32_t)tells); looks++) {
        const int64_t length = take(&order, back, 5);
        if (length >= 0) came = length;
        /* An unreliable message, or its answer, was dropped. */
        if (kind == CCI_CONN_ATTR_UU && came < 0 && length < 0 && completed - before >= (uint32_t)tells &&
            looks > 3)
          send_pieces(size, NULL, CCI_FLAG_SILENT);
      }
      expect(came == (int64_t)size && memcmp(back, bytes, size) == 0, "an echo", size);
      expect(completed - before == (uint32_t)tells, "completions", size);
    }
    if (size == longest) break;
  }
  free(back);
  expect(cci_send(connection, bytes, longest + 1, NULL, 0) == CCI_EMSGSIZE, "a message that is too long",
         longest);
}

/* Many in flight; the last asks how many arrived. */
static void stream(cci_conn_attribute_t kind, uint32_t size) {
  const uint32_t before = completed;
  struct order order = {kCount, 0, 0, 0, {{0}}};
  for (uint32_t i = 0; i < kStreamed; i++) {
    order.number = i;
    memcpy(bytes, &order, sizeof order);
    fill(bytes, sizeof order, size, i);
    while (i - (completed - before) >= kInFlight) (void)take(&order, NULL, 30);
    order.what = kCount;
    order.length = 0;
    send_pieces(size, NULL, 0);
  }
  while (completed - before < kStreamed) (void)take(&order, NULL, 30);
  for (;;) {
    order.what = kCount;
    order.number = kStreamed;
    order.length = 1;
    memcpy(bytes, &order, sizeof order);
    fill(bytes, sizeof order, size, kStreamed);
    send_pieces(size, NULL, CCI_FLAG_SILENT);
    /* An unreliable question may be lost. */
    if (take(&order, NULL, kind == CCI_CONN_ATTR_UU ? 0 : 30) >= (int64_t)sizeof order) break;
  }
  expect(order.what == kCounted, "the answer of the count", order.what);
  if (kind == CCI_CONN_ATTR_UU)
    expect(order.length <= kStreamed + 1, "no message twice", order.length);
  else
    expect(order.length == kStreamed + 1, "no message lost or twice", order.length);
}

static void rma(const unsigned char* mine, cci_rma_handle_t* local, const struct cci_rma_handle* theirs,
                uint64_t size, int flags, int has_message) {
  struct cci_rma_handle remote = *theirs;
  const uint32_t seed = (uint32_t)size + (uint32_t)flags;
  const uint64_t from = size % 61, to = size % 127;
  struct order order = {kCheck, seed, to, size, {{0}}};
  const uint32_t before = completed;
  const int is_write = (flags & CCI_FLAG_WRITE) != 0;
  /* A read fetches what the write before it has put there. */
  if (is_write) fill((unsigned char*)mine + from, 0, size, seed);
  if (!is_write) memset((unsigned char*)mine, 0, kRegion);
  if (is_write && !has_message) order.what = 0;
  MUST(cci_rma(connection, has_message ? &order : NULL, has_message ? sizeof order : 0, local, from, &remote,
               to, size, NULL, flags));
  if (is_write && !has_message) {
    order.what = kCheck;
    MUST(cci_send(connection, &order, sizeof order, NULL, CCI_FLAG_SILENT));
  }
  int is_answered = !is_write && !has_message;
  const int tells = (flags & (CCI_FLAG_SILENT | CCI_FLAG_BLOCKING)) == 0;
  for (int looks = 0; looks < 100 && (!is_answered || completed - before < (uint32_t)tells); looks++) {
    if (take(&order, NULL, 30) < 0) continue;
    is_answered = order.what == kChecked;
    if (is_write) expect(order.length == 1, "what was written", size);
  }
  expect(is_answered, "a message behind RMA", size);
  if (tells) expect(last_status == CCI_SUCCESS, "the status of RMA", size);
  if (!is_write) {
    const uint32_t written = (uint32_t)size + (uint32_t)((flags & ~CCI_FLAG_READ) | CCI_FLAG_WRITE);
    expect(is_filled(mine + from, 0, size, written), "what was read", size);
  }
}

static void all_rma(void) {
  static const uint64_t sizes[] = {1, 8, 63, 4096, 65535, 65536, 65537, 1 << 20, (3 << 20) - 200};
  static const int flags[] = {0, CCI_FLAG_FENCE, CCI_FLAG_BLOCKING, CCI_FLAG_NO_COPY,
                              CCI_FLAG_BLOCKING | CCI_FLAG_FENCE};
  struct order order = {kRegister, 0, 0, 0, {{0}}};
  unsigned char* const mine = (unsigned char*)malloc(kRegion);
  cci_rma_handle_t* local;
  MUST(cci_rma_register(endpoint, mine, kRegion, 0, &local));
  MUST(cci_send(connection, &order, sizeof order, NULL, CCI_FLAG_SILENT));
  order = await(kRegistered);
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    for (unsigned k = 0; k < sizeof flags / sizeof *flags; k++) {
      for (int has_message = 0; has_message < 2; has_message++) {
        rma(mine, local, &order.handle, sizes[i], flags[k] | CCI_FLAG_WRITE, has_message);
        rma(mine, local, &order.handle, sizes[i], flags[k] | CCI_FLAG_READ, has_message);
      }
    }
  }
  struct cci_rma_handle remote = order.handle;
  MUST(cci_rma(connection, NULL, 0, local, 0, &remote, kRegion - 8, 9, NULL, CCI_FLAG_WRITE));
  const uint32_t before = completed;
  while (completed == before) (void)take(&order, NULL, 30);
  expect(last_status == CCI_ERR_RMA_HANDLE, "RMA behind the end of a registration", last_status);
  MUST(cci_rma_deregister(endpoint, local));
  free(mine);
}

static cci_connection_t* connected(const char* uri, cci_conn_attribute_t kind, uint32_t what,
                                   enum cci_status expected) {
  MUST(cci_connect(endpoint, uri, &what, sizeof what, kind, &region, 0, NULL));
  cci_event_t* const event = event_within(60);
  if (event == NULL || event->type != CCI_EVENT_CONNECT) exit(1);
  expect(event->connect.status == expected && event->connect.context == &region,
         "how a connection came about", what);
  cci_connection_t* const made = event->connect.connection;
  MUST(cci_return_event(event));
  return made;
}

static int ask(const char* uri, const char* name) {
  const cci_conn_attribute_t kind = strcmp(name, "RO") == 0   ? CCI_CONN_ATTR_RO
                                    : strcmp(name, "RU") == 0 ? CCI_CONN_ATTR_RU
                                                              : CCI_CONN_ATTR_UU;
  expect(connected(uri, kind, kRefuse, CCI_ECONNREFUSED) == NULL, "a refused connection", 0);
  connection = connected(uri, kind, kEcho, CCI_SUCCESS);
  if (connection == NULL) return 1;
  expect(connection->attribute == kind, "the kind of a connection", (unsigned long)connection->attribute);
  bytes = (unsigned char*)malloc(connection->max_send_size + 1);
  ping_pong(kind);
  stream(kind, 100);
  stream(kind, connection->max_send_size);
  if (kind != CCI_CONN_ATTR_UU) all_rma();
  struct order bye = {kBye, 0, 0, 0, {{0}}};
  for (int i = 0; i < 5; i++) {
    MUST(cci_send(connection, &bye, sizeof bye, NULL, CCI_FLAG_SILENT));
    struct order order = {0, 0, 0, 0, {{0}}};
    if (take(&order, NULL, 10) >= 0 && order.what == kBye) break;
  }
  MUST(cci_disconnect(connection));
  free(bytes);
  printf("%s: %s\n", name, wrong == 0 ? "right" : "WRONG");
  return wrong != 0;
}

int main(int argc, char** argv) {
  uint32_t caps;
  const int is_client = argc == 5 && strcmp(argv[1], "ask") == 0;
  if (!is_client && (argc != 3 || strcmp(argv[1], "serve") != 0)) {
    fprintf(stderr, "usage: scenario serve poll|block, or scenario ask URI RO|RU|UU poll|block\n");
    return 2;
  }
  const int blocks = strcmp(argv[argc - 1], "block") == 0;
  MUST(cci_init(CCI_ABI_VERSION, 0, &caps));
  MUST(cci_create_endpoint(NULL, 0, &endpoint, blocks ? &handle : NULL));
  if (!is_client) {
    char* uri;
    MUST(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri));
    printf("%s\n", uri);
    fflush(stdout);
    free(uri);
  }
  const int failed = is_client ? ask(argv[2], argv[3]) : serve();
  MUST(cci_destroy_endpoint(endpoint));
  MUST(cci_finalize());
  return failed;
}
