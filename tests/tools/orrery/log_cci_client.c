/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* Calls of CCI whose lines log_test.cpp expects: an endpoint that connects to itself. */
#include <cci.h>
#include <stdlib.h>

#define MUST(call) \
  if ((call) != CCI_SUCCESS) return __LINE__

static cci_endpoint_t* endpoint;
static cci_event_t* next(void) {
  cci_event_t* event;
  while (cci_get_event(endpoint, &event) != CCI_SUCCESS) continue;
  return event;
}

int main(void) {
  uint32_t caps;
  char* uri;
  cci_connection_t* connection = NULL;
  cci_event_t* event;
  MUST(cci_init(CCI_ABI_VERSION, 0, &caps));
  MUST(cci_create_endpoint(NULL, 0, &endpoint, NULL));
  MUST(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri));
  for (int look = 0; look < 10; look++)
    if (cci_get_event(endpoint, &event) != CCI_EAGAIN) return __LINE__;
  MUST(cci_connect(endpoint, uri, "hi", 2, CCI_CONN_ATTR_RO, NULL, 0, NULL));
  free(uri);
  for (int ends = 0; ends < 2;) {
    event = next();
    if (event->type == CCI_EVENT_CONNECT_REQUEST) {
      MUST(cci_accept(event, NULL));
    } else {
      ends++;
    }
    if (event->type == CCI_EVENT_CONNECT) connection = event->connect.connection;
    MUST(cci_return_event(event));
  }
  MUST(cci_send(connection, "hello", 5, NULL, CCI_FLAG_SILENT));
  event = next();
  MUST(cci_return_event(event));
  if (cci_accept(NULL, NULL) != CCI_EINVAL) return __LINE__;
  MUST(cci_destroy_endpoint(endpoint));
  MUST(cci_finalize());
  return 0;
}
