/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* Makes the mistake that its argument names; ctest looks at the line that says so. */
#include <shmem.h>
#include <shmemx.h>
#include <stdlib.h>
#include <string.h>

static long word, many[64];
static uint64_t signal_word;
static long sync_words[SHMEM_SYNC_SIZE];
static long local;

/* The calling thread's stack is not symmetric. */
#define ON_STACK        \
  long stack_[4] = {0}; \
  long* const stack = stack_

static void stack_p(void) {
  ON_STACK;
  shmem_long_p(stack, 1, 0);
}
static void stack_get(void) {
  ON_STACK;
  shmem_long_get(many, stack, 4, 0);
}
static void stack_iput(void) {
  ON_STACK;
  shmem_long_iput(stack, many, 1, 1, 4, 0);
}
static void stack_short_iget(void) {
  ON_STACK;
  shmem_short_iget((short*)many, (short*)stack, 1, 1, 4, 0);
}
static void stack_nbi(void) {
  ON_STACK;
  shmem_long_put_nbi(stack, many, 4, 1);
}
static void stack_amo(void) {
  ON_STACK;
  (void)shmem_long_atomic_fetch_add(stack, 1, 0);
}
static void stack_amo_nbi(void) {
  ON_STACK;
  shmem_long_atomic_fetch_nbi(&local, stack, 1);
}
static void stack_signal(void) {
  ON_STACK;
  shmem_long_put_signal(many, many, 1, (uint64_t*)stack, 1, SHMEM_SIGNAL_ADD, 0);
}
static void stack_wait(void) {
  ON_STACK;
  shmem_long_wait_until(stack, SHMEM_CMP_EQ, 1);
}
static void stack_wait_all(void) {
  ON_STACK;
  shmem_long_wait_until_all(stack, 4, NULL, SHMEM_CMP_EQ, 1);
}
static void stack_wait_signal(void) {
  ON_STACK;
  shmem_signal_wait_until((uint64_t*)stack, SHMEM_CMP_EQ, 1);
}
static void stack_test(void) {
  ON_STACK;
  (void)shmem_long_test(stack, SHMEM_CMP_EQ, 1);
}
static void stack_test_all(void) {
  ON_STACK;
  (void)shmem_long_test_all(stack, 4, NULL, SHMEM_CMP_EQ, 1);
}
static void stack_test_any(void) {
  ON_STACK;
  (void)shmem_long_test_any(stack, 4, NULL, SHMEM_CMP_EQ, 0);
}
static void stack_test_some(void) {
  ON_STACK;
  size_t indices[4];
  (void)shmem_long_test_some(stack, 4, indices, NULL, SHMEM_CMP_EQ, 1);
}
static void stack_test_vector(void) {
  ON_STACK;
  (void)shmem_long_test_any_vector(stack, 4, NULL, SHMEM_CMP_EQ, many);
}
static void stack_lock(void) {
  ON_STACK;
  shmem_set_lock(stack);
}
static void stack_try(void) {
  ON_STACK;
  (void)shmem_test_lock(stack);
}
static void stack_broadcast(void) {
  ON_STACK;
  shmem_long_broadcast(SHMEM_TEAM_WORLD, stack, many, 1, 0);
}
static void stack_reduce(void) {
  ON_STACK;
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, stack, many, 1);
}
static void stack_to_all(void) {
  ON_STACK;
  shmem_long_sum_to_all(stack, many, 4, 0, 0, 2, many, sync_words);
}
/* As Fortran calls it. */
void shmem_int8_sum_to_all_(void* dest, const void* source, const int* nreduce, const int* start,
                            const int* log_stride, const int* size, void* work, void* sync);
static void stack_to_all_fortran(void) {
  ON_STACK;
  const int four = 4, zero = 0, two = 2;
  shmem_int8_sum_to_all_(stack, many, &four, &zero, &zero, &two, many, sync_words);
}
static void stack_fcollect(void) {
  ON_STACK;
  shmem_long_fcollect(SHMEM_TEAM_WORLD, stack, many, 1);
}
static void stack_alltoall(void) {
  ON_STACK;
  shmem_long_alltoall(SHMEM_TEAM_WORLD, stack, many, 1);
}
static void stack_blocks(void) {
  ON_STACK;
  shmemx_long_ibput(stack, many, 2, 2, 1, 2, 0);
}

static void null_dest(void) { shmem_long_put(NULL, many, 1, 0); }
static void null_source(void) { shmem_long_put(many, NULL, 1, 0); }
static void null_wait(void) { shmem_long_wait_until(NULL, SHMEM_CMP_EQ, 1); }
static void null_values(void) { shmem_long_wait_until_all_vector(many, 2, NULL, SHMEM_CMP_EQ, NULL); }
static void null_values_all(void) { (void)shmem_long_test_all_vector(many, 2, NULL, SHMEM_CMP_EQ, NULL); }
static void null_values_any(void) { (void)shmem_long_test_any_vector(many, 2, NULL, SHMEM_CMP_EQ, NULL); }
static void null_values_some(void) {
  size_t indices[2];
  (void)shmem_long_test_some_vector(many, 2, indices, NULL, SHMEM_CMP_EQ, NULL);
}
static void null_indices(void) { (void)shmem_long_test_some(many, 2, NULL, NULL, SHMEM_CMP_EQ, 0); }
static void null_indices_wait(void) {
  (void)shmem_long_wait_until_some(many, 2, NULL, NULL, SHMEM_CMP_EQ, 0);
}
static void null_sync(void) { shmem_barrier(0, 0, 1, NULL); }

static void pe(void) { shmem_long_p(&word, 1, 7); }
static void pe_negative(void) { (void)shmem_long_g(&word, -1); }
static void pe_amo(void) { shmem_long_atomic_inc(&word, 2); }
static void pe_signal(void) { shmem_long_put_signal(many, many, 1, &signal_word, 1, SHMEM_SIGNAL_SET, 9); }
static void pe_team(void) {
  shmem_team_t alone;
  shmem_ctx_t ctx;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, shmem_my_pe(), 1, 1, NULL, 0, &alone);
  shmem_team_create_ctx(alone, 0, &ctx);
  shmem_ctx_long_p(ctx, &word, 1, 1);
}

static void length(void) { shmem_getmem(malloc(1), &word, (size_t)1 << 40, 1); }
static void length_wraps(void) { shmem_long_put(many, many, ((size_t)1 << 61) + 1, 1); }
static void length_signal(void) {
  shmem_long_put_signal(many, many, ((size_t)1 << 61) + 1, &signal_word, 1, SHMEM_SIGNAL_SET, 1);
}
static void length_broadcast(void) { shmem_long_broadcast(SHMEM_TEAM_WORLD, many, many, (size_t)1 << 61, 0); }
static void length_reduce(void) {
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, many, many, ((size_t)1 << 61) + 1);
}
static void nreduce(void) { shmem_long_sum_to_all(many, many, -1, 0, 0, 2, many, sync_words); }

static void alignment(void) { shmem_long_atomic_inc((long*)((char*)&sync_words + 4), 0); }
static void alignment_lock(void) { shmem_set_lock((long*)((char*)&sync_words + 4)); }
static void stride(void) { shmem_long_iput(&word, &local, 0, 1, 2, 0); }
static void stride_negative(void) { shmem_long_iget(many, many, 1, -2, 2, 0); }
static void stride_alltoalls(void) { shmem_long_alltoalls(SHMEM_TEAM_WORLD, many, many, 0, 1, 2); }
static void stride_blocks(void) { shmemx_long_ibput(many, many, 1, 2, 2, 2, 0); }
static void cmp(void) { shmem_long_wait_until(&word, 9, 1); }
static void root(void) { shmem_broadcast64(&word, &local, 1, 5, 0, 0, 2, sync_words); }
static void root_team(void) { shmem_long_broadcast(SHMEM_TEAM_WORLD, many, many, 1, -1); }
static void set(void) { shmem_barrier(1, 0, 4, sync_words); }
static void set_stride(void) { shmem_barrier(0, 31, 1, sync_words); }
static void set_without(void) { shmem_sync(shmem_my_pe() == 0 ? 1 : 0, 0, 1, sync_words); }
static void signal_op(void) { shmem_long_put_signal(&word, &local, 1, (uint64_t*)&word, 1, 5, 0); }
static void lock(void) { shmem_clear_lock(&word); }
static void locks(void) {
  static long all[200];
  for (int i = 0; i < 200; ++i) shmem_set_lock(&all[i]);
}
static void free_static(void) { shmem_free(&word); }
static void free_twice(void) {
  void* const block = shmem_malloc(64);
  shmem_free(block);
  shmem_free(block);
}
static void realloc_static(void) { (void)shmem_realloc(&word, 8); }
static void align(void) { (void)shmem_align(48, 8); }
static void heap(void) { (void)shmem_malloc((size_t)1 << 40); }
static void heap_aligned(void) { (void)shmem_align(4096, (size_t)1 << 40); }
static void count(void) { (void)shmem_calloc((size_t)1 << 40, (size_t)1 << 40); }

static void context(void) { shmem_ctx_long_p(SHMEM_CTX_INVALID, &word, 1, 0); }
static void context_garbage(void) { shmem_ctx_long_p((shmem_ctx_t)(void*)many, &word, 1, 0); }
static shmem_ctx_t destroyed(void) {
  shmem_ctx_t ctx, next;
  shmem_ctx_create(0, &ctx);
  shmem_ctx_destroy(ctx);
  shmem_ctx_create(0, &next); /* in its place */
  return ctx;
}
static void context_stale(void) { (void)shmem_ctx_long_atomic_fetch(destroyed(), &word, 0); }
static void context_twice(void) { shmem_ctx_destroy(destroyed()); }
static void context_quiet(void) { shmem_ctx_quiet(destroyed()); }
static void context_options(void) {
  shmem_ctx_t ctx;
  (void)shmem_ctx_create(64, &ctx);
}
static void context_of_team(void) {
  shmem_team_t team;
  shmem_ctx_t ctx;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &team);
  shmem_team_create_ctx(team, 0, &ctx);
  shmem_team_destroy(team);
  shmem_ctx_long_p(ctx, &word, 1, 0);
}
static void team_garbage(void) { shmem_team_sync((shmem_team_t)(void*)many); }
static shmem_team_t gone(void) {
  shmem_team_t team, next;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &team);
  shmem_team_destroy(team);
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &next); /* in its place */
  return team;
}
static void team_stale(void) { shmem_long_sum_reduce(gone(), many, many, 1); }
static void team_twice(void) { shmem_team_destroy(gone()); }
static void team_of_stale(void) { (void)shmem_team_my_pe(gone()); }
static void team_members(void) {
  shmem_team_t team;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, 2, NULL, 0, &team);
}
static void team_range(void) {
  shmem_team_t rows, columns;
  shmem_team_split_2d(SHMEM_TEAM_WORLD, 0, NULL, 0, &rows, NULL, 0, &columns);
}
static void level(void) { (void)shmem_init_thread(17, NULL); }
static void again(void) {
  shmem_finalize();
  shmem_init();
}
static void after(void) {
  shmem_finalize();
  (void)shmem_my_pe();
}
static void after_put(void) {
  shmem_finalize();
  shmem_long_p(&word, 1, 0);
}

#define KIND(name) \
  { #name, name }
static const struct {
  const char* name;
  void (*make)(void);
} kMistakes[] = {
    KIND(stack_p),
    KIND(stack_get),
    KIND(stack_iput),
    KIND(stack_short_iget),
    KIND(stack_nbi),
    KIND(stack_amo),
    KIND(stack_amo_nbi),
    KIND(stack_signal),
    KIND(stack_wait),
    KIND(stack_wait_all),
    KIND(stack_wait_signal),
    KIND(stack_test),
    KIND(stack_test_all),
    KIND(stack_test_any),
    KIND(stack_test_some),
    KIND(stack_test_vector),
    KIND(stack_lock),
    KIND(stack_try),
    KIND(stack_broadcast),
    KIND(stack_reduce),
    KIND(stack_to_all),
    KIND(stack_to_all_fortran),
    KIND(stack_fcollect),
    KIND(stack_alltoall),
    KIND(stack_blocks),
    KIND(null_dest),
    KIND(null_source),
    KIND(null_wait),
    KIND(null_values),
    KIND(null_values_all),
    KIND(null_values_any),
    KIND(null_values_some),
    KIND(null_indices),
    KIND(null_indices_wait),
    KIND(null_sync),
    KIND(pe),
    KIND(pe_negative),
    KIND(pe_amo),
    KIND(pe_signal),
    KIND(pe_team),
    KIND(length),
    KIND(length_wraps),
    KIND(length_signal),
    KIND(length_broadcast),
    KIND(length_reduce),
    KIND(nreduce),
    KIND(alignment),
    KIND(alignment_lock),
    KIND(stride),
    KIND(stride_negative),
    KIND(stride_alltoalls),
    KIND(stride_blocks),
    KIND(cmp),
    KIND(root),
    KIND(root_team),
    KIND(set),
    KIND(set_stride),
    KIND(set_without),
    KIND(signal_op),
    KIND(lock),
    KIND(locks),
    KIND(free_static),
    KIND(free_twice),
    KIND(realloc_static),
    KIND(align),
    KIND(heap),
    KIND(heap_aligned),
    KIND(count),
    KIND(context),
    KIND(context_garbage),
    KIND(context_stale),
    KIND(context_twice),
    KIND(context_quiet),
    KIND(context_options),
    KIND(context_of_team),
    KIND(team_garbage),
    KIND(team_stale),
    KIND(team_twice),
    KIND(team_of_stale),
    KIND(team_members),
    KIND(team_range),
    KIND(level),
    KIND(again),
    KIND(after),
    KIND(after_put),
};

int main(int argc, char** argv) {
  const char* const mistake = argc > 1 ? argv[1] : "";
  if (strcmp(mistake, "before") == 0) return shmem_my_pe();
  if (strcmp(mistake, "before_put") == 0) shmem_long_p(&word, 1, 0);
  if (strcmp(mistake, "before_collective") == 0) shmem_barrier_all();
  if (strcmp(mistake, "before_test") == 0) return shmem_long_test_all(many, 2, NULL, SHMEM_CMP_EQ, 0);
  shmem_init();
  for (size_t i = 0; i < sizeof kMistakes / sizeof kMistakes[0]; ++i)
    if (strcmp(mistake, kMistakes[i].name) == 0) kMistakes[i].make();
  shmem_finalize();
  return 0;
}
