/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Memory of one process of a job mapped into another one of the same host: the open XPMEM interface. The
 * owner makes a segment of its address space and tells its number; a peer gets access to it and attaches
 * pieces. Every call sets errno when it fails: ENXIO in exit handlers that run after the NIC's end. Any
 * thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int64_t xpmem_segid_t; /* a segment; means the same in every process of the job */
typedef int64_t xpmem_apid_t;  /* this process's access to one */

/* A place in a segment: bytes from its beginning. */
struct xpmem_addr {
  xpmem_apid_t apid;
  off_t offset;
};

/* Access that xpmem_get asks for. */
#define XPMEM_RDONLY 0x1
#define XPMEM_RDWR 0x2

/* The only kind of permit: an octal mode, of which the owner's bits count, because a job has one user. */
#define XPMEM_PERMIT_MODE 0x1

/* A segment that reaches over the whole address space. */
#define XPMEM_MAXADDR_SIZE ((size_t)(-1L))

#define XPMEM_CURRENT_VERSION 0x00027000
#define XPMEM_CURRENT_VERSION_MAJOR 2
#define XPMEM_CURRENT_VERSION_MINOR 7

/* The version of the interface; -1 (ENXIO) when this process cannot be in a job. */
int xpmem_version(void);

/*
 * Makes [vaddr, vaddr + size) a segment. Nothing of it needs to be mapped yet.
 *   vaddr         on a page boundary; NULL with XPMEM_MAXADDR_SIZE for all of the address space
 *   permit_type   XPMEM_PERMIT_MODE
 *   permit_value  the mode, as a pointer: (void *)0600; 0400 lets peers read only
 * Returns its number; -1: EINVAL, ENOSPC (256 segments), ENXIO. May join the job, which takes milliseconds.
 */
xpmem_segid_t xpmem_make(void* vaddr, size_t size, int permit_type, void* permit_value);

/* Ends a segment of this process: no process can get or attach it any more. What is attached stays mapped.
 * Returns 0; -1: EINVAL no segment of this process. */
int xpmem_remove(xpmem_segid_t segid);

/*
 * Gets access to a segment of a process of this job and host, this one included.
 *   flags        XPMEM_RDONLY or XPMEM_RDWR
 *   permit_type  XPMEM_PERMIT_MODE; permit_value is not looked at
 * Returns the access; -1: EINVAL, ENOENT no such segment (any more), EACCES the permit does not allow it.
 * Waits for the owner's service thread, at most 10 s (ETIMEDOUT when that process is stopped).
 */
xpmem_apid_t xpmem_get(xpmem_segid_t segid, int flags, int permit_type, void* permit_value);

/* Gives access up, and detaches what was attached by it. Returns 0; -1: EINVAL. */
int xpmem_release(xpmem_apid_t apid);

/*
 * Maps memory of the segment here: the very pages that its owner uses. The owner's pages become shared memory
 * for this, which stacks, thread storage, read-only, huge and already shared mappings cannot.
 *   addr   access, and where in the segment
 *   size   bytes, 1 and up; all of them mapped and writable by the owner
 *   vaddr  NULL, or a page boundary where to put it instead of what is there
 * Returns the address of the first byte, with the same place in its page as in the owner; (void *)-1: EINVAL,
 * ENOENT the segment or its owner is gone, EFAULT memory that is not there or cannot be shared, ENOMEM,
 * ETIMEDOUT as above. What the owner unmaps afterwards reads as zeros here.
 */
void* xpmem_attach(struct xpmem_addr addr, size_t size, void* vaddr);

/* Unmaps the attachment that `vaddr` lies in, whole. Returns 0; -1: EINVAL. */
int xpmem_detach(void* vaddr);

#ifdef __cplusplus
}
#endif
