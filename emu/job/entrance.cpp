// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/entrance.hpp"

#include "emu/base/log.hpp"
#include "emu/job/abstract_socket.hpp"
#include "emu/job/wireup_record.hpp"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <span>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace orrery::job {

namespace {

constexpr std::size_t kMostWaiting = 64;

bool watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

template <typename T>
bool take_number(std::string_view& text, T* out, int base) {
  const auto word = text.substr(0, text.find('.'));
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *out, base);
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  return error == std::errc{} && end == word.data() + word.size();
}

}  // namespace

std::string EntranceName::text() const {
  return fmt::format("orrery.{}.run.{}.{:016x}", geteuid(), launcher, job_id);
}

std::optional<EntranceName> EntranceName::parse(std::string_view text) {
  constexpr std::string_view kHead = "orrery.";
  constexpr std::string_view kMiddle = "run.";
  if (!text.starts_with(kHead)) return std::nullopt;
  text.remove_prefix(kHead.size());
  unsigned uid = 0;
  EntranceName name;
  if (!take_number(text, &uid, 10) || !text.starts_with(kMiddle)) return std::nullopt;
  text.remove_prefix(kMiddle.size());
  if (!take_number(text, &name.launcher, 10) || name.launcher <= 0) return std::nullopt;
  if (!take_number(text, &name.job_id, 16) || name.job_id == 0 || !text.empty()) return std::nullopt;
  return name;
}

Result<std::unique_ptr<Entrance>> Entrance::open(const EntranceName& name) {
  std::unique_ptr<Entrance> entrance(new Entrance);
  auto socket = listen_abstract(name.text());
  if (!socket.ok()) return socket.code();
  entrance->socket_ = std::move(socket).value();
  entrance->job_id_ = name.job_id;
  entrance->epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!entrance->epoll_.valid() || !watch(entrance->epoll_.get(), entrance->socket_.get())) {
    log::error("socket @{} cannot be waited for: {}", name.text(), std::strerror(errno));
    return Errc::system;
  }
  return entrance;
}

void Entrance::serve(const Answers& answers) {
  std::array<epoll_event, 16> ready;
  const int count = epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < count; ++i) {
    const int fd = ready[static_cast<std::size_t>(i)].data.fd;
    if (fd == socket_.get()) {
      take_client();
    } else {
      answer(fd, answers);
    }
  }
}

void Entrance::take_client() {
  UniqueFd client(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!client.valid()) return;
  const auto peer = peer_of(client.get());
  if (!peer || peer->uid != geteuid() || !shares_namespaces(*peer)) return;
  // Closing takes it out of the epoll instance.
  if (pending_.size() >= kMostWaiting) pending_.pop_front();
  if (watch(epoll_.get(), client.get())) pending_.push_back(std::move(client));
}

void Entrance::answer(int client, const Answers& answers) {
  std::array<std::byte, kRequestBytes + 1> bytes;  // one more, so that a longer record is seen as such
  const auto length = recv(client, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const auto request =
      decode_request(std::span(bytes).first(static_cast<std::size_t>(length < 0 ? 0 : length)));
  if (request.ok()) {
    WireupReply reply;
    reply.job_id = job_id_;
    UniqueFd pmi;
    int handed = -1;
    if (request.value().wanted == Wanted::directory) {
      reply.kinds = kDirectoryKind;
      handed = answers.directory;
    } else if (request.value().wanted == Wanted::pmi) {
      reply.kinds = kPmiKind;
      pmi = answers.pmi_of(request.value().process.index);
      handed = pmi.get();
    }
    const auto record = encode(reply);
    // A client that has gone needs no answer.
    if (handed >= 0) (void)send_with_fds(client, record, std::span(&handed, 1));
  }
  std::erase_if(pending_, [client](const UniqueFd& one) { return one.get() == client; });
}

}  // namespace orrery::job
