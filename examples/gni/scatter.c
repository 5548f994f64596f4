/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * An FMA window: one store of a contiguous block puts a row of it into the memory of each PE. The window's
 * descriptor says which bits of an offset select the PE.
 * Run: orrery run -n 4 ./scatter
 */
#include "start.h"

#include <orrery/fma.h>

#define ROW 64 /* bytes for each PE: the window's granularity */
#define MAX_PES 64

/* A row from each PE. */
static unsigned char inbox[MAX_PES][ROW];

int main(void) {
  struct pe me = start();
  if (me.size > MAX_PES) return 1;
  gni_mem_handle_t handle = register_memory(&me, inbox, sizeof inbox, NULL);

  /* Each PE's row of the others' inboxes lies at the same offset, its own rank's. */
  orrery_fma_place_t places[MAX_PES];
  memset(places, 0, sizeof places);
  for (int pe = 0; pe < me.size; pe++) {
    const struct place place = exchange(&me, inbox, handle, pe);
    places[pe].nic_address = place.nic_address;
    places[pe].address = place.address;
    places[pe].handle[0] = place.handle.qword1;
    places[pe].handle[1] = place.handle.qword2;
  }
  orrery_fma_descriptor_t descriptor;
  memset(&descriptor, 0, sizeof descriptor);
  descriptor.pe_shift = 6; /* 1 << 6 bytes to a PE, then the next one's turn */
  while (1 << descriptor.pe_bits < me.size) descriptor.pe_bits++;
  descriptor.base_offset = (uint64_t)me.rank * ROW;
  orrery_fma_window_t* window;
  MUST((gni_return_t)orrery_fma_open(me.nic, &descriptor, places, (uint32_t)me.size, &window));

  unsigned char block[MAX_PES][ROW];
  for (int pe = 0; pe < me.size; pe++) memset(block[pe], me.rank * 16 + pe, ROW);

  /* The transaction is everything between begin and end; its status says the first thing that went wrong. */
  uint32_t transaction;
  MUST((gni_return_t)orrery_fma_begin(window));
  MUST((gni_return_t)orrery_fma_store(window, 0, block, (uint64_t)me.size * ROW));
  MUST((gni_return_t)orrery_fma_end(window, &transaction));
  int rc;
  while ((rc = orrery_fma_test(window, transaction)) == ORRERY_FMA_NOT_DONE) {
  }
  MUST((gni_return_t)rc);
  PMI_Barrier();

  int wrong = 0;
  for (int from = 0; from < me.size; from++)
    for (int i = 0; i < ROW; i++) wrong += inbox[from][i] != (unsigned char)(from * 16 + me.rank);
  printf("PE %d has a row from each of %d PEs%s\n", me.rank, me.size,
         wrong ? ", but not the right ones" : "");

  /* FMA Launch: 128 bits say which PE, where, and what. Here: a word at the end of the next PE's inbox. */
  const int next = (me.rank + 1) % me.size;
  MUST((gni_return_t)orrery_fma_begin(window));
  MUST((gni_return_t)orrery_fma_launch(
      window, orrery_fma_word((uint32_t)next, sizeof inbox - sizeof(uint64_t), 4711 + (uint64_t)me.rank)));
  MUST((gni_return_t)orrery_fma_end(window, &transaction));
  while ((rc = orrery_fma_test(window, transaction)) == ORRERY_FMA_NOT_DONE) {
  }
  MUST((gni_return_t)rc);
  PMI_Barrier();
  uint64_t word;
  memcpy(&word, inbox[MAX_PES - 1] + ROW - sizeof word, sizeof word);
  wrong += word != 4711 + (uint64_t)((me.rank + me.size - 1) % me.size);

  MUST((gni_return_t)orrery_fma_close(window));
  finish(&me);
  return wrong != 0;
}
