/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Datagrams: how PEs meet that know nothing of each other's memory yet. Both sides post up to 128 bytes, and
 * the two are exchanged. PE 0 serves: it posts on an endpoint that is bound to no peer and learns which
 * came. The others know its address, and bind. Run: orrery run -n 4 ./datagram
 */
#include "start.h"

struct card {
  int rank;
  int number;
};

/* Waits until the endpoint's datagram has met another. */
static int met(gni_ep_handle_t endpoint, uint32_t* who) {
  gni_post_state_t state;
  uint32_t address;
  do {
    MUST(GNI_EpPostDataTest(endpoint, &state, &address, who));
  } while (state == GNI_POST_PENDING || state == GNI_POST_REMOTE_DATA);
  return state == GNI_POST_COMPLETED;
}

int main(void) {
  struct pe me = start();
  /* Where PE 0 is, is all that has to be told. */
  const struct place server = exchange(&me, NULL, (gni_mem_handle_t){0, 0}, 0);
  struct card mine = {me.rank, 100 + me.rank};
  struct card theirs = {-1, -1};
  int good = 1;

  gni_ep_handle_t endpoint;
  if (me.rank == 0) {
    MUST(GNI_EpCreate(me.nic, NULL, &endpoint));
    for (int i = 1; i < me.size; i++) {
      uint32_t who = 0;
      MUST(GNI_EpPostData(endpoint, &mine, sizeof mine, &theirs, sizeof theirs));
      good = met(endpoint, &who) && good;
      printf("PE 0 met PE %u, whose number is %d\n", who, theirs.number);
      good = theirs.rank == (int)who && theirs.number == 100 + (int)who && good;
    }
  } else {
    uint32_t who = 99;
    endpoint = connect_to(&me, &server, NULL);
    MUST(GNI_EpPostData(endpoint, &mine, sizeof mine, &theirs, sizeof theirs));
    good = met(endpoint, &who) && who == 0 && theirs.number == 100;
  }

  finish(&me);
  return !good;
}
