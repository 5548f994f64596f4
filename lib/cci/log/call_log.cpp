// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/cci/log/call_log.hpp"

#include <array>
#include <cstring>
#include <utility>

namespace orrery::cci::log {

namespace {

constexpr std::pair<int, const char*> kStatuses[] = {{CCI_SUCCESS, "SUCCESS"},
                                                     {CCI_ERROR, "ERROR"},
                                                     {CCI_ERR_DISCONNECTED, "ERR_DISCONNECTED"},
                                                     {CCI_ERR_RNR, "ERR_RNR"},
                                                     {CCI_ERR_DEVICE_DEAD, "ERR_DEVICE_DEAD"},
                                                     {CCI_ERR_RMA_HANDLE, "ERR_RMA_HANDLE"},
                                                     {CCI_ERR_RMA_OP, "ERR_RMA_OP"},
                                                     {CCI_ERR_NOT_IMPLEMENTED, "ERR_NOT_IMPLEMENTED"},
                                                     {CCI_ERR_NOT_FOUND, "ERR_NOT_FOUND"},
                                                     {CCI_EINVAL, "EINVAL"},
                                                     {CCI_ETIMEDOUT, "ETIMEDOUT"},
                                                     {CCI_ENOMEM, "ENOMEM"},
                                                     {CCI_ENODEV, "ENODEV"},
                                                     {CCI_ENETDOWN, "ENETDOWN"},
                                                     {CCI_EBUSY, "EBUSY"},
                                                     {CCI_ERANGE, "ERANGE"},
                                                     {CCI_EAGAIN, "EAGAIN"},
                                                     {CCI_ENOBUFS, "ENOBUFS"},
                                                     {CCI_EMSGSIZE, "EMSGSIZE"},
                                                     {CCI_ENOMSG, "ENOMSG"},
                                                     {CCI_EADDRNOTAVAIL, "EADDRNOTAVAIL"},
                                                     {CCI_ECONNREFUSED, "ECONNREFUSED"}};
constexpr std::array kAttributes = {"RO", "RU", "UU", "UU_MC_TX", "UU_MC_RX"};
constexpr std::array kOptions = {
    "ENDPT_SEND_TIMEOUT", "ENDPT_RECV_BUF_COUNT", "ENDPT_SEND_BUF_COUNT", "ENDPT_KEEPALIVE_TIMEOUT",
    "ENDPT_URI",          "ENDPT_RMA_ALIGN",      "CONN_SEND_TIMEOUT",    "CONN_KEEPALIVE_TIMEOUT"};

const char* name_of(int status) {
  for (const auto& [value, name] : kStatuses) {
    if (value == status) return name;
  }
  return "unknown";
}

const void* address_of(cci_connection_t* connection) { return connection; }

bool asks_alone(const char* line) {
  for (const char* name : {"cci_get_opt(", "cci_strerror(", "cci_get_devices("}) {
    if (std::strncmp(line, name, std::strlen(name)) == 0) return true;
  }
  return false;
}

}  // namespace

void Call::returned(int status) {
  CallLine::result(name_of(status), status == CCI_SUCCESS, status == CCI_EAGAIN);
}

void Call::returned(const char* text) { CallLine::result(text == nullptr ? "NULL" : text, false, false); }

void Call::show_value(const char*, enum cci_status status) { add("%s", name_of(status)); }

void Call::show_value(const char* name, cci_conn_attribute_t attribute) {
  const auto value = static_cast<unsigned>(attribute);
  if (value < kAttributes.size()) return add("%s", kAttributes[value]);
  number(name, value, sizeof value);
}

void Call::show_value(const char* name, cci_opt_name_t option) {
  const auto value = static_cast<unsigned>(option);
  if (value < kOptions.size()) return add("%s", kOptions[value]);
  number(name, value, sizeof value);
}

void Call::show(const char* text) {
  if (text == nullptr) return CallLine::show(nullptr);
  add("\"%.200s\"", text);
}

void Call::show(const timeval* time) {
  if (time == nullptr) return CallLine::show(nullptr);
  add("%lld.%06lld s", static_cast<long long>(time->tv_sec), static_cast<long long>(time->tv_usec));
}

void Call::show(const union cci_event* event) {
  CallLine::show(static_cast<const void*>(event));
  if (event == nullptr) return;
  add(" {%s", cci_event_type_str(event->type) + std::strlen("CCI_EVENT_"));
  switch (event->type) {
    case CCI_EVENT_SEND:
      add(", %s, connection %p, context %p", name_of(event->send.status), address_of(event->send.connection),
          event->send.context);
      break;
    case CCI_EVENT_RECV:
      add(", %u bytes, connection %p", event->recv.len, address_of(event->recv.connection));
      break;
    case CCI_EVENT_CONNECT:
      add(", %s, connection %p, context %p", name_of(event->connect.status),
          address_of(event->connect.connection), event->connect.context);
      break;
    case CCI_EVENT_CONNECT_REQUEST:
      add(", %u bytes, ", event->request.data_len);
      show_value("attribute", event->request.attribute);
      break;
    case CCI_EVENT_ACCEPT:
      add(", %s, connection %p, context %p", name_of(event->accept.status),
          address_of(event->accept.connection), event->accept.context);
      break;
    case CCI_EVENT_KEEPALIVE_TIMEDOUT:
      add(", connection %p", address_of(event->keepalive.connection));
      break;
    case CCI_EVENT_NONE:
    case CCI_EVENT_ENDPOINT_DEVICE_FAILED:
      break;
  }
  add("}");
}

}  // namespace orrery::cci::log

const orrery::common::log::Interface orrery::common::log::kLogged = {
    .name = "cci", .library = "libcci.so.2", .asks_alone = orrery::cci::log::asks_alone};
