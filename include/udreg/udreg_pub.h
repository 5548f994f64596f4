/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* A cache of registrations: memory that was registered once stays so until room is needed, and its next user
 * gets what there is. The cache knows nothing of devices: its owner's functions register and
 * deregister. Handles and entries are the library's. Threads: any, one at a time for one cache is not asked
 * for. */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UDREG_MAX_CACHENAME_LEN 64

typedef enum udreg_return {
  UDREG_RC_SUCCESS = 0,
  UDREG_RC_INVALID_PARAM = 1,
  UDREG_RC_NO_MATCH = 2,
  UDREG_RC_NO_SPACE = 3,       /* every entry is in use: give some back, or UDREG_Evict */
  UDREG_RC_ERROR_NO_DEVICE = 4 /* never given here: there is always a device */
} udreg_return_t;

/* Modes of a cache, one bit each. */
#define UDREG_CC_MODE_USE_LARGE_PAGES \
  0x1 /* ranges are widened to 2 MiB where there is memory, not to pages */
#define UDREG_CC_MODE_USE_KERNEL_CACHE 0x2  /* accepted: nothing changes */
#define UDREG_CC_MODE_USE_EVICT_W_UNREG 0x4 /* an entry without users is deregistered at once */
#define UDREG_CC_MODE_USE_LAZY_DEREG 0x8    /* an entry without users stays; the default */

/* What the owner's function gives for memory that cannot be registered. NULL says that it has no room. */
#define UDREG_DEVICE_REG_FAILED ((void*)-1)

/* Counters of UDREG_GetStat. */
#define UDREG_STAT_CACHE_HIT 0
#define UDREG_STAT_CACHE_MISS 1
#define UDREG_STAT_CACHE_EVICTED 2

typedef struct udreg_cache_attr {
  char cache_name[UDREG_MAX_CACHENAME_LEN]; /* for UDREG_CacheAccess; ends with a zero */
  uint32_t max_entries;                     /* 1 and up */
  uint32_t modes;
  uint32_t debug_mode; /* accepted: nothing changes */
  int32_t debug_rank;
  void* reg_context;        /* handed to device_reg_func, */
  void* dreg_context;       /* device_dereg_func */
  void* destructor_context; /* and destructor_callback */
  /* Registers; the result is kept for device_dereg_func, or UDREG_DEVICE_REG_FAILED or NULL (above). */
  void* (*device_reg_func)(void* address, uint64_t length, void* context);
  /* Deregisters. 0: done. */
  uint32_t (*device_dereg_func)(void* device_data, void* context);
  void (*destructor_callback)(void* context); /* when the cache ends; may be NULL */
} udreg_cache_attr_t;

typedef struct udreg_cache* udreg_cache_handle_t;

typedef struct udreg_entry {
  void* address;     /* of the range that is registered, */
  uint64_t length;   /* which holds what was asked for */
  void* device_data; /* what device_reg_func gave */
} udreg_entry_t;

/* Makes a cache. Returns SUCCESS; INVALID_PARAM (NULL, no name, no entries, no functions, a name that is in
 * use); NO_SPACE no memory. */
udreg_return_t UDREG_CacheCreate(udreg_cache_attr_t* attr);
/* The cache of that name; each access is given back by a release. Returns SUCCESS; INVALID_PARAM; NO_MATCH.
 */
udreg_return_t UDREG_CacheAccess(const char* cache_name, udreg_cache_handle_t* handle);
udreg_return_t UDREG_CacheRelease(udreg_cache_handle_t handle);
/* Deregisters everything and ends the cache. Returns SUCCESS; INVALID_PARAM; NO_SPACE it is open elsewhere,
 * or an entry of it is in use. */
udreg_return_t UDREG_CacheDestroy(udreg_cache_handle_t handle);

/*
 * An entry that holds [address, address + length), which stays registered until it is unregistered as often
 * as it was given. Returns SUCCESS; INVALID_PARAM an argument, or the owner's function gave
 * UDREG_DEVICE_REG_FAILED: this memory cannot be registered, use other memory; NO_SPACE the cache is full of
 * entries in use, or the owner's function gave NULL: evict and try again.
 */
udreg_return_t UDREG_Register(udreg_cache_handle_t handle, void* address, uint64_t length,
                              udreg_entry_t** entry);
/* Gives an entry back. Returns SUCCESS; INVALID_PARAM not an entry in use. */
udreg_return_t UDREG_Unregister(udreg_cache_handle_t handle, udreg_entry_t* entry);
/* The same, and the entry stays in the cache whatever the modes say. */
udreg_return_t UDREG_DecrRefcount(udreg_cache_handle_t handle, udreg_entry_t* entry);
/* Deregisters the entry without users that was used longest ago. Returns SUCCESS; INVALID_PARAM;
 * NO_MATCH there is none. */
udreg_return_t UDREG_Evict(udreg_cache_handle_t handle);
/* A counter. Returns SUCCESS; INVALID_PARAM. */
udreg_return_t UDREG_GetStat(udreg_cache_handle_t handle, uint32_t which, uint64_t* value);
/* Sets a counter to 0. Returns SUCCESS; INVALID_PARAM. */
udreg_return_t UDREG_ResetStat(udreg_cache_handle_t handle, uint32_t which);

#ifdef __cplusplus
}
#endif
