/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

#include "shmem_types.h"

/* Start and end, PEs, memory, teams, contexts. */

#ifdef __cplusplus
extern "C" {
#endif

/* Collective. Joins the job; the symmetric heap has the size that SHMEM_SYMMETRIC_SIZE says, or else
 * SMA_SYMMETRIC_SIZE or XT_SYMMETRIC_HEAP_SIZE (64M unless one is set). A program that ends by returning
 * from main without shmem_finalize makes that call at its exit. */
void shmem_init(void);
/* *provided gets the level that holds, which is the one that was asked for. Returns 0; -1: no such level. */
int shmem_init_thread(int requested, int* provided);
void shmem_query_thread(int* provided);
void shmem_finalize(void);
/* Ends all PEs; the job's exit code is status. */
void shmem_global_exit(int status) __attribute__((noreturn));
int shmem_my_pe(void);
int shmem_n_pes(void);
int shmem_pe_accessible(int pe);
int shmem_addr_accessible(const void* addr, int pe);
/* Where this process itself can load and store the PE's object; null when the PE is on another host, or the
 * memory is not mapped here. */
void* shmem_ptr(const void* dest, int pe);
void shmem_info_get_version(int* major, int* minor);
void shmem_info_get_name(char* name);
void shmem_pcontrol(int level, ...);

/* Collective; every PE asks for the same. Null: 0 bytes, or no room (one line says so). */
void* shmem_malloc(size_t size);
void* shmem_malloc_with_hints(size_t size, long hints);
void* shmem_calloc(size_t count, size_t size);
void* shmem_align(size_t alignment, size_t size);
/* In place, if the block gets shorter or the heap is free behind it; else it moves, and keeps no alignment of
 * more than 64. Null where there is no room: the block is as it was. */
void* shmem_realloc(void* ptr, size_t size);
void shmem_free(void* ptr);

/* -1 where the caller is no member, or the team is SHMEM_TEAM_INVALID. */
int shmem_team_my_pe(shmem_team_t team);
int shmem_team_n_pes(shmem_team_t team);
int shmem_team_get_config(shmem_team_t team, long config_mask, shmem_team_config_t* config);
int shmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team);
/* Collective over the parent. The new team is SHMEM_TEAM_INVALID for those that are no members, and for all
 * when the arguments describe none or as many teams as can be exist (the result is not 0 then). */
int shmem_team_split_strided(shmem_team_t parent, int start, int stride, int size,
                             const shmem_team_config_t* config, long config_mask, shmem_team_t* new_team);
int shmem_team_split_2d(shmem_team_t parent, int xrange, const shmem_team_config_t* xaxis_config,
                        long xaxis_mask, shmem_team_t* xaxis_team, const shmem_team_config_t* yaxis_config,
                        long yaxis_mask, shmem_team_t* yaxis_team);
void shmem_team_destroy(shmem_team_t team);
/* As shmem_ptr, of a PE of the team. */
void* shmem_team_ptr(shmem_team_t team, const void* dest, int pe);

/* 0, or not: no room for one more, or the team has as many as it may. */
int shmem_ctx_create(long options, shmem_ctx_t* ctx);
int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t* ctx);
void shmem_ctx_destroy(shmem_ctx_t ctx);
int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t* team);

#ifdef __cplusplus
}
#endif
