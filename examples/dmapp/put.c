/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * The smallest program: every PE puts a greeting into the memory of the next one. The target does nothing
 * for it, and does not know when it comes: it watches a word which is put after the greeting.
 * Run: orrery run -n 2 ./put
 */
#include "start.h"

static char greeting[64];         /* a static variable: every PE's lies in its data segment */
static volatile uint64_t arrived; /* and so does the word that says so */

int main(void) {
  dmapp_jobinfo_t job = start();
  const dmapp_pe_t next = (job.pe + 1) % job.npes;
  char text[64];
  snprintf(text, sizeof text, "greetings from PE %d", job.pe);

  /* The flag is written when the text is there. A source may be any memory, here the stack. */
  MUST(dmapp_put_flag(greeting, &job.data_seg, next, text, sizeof text, DMAPP_BYTE, (void*)&arrived, 1));
  while (!arrived) MUST(dmapp_progress());

  char expected[64];
  snprintf(expected, sizeof expected, "greetings from PE %d", (job.pe + job.npes - 1) % job.npes);
  return finish(&job, "put", strcmp(greeting, expected) != 0);
}
