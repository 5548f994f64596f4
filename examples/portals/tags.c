/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * What a message-passing library makes of matching: send and receive by (source, tag), with wildcards, in
 * order, and with messages of any length. A short message is put with its bytes, also before its receive:
 * entries of the overflow list catch it. A long one stays where it is: only its header travels, and the
 * receiver gets the bytes when it knows where they go.
 *   match bits:  1 bit: long | 15: unused | 16: source | 32: tag
 * Run: orrery run -n 7 ./tags
 */
#include "start.h"

enum { kShort = 1024, kBlocks = 4, kBlockBytes = 16 * 1024, kPending = 64, kGetPortal = kPortal + 1 };
enum { kAnySource = -1, kAnyTag = -1 };

static const ptl_match_bits_t kLong = UINT64_C(1) << 63;

/* A receive or a send that is under way, named by the user pointer of its events. */
struct request {
  int done;
  char* room;
  size_t length;   /* of the room; then of what came */
  int source, tag; /* of what came */
};

struct library {
  struct world w;
  ptl_handle_md_t all; /* the whole memory, for short sends and gets */
  ptl_handle_me_t me;
  char block[kBlocks][kBlockBytes];
  uint32_t next_send; /* names what long sends expose */
};

static ptl_match_bits_t bits_of(int source, int tag) {
  return (ptl_match_bits_t)(source & 0xffff) << 32 | (uint32_t)tag;
}

static void post_block(struct library* l, int i) {
  ptl_me_t block =
      entry(l->block[i], kBlockBytes, 0,
            PTL_ME_MANAGE_LOCAL | PTL_ME_MAY_ALIGN | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE);
  block.ignore_bits = ~UINT64_C(0);
  block.min_free = kShort;
  MUST(PtlMEAppend(l->w.ni, kPortal, &block, PTL_OVERFLOW_LIST, NULL, &l->me));
}

static void begin(struct library* l) {
  ptl_pt_index_t portal;
  l->w = start();
  l->next_send = 0;
  MUST(PtlPTAlloc(l->w.ni, 0, l->w.events, kGetPortal, &portal));
  const ptl_md_t everything = {NULL, PTL_SIZE_MAX, PTL_MD_EVENT_SEND_DISABLE, l->w.events, PTL_CT_NONE};
  MUST(PtlMDBind(l->w.ni, &everything, &l->all));
  for (int i = 0; i < kBlocks; ++i) post_block(l, i);
  PMI_Barrier();
}

/* header data: the length, and the name of what a long send exposes */
static ptl_hdr_data_t header_of(size_t length, uint32_t name) { return (ptl_hdr_data_t)length << 32 | name; }

static void send(struct library* l, const void* from, size_t length, int to, int tag, struct request* r) {
  const ptl_match_bits_t bits = bits_of(l->w.rank, tag);
  const uint32_t name = l->next_send++;
  memset(r, 0, sizeof *r);
  if (length <= kShort) {
    MUST(PtlPut(l->all, (ptl_size_t)(uintptr_t)from, length, PTL_ACK_REQ, l->w.process[to], kPortal, bits, 0,
                r, header_of(length, name)));
    return;
  }
  /* The receiver reads it here, once; the event of that get ends the send. */
  ptl_me_t exposed =
      entry((void*)(uintptr_t)from, length, name, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
  MUST(PtlMEAppend(l->w.ni, kGetPortal, &exposed, PTL_PRIORITY_LIST, r, &l->me));
  MUST(PtlPut(l->all, 0, 0, PTL_NO_ACK_REQ, l->w.process[to], kPortal, kLong | bits, 0, NULL,
              header_of(length, name)));
}

static void receive(struct library* l, void* room, size_t length, int source, int tag, struct request* r) {
  memset(r, 0, sizeof *r);
  r->room = room;
  r->length = length;
  ptl_me_t wanted = entry(room, length, bits_of(source == kAnySource ? 0 : source, tag == kAnyTag ? 0 : tag),
                          PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
  wanted.ignore_bits = kLong; /* either kind */
  if (source == kAnySource) wanted.ignore_bits |= UINT64_C(0xffff) << 32;
  if (tag == kAnyTag) wanted.ignore_bits |= UINT32_MAX;
  MUST(PtlMEAppend(l->w.ni, kPortal, &wanted, PTL_PRIORITY_LIST, r, &l->me));
}

/* One event: what it says of the request that it names. */
static void handle(struct library* l, const ptl_event_t* event) {
  struct request* const r = event->user_ptr;
  if (event->ni_fail_type != PTL_NI_OK) {
    fprintf(stderr, "an event of kind %d failed: %d\n", event->type, event->ni_fail_type);
    exit(1);
  }
  switch (event->type) {
    case PTL_EVENT_PUT:
    case PTL_EVENT_PUT_OVERFLOW: {
      const size_t length = (size_t)(event->hdr_data >> 32);
      r->source = (int)(event->match_bits >> 32 & 0xffff);
      r->tag = (int)(event->match_bits & UINT32_MAX);
      if (length < r->length) r->length = length;
      if ((event->match_bits & kLong) != 0) {
        MUST(PtlGet(l->all, (ptl_size_t)(uintptr_t)r->room, r->length, event->initiator, kGetPortal,
                    event->hdr_data & UINT32_MAX, 0, r));
        return; /* its reply ends it */
      }
      if (event->type == PTL_EVENT_PUT_OVERFLOW) memcpy(r->room, event->start, r->length);
      r->done = 1;
      return;
    }
    case PTL_EVENT_REPLY: /* a long receive */
    case PTL_EVENT_ACK:   /* a short send */
    case PTL_EVENT_GET:   /* a long send */
      r->done = 1;
      return;
    case PTL_EVENT_AUTO_FREE: /* a block of the overflow list: no message in it is wanted any more */
      for (int i = 0; i < kBlocks; ++i)
        if (event->start == l->block[i]) post_block(l, i);
      return;
    default:
      return;
  }
}

static void wait_for(struct library* l, const struct request* r) {
  while (!r->done) {
    ptl_event_t event;
    MUST(PtlEQWait(l->w.events, &event));
    handle(l, &event);
  }
}

static char letter(int from, int to, size_t i) { return (char)('a' + (from * 7 + to * 3 + (int)i) % 26); }

int main(void) {
  static struct library l;
  static char out[kPending][40000], in[kPending][40000];
  static const size_t kLengths[] = {0, 1, 100, kShort, kShort + 1, 40000};
  enum { kKinds = sizeof kLengths / sizeof kLengths[0] };
  struct request sends[kPending], receives[kPending];
  int wrong = 0;
  begin(&l);
  const int rank = l.w.rank, size = l.w.size;
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;

  /* All lengths, to the next process. Half of the receives come before their message; the order of the tags
   * is the opposite one. */
  for (int k = 0; k < kKinds; ++k)
    for (size_t i = 0; i < kLengths[k]; ++i) out[k][i] = letter(rank, next, i + (size_t)k);
  for (int k = kKinds - 1; k >= kKinds / 2; --k) receive(&l, in[k], sizeof in[k], before, k, &receives[k]);
  PMI_Barrier();
  for (int k = 0; k < kKinds; ++k) send(&l, out[k], kLengths[k], next, k, &sends[k]);
  PMI_Barrier();
  for (int k = kKinds / 2 - 1; k >= 0; --k) receive(&l, in[k], sizeof in[k], before, k, &receives[k]);
  for (int k = 0; k < kKinds; ++k) {
    wait_for(&l, &receives[k]);
    wrong |= receives[k].length != kLengths[k] || receives[k].source != before || receives[k].tag != k;
    for (size_t i = 0; i < kLengths[k]; ++i) wrong |= in[k][i] != letter(before, rank, i + (size_t)k);
  }
  for (int k = 0; k < kKinds; ++k) wait_for(&l, &sends[k]);

  /* From any source with any tag: two messages of one sender come in the order in which it sent them. */
  int last[kMostProcesses];
  for (int i = 0; i < size; ++i) last[i] = -1;
  enum { kMessages = 20 };
  for (int i = 0; i < kMessages; ++i) {
    send(&l, out[1], 1, next, 100 + i, &sends[0]);
    wait_for(&l, &sends[0]);
  }
  for (int i = 0; i < kMessages; ++i) {
    receive(&l, in[0], sizeof in[0], kAnySource, kAnyTag, &receives[0]);
    wait_for(&l, &receives[0]);
    wrong |= receives[0].tag <= last[receives[0].source] || in[0][0] != letter(before, rank, 1);
    last[receives[0].source] = receives[0].tag;
  }
  return finish(&l.w, "tags", wrong);
}
