/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * usage: pmi_client SIZE NODES. Checks what PMI says in a job of that many PEs on that many nodes, and that
 * every collective gives every PE what all PEs gave.
 */
#include "pmi_cray.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank = -1;

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "rank %d: %s:%d: %s\n", rank, __FILE__, __LINE__, #condition); \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)
#define OK(call) CHECK((call) == PMI_SUCCESS)

/* Gathers every rank's number, and checks that it is a permutation and, with two or more, not in rank order.
 */
static void check_order(const int* order, int size) {
  CHECK(size < 64);
  uint64_t seen = 0;
  int sorted = 1;
  for (int i = 0; i < size; ++i) {
    CHECK(order[i] >= 0 && order[i] < size);
    seen += UINT64_C(1) << order[i];
    sorted = sorted && order[i] == i;
  }
  CHECK(seen == (UINT64_C(1) << size) - 1);
  CHECK(size == 1 || !sorted);
}

static void check_nodes(int size, int nodes) {
  int* nids = NULL;
  int clique = 0;
  int count = 0;
  int distinct = 0;
  OK(PMI_Get_nidlist_ptr((void**)&nids));
  for (int i = 0; i < size; ++i) {
    int nid = -1;
    int first = 1;
    OK(PMI_Get_nid(i, &nid));
    CHECK(nid == nids[i]);
    count += nid == nids[rank];
    for (int j = 0; j < i; ++j) first = first && nids[j] != nid;
    distinct += first;
  }
  CHECK(distinct == nodes);
  OK(PMI_Get_clique_size(&clique));
  CHECK(clique == count);
  OK(PMI_Get_numpes_on_smp(&count));
  CHECK(clique == count);
  OK(PMI_Get_numpes_in_app_on_smp(&count));
  CHECK(clique == count);
  int* ranks = malloc(sizeof(int) * (size_t)clique);
  int* gathered = malloc(sizeof(int) * (size_t)clique);
  OK(PMI_Get_clique_ranks(ranks, clique));
  CHECK(PMI_Get_clique_ranks(ranks, clique - 1) == PMI_ERR_INVALID_LENGTH);
  int found = 0;
  for (int i = 0; i < clique; ++i) {
    CHECK(nids[ranks[i]] == nids[rank]);
    CHECK(i == 0 || ranks[i - 1] < ranks[i]);
    found += ranks[i] == rank;
  }
  CHECK(found == 1);
  OK(PMI_Get_pes_on_smp(gathered, clique));
  CHECK(memcmp(gathered, ranks, sizeof(int) * (size_t)clique) == 0);
  for (int round = 0; round < 3; ++round) {
    const int mine = rank * 1000 + round;
    long sum = 0;
    OK(PMI_Allgather_on_smp((void*)&mine, gathered, sizeof mine));
    for (int i = 0; i < clique; ++i) sum += gathered[i] - 1000 * ranks[i] - round;
    CHECK(sum == 0);
  }
  free(ranks);
  free(gathered);
}

static void check_collectives(int size) {
  int* order = malloc(sizeof(int) * (size_t)size);
  int* again = malloc(sizeof(int) * (size_t)size);
  int* lengths = malloc(sizeof(int) * (size_t)size);
  OK(PMI_Allgather(&rank, order, sizeof rank));
  check_order(order, size);
  OK(PMI_Allgather(&rank, again, sizeof rank));
  CHECK(memcmp(order, again, sizeof(int) * (size_t)size) == 0);

  int total = 0;
  for (int i = 0; i < size; ++i)
    total += lengths[i] = 700 * i; /* rank 0 gives nothing, others several chunks */
  char* mine = malloc((size_t)lengths[rank] + 1);
  char* all = malloc((size_t)total + 1);
  memset(mine, 'A' + rank, (size_t)lengths[rank]);
  OK(PMI_Allgatherv(mine, lengths[rank], all, lengths));
  const char* at = all;
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < lengths[order[i]]; ++j) CHECK(at[j] == (char)('A' + order[i]));
    at += lengths[order[i]];
  }
  free(mine);
  free(all);

  char text[3000];
  memset(text, rank == 0 ? 'z' : '-', sizeof text);
  OK(PMI_Bcast(text, (int)sizeof text));
  for (size_t i = 0; i < sizeof text; ++i) CHECK(text[i] == 'z');
  OK(PMI_Bcast(NULL, 0));
  free(order);
  free(again);
  free(lengths);
}

static void check_space(int size) {
  char name[256];
  char id[256];
  char key[32];
  char value[1024];
  char* attribute = malloc(1 << 16);
  int length = 0;
  int found = -1;
  OK(PMI_KVS_Get_my_name(name, sizeof name));
  OK(PMI2_Job_GetId(id, sizeof id));
  CHECK(strcmp(name, id) == 0);
  OK(PMI_KVS_Get_name_length_max(&length));
  CHECK(length >= (int)strlen(name) + 1);
  OK(PMI_KVS_Get_key_length_max(&length));
  CHECK(length >= 32);
  OK(PMI_KVS_Get_value_length_max(&length));
  CHECK(length >= 256);
  snprintf(key, sizeof key, "key-%d", rank);
  snprintf(value, sizeof value, rank % 2 == 0 ? "plain=%d" : "with space, \t%d and\nnewline", rank);
  OK(PMI_KVS_Put(name, key, value));
  snprintf(key, sizeof key, "long-%d", rank);
  memset(value, ' ' + rank % 2, sizeof value);
  value[length - 1 < 1000 ? length - 1 : 1000] = '\0';
  OK(PMI2_KVS_Put(key, value));
  OK(PMI_KVS_Commit(name));
  OK(PMI_Ibarrier());
  CHECK(PMI_Barrier() == PMI_FAIL); /* not between the two halves */
  OK(PMI_Wait());
  for (int i = 0; i < size; ++i) {
    char expected[64];
    snprintf(key, sizeof key, "key-%d", i);
    snprintf(expected, sizeof expected, i % 2 == 0 ? "plain=%d" : "with space, \t%d and\nnewline", i);
    OK(PMI_KVS_Get(name, key, value, sizeof value));
    CHECK(strcmp(value, expected) == 0);
    CHECK(PMI_KVS_Get(name, key, value, (int)strlen(expected)) == PMI_ERR_INVALID_LENGTH);
    snprintf(key, sizeof key, "long-%d", i);
    OK(PMI2_KVS_Get(NULL, PMI2_ID_NULL, key, value, sizeof value, &length));
    CHECK(length == (int)strlen(value) && value[length - 1] == ' ' + i % 2);
    CHECK(PMI2_KVS_Get(NULL, i, key, value, 10, &found) == PMI2_ERR_INVALID_VAL_LENGTH);
    CHECK(found == -length && strlen(value) == 9);
  }
  /* A key is put once, whatever its values are made of. */
  snprintf(key, sizeof key, "key-%d", rank);
  CHECK(PMI_KVS_Put(name, key, "plain") == PMI_FAIL);
  CHECK(PMI2_KVS_Put(key, "with space") == PMI2_FAIL);
  CHECK(PMI_KVS_Get(name, "absent", value, sizeof value) == PMI_FAIL);
  CHECK(PMI_KVS_Put(name, key, NULL) == PMI_ERR_INVALID_VAL);
  CHECK(PMI_KVS_Put(name, "a b", "c") == PMI_ERR_INVALID_KEY);
  CHECK(PMI_KVS_Put("other", "a", "c") == PMI_ERR_INVALID_ARG);
  OK(PMI2_Info_GetJobAttr("PMI_process_mapping", attribute, 1 << 16, &found));
  CHECK(found == 1 && strncmp(attribute, "(vector,(", 9) == 0);
  OK(PMI2_Info_GetJobAttr("unheard of", attribute, 1 << 16, &found));
  CHECK(found == 0);
  OK(PMI2_KVS_Fence());
  free(attribute);
}

/* The variables that every uGNI client reads, and the same in every process. */
static void check_variables(int size) {
  const char* const names[] = {"PMI_GNI_PTAG", "PMI_GNI_COOKIE", "PMI_GNI_DEV_ID", "PMI_GNI_LOC_ADDR"};
  char mine[256] = "";
  int* order = malloc(sizeof(int) * (size_t)size);
  char* all = malloc(sizeof mine * (size_t)size);
  for (int i = 0; i < 4; ++i) {
    const char* text = getenv(names[i]);
    CHECK(text != NULL && strlen(text) < 60);
    CHECK(strspn(text, "0123456789:") == strlen(text));
    CHECK(strchr(text, ':') != NULL && strchr(text, ':') == strrchr(text, ':')); /* two items */
    if (i < 2) strcat(mine, text);
  }
  CHECK(atoi(getenv("PMI_GNI_COOKIE")) > 0);
  OK(PMI_Allgather(&rank, order, sizeof rank));
  OK(PMI_Allgather(mine, all, sizeof mine));
  for (int i = 0; i < size; ++i) CHECK(strcmp(all + sizeof mine * (size_t)i, mine) == 0);
  free(order);
  free(all);
}

int main(int argc, char** argv) {
  int spawned = -1;
  int initialised = -1;
  int number = -1;
  int size = -1;
  int minor = -1;
  CHECK(argc == 3);
  const int expected = atoi(argv[1]);
  CHECK(PMI_Get_rank(&number) == PMI_ERR_INIT && number == -1);
  OK(PMI_Initialized(&initialised));
  CHECK(initialised == PMI_FALSE);
  CHECK(PMI2_Initialized() == 0);
  OK(PMI_Init(&spawned));
  CHECK(spawned == PMI_FALSE);
  OK(PMI_Initialized(&initialised));
  CHECK(initialised == PMI_TRUE);
  OK(PMI_Init(&spawned)); /* again: nothing happens */
  OK(PMI_Get_rank(&rank));
  OK(PMI_Get_size(&size));
  CHECK(size == expected && rank >= 0 && rank < size);
  CHECK(PMI2_Initialized() == 1);
  OK(PMI2_Init(&spawned, &size, &number, &minor));
  CHECK(size == expected && number == rank);
  OK(PMI_Get_rank_in_app(&number));
  CHECK(number == rank);
  OK(PMI_Get_app_size(&number));
  CHECK(number == size);
  OK(PMI_Get_appnum(&number));
  /* Slurm's pmi2 knows of no numbers of applications. */
  CHECK(number == 0 || (number == -1 && getenv("SLURM_JOB_ID") != NULL));
  OK(PMI_Get_universe_size(&number));
  OK(PMI_Get_version_info(&number, &minor, &spawned));
  CHECK(PMI_Get_nid(size, &number) == PMI_ERR_INVALID_ARG);
  CHECK(PMI_Get_nid(-1, &number) == PMI_ERR_INVALID_ARG);
  check_nodes(size, atoi(argv[2]));
  check_collectives(size);
  check_space(size);
  check_variables(size);
  OK(PMI_Barrier());
  OK(PMI_Finalize());
  CHECK(PMI_Finalize() == PMI_ERR_INIT);
  CHECK(PMI_Barrier() == PMI_ERR_INIT);
  return 0;
}
