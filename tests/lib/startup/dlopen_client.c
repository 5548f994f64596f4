/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */

/* Opens each library at run time, one after the other and with symbols of its own, as components of a larger
 * program do. usage: dlopen_client SIZE LIBPMI LIBUGNI, or with the paths compiled in. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void* open_library(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  return library;
}

static void* symbol(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (found == NULL) exit(3);
  return found;
}

int main(int argc, char** argv) {
  const int expected = argc > 1 ? atoi(argv[1]) : 1;
  void* const gni = open_library(UGNI_LIBRARY);
  if (getenv("PMI_GNI_PTAG") != NULL && getenv("ORRERY_JOB_AT") == NULL)
    return 4; /* nothing has set it yet */
  void* const pmi = open_library(PMI_LIBRARY);
  if (getenv("PMI_GNI_PTAG") == NULL) return 5;
  int (*init)(int*);
  int (*size)(int*);
  int (*rank)(int*);
  int (*finalize)(void);
  uint32_t (*create)(uint32_t, uint8_t, uint32_t, uint32_t, void**);
  uint32_t (*attach)(void*, uint32_t, uint32_t*, void**);
  *(void**)&create = symbol(gni, "GNI_CdmCreate");
  *(void**)&attach = symbol(gni, "GNI_CdmAttach");
  *(void**)&init = symbol(pmi, "PMI_Init");
  *(void**)&size = symbol(pmi, "PMI_Get_size");
  *(void**)&rank = symbol(pmi, "PMI_Get_rank");
  *(void**)&finalize = symbol(pmi, "PMI_Finalize");
  int spawned = 0, pes = 0, mine = 0;
  if (init(&spawned) != 0 || size(&pes) != 0 || rank(&mine) != 0 || pes != expected) return 6;
  void *domain = NULL, *nic = NULL;
  uint32_t address = 0;
  if (create((uint32_t)mine, (uint8_t)atoi(getenv("PMI_GNI_PTAG")),
             (uint32_t)strtoul(getenv("PMI_GNI_COOKIE"), NULL, 10), 0, &domain) != 0)
    return 7;
  if (attach(domain, 0, &address, &nic) != 0) return 8;
  if (address != strtoul(getenv("PMI_GNI_LOC_ADDR"), NULL, 10)) return 9;
  return finalize() == 0 ? 0 : 10;
}
