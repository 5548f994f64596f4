// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/pmi_wire.hpp"

#include "emu/base/log.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace orrery::job {

namespace {

constexpr std::size_t kLeastValue = 63;  // below it a server is not usable
// Slurm's pmi2 reads so many bytes at a time and takes them for a whole request: a longer put, though its
// value is within what it says, is cut in two, and the first half never answered. A client that offers longer
// values than that reads them, too.
constexpr std::size_t kUsualLine = 1024;

}  // namespace

Result<std::unique_ptr<PmiWire>> PmiWire::open(UniqueFd fd) {
  std::unique_ptr<PmiWire> wire(new PmiWire(std::move(fd)));
  const auto init = wire->ask("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init");
  if (!init.ok()) return init.code();
  const auto maxes = wire->ask("cmd=get_maxes\n", "maxes");
  if (!maxes.ok()) return maxes.code();
  const auto line = PmiLine::parse(maxes.value());
  // Servers count a terminating zero: hydra cuts a value of vallen_max characters by one, silently.
  const auto limit = [&](std::string_view name) {
    return static_cast<std::size_t>(std::max(line.value().number(name).value_or(1) - 1, 0));
  };
  wire->limits_ = {limit("kvsname_max"), limit("keylen_max"), limit("vallen_max")};
  // A line holds the command, the name and the key, too: whatever the server says, ours stay within bounds.
  wire->limits_.value = std::min(wire->limits_.value, kPmiLineMax / 2);
  if (wire->limits_.kvs_name == 0 || wire->limits_.key < 16 || wire->limits_.value < kLeastValue) {
    log::error("the launcher's PMI limits are of no use: {}", maxes.value());
    return Errc::corrupt;
  }
  const auto name = wire->ask("cmd=get_my_kvsname\n", "my_kvsname");
  if (!name.ok()) return name.code();
  const auto kvs = PmiLine::parse(name.value()).value().get("kvsname");
  if (!kvs || !is_pmi_token(*kvs) || kvs->size() > wire->limits_.kvs_name) {
    log::error("the launcher's PMI has no usable key-value space: {}", name.value());
    return Errc::corrupt;
  }
  wire->kvs_name_ = *kvs;
  if (wire->limits_.value <= kUsualLine) {
    const std::size_t around =
        format_pmi_line({{"cmd", "put"}, {"kvsname", *kvs}, {"key", ""}, {"value", ""}}).size() +
        wire->limits_.key;
    if (around + kLeastValue > kUsualLine) {
      log::error("the launcher's PMI limits leave no room for a value: {}", maxes.value());
      return Errc::corrupt;
    }
    wire->limits_.value = std::min(wire->limits_.value, kUsualLine - around);
  }
  return wire;
}

Status PmiWire::send(std::string_view line) {
  if (!fd_.valid()) return Errc::invalid_state;
  while (!line.empty()) {
    // send() on a socket, as all launchers give: a launcher that has gone is an error, not a SIGPIPE.
    ssize_t written = ::send(fd_.get(), line.data(), line.size(), MSG_NOSIGNAL);
    if (written < 0 && errno == ENOTSOCK) written = ::write(fd_.get(), line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      pollfd room{fd_.get(), POLLOUT, 0};
      poll(&room, 1, -1);
      continue;
    }
    if (written < 0) {
      log::error("the launcher does not hear us on PMI_FD: {}", std::strerror(errno));
      return Errc::unreachable;
    }
    line.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<std::string> PmiWire::receive() {
  if (!fd_.valid()) return Errc::invalid_state;
  while (true) {
    if (auto line = lines_.pop()) return std::move(*line);
    std::array<char, 4096> bytes;
    const ssize_t got = ::read(fd_.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      pollfd data{fd_.get(), POLLIN, 0};
      poll(&data, 1, -1);
      continue;
    }
    if (got <= 0) {
      log::error("the launcher has closed PMI_FD{}{}", got < 0 ? ": " : "",
                 got < 0 ? std::strerror(errno) : "");
      return Errc::unreachable;
    }
    if (!lines_.push({bytes.data(), static_cast<std::size_t>(got)})) {
      log::error("the launcher sent a PMI line of more than {} bytes", kPmiLineMax);
      return Errc::corrupt;
    }
  }
}

// Sends a line and returns the answer's text, checked to be a line of command `answer` without a failing rc.
// A refusal (rc that is not 0) is no_match.
Result<std::string> PmiWire::ask(std::string_view line, std::string_view answer) {
  const Status sent = send(line);
  if (!sent.ok()) return sent.code();
  auto text = receive();
  if (!text.ok()) return text.code();
  const auto parsed = PmiLine::parse(text.value());
  if (!parsed.ok() || parsed.value().command() != answer) {
    log::error("the launcher answered a PMI request with something else than {}", answer);
    // The answer may be still to come, and would be taken for that to the next request: another key's value.
    fd_.reset();
    return Errc::corrupt;
  }
  if (parsed.value().get("rc") && parsed.value().number("rc") != 0) return Errc::no_match;
  return text;
}

Result<int> PmiWire::appnum() {
  const auto answer = ask("cmd=get_appnum\n", "appnum");
  if (!answer.ok()) return answer.code();
  const auto number = PmiLine::parse(answer.value()).value().number("appnum");
  if (!number) return Errc::corrupt;
  return *number;
}

Result<int> PmiWire::universe_size() {
  const auto answer = ask("cmd=get_universe_size\n", "universe_size");
  if (!answer.ok()) return answer.code();
  const auto number = PmiLine::parse(answer.value()).value().number("size");
  if (!number) return Errc::corrupt;
  return *number;
}

Status PmiWire::put(std::string_view key, std::string_view value) {
  if (!is_pmi_token(key) || !is_pmi_token(value)) return Errc::invalid_param;
  if (key.size() > limits_.key || value.size() > limits_.value) return Errc::size;
  const auto answer =
      ask(format_pmi_line({{"cmd", "put"}, {"kvsname", kvs_name_}, {"key", key}, {"value", value}}),
          "put_result");
  return answer.code() == Errc::no_match ? Errc::invalid_state : answer.code();
}

Result<std::string> PmiWire::get(std::string_view key, int) {
  if (!is_pmi_token(key)) return Errc::invalid_param;
  if (key.size() > limits_.key) return Errc::size;
  const auto answer =
      ask(format_pmi_line({{"cmd", "get"}, {"kvsname", kvs_name_}, {"key", key}}), "get_result");
  if (!answer.ok()) return answer.code();
  const auto value = PmiLine::parse(answer.value()).value().get("value");
  if (!value) return Errc::no_match;
  return std::string(*value);
}

Status PmiWire::barrier_enter() { return send("cmd=barrier_in\n"); }

Status PmiWire::barrier_leave() {
  const auto text = receive();
  if (!text.ok()) return text.code();
  const auto parsed = PmiLine::parse(text.value());
  if (!parsed.ok() || parsed.value().command() != "barrier_out") {
    log::error("the launcher answered a PMI barrier with something else");
    fd_.reset();  // as in ask()
    return Errc::corrupt;
  }
  return {};
}

Status PmiWire::finalize() {
  const auto answer = ask("cmd=finalize\n", "finalize_ack");
  fd_.reset();
  return answer.code();
}

Status PmiWire::abort(int code) { return send(fmt::format("cmd=abort exitcode={}\n", code)); }

}  // namespace orrery::job
