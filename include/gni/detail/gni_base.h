/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* Version, result codes and the handle types: what every other part needs. */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Direction marks of parameters in older client code. */
#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef INOUT
#define INOUT
#endif

/* Version of the interface: one number of major (8 bits), minor (8 bits) and code (16 bits). */
#define GNI_MAJOR_REV 0x00
#define GNI_MINOR_REV 0x61
#define GNI_CODE_REV 0x0104

#define GNI_VERSION_CHECK(major, minor, code) (((major) << 24) | ((minor) << 16) | (code))
#define GNI_VERSION GNI_VERSION_CHECK(GNI_MAJOR_REV, GNI_MINOR_REV, GNI_CODE_REV)
#define GNI_GET_MAJOR(version) (((version) >> 24) & 0xff)
#define GNI_GET_MINOR(version) (((version) >> 16) & 0xff)
#define GNI_GET_REV(version) ((version)&0xffff)

/* First version with chained transactions (GNI_CtPostFma, GNI_CtPostCqWrite). */
#define GNI_VERSION_FMA_CHAIN_TRANSACTIONS GNI_VERSION_CHECK(0, 0x5d, 0)

/* Outcome of every call. */
typedef enum gni_return {
  GNI_RC_SUCCESS = 0,
  GNI_RC_NOT_DONE = 1,           /* nothing there yet, or no credit now: call again */
  GNI_RC_INVALID_PARAM = 2,      /* an argument is not acceptable */
  GNI_RC_ERROR_RESOURCE = 3,     /* a table, queue or window is used up; a completion queue overran */
  GNI_RC_TIMEOUT = 4,            /* the time that the caller allowed has passed */
  GNI_RC_PERMISSION_ERROR = 5,   /* protection tag, read-only memory, or a privileged act */
  GNI_RC_DESCRIPTOR_ERROR = 6,   /* no request of ours belongs to the event */
  GNI_RC_ALIGNMENT_ERROR = 7,    /* address or length is not a multiple of what the operation needs */
  GNI_RC_INVALID_STATE = 8,      /* the object cannot do that now */
  GNI_RC_NO_MATCH = 9,           /* nothing of that name, tag or address */
  GNI_RC_SIZE_ERROR = 10,        /* longer than the limit, or than the buffer given */
  GNI_RC_TRANSACTION_ERROR = 11, /* the event is good and says that the transaction failed */
  GNI_RC_ILLEGAL_OP = 12,        /* the device has no such operation */
  GNI_RC_ERROR_NOMEM = 13        /* the operating system gave no memory */
} gni_return_t;

/* One text per gni_return_t, the enumerator's name: gni_err_str[status]. Any thread. */
extern const char* gni_err_str[];

/* Handles. Opaque: they are not addresses, and nothing may be read through them. */
typedef struct gni_cdm* gni_cdm_handle_t;
typedef struct gni_nic* gni_nic_handle_t;
typedef struct gni_ep* gni_ep_handle_t;
typedef struct gni_cq* gni_cq_handle_t;
typedef struct gni_err* gni_err_handle_t;
typedef struct gni_msgq* gni_msgq_handle_t;
typedef struct gni_ce* gni_ce_handle_t;
typedef struct gni_comp_chan* gni_comp_chan_handle_t;
typedef struct gni_dqueue* gni_dqueue_handle_t;

#ifdef __cplusplus
}
#endif
