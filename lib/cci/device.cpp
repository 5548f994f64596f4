// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/cci/device.hpp"

#include "lib/cci/debug.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

namespace orrery::cci {

namespace {

constexpr std::size_t kMostDevices = 32;
constexpr std::size_t kMostArguments = 32;
constexpr std::string_view kTransports[] = {"nic", "sm", "tcp", "sock", "gni"};

// Where in a configuration something stands.
struct Place {
  std::string_view file;
  int line;
};

Errc refuse(const Place& place, std::string_view key, std::string_view value, std::string_view accepted) {
  std::string text(place.file);
  text += ':';
  text += std::to_string(place.line);
  text += ": ";
  text += key;
  if (!value.empty()) {
    text += " = ";
    text += value;
  }
  text += ": ";
  text += accepted;
  debug::complain(text);
  return Errc::invalid_param;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The IPv4 address of an interface; of the first one that is up and not the loopback when `name` is empty.
std::string address_of_interface(std::string_view name) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {};
  std::string found;
  for (const ifaddrs* i = all; i != nullptr && found.empty(); i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET || (i->ifa_flags & IFF_UP) == 0) continue;
    if (name.empty() ? (i->ifa_flags & IFF_LOOPBACK) != 0 : name != i->ifa_name) continue;
    char text[INET_ADDRSTRLEN] = {};
    const auto* address = reinterpret_cast<const sockaddr_in*>(i->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text) != nullptr) found = text;
  }
  ::freeifaddrs(all);
  return found;
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// One key of a device. `keys` of the transport are told in the message when it is none of them.
Errc set_key(Device* device, const Place& place, std::string_view key, std::string_view value) {
  const bool addressed = device->by_address();
  const auto in_range = [&](std::uint64_t low, std::uint64_t high) -> std::optional<std::uint64_t> {
    const auto given = number(value);
    return given && *given >= low && *given <= high ? given : std::nullopt;
  };
  if (key == "transport") return Errc::ok;
  if (key == "default") {
    device->preferred = true;
  } else if (key == "priority") {
    const auto given = in_range(0, 100);
    if (!given) return refuse(place, key, value, "a number from 0 to 100 is accepted");
    device->priority = static_cast<int>(*given);
  } else if (key == "bufsize") {
    const auto given = in_range(0, 1u << 30);
    if (!given) return refuse(place, key, value, "bytes from 0 to 1073741824 are accepted");
    device->bufsize = static_cast<std::uint32_t>(*given);
  } else if (key == "allow") {
    if (!is_one_of(value, {"user", "any"})) return refuse(place, key, value, "user and any are accepted");
    device->any_user = value == "any";
  } else if (addressed && key == "ip") {
    in_addr address{};
    const std::string text(value);
    if (::inet_pton(AF_INET, text.c_str(), &address) != 1)
      return refuse(place, key, value, "an IPv4 address like 192.0.2.1 is accepted");
    device->ip = text;
  } else if (addressed && key == "interface") {
    device->ip = address_of_interface(value);
    if (device->ip.empty())
      return refuse(place, key, value,
                    "an interface of this host that is up and has an IPv4 address is accepted");
  } else if (addressed && key == "port") {
    const auto given = in_range(0, 65'535);
    if (!given) return refuse(place, key, value, "a port from 0 (any) to 65535 is accepted");
    device->port = static_cast<std::uint16_t>(*given);
  } else if (addressed && key == "mtu") {
    const auto given = in_range(184, 65'508);
    if (!given) return refuse(place, key, value, "bytes from 184 to 65508 are accepted");
    const auto mtu = static_cast<std::uint32_t>(*given);
    device->shown.max_send_size = device->transport == "tcp"    ? std::min(mtu, 9000u) - 8
                                  : device->transport == "sock" ? mtu - 56
                                                                : mtu;
  } else if (!addressed && key == "mss") {
    const auto given = in_range(64, 4096);
    if (!given || (*given & (*given - 1)) != 0)
      return refuse(place, key, value, "a power of two from 64 to 4096 is accepted");
    device->shown.max_send_size = static_cast<std::uint32_t>(*given);
  } else if (!addressed && key == "path") {
    if (value.size() > 60) return refuse(place, key, value, "at most 60 characters are accepted");
    device->path = value;
  } else if (!addressed && (key == "pid" || key == "id")) {
    const auto given = in_range(0, UINT32_MAX);
    if (!given) return refuse(place, key, value, "a number from 0 to 4294967295 is accepted");
    (key == "pid" ? device->pid : device->id) = static_cast<std::uint32_t>(*given);
  } else {
    std::string accepted = "no key of the transport ";
    accepted += device->transport;
    accepted += addressed
                    ? ": transport, priority, default, allow, ip, interface, port, mtu, bufsize are accepted"
                    : ": transport, priority, default, allow, mss, path, pid, id, bufsize are accepted";
    return refuse(place, key, "", accepted);
  }
  return Errc::ok;
}

struct Setting {
  int number;
  std::string key, value;
};

void complete(Device* device) {
  if (device->by_address() && device->ip.empty()) {
    device->ip = address_of_interface("");
    if (device->ip.empty()) device->ip = "127.0.0.1";
  }
  for (const std::string& argument : device->arguments) device->argv.push_back(argument.c_str());
  device->argv.push_back(nullptr);
  device->shown.name = device->name.c_str();
  device->shown.transport = device->transport.c_str();
  device->shown.up = 1;
  device->shown.conf_argv = device->argv.data();
  device->shown.pci = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
}

std::unique_ptr<Device> make_device(std::string_view name, std::string_view transport) {
  auto device = std::make_unique<Device>();
  device->name = name;
  device->transport = transport;
  device->priority = transport == "sm" ? 20 : 30;
  device->shown.max_send_size = transport == "sm" ? 256 : kDefaultSendSize;
  device->shown.rate = transport == "sm" ? 64'000'000'000 : 10'000'000'000;
  return device;
}

// What one section of the file says.
Status finish_section(std::string_view file, int at, const std::string& name,
                      const std::vector<Setting>& lines, std::vector<std::unique_ptr<Device>>* devices) {
  const Setting* transport = nullptr;
  for (const Setting& line : lines) {
    if (line.key != "transport") continue;
    if (transport != nullptr)
      return refuse({file, line.number}, line.key, line.value, "one transport is accepted");
    transport = &line;
  }
  if (transport == nullptr)
    return refuse({file, at}, "[" + name + "]", "",
                  "the key transport is missing: nic, sm, tcp, sock or gni");
  if (std::find(std::begin(kTransports), std::end(kTransports), transport->value) == std::end(kTransports)) {
    (void)refuse({file, transport->number}, "transport", transport->value,
                 "nic, sm, tcp, sock and gni are accepted; the device is left out");
    return Errc::ok;
  }
  if (devices->size() == kMostDevices)
    return refuse({file, at}, "[" + name + "]", "", "at most 32 devices are accepted");
  auto device = make_device(name, transport->value);
  for (const Setting& line : lines) {
    if (device->arguments.size() == kMostArguments)
      return refuse({file, line.number}, line.key, line.value, "at most 32 keys are accepted");
    device->arguments.push_back(line.key + "=" + line.value);
    const Errc set = set_key(device.get(), {file, line.number}, line.key, line.value);
    if (set != Errc::ok) return set;
  }
  complete(device.get());
  devices->push_back(std::move(device));
  return Errc::ok;
}

std::string_view trim(std::string_view text) {
  const char* const blank = " \t\r";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

}  // namespace

Status parse_devices(std::string_view file, std::string_view text,
                     std::vector<std::unique_ptr<Device>>* devices) {
  std::string section;
  int section_at = 0, number = 0;
  std::vector<Setting> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    ++number;
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (line.front() == '[') {
      if (line.back() != ']' || line.size() < 3)
        return refuse({file, number}, line.substr(0, 80), "", "a section is [name]");
      if (section_at != 0) {
        const Status done = finish_section(file, section_at, section, lines, devices);
        if (!done.ok()) return done;
      }
      section = trim(line.substr(1, line.size() - 2));
      section_at = number;
      lines.clear();
      continue;
    }
    if (section_at == 0)
      return refuse({file, number}, line.substr(0, 80), "", "a line before the first [name]");
    const std::size_t equals = line.find('=');
    const std::string_view key = trim(line.substr(0, equals));
    const std::string_view rest =
        equals == std::string_view::npos ? std::string_view{} : trim(line.substr(equals + 1));
    const std::string_view value = rest.substr(0, rest.find_first_of(" \t"));
    if (key.empty() || key.size() > 255 || value.size() > 511 ||
        (equals == std::string_view::npos && key != "default"))
      return refuse({file, number}, line.substr(0, 80), "",
                    "a line is key = value, of at most 255 and 511 characters");
    lines.push_back({number, std::string(key), std::string(value)});
  }
  return section_at == 0 ? Status() : finish_section(file, section_at, section, lines, devices);
}

Status find_devices(std::vector<std::unique_ptr<Device>>* devices) {
  const char* const file = ::secure_getenv("CCI_CONFIG");
  if (file != nullptr && *file != 0) {
    std::FILE* const in = std::fopen(file, "re");
    if (in == nullptr) {
      debug::complain(std::string("CCI_CONFIG: ") + file + ": " + std::strerror(errno));
      return Errc::system;
    }
    std::string text;
    char piece[4096];
    for (std::size_t n; (n = std::fread(piece, 1, sizeof piece, in)) > 0 && text.size() < (1u << 20);)
      text.append(piece, n);
    std::fclose(in);
    const Status parsed = parse_devices(file, text, devices);
    if (!parsed.ok()) return parsed;
  } else {
    for (const char* transport : {"nic", "tcp", "sock", "sm"}) {
      auto device = make_device(transport, transport);
      device->arguments.push_back(std::string("transport=") + transport);
      device->priority += device->transport == "nic" ? 10 : 0;
      complete(device.get());
      devices->push_back(std::move(device));
    }
  }
  if (const char* const wanted = ::secure_getenv("CCI_CTP"); wanted != nullptr && *wanted != 0) {
    const std::string list = std::string(",") + wanted + ",";
    std::erase_if(*devices, [&](const std::unique_ptr<Device>& device) {
      return list.find("," + device->transport + ",") == std::string::npos;
    });
  }
  std::stable_sort(devices->begin(), devices->end(), [](const auto& a, const auto& b) {
    if (a->preferred != b->preferred) return a->preferred;
    if (a->priority != b->priority) return a->priority > b->priority;
    return a->shown.rate > b->shown.rate;
  });
  return devices->empty() ? Errc::no_match : Errc::ok;
}

}  // namespace orrery::cci
