// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/entrance.hpp"

#include "emu/base/log.hpp"
#include "emu/job/abstract_socket.hpp"
#include "emu/job/socket_folder.hpp"
#include "emu/job/user_directory.hpp"
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
  const std::string number = fmt::format("run.{}.{:016x}", launcher, job_id);
  return socket_folder().empty() ? fmt::format("orrery.{}.{}", geteuid(), number) : "/" + number;
}

std::optional<EntranceName> EntranceName::parse(std::string_view text) {
  constexpr std::string_view kHead = "orrery.";
  constexpr std::string_view kMiddle = "run.";
  unsigned uid = 0;
  EntranceName name;
  if (text.starts_with('/')) {
    text.remove_prefix(1);
  } else if (text.starts_with(kHead)) {
    text.remove_prefix(kHead.size());
    if (!take_number(text, &uid, 10)) return std::nullopt;
  }
  if (!text.starts_with(kMiddle)) return std::nullopt;
  text.remove_prefix(kMiddle.size());
  if (!take_number(text, &name.launcher, 10) || name.launcher <= 0) return std::nullopt;
  if (!take_number(text, &name.job_id, 16) || name.job_id == 0 || !text.empty()) return std::nullopt;
  return name;
}

Result<std::unique_ptr<Entrance>> Entrance::open(const EntranceName& name) {
  std::unique_ptr<Entrance> entrance(new Entrance);
  auto socket = listen_at(name.text());
  if (!socket.ok()) return socket.code();
  entrance->socket_ = std::move(socket).value();
  entrance->job_id_ = name.job_id;
  entrance->name_ = name.text();
  entrance->owner_ = getpid();
  entrance->epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!entrance->epoll_.valid() || !watch(entrance->epoll_.get(), entrance->socket_.get())) {
    log::error("socket {} cannot be waited for: {}", name.text(), std::strerror(errno));
    return Errc::system;
  }
  return entrance;
}

Entrance::~Entrance() {
  // A forked child leaves its parent's alone.
  if (!is_in_folder(name_) || owner_ != getpid()) return;
  remove_from_folder(name_);
  // Processes of a job end without a word; with their launcher all of them have gone.
  for (const std::string& one : names_in_folders(socket_prefix(fmt::format("{:016x}", job_id_)) + "."))
    remove_from_folder(one);
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
