/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* Makes the mistake that its argument names; ctest looks at the line that says so. */
#include <shmem.h>
#include <stdlib.h>
#include <string.h>

static long word;
static long sync_words[SHMEM_SYNC_SIZE];

int main(int argc, char** argv) {
  const char* const mistake = argc > 1 ? argv[1] : "";
  long local = 0;
  if (strcmp(mistake, "before") == 0) return shmem_my_pe();
  shmem_init();
  if (strcmp(mistake, "stack") == 0) shmem_long_p(&local, 1, 0);
  if (strcmp(mistake, "pe") == 0) shmem_long_p(&word, 1, 7);
  if (strcmp(mistake, "length") == 0) shmem_getmem(malloc(1), &word, (size_t)1 << 40, 1);
  if (strcmp(mistake, "alignment") == 0) shmem_long_atomic_inc((long*)((char*)&sync_words + 4), 0);
  if (strcmp(mistake, "stride") == 0) shmem_long_iput(&word, &local, 0, 1, 2, 0);
  if (strcmp(mistake, "cmp") == 0) shmem_long_wait_until(&word, 9, 1);
  if (strcmp(mistake, "root") == 0) shmem_broadcast64(&word, &local, 1, 5, 0, 0, 2, sync_words);
  if (strcmp(mistake, "set") == 0) shmem_barrier(1, 0, 4, sync_words);
  if (strcmp(mistake, "signal") == 0) shmem_long_put_signal(&word, &local, 1, (uint64_t*)&word, 1, 5, 0);
  if (strcmp(mistake, "lock") == 0) shmem_clear_lock(&word);
  if (strcmp(mistake, "free") == 0) shmem_free(&word);
  if (strcmp(mistake, "context") == 0) shmem_ctx_long_p(SHMEM_CTX_INVALID, &word, 1, 0);
  shmem_finalize();
  return 0;
}
