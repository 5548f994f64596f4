/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Recovering from an error event. A transaction that fails is an event like any other: its descriptor comes
 * back with TRANSACTION_ERROR, and what failed moved nothing. Whether posting it again may help is the
 * device's to say (GNI_CqErrorRecoverable): a packet that was lost or damaged is posted again; a handle that
 * is not valid any more has to be asked for anew. That an error is recoverable says that the process may go
 * on, not that a repeat will succeed: a node that is gone stays gone, so the repeats of a word are bounded.
 * GNI_CDM_MODE_ERR_NO_KILL (start.h) leaves the choice to us: without it a process dies of an error that is
 * not recoverable. What the device saw is told to subscribers to its errors, with the transaction and
 * the PE. Run: orrery run -n 2 --fault corrupt=0.05,drop=0.05,revoke=@200,link=0.1 ./recovery
 */
#include "start.h"

enum { WORDS = 512, REPEATS = 10 };

static uint64_t source[WORDS], target[WORDS];

/* PE 1 registers its memory, again when it was asked to, and tells where it is. */
static struct place offer(const struct pe* me, gni_mem_handle_t* handle, int again) {
  if (again) MUST(GNI_MemDeregister(me->nic, handle));
  *handle = register_memory(me, target, sizeof target, NULL);
  return exchange(me, target, *handle, (me->rank + 1) % me->size);
}

/* Says what an error event means; whether the same post may simply be tried again. */
static uint32_t explain(gni_cq_entry_t event, int word) {
  char text[128];
  uint32_t recoverable = 0;
  MUST(GNI_CqErrorStr(event, text, sizeof text));
  MUST(GNI_CqErrorRecoverable(event, &recoverable));
  printf("word %d: %s, %s\n", word, text, recoverable ? "posted again" : "its handle is asked for anew");
  return recoverable;
}

int main(void) {
  struct pe me = start();
  gni_cq_handle_t done = make_queue(&me, 8);
  gni_mem_handle_t handle;
  struct place peer = offer(&me, &handle, 0);
  gni_ep_handle_t to = connect_to(&me, &peer, done);

  gni_err_handle_t errors;
  MUST(GNI_SubscribeErrors(me.nic, 0, 0xff, 1024, &errors));

  /* PE 0 puts word after word and looks at each event; both meet when a handle has to be asked for anew. */
  int failures = 0, repeats = 0;
  for (int word = 0; word < WORDS && me.rank == 0;) {
    source[word] = (uint64_t)word * 7 + 1;
    gni_post_descriptor_t put;
    memset(&put, 0, sizeof put);
    put.type = GNI_POST_FMA_PUT;
    put.cq_mode = GNI_CQMODE_GLOBAL_EVENT;
    put.local_addr = (uint64_t)&source[word];
    put.remote_addr = peer.address + (uint64_t)word * 8;
    put.remote_mem_hndl = peer.handle;
    put.length = 8;
    MUST(GNI_PostFma(to, &put));

    gni_cq_entry_t event;
    gni_return_t rc;
    while ((rc = GNI_CqGetEvent(done, &event)) == GNI_RC_NOT_DONE) {
    }
    gni_post_descriptor_t* ended;
    if (rc == GNI_RC_SUCCESS) {
      MUST(GNI_GetCompleted(done, event, &ended));
      word++;
      repeats = 0;
      continue;
    }
    if (rc != GNI_RC_TRANSACTION_ERROR) MUST(rc); /* an overrun, say: not what this is about */
    if (GNI_GetCompleted(done, event, &ended) != GNI_RC_TRANSACTION_ERROR || ended != &put) MUST(rc);
    failures++;
    const uint32_t recoverable = explain(event, word);
    if (repeats++ == REPEATS) {
      fprintf(stderr, "word %d: failed %d times, given up\n", word, repeats);
      PMI_Abort(1, "a word does not arrive");
    }
    if (!recoverable) {
      int ask = 1;
      PMI_Bcast(&ask, sizeof ask);
      peer = offer(&me, &handle, 1);
    }
  }
  int ask = 0;
  if (me.rank == 0) {
    PMI_Bcast(&ask, sizeof ask);
  } else {
    while (PMI_Bcast(&ask, sizeof ask) == PMI_SUCCESS && ask) peer = offer(&me, &handle, 1);
  }

  /* Every failure was told to the subscriber too; link errors, which the link puts right itself, to it
   * alone. */
  int told = 0, corrected = 0;
  gni_error_event_t error;
  while (GNI_GetErrorEvent(errors, &error) == GNI_RC_SUCCESS) {
    if (error.error_category == GNI_ERRMASK_INFORMATIONAL)
      corrected++;
    else
      told += error.info_mmrs[1] == peer.nic_address;
  }
  MUST(GNI_ReleaseErrors(errors));

  int good = told == failures;
  for (int word = 0; word < WORDS && me.rank == 1; word++)
    good = good && target[word] == (uint64_t)word * 7 + 1;
  if (me.rank == 0)
    printf("PE 0: %d words put, %d posted more than once, %d link errors corrected\n", WORDS, failures,
           corrected);
  else if (me.rank == 1)
    printf("PE 1: %s\n", good ? "all of them arrived" : "some are wrong");
  finish(&me);
  return !good;
}
