/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Publish and subscribe by multicast. The server's endpoint is the group: its library passes each message of
 * a publisher on to all subscribers. Multicast is unreliable: a subscriber that has no room misses a message.
 * So each price has a number, and the publisher says it again until every subscriber here has it.
 * Run: ./publish > uri &     then     ./publish $(cat uri)
 */
#include "start.h"

#include <time.h>

enum { kSubscribers = 3, kPrices = 200 };

struct price {
  uint32_t number;
  uint32_t cents;
};

/* The group: accepts publishers (UU_MC_TX), subscribers (UU_MC_RX), and one that says when it is over. */
static int serve(void) {
  print_uri();
  for (int is_over = 0; !is_over;) {
    /* These looks pass the messages on; without them the endpoint's thread would. */
    cci_event_t* event = next_event(endpoint);
    if (event->type == CCI_EVENT_CONNECT_REQUEST) MUST(cci_accept(event, NULL));
    is_over = event->type == CCI_EVENT_RECV; /* no price ever arrives here */
    MUST(cci_return_event(event));
  }
  return 0;
}

struct subscriber {
  cci_endpoint_t* endpoint;
  struct price last;
};

/* Takes what has come. Messages of before are passed over. */
static void look(struct subscriber* subscriber) {
  cci_event_t* event;
  while (cci_get_event(subscriber->endpoint, &event) == CCI_SUCCESS) {
    if (event->type == CCI_EVENT_RECV && event->recv.len == sizeof(struct price)) {
      struct price price;
      memcpy(&price, event->recv.ptr, sizeof price);
      if (price.number > subscriber->last.number) subscriber->last = price;
    }
    MUST(cci_return_event(event));
  }
}

static int have_all(struct subscriber* all, uint32_t number) {
  int count = 0;
  for (int i = 0; i < kSubscribers; i++) {
    look(&all[i]);
    count += all[i].last.number >= number;
  }
  return count == kSubscribers;
}

static int ask(const char* uri) {
  struct subscriber all[kSubscribers];
  for (int i = 0; i < kSubscribers; i++) {
    MUST(cci_create_endpoint(NULL, 0, &all[i].endpoint, NULL));
    all[i].last.number = 0;
    connect_to(all[i].endpoint, uri, CCI_CONN_ATTR_UU_MC_RX);
  }
  cci_connection_t* group = connect_to(endpoint, uri, CCI_CONN_ATTR_UU_MC_TX);

  uint32_t sent = 0;
  int wrong = 0;
  for (uint32_t number = 1; number <= kPrices; number++) {
    const struct price price = {number, 1000 + number * number % 977};
    time_t said = 0;
    do {
      if (time(NULL) != said) {
        said = time(NULL);
        sent++;
        MUST(cci_send(group, &price, sizeof price, NULL, CCI_FLAG_SILENT));
      }
      sched_yield();
    } while (!have_all(all, number));
    for (int i = 0; i < kSubscribers; i++) wrong += all[i].last.cents != price.cents;
  }
  cci_connection_t* end = connect_to(endpoint, uri, CCI_CONN_ATTR_RO);
  MUST(cci_send(end, "over", 4, NULL, CCI_FLAG_SILENT | CCI_FLAG_BLOCKING));
  for (int i = 0; i < kSubscribers; i++) MUST(cci_destroy_endpoint(all[i].endpoint));
  printf("publish: %d prices to %d subscribers, sent %u times: %s\n", kPrices, kSubscribers, sent,
         wrong == 0 ? "right" : "WRONG");
  return wrong != 0;
}

int main(int argc, char** argv) { return serve_or_ask(argc, argv, serve, ask); }
