// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "cci.h"
#include "emu/base/log.hpp"
#include "lib/cci/debug.hpp"
#include "lib/cci/device.hpp"
#include "lib/cci/endpoint.hpp"
#include "lib/cci/library.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

// The calls of the interface: arguments, and the process's devices and endpoints.
namespace orrery::cci {

// Never destroyed: threads of endpoints may live when the process ends.
Library& library() {
  static Library* const made = [] {
    auto* const library = new Library;
    register_fork_handlers();
    return library;
  }();
  return *made;
}

namespace {

Endpoint* endpoint_of(cci_endpoint_t* shown) {
  return reinterpret_cast<Endpoint*>(const_cast<struct cci_endpoint*>(shown));
}
Connection* connection_of(cci_connection_t* shown) {
  return reinterpret_cast<Connection*>(const_cast<struct cci_connection*>(shown));
}
Event* event_of(cci_event_t* shown) { return reinterpret_cast<Event*>(const_cast<union cci_event*>(shown)); }

int create(cci_device_t* device, const char* service, cci_endpoint_t** endpoint, cci_os_handle_t* fd) {
  Library& all = library();
  const std::lock_guard lock(all.mu);
  if (all.users == 0 || all.devices.empty()) return CCI_ENODEV;
  const Device* chosen = device == nullptr ? all.devices.front().get() : nullptr;
  for (const auto& each : all.devices) {
    if (&each->shown == device) chosen = each.get();
  }
  if (chosen == nullptr) return CCI_EINVAL;
  if (chosen->shown.up == 0) return device == nullptr ? CCI_ENODEV : CCI_ENETDOWN;
  auto made = Endpoint::create(*chosen, service, fd != nullptr);
  if (!made.ok()) {
    switch (made.code()) {
      case Errc::no_memory:
        return CCI_ENOMEM;
      case Errc::no_resource:
        return CCI_EADDRNOTAVAIL;
      case Errc::invalid_param:
        return CCI_EINVAL;
      default:
        return CCI_ERROR;
    }
  }
  if (fd != nullptr) *fd = made.value()->handle();
  *endpoint = &made.value()->shown;
  debug::tell(debug::Topic::ep, "opened " + made.value()->uri());
  all.endpoints.push_back(std::move(made.value()));
  return CCI_SUCCESS;
}

std::uint64_t bytes_of(const iovec* pieces, std::uint32_t count) {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (pieces[i].iov_len > UINT32_MAX || (pieces[i].iov_base == nullptr && pieces[i].iov_len != 0))
      return UINT64_MAX;
    bytes += pieces[i].iov_len;
  }
  return bytes;
}

bool is_connection_option(cci_opt_name name) {
  return name == CCI_OPT_CONN_SEND_TIMEOUT || name == CCI_OPT_CONN_KEEPALIVE_TIMEOUT;
}

// Whether an option's handle is of the kind that the option wants, as far as that can be told: an endpoint is
// one of this process.
bool is_handle_of(cci_opt_handle_t* handle, cci_opt_name name) {
  Library& all = library();
  const std::lock_guard lock(all.mu);
  const bool is_endpoint = std::any_of(all.endpoints.begin(), all.endpoints.end(),
                                       [&](const auto& each) { return &each->shown == handle; });
  return is_endpoint != is_connection_option(name);
}

}  // namespace

}  // namespace orrery::cci

using orrery::cci::connection_of;
using orrery::cci::endpoint_of;
using orrery::cci::event_of;
using orrery::cci::library;

extern "C" {

int cci_init(uint32_t abi_ver, uint32_t flags, uint32_t* caps) {
  if (abi_ver != CCI_ABI_VERSION || caps == nullptr) return CCI_EINVAL;
  auto& all = library();
  const std::lock_guard lock(all.mu);
  if (all.users != 0) {
    if (flags != all.flags) return CCI_ERR_NOT_IMPLEMENTED;
    ++all.users;
    *caps = 0;
    return CCI_SUCCESS;
  }
  if (flags != 0) return CCI_ERR_NOT_IMPLEMENTED;
  orrery::cci::debug::read_environment();
  all.devices.clear();
  all.shown.clear();
  const orrery::Status found = orrery::cci::find_devices(&all.devices);
  if (!found.ok()) {
    all.devices.clear();
    return found.code() == orrery::Errc::no_match ? CCI_ERR_NOT_FOUND : CCI_ERROR;
  }
  for (const auto& device : all.devices) all.shown.push_back(&device->shown);
  all.shown.push_back(nullptr);
  all.users = 1;
  all.flags = flags;
  *caps = 0;
  return CCI_SUCCESS;
}

int cci_finalize(void) {
  auto& all = library();
  const std::lock_guard lock(all.mu);
  if (all.users == 0) return CCI_ERROR;
  if (--all.users != 0) return CCI_SUCCESS;
  all.endpoints.clear();
  all.shown.clear();
  all.devices.clear();
  return CCI_SUCCESS;
}

const char* cci_strerror(cci_endpoint_t*, enum cci_status status) {
  switch (status) {
#define NAME(code) \
  case code:       \
    return #code
    NAME(CCI_SUCCESS);
    NAME(CCI_ERROR);
    NAME(CCI_ERR_DISCONNECTED);
    NAME(CCI_ERR_RNR);
    NAME(CCI_ERR_DEVICE_DEAD);
    NAME(CCI_ERR_RMA_HANDLE);
    NAME(CCI_ERR_RMA_OP);
    NAME(CCI_ERR_NOT_IMPLEMENTED);
    NAME(CCI_ERR_NOT_FOUND);
#undef NAME
    case CCI_EINVAL:
      return "CCI_EINVAL";
    case CCI_ETIMEDOUT:
      return "CCI_ETIMEDOUT";
    case CCI_ENOMEM:
      return "CCI_ENOMEM";
    case CCI_ENODEV:
      return "CCI_ENODEV";
    case CCI_ENETDOWN:
      return "CCI_ENETDOWN";
    case CCI_EBUSY:
      return "CCI_EBUSY";
    case CCI_ERANGE:
      return "CCI_ERANGE";
    case CCI_EAGAIN:
      return "CCI_EAGAIN";
    case CCI_ENOBUFS:
      return "CCI_ENOBUFS";
    case CCI_EMSGSIZE:
      return "CCI_EMSGSIZE";
    case CCI_ENOMSG:
      return "CCI_ENOMSG";
    case CCI_EADDRNOTAVAIL:
      return "CCI_EADDRNOTAVAIL";
    case CCI_ECONNREFUSED:
      return "CCI_ECONNREFUSED";
  }
  return "unknown error";
}

int cci_get_devices(cci_device_t* const** devices) {
  if (devices == nullptr) return CCI_EINVAL;
  auto& all = library();
  const std::lock_guard lock(all.mu);
  if (all.users == 0) return CCI_ENODEV;
  *devices = all.shown.data();
  return CCI_SUCCESS;
}

int cci_create_endpoint(cci_device_t* device, int, cci_endpoint_t** endpoint, cci_os_handle_t* fd) {
  if (endpoint == nullptr) return CCI_EINVAL;
  return orrery::cci::create(device, nullptr, endpoint, fd);
}

int cci_create_endpoint_at(cci_device_t* device, const char* service, int, cci_endpoint_t** endpoint,
                           cci_os_handle_t* fd) {
  if (device == nullptr || service == nullptr || endpoint == nullptr) return CCI_EINVAL;
  return orrery::cci::create(device, service, endpoint, fd);
}

int cci_destroy_endpoint(cci_endpoint_t* endpoint) {
  if (endpoint == nullptr) return CCI_EINVAL;
  auto& all = library();
  const std::lock_guard lock(all.mu);
  const auto at = std::find_if(all.endpoints.begin(), all.endpoints.end(),
                               [&](const auto& each) { return &each->shown == endpoint; });
  if (at == all.endpoints.end()) return CCI_EINVAL;
  all.endpoints.erase(at);
  return CCI_SUCCESS;
}

int cci_connect(cci_endpoint_t* endpoint, const char* uri, const void* data, uint32_t data_len,
                cci_conn_attribute_t attribute, const void* context, int, const struct timeval* timeout) {
  if (endpoint == nullptr || uri == nullptr || data_len > CCI_CONN_REQ_LEN ||
      (data == nullptr && data_len != 0))
    return CCI_EINVAL;
  if (attribute < CCI_CONN_ATTR_RO || attribute > CCI_CONN_ATTR_UU_MC_RX) return CCI_EINVAL;
  if (timeout != nullptr && (timeout->tv_sec < 0 || timeout->tv_usec < 0)) return CCI_EINVAL;
  auto* const owner = endpoint_of(endpoint);
  auto parsed = orrery::cci::parse_uri(uri);
  if (!parsed.ok() || parsed.value().scheme != owner->device().transport) return CCI_EINVAL;
  orrery::cci::resolve(&parsed.value());
  return owner->connect(parsed.value(), data, data_len, attribute, const_cast<void*>(context), timeout);
}

int cci_accept(cci_event_t* event, const void* context) {
  if (event == nullptr) return CCI_EINVAL;
  return event_of(event)->endpoint->decide(event_of(event), true, const_cast<void*>(context));
}

int cci_reject(cci_event_t* event) {
  if (event == nullptr) return CCI_EINVAL;
  return event_of(event)->endpoint->decide(event_of(event), false, nullptr);
}

int cci_disconnect(cci_connection_t* connection) {
  if (connection == nullptr) return CCI_EINVAL;
  return connection_of(connection)->owner->disconnect(connection_of(connection));
}

int cci_arm_os_handle(cci_endpoint_t* endpoint, int flags) {
  if (endpoint == nullptr || flags != 0) return CCI_EINVAL;
  return endpoint_of(endpoint)->arm();
}

int cci_get_event(cci_endpoint_t* endpoint, cci_event_t** event) {
  if (endpoint == nullptr || event == nullptr) return CCI_EINVAL;
  orrery::cci::Event* next = nullptr;
  const int status = endpoint_of(endpoint)->get_event(&next);
  *event = reinterpret_cast<cci_event_t*>(next);
  return status;
}

int cci_return_event(cci_event_t* event) {
  if (event == nullptr) return CCI_EINVAL;
  return event_of(event)->endpoint->return_event(event_of(event));
}

int cci_send(cci_connection_t* connection, const void* ptr, uint32_t len, const void* context, int flags) {
  if (connection == nullptr || (ptr == nullptr && len != 0)) return CCI_EINVAL;
  const iovec piece{const_cast<void*>(ptr), len};
  auto* const to = connection_of(connection);
  return to->owner->send(to, &piece, 1, len, const_cast<void*>(context), flags);
}

int cci_sendv(cci_connection_t* connection, const struct iovec* data, uint32_t iovcnt, const void* context,
              int flags) {
  if (connection == nullptr || (data == nullptr && iovcnt != 0)) return CCI_EINVAL;
  const std::uint64_t bytes = orrery::cci::bytes_of(data, iovcnt);
  if (bytes == UINT64_MAX) return CCI_EINVAL;
  auto* const to = connection_of(connection);
  return to->owner->send(to, data, iovcnt, bytes, const_cast<void*>(context), flags);
}

int cci_rma_register(cci_endpoint_t* endpoint, void* start, uint64_t length, int flags,
                     cci_rma_handle_t** rma_handle) {
  if (endpoint == nullptr || start == nullptr || length == 0 || rma_handle == nullptr) return CCI_EINVAL;
  const int rights = CCI_FLAG_READ | CCI_FLAG_WRITE;
  const int known = rights | CCI_FLAG_BLOCKING | CCI_FLAG_NO_COPY | CCI_FLAG_SILENT | CCI_FLAG_FENCE;
  if ((flags & ~known) != 0 || length > UINT64_MAX - reinterpret_cast<uintptr_t>(start)) return CCI_EINVAL;
  // Programs exist that name their own constants here, and expect their peers to read and write.
  if (flags != 0 && (flags & rights) == 0) flags = rights;
  return endpoint_of(endpoint)->register_memory(start, length, flags, rma_handle);
}

int cci_rma_deregister(cci_endpoint_t* endpoint, cci_rma_handle_t* rma_handle) {
  if (endpoint == nullptr || rma_handle == nullptr) return CCI_EINVAL;
  return endpoint_of(endpoint)->deregister_memory(rma_handle);
}

int cci_rma(cci_connection_t* connection, const void* msg_ptr, uint32_t msg_len,
            cci_rma_handle_t* local_handle, uint64_t local_offset, cci_rma_handle_t* remote_handle,
            uint64_t remote_offset, uint64_t data_len, const void* context, int flags) {
  const int both = CCI_FLAG_READ | CCI_FLAG_WRITE;
  if (connection == nullptr || local_handle == nullptr || remote_handle == nullptr || data_len == 0)
    return CCI_EINVAL;
  if ((flags & both) == 0 || (flags & both) == both || (msg_ptr == nullptr && msg_len != 0))
    return CCI_EINVAL;
  if (connection->attribute > CCI_CONN_ATTR_RU) return CCI_EINVAL;
  auto* const to = connection_of(connection);
  return to->owner->rma(to, msg_ptr, msg_len, *local_handle, local_offset, *remote_handle, remote_offset,
                        data_len, const_cast<void*>(context), flags);
}

int cci_set_opt(cci_opt_handle_t* handle, cci_opt_name_t name, const void* val) {
  if (handle == nullptr || val == nullptr || name == CCI_OPT_ENDPT_URI || name == CCI_OPT_ENDPT_RMA_ALIGN)
    return CCI_EINVAL;
  if (name < CCI_OPT_ENDPT_SEND_TIMEOUT || name > CCI_OPT_CONN_KEEPALIVE_TIMEOUT) return CCI_EINVAL;
  if (!orrery::cci::is_handle_of(handle, name)) return CCI_EINVAL;
  uint32_t value = 0;
  std::memcpy(&value, val, sizeof value);
  if (orrery::cci::is_connection_option(name)) {
    auto* const connection = connection_of(static_cast<cci_connection_t*>(handle));
    return connection->owner->set_option(connection, name, value);
  }
  return endpoint_of(static_cast<cci_endpoint_t*>(handle))->set_option(nullptr, name, value);
}

int cci_get_opt(cci_opt_handle_t* handle, cci_opt_name_t name, void* val) {
  if (handle == nullptr || val == nullptr || !orrery::cci::is_handle_of(handle, name)) return CCI_EINVAL;
  if (name == CCI_OPT_ENDPT_URI) {
    char* const copy = ::strdup(endpoint_of(static_cast<cci_endpoint_t*>(handle))->uri().c_str());
    if (copy == nullptr) return CCI_ENOMEM;
    std::memcpy(val, &copy, sizeof copy);
    return CCI_SUCCESS;
  }
  if (name == CCI_OPT_ENDPT_RMA_ALIGN) {
    std::memset(val, 0, sizeof(cci_alignment_t));
    return CCI_SUCCESS;
  }
  if (name < CCI_OPT_ENDPT_SEND_TIMEOUT || name > CCI_OPT_CONN_KEEPALIVE_TIMEOUT) return CCI_EINVAL;
  uint32_t value = 0;
  int status;
  if (orrery::cci::is_connection_option(name)) {
    auto* const connection = connection_of(static_cast<cci_connection_t*>(handle));
    status = connection->owner->get_option(connection, name, &value);
  } else {
    status = endpoint_of(static_cast<cci_endpoint_t*>(handle))->get_option(nullptr, name, &value);
  }
  if (status == CCI_SUCCESS) std::memcpy(val, &value, sizeof value);
  return status;
}

}  // extern "C"
