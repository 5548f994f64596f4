/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Short messages: each side owns a mailbox in memory that it registered, and sends into the other's. There is
 * room for so many messages (credits); a receiver that releases one gives its room back, without any call of
 * the sender's.
 * Run: orrery run -n 2 ./mailbox
 */
#include "start.h"

enum { MESSAGES = 1000, TAG = 7 };

int main(void) {
  struct pe me = start();
  const int next = (me.rank + 1) % me.size;
  const int before = (me.rank + me.size - 1) % me.size;
  gni_cq_handle_t sent = make_queue(&me, 64);
  gni_cq_handle_t arrived = make_queue(&me, 64);

  /* Two mailboxes, one for each neighbour: its memory must be zero before a peer sends. */
  gni_smsg_attr_t mine;
  memset(&mine, 0, sizeof mine);
  mine.msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT;
  mine.mbox_maxcredit = 8;
  mine.msg_maxsize = 256;
  MUST(GNI_SmsgBufferSizeNeeded(&mine, &mine.buff_size));
  mine.msg_buffer = calloc(2, mine.buff_size);
  mine.mem_hndl = register_memory(&me, mine.msg_buffer, 2 * (uint64_t)mine.buff_size, arrived);

  const struct place right = exchange(&me, mine.msg_buffer, mine.mem_hndl, next);
  const struct place left = exchange(&me, mine.msg_buffer, mine.mem_hndl, before);
  gni_ep_handle_t to = connect_to(&me, &right, sent);
  gni_ep_handle_t from = connect_to(&me, &left, sent);

  /* Every PE's mailbox 0 is for the neighbour before, 1 for the next one. Attributes are the same on both
   * sides but for where the mailbox is. */
  gni_smsg_attr_t theirs = mine;
  mine.mbox_offset = mine.buff_size;
  theirs.msg_buffer = (void*)right.address;
  theirs.mem_hndl = right.handle;
  MUST(GNI_SmsgInit(to, &mine, &theirs));
  mine.mbox_offset = 0;
  theirs.mbox_offset = mine.buff_size;
  theirs.msg_buffer = (void*)left.address;
  theirs.mem_hndl = left.handle;
  MUST(GNI_SmsgInit(from, &mine, &theirs));

  int good = 1;
  int to_send = 0, to_receive = 0;
  while (to_send < MESSAGES || to_receive < MESSAGES) {
    if (to_send < MESSAGES) {
      /* Header and data travel as one; NOT_DONE says that the mailbox is full. */
      uint64_t data = (uint64_t)to_send * 3;
      const gni_return_t rc =
          GNI_SmsgSendWTag(to, &to_send, sizeof to_send, &data, sizeof data, (uint32_t)to_send, TAG);
      if (rc == GNI_RC_SUCCESS) {
        gni_cq_entry_t event = wait_for_event(sent);
        good = GNI_CQ_GET_MSG_ID(event) == (uint64_t)to_send && good;
        to_send++;
      } else if (rc != GNI_RC_NOT_DONE) {
        MUST(rc);
      }
    }
    /* The message is read where it lies, until it is released. */
    void* message;
    uint8_t tag = GNI_SMSG_ANY_TAG;
    if (GNI_SmsgGetNextWTag(from, &message, &tag) == GNI_RC_SUCCESS) {
      int number;
      uint64_t data;
      memcpy(&number, message, sizeof number);
      memcpy(&data, (char*)message + sizeof number, sizeof data);
      good = tag == TAG && number == to_receive && data == (uint64_t)number * 3 && good;
      to_receive++;
      MUST(GNI_SmsgRelease(from));
      /* The queue behind the mailbox's memory got an event as well, which names the sender. */
      good = GNI_CQ_GET_REM_INST_ID(wait_for_event(arrived)) == (uint64_t)before && good;
    }
  }
  printf("PE %d: %d messages from PE %d%s\n", me.rank, to_receive, before,
         good ? "" : ", some of them wrong");

  finish(&me);
  free(mine.msg_buffer);
  return !good;
}
