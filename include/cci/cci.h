/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * CCI, the Common Communication Interface (ABI version 2), over Orrery: endpoints, connections, messages,
 * remote memory access. Names, values and layouts are those of the published interface (docs/sources.md);
 * docs/cci.md says how it works here. Clients hold pointers to constant objects that the library owns.
 *
 * Every function may be called from any thread, and returns a cci_status unless it says otherwise. Times are
 * microseconds. A call that is given NULL where it needs an object returns CCI_EINVAL; before cci_init, or
 * after the last cci_finalize, calls that need no object return CCI_ENODEV.
 */
#ifndef ORRERY_CCI_H
#define ORRERY_CCI_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "cci/public_config.h"

BEGIN_C_DECLS

#define CCI_ABI_VERSION 2
#define CCI_CONN_REQ_LEN 1024 /* most bytes of data in a connection request */

/* Flags of sends, RMA and registrations. */
#define CCI_FLAG_BLOCKING (1 << 0) /* return when it has completed; no event */
#define CCI_FLAG_NO_COPY (1 << 1)  /* the buffer stays as it is until the completion */
#define CCI_FLAG_SILENT (1 << 3)   /* no event when it succeeds */
#define CCI_FLAG_READ (1 << 4)     /* RMA: from the peer; registration: peers may read */
#define CCI_FLAG_WRITE (1 << 5)    /* RMA: to the peer; registration: peers may write */
#define CCI_FLAG_FENCE (1 << 6)    /* RMA: after all earlier RMA of the connection */

typedef enum cci_status {
  CCI_SUCCESS = 0,
  CCI_ERROR = 1,
  CCI_ERR_DISCONNECTED = 2,
  CCI_ERR_RNR = 3, /* the peer had no receive buffer in time */
  CCI_ERR_DEVICE_DEAD = 4,
  CCI_ERR_RMA_HANDLE = 5, /* remote handle invalid, range outside, or a right is missing */
  CCI_ERR_RMA_OP = 6,
  CCI_ERR_NOT_IMPLEMENTED = 7,
  CCI_ERR_NOT_FOUND = 8,
  CCI_EINVAL = EINVAL,
  CCI_ETIMEDOUT = ETIMEDOUT,
  CCI_ENOMEM = ENOMEM,
  CCI_ENODEV = ENODEV,
  CCI_ENETDOWN = ENETDOWN,
  CCI_EBUSY = EBUSY,
  CCI_ERANGE = ERANGE,
  CCI_EAGAIN = EAGAIN,
  CCI_ENOBUFS = ENOBUFS,
  CCI_EMSGSIZE = EMSGSIZE,
  CCI_ENOMSG = ENOMSG,
  CCI_EADDRNOTAVAIL = EADDRNOTAVAIL,
  CCI_ECONNREFUSED = ECONNREFUSED
} cci_status_t;

/* Kinds of connections. */
typedef enum cci_conn_attribute {
  CCI_CONN_ATTR_RO = 0,       /* reliable, delivered and completed in order */
  CCI_CONN_ATTR_RU = 1,       /* reliable, in no order */
  CCI_CONN_ATTR_UU = 2,       /* unreliable, in no order; no RMA */
  CCI_CONN_ATTR_UU_MC_TX = 3, /* sends to a multicast group */
  CCI_CONN_ATTR_UU_MC_RX = 4  /* receives from one */
} cci_conn_attribute_t;

typedef enum cci_event_type {
  CCI_EVENT_NONE = 0,
  CCI_EVENT_SEND = 1,
  CCI_EVENT_RECV = 2,
  CCI_EVENT_CONNECT = 3,
  CCI_EVENT_CONNECT_REQUEST = 4,
  CCI_EVENT_ACCEPT = 5,
  CCI_EVENT_KEEPALIVE_TIMEDOUT = 6,
  CCI_EVENT_ENDPOINT_DEVICE_FAILED = 7
} cci_event_type_t;

typedef enum cci_opt_name {
  CCI_OPT_ENDPT_SEND_TIMEOUT = 0,      /* uint32_t; 0: none */
  CCI_OPT_ENDPT_RECV_BUF_COUNT = 1,    /* uint32_t */
  CCI_OPT_ENDPT_SEND_BUF_COUNT = 2,    /* uint32_t */
  CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT = 3, /* uint32_t; 0: none */
  CCI_OPT_ENDPT_URI = 4,               /* char*, to be freed by the caller; get only */
  CCI_OPT_ENDPT_RMA_ALIGN = 5,         /* cci_alignment_t; get only */
  CCI_OPT_CONN_SEND_TIMEOUT = 6,       /* uint32_t */
  CCI_OPT_CONN_KEEPALIVE_TIMEOUT = 7   /* uint32_t */
} cci_opt_name_t;

typedef enum cci_endpoint_flags { bogus_must_have_something_here } cci_endpoint_flags_t;

typedef int cci_os_handle_t;         /* for select, poll and epoll; never read it */
typedef const void cci_opt_handle_t; /* an endpoint or a connection */

typedef const struct cci_device {
  const char* name;
  const char* transport;
  unsigned up;
  const char* info;             /* may be NULL */
  const char* const* conf_argv; /* "key=value", NULL behind the last */
  uint32_t max_send_size;       /* bytes of a message */
  uint64_t rate;                /* bits a second; 0: unknown */
  struct {
    uint32_t domain, bus, dev, func; /* (uint32_t)-1: not a PCI device */
  } pci;
} cci_device_t;

typedef const struct cci_endpoint { cci_device_t* device; } cci_endpoint_t;

typedef const struct cci_connection {
  uint32_t max_send_size; /* the smaller of both sides' */
  cci_endpoint_t* endpoint;
  cci_conn_attribute_t attribute;
  void* context; /* of cci_connect or cci_accept */
} cci_connection_t;

/* Memory that peers may be told of: 32 opaque bytes that mean the same after they were copied. */
typedef const struct cci_rma_handle { uint64_t stuff[4]; } cci_rma_handle_t;

/* What addresses and lengths of RMA must be multiples of; 0: of nothing. */
typedef struct cci_alignment {
  uint32_t rma_write_local_addr;
  uint32_t rma_write_remote_addr;
  uint32_t rma_write_length;
  uint32_t rma_read_local_addr;
  uint32_t rma_read_remote_addr;
  uint32_t rma_read_length;
} cci_alignment_t;

typedef const struct cci_event_send {
  cci_event_type_t type;
  cci_status_t status;
  cci_connection_t* connection;
  void* context;
} cci_event_send_t;

typedef const struct cci_event_recv {
  cci_event_type_t type;
  uint32_t len;
  const void* ptr; /* aligned to 8; NULL when len is 0; valid until the event is returned */
  cci_connection_t* connection;
} cci_event_recv_t;

typedef const struct cci_event_connect {
  cci_event_type_t type;
  cci_status_t status; /* CCI_SUCCESS, CCI_ECONNREFUSED, CCI_ETIMEDOUT */
  void* context;
  cci_connection_t* connection; /* NULL unless it succeeded */
} cci_event_connect_t;

typedef const struct cci_event_connect_request {
  cci_event_type_t type;
  uint32_t data_len;
  const void* data_ptr;
  cci_conn_attribute_t attribute;
} cci_event_connect_request_t;

typedef const struct cci_event_accept {
  cci_event_type_t type;
  cci_status_t status;
  void* context;
  cci_connection_t* connection; /* NULL unless it succeeded */
} cci_event_accept_t;

typedef const struct cci_event_keepalive_timedout {
  cci_event_type_t type;
  cci_connection_t* connection;
} cci_event_keepalive_timedout_t;

typedef const struct cci_event_endpoint_device_failed {
  cci_event_type_t type;
  cci_endpoint_t* endpoint;
} cci_event_endpoint_device_failed_t;

typedef const union cci_event {
  cci_event_type_t type;
  cci_event_send_t send;
  cci_event_recv_t recv;
  cci_event_connect_t connect;
  cci_event_connect_request_t request;
  cci_event_accept_t accept;
  cci_event_keepalive_timedout_t keepalive;
  cci_event_endpoint_device_failed_t dev_failed;
} cci_event_t;

/* The enumerator's name; "Unknown event" for any other number. */
static inline const char* cci_event_type_str(cci_event_type_t type) {
  switch (type) {
    case CCI_EVENT_NONE:
      return "CCI_EVENT_NONE";
    case CCI_EVENT_SEND:
      return "CCI_EVENT_SEND";
    case CCI_EVENT_RECV:
      return "CCI_EVENT_RECV";
    case CCI_EVENT_CONNECT:
      return "CCI_EVENT_CONNECT";
    case CCI_EVENT_CONNECT_REQUEST:
      return "CCI_EVENT_CONNECT_REQUEST";
    case CCI_EVENT_ACCEPT:
      return "CCI_EVENT_ACCEPT";
    case CCI_EVENT_KEEPALIVE_TIMEDOUT:
      return "CCI_EVENT_KEEPALIVE_TIMEDOUT";
    case CCI_EVENT_ENDPOINT_DEVICE_FAILED:
      return "CCI_EVENT_ENDPOINT_DEVICE_FAILED";
  }
  return "Unknown event";
}

/* Starts the library; reads CCI_CONFIG. Counts: each call wants its cci_finalize.
 *   abi_ver  CCI_ABI_VERSION
 *   flags    0
 *   caps     receives 0
 * CCI_EINVAL: another version, or caps is NULL. CCI_ERR_NOT_IMPLEMENTED: flags are not those of the first
 * call.
 * CCI_ERROR: CCI_CONFIG names a file that cannot be read, or one with an error (one line on stderr).
 * CCI_ERR_NOT_FOUND: it describes no device. */
CCI_DECLSPEC int cci_init(uint32_t abi_ver, uint32_t flags, uint32_t* caps);

/* Ends what one cci_init started; the last one destroys all endpoints. CCI_ERROR: not started. */
CCI_DECLSPEC int cci_finalize(void);

/* The name of a status ("CCI_EINVAL"); "unknown error" for any other number. `endpoint` may be NULL. Never
 * NULL. */
CCI_DECLSPEC const char* cci_strerror(cci_endpoint_t* endpoint, enum cci_status status);

/* The devices, NULL behind the last, the preferred one first; valid until the last cci_finalize. */
CCI_DECLSPEC int cci_get_devices(cci_device_t* const** devices);

/* Makes an endpoint with a URI of its own.
 *   device  NULL: the default one
 *   flags   0
 *   fd      NULL: the client polls; else receives a descriptor that is readable while there are events
 * CCI_ENODEV: there is no device. CCI_ENETDOWN: it is down. CCI_ENOMEM. CCI_EADDRNOTAVAIL: its address or
 * port is taken or not of this host. */
CCI_DECLSPEC int cci_create_endpoint(cci_device_t* device, int flags, cci_endpoint_t** endpoint,
                                     cci_os_handle_t* fd);

/* The same at a place of the client's choice.
 *   device   not NULL
 *   service  a port from 1 to 65535; "pid/id" for the transport sm
 * CCI_EINVAL besides: not such a service. */
CCI_DECLSPEC int cci_create_endpoint_at(cci_device_t* device, const char* service, int flags,
                                        cci_endpoint_t** endpoint, cci_os_handle_t* fd);

/* Ends an endpoint: its connections, registrations, descriptor and events with it. */
CCI_DECLSPEC int cci_destroy_endpoint(cci_endpoint_t* endpoint);

/* Asks the endpoint at `uri` for a connection; CCI_EVENT_CONNECT tells how it ended.
 *   data, data_len  for the other side's CCI_EVENT_CONNECT_REQUEST; at most CCI_CONN_REQ_LEN bytes, copied
 *   context         of the connection and of the event
 *   flags           0
 *   timeout         NULL: for ever
 * CCI_EINVAL: the URI is not one of this transport, the data is too long, an unknown attribute.
 * CCI_ENOBUFS. */
CCI_DECLSPEC int cci_connect(cci_endpoint_t* endpoint, const char* uri, const void* data, uint32_t data_len,
                             cci_conn_attribute_t attribute, const void* context, int flags,
                             const struct timeval* timeout);

/* Accepts the connection request of an event; CCI_EVENT_ACCEPT tells how it ended. The event is still to be
 * returned. CCI_EINVAL: not a connection request, or it was decided already. */
CCI_DECLSPEC int cci_accept(cci_event_t* event, const void* context);

/* Refuses it: the other side's event says CCI_ECONNREFUSED. As cci_accept. */
CCI_DECLSPEC int cci_reject(cci_event_t* event);

/* Ends this side of a connection; the handle is void. The peer has no event, but later sends of it fail. */
CCI_DECLSPEC int cci_disconnect(cci_connection_t* connection);

/* Makes sure that the OS handle becomes readable with the next event. Nothing is lost without it: it is armed
 * whenever cci_get_event has found the last event. CCI_EINVAL: the endpoint has no OS handle, or flags are
 * not 0. */
CCI_DECLSPEC int cci_arm_os_handle(cci_endpoint_t* endpoint, int flags);

/* The next event, which is the client's until it returns it. Never blocks. CCI_EAGAIN: none, and *event is
 * NULL.
 * CCI_ENOBUFS: none, and the client holds every receive buffer. */
CCI_DECLSPEC int cci_get_event(cci_endpoint_t* endpoint, cci_event_t** event);

/* Gives an event back, in any order. CCI_EINVAL: a connection request that was neither accepted nor
 * rejected. */
CCI_DECLSPEC int cci_return_event(cci_event_t* event);

/* Sends a message of 0 to max_send_size bytes.
 *   context  of the CCI_EVENT_SEND
 *   flags    CCI_FLAG_BLOCKING, CCI_FLAG_NO_COPY, CCI_FLAG_SILENT
 * Reliable connections complete when the message lies in a buffer of the peer, the others when it has left.
 * CCI_EMSGSIZE: too long. CCI_ENOBUFS: as many as CCI_OPT_ENDPT_SEND_BUF_COUNT are under way or have events
 * that were not returned. CCI_ERR_DISCONNECTED: the peer is gone. With CCI_FLAG_BLOCKING also CCI_ERR_RNR,
 * CCI_ETIMEDOUT. */
CCI_DECLSPEC int cci_send(cci_connection_t* connection, const void* ptr, uint32_t len, const void* context,
                          int flags);

/* The same, of bytes that lie in pieces. */
CCI_DECLSPEC int cci_sendv(cci_connection_t* connection, const struct iovec* data, uint32_t iovcnt,
                           const void* context, int flags);

/* Registers memory for RMA from and to this endpoint.
 *   start, length  1 byte and more; ranges may overlap
 *   flags          what peers may do: CCI_FLAG_READ, CCI_FLAG_WRITE, both, or 0 for nothing; other
 *                  flags without these two mean both
 * CCI_ENOMEM: the table is full. */
CCI_DECLSPEC int cci_rma_register(cci_endpoint_t* endpoint, void* start, uint64_t length, int flags,
                                  cci_rma_handle_t** rma_handle);

/* Ends a registration: no peer touches the memory after it. CCI_EINVAL: not one of this endpoint. */
CCI_DECLSPEC int cci_rma_deregister(cci_endpoint_t* endpoint, cci_rma_handle_t* rma_handle);

/* Copies between registered memory here and at the peer, then sends it a message if there is one.
 *   msg_ptr, msg_len  sent when the data is in place; 0: none
 *   flags             one of CCI_FLAG_READ and CCI_FLAG_WRITE; CCI_FLAG_FENCE and those of cci_send
 * CCI_EINVAL: an unreliable connection, a length of 0, a local range that is not registered here. A bad
 * remote handle or range comes as CCI_ERR_RMA_HANDLE with the event. */
CCI_DECLSPEC int cci_rma(cci_connection_t* connection, const void* msg_ptr, uint32_t msg_len,
                         cci_rma_handle_t* local_handle, uint64_t local_offset,
                         cci_rma_handle_t* remote_handle, uint64_t remote_offset, uint64_t data_len,
                         const void* context, int flags);

/* Sets and reads an option (cci_opt_name says the type of `val`). The handle is the endpoint for
 * CCI_OPT_ENDPT_*, the connection for CCI_OPT_CONN_*. CCI_EINVAL: an unknown option, or one that cannot be
 * set. CCI_ERANGE: a count outside 1 to 16384. */
CCI_DECLSPEC int cci_set_opt(cci_opt_handle_t* handle, cci_opt_name_t name, const void* val);
CCI_DECLSPEC int cci_get_opt(cci_opt_handle_t* handle, cci_opt_name_t name, void* val);

END_C_DECLS

#endif
