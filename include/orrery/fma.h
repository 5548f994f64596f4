/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/*
 * FMA windows and FMA Launch, as the papers of the Gemini and Aries networks describe the hardware. The
 * machines' own libraries keep them to themselves; this interface is Orrery's. It stands beside uGNI, in
 * libugni: a window belongs to a NIC handle and reaches memory by uGNI's memory handles.
 *
 * A window is a range of offsets. Some bits of an offset select a PE, the others an address in that PE's
 * memory; so storing one contiguous block at offset 0 stores, say, 64 bytes to each PE of a job:
 *
 *       63      pe_shift + pe_bits        pe_shift        0
 *      | address, upper |       PE       | address, lower |
 *
 * What is stored belongs to a transaction, whose status is the first error of any packet in it:
 *
 *   orrery_fma_begin(window);
 *   orrery_fma_store(window, 0, block, sizeof block);
 *   orrery_fma_end(window, &name);
 *   while ((rc = orrery_fma_test(window, name)) == ORRERY_FMA_NOT_DONE) {}
 *
 * All calls on windows of one NIC handle are to be serialised with each other and with uGNI's.
 */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Outcomes: the numbers of gni_return_t, so that gni_err_str[] names them. */
enum {
  ORRERY_FMA_SUCCESS = 0,
  ORRERY_FMA_NOT_DONE = 1,
  ORRERY_FMA_INVALID_PARAM = 2,
  ORRERY_FMA_ERROR_RESOURCE = 3,
  ORRERY_FMA_ALIGNMENT_ERROR = 7,
  ORRERY_FMA_INVALID_STATE = 8,
  ORRERY_FMA_TRANSACTION_ERROR = 11,
  ORRERY_FMA_ILLEGAL_OP = 12,
  ORRERY_FMA_ERROR_NOMEM = 13
};

/* Widths of a network address. */
#define ORRERY_FMA_PE_BITS 18
#define ORRERY_FMA_OFFSET_BITS 40

/* Where a PE's memory is: what its owner tells the others. */
typedef struct orrery_fma_place {
  uint32_t nic_address; /* of the PE's node; with a translation table, as the job numbers nodes */
  uint32_t reserved;    /* 0 */
  uint64_t address;     /* what offset 0 stands for: a multiple of 8 in the registration */
  uint64_t handle[2];   /* the registration's gni_mem_handle_t: qword1, qword2 */
} orrery_fma_place_t;

/* What an FMA descriptor says of its window. */
typedef struct orrery_fma_descriptor {
  uint32_t base_pe;     /* the PE of offset 0 */
  uint32_t pe_shift;    /* 1 << pe_shift bytes go to a PE before the next one's turn: 3 or more */
  uint32_t pe_bits;     /* the window is of 1 << pe_bits PEs */
  uint32_t ntt_group;   /* nodes of an entry of the table, a power of two */
  uint64_t base_offset; /* added to the address, in every PE's memory */
  const uint32_t* ntt;  /* node translation table, or NULL: entry i is the address of virtual node */
  uint32_t ntt_entries; /* i * ntt_group, and the others of its group follow */
  uint32_t reserved;    /* 0 */
} orrery_fma_descriptor_t;

typedef struct orrery_fma_window orrery_fma_window_t; /* opaque; ends with its NIC handle at the latest */

/*
 * Opens a window.
 *   nic         a gni_nic_handle_t
 *   descriptor  read during the call
 *   places      PE i is places[i]; read during the call
 *   count       1 .. 1 << 18; a window may select PEs that there are none of, and stores to them are refused
 *   window      out
 * Returns SUCCESS; INVALID_PARAM bad handle, pointer, descriptor, or a place whose registration is addressed
 * by segments, or an address of more bits than the hardware's; ERROR_NOMEM. Does not block.
 */
int orrery_fma_open(void* nic, const orrery_fma_descriptor_t* descriptor, const orrery_fma_place_t* places,
                    uint32_t count, orrery_fma_window_t** window);

/*
 * Closes a window and its mapping. Transactions that were not asked for are forgotten. Waits for packets that
 * are on their way, a second at most.
 * Returns SUCCESS; INVALID_PARAM NULL.
 */
int orrery_fma_close(orrery_fma_window_t* window);

/*
 * Opens a transaction: what is stored from now on belongs to it.
 * Returns SUCCESS; INVALID_STATE one is open; ERROR_RESOURCE 1,024 of the NIC's are in use; INVALID_PARAM.
 */
int orrery_fma_begin(orrery_fma_window_t* window);

/*
 * Ends the open transaction, which may go on travelling.
 *   name  out: what to ask for it by
 * Returns SUCCESS; INVALID_STATE none is open; INVALID_PARAM. Does not block.
 */
int orrery_fma_end(orrery_fma_window_t* window, uint32_t* name);

/*
 * Whether everything of an ended transaction has arrived. Anything but NOT_DONE frees the name.
 * Returns SUCCESS it has; NOT_DONE; TRANSACTION_ERROR some of it was refused or its PE is gone;
 * INVALID_PARAM no such transaction. Does not block.
 */
int orrery_fma_test(orrery_fma_window_t* window, uint32_t name);

/*
 * Stores bytes into the window.
 *   offset  in the window
 *   from    may be used again on return
 *   bytes   any number
 * Returns SUCCESS, errors of packets being the transaction's; INVALID_STATE no transaction is open;
 * INVALID_PARAM NULL, or a PE beyond the last (what lies before it is stored). Does not block while the PEs'
 * memory can be mapped here; else it may wait for them to take packets out.
 */
int orrery_fma_store(orrery_fma_window_t* window, uint64_t offset, const void* from, uint64_t bytes);

/* What FMA Launch writes: 128 bits that say everything. */
typedef struct orrery_fma_word {
  uint64_t where; /* PE << 40 | offset in its memory, a multiple of 8; base_pe and base_offset do not count */
  uint64_t data;
} orrery_fma_word_t;

static inline orrery_fma_word_t orrery_fma_word(uint32_t pe, uint64_t offset, uint64_t data) {
  orrery_fma_word_t word;
  word.where = (uint64_t)pe << ORRERY_FMA_OFFSET_BITS | offset;
  word.data = data;
  return word;
}

/*
 * FMA Launch: an 8-byte put by one write, to any PE that the window was opened with.
 * Returns SUCCESS, errors of the packet being the transaction's; INVALID_STATE no transaction is open;
 * INVALID_PARAM NULL or no such PE; ALIGNMENT_ERROR; ERROR_RESOURCE no packet is free: orrery_fma_test(),
 * then again. Blocks as orrery_fma_store().
 */
int orrery_fma_launch(orrery_fma_window_t* window, orrery_fma_word_t word);

/*
 * Maps the window: plain stores to the memory that it gives are puts, one PE's piece next to the other's,
 * with no transaction and no report. Loads are gets. When a PE ends its registration, later stores to its
 * piece reach no process.
 *   base   out: offset 0, until the window is closed
 *   bytes  out: how many there are, 1 << (pe_shift + pe_bits)
 * Returns SUCCESS; INVALID_PARAM NULL, pieces or places that are no multiple of a page (4096), or PEs beyond
 * the last; INVALID_STATE mapped already; ILLEGAL_OP memory of a PE cannot be mapped here (another host, a
 * kind of memory, ORRERY_ADOPT=never): use orrery_fma_store(); TRANSACTION_ERROR a PE or its handle is gone;
 * ERROR_NOMEM. Waits for the PEs' memory to be moved into their memory files, two seconds at most for each.
 */
int orrery_fma_map(orrery_fma_window_t* window, void** base, uint64_t* bytes);

#ifdef __cplusplus
}
#endif
