// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/log/call_log.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace orrery::gni::log {

namespace {

constexpr std::array kResults = {"SUCCESS",       "NOT_DONE",         "INVALID_PARAM",    "ERROR_RESOURCE",
                                 "TIMEOUT",       "PERMISSION_ERROR", "DESCRIPTOR_ERROR", "ALIGNMENT_ERROR",
                                 "INVALID_STATE", "NO_MATCH",         "SIZE_ERROR",       "TRANSACTION_ERROR",
                                 "ILLEGAL_OP",    "ERROR_NOMEM"};
constexpr std::array kPostTypes = {"0",         "RDMA_PUT", "RDMA_GET", "FMA_PUT", "FMA_PUT_W_SYNCFLAG",
                                   "FMA_GET",   "AMO",      "CQWRITE",  "CE",      "FMA_GET_W_FLAG",
                                   "AMO_W_FLAG"};
constexpr std::array kPostStates = {"PENDING", "COMPLETED", "ERROR", "TIMEOUT", "TERMINATED", "REMOTE_DATA"};
constexpr std::array kEventTypes = {"POST", "SMSG", "DMAPP", "MSGQ"};

template <std::size_t kCount>
const char* name_of(const std::array<const char*, kCount>& names, std::uint64_t value) {
  return value < kCount ? names[value] : "?";
}

// Real time, also under a clock of ours: whose clock_gettime() would count as the client's own reading.
std::int64_t now_us() {
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000 + now.tv_nsec / 1'000;
}

// Where lines go, and what stands in front of them: constant after the first use, but for the descriptor.
struct Place {
  int pe = -1;
  std::int64_t begin_us = now_us();
  std::string file;  // empty: stderr

  Place() {
    for (const char* name : {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
      const char* text = std::getenv(name);
      if (text == nullptr || *text == 0) continue;
      pe = std::atoi(text);
      break;
    }
    const char* path = std::getenv("ORRERY_LOG_CALLS");
    if (path == nullptr || *path == 0) return;
    file = std::string(path) + "." + std::to_string(pe < 0 ? 0 : pe);
    if (reopen() >= 0) return;
    std::fprintf(stderr, "orrery: error: the log of calls %s cannot be written: %s; using stderr\n",
                 file.c_str(), std::strerror(errno));
    file.clear();
  }

  // The descriptor that lines go to, or -1. A client may close what it did not open, and then open a file of
  // its own under the same number.
  int descriptor() {
    if (file.empty()) return STDERR_FILENO;
    const int fd = fd_.load(std::memory_order_relaxed);
    struct stat now {};
    if (fstat(fd, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_) return fd;
    return reopen();
  }

 private:
  // Threads that meet a lost descriptor at the same time each open one: the file is the same.
  int reopen() {
    const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    struct stat now {};
    if (fd < 0 || fstat(fd, &now) != 0) return -1;
    device_.store(now.st_dev, std::memory_order_relaxed);
    inode_.store(now.st_ino, std::memory_order_relaxed);
    fd_.store(fd, std::memory_order_relaxed);
    return fd;
  }

  std::atomic<int> fd_{-1};
  std::atomic<dev_t> device_{0};
  std::atomic<ino_t> inode_{0};
};
Place& place() {
  static Place* const one = new Place;  // for exit handlers too
  return *one;
}

// One line by one write(2), so that lines of several PEs stay whole.
void write_line(const char* text) {
  Place& to = place();
  char line[1280];
  const std::int64_t at = now_us() - to.begin_us;
  char thread[32] = "";
  if (const auto id = gettid(); id != getpid()) std::snprintf(thread, sizeof thread, " thread %d", id);
  char pe[24] = "";
  if (to.pe >= 0) std::snprintf(pe, sizeof pe, " pe %d:", to.pe);
  const int length = std::snprintf(line, sizeof line, "orrery:%s gni: %lld.%06lld%s %s\n", pe,
                                   static_cast<long long>(at / 1'000'000),
                                   static_cast<long long>(at % 1'000'000), thread, text);
  // A line that cannot be written has nowhere to be reported.
  [[maybe_unused]] const auto written =
      write(to.descriptor(), line, std::min(static_cast<std::size_t>(length), sizeof line - 1));
}

std::uint64_t hash_of(const char* text) {
  std::uint64_t hash = 14695981039346656037ull;  // FNV-1a
  for (; *text != 0; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 1099511628211ull;
  return hash;
}

// Looks that found nothing, of this thread: each is told once, and how often it came again before anything
// else happened.
struct Looks {
  struct Look {
    std::uint64_t hash = 0;
    std::uint64_t again = 0;
    bool silent = false;
    char name[48] = "";
  };
  std::array<Look, 256> looks;
  std::size_t count = 0;

  // Whether this one was told already. `silent`: how often is told with its result.
  bool counts(const char* text, bool silent) {
    const std::uint64_t hash = hash_of(text);
    for (std::size_t i = 0; i < count; ++i) {
      if (looks[i].hash != hash) continue;
      ++looks[i].again;
      return true;
    }
    if (count == looks.size()) tell();
    Look& look = looks[count++];
    look.hash = hash;
    look.again = 0;
    look.silent = silent;
    std::snprintf(look.name, sizeof look.name, "%.*s", static_cast<int>(std::strcspn(text, "(")), text);
    return false;
  }
  void tell() {
    for (std::size_t i = 0; i < count; ++i) {
      if (looks[i].again == 0 || looks[i].silent) continue;
      char text[96];
      std::snprintf(text, sizeof text, "%s: the same %llu times more", looks[i].name,
                    static_cast<unsigned long long>(looks[i].again));
      write_line(text);
    }
    count = 0;
  }
  ~Looks() { tell(); }
};
thread_local Looks t_looks;

// What the parent has looked for is the parent's to tell.
[[gnu::constructor]] void forget_in_children() {
  pthread_atfork(nullptr, nullptr, [] { t_looks.count = 0; });
}

// Whether a call only asks for something: that it says the same as before is not news.
bool asks_alone(const char* text) {
  for (const char* name :
       {"GNI_Get", "GNI_CqTestEvent", "GNI_CqErrorStr", "GNI_CqErrorRecoverable", "GNI_EpIdle",
        "GNI_CdmGetNicAddress", "GNI_CqVectorMonitor", "GNI_MemHndlQueryAttr", "GNI_SmsgBufferSizeNeeded",
        "GNI_DqueueProgress", "GNI_MsgqProgress"}) {
    if (std::strncmp(text, name, std::strlen(name)) == 0 && std::strncmp(text, "GNI_GetCompleted", 16) != 0)
      return true;
  }
  return false;
}

bool is_hex(const char* name, std::size_t bytes) {
  for (const char* word : {"flags", "mode", "cookie", "mask", "event_data"}) {
    if (std::strstr(name, word) != nullptr) return true;
  }
  return std::strcmp(name, "entry") == 0 ||
         (bytes == 8 && (std::strstr(name, "addr") != nullptr || std::strstr(name, "value") != nullptr));
}

}  // namespace

void* find_next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    // The library came with a plug-in, out of sight of the program's own symbols.
    if (void* library = dlopen("libugni.so.0", RTLD_LAZY | RTLD_NOLOAD)) found = dlsym(library, name);
  }
  if (found != nullptr) return found;
  std::fprintf(stderr, "orrery: error: no libugni.so.0 with %s is loaded behind the log of calls\n", name);
  std::abort();
}

Call::Call(const char* name) { add("%s(", name); }

void Call::add(const char* format, ...) {
  va_list args;
  va_start(args, format);
  const int wanted = std::vsnprintf(text_.data() + length_, text_.size() - length_, format, args);
  va_end(args);
  if (wanted > 0) length_ = std::min(length_ + static_cast<std::size_t>(wanted), text_.size() - 1);
}

void Call::begin(const char* name) {
  add("%s%s ", first_ ? "" : ", ", name);
  first_ = false;
}

void Call::number(const char* name, std::uint64_t value, std::size_t bytes) {
  if (bytes < 8) value &= (std::uint64_t{1} << (8 * bytes)) - 1;
  const std::uint64_t all_ones = bytes < 8 ? (std::uint64_t{1} << (8 * bytes)) - 1 : ~std::uint64_t{0};
  if (bytes >= 4 && value == all_ones) {
    add("-1");
  } else if (is_hex(name, bytes)) {
    add("0x%llx", static_cast<unsigned long long>(value));
  } else {
    add("%llu", static_cast<unsigned long long>(value));
  }
}

void Call::state(gni_post_state_t state) {
  add("%s", name_of(kPostStates, static_cast<std::uint64_t>(state)));
}

void Call::show(const void* pointer) {
  if (pointer == nullptr) return add("NULL");
  add("%p", pointer);
}

void Call::show(const gni_mem_handle_t* handle) {
  if (handle == nullptr) return show(static_cast<const void*>(handle));
  add("%llx:%llx", static_cast<unsigned long long>(handle->qword1),
      static_cast<unsigned long long>(handle->qword2));
}

void Call::show(const gni_post_descriptor_t* descriptor) {
  if (descriptor == nullptr) return show(static_cast<const void*>(descriptor));
  const gni_post_descriptor_t& d = *descriptor;
  const auto wide = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  add("%p {%s, cq_mode 0x%x", static_cast<const void*>(descriptor),
      name_of(kPostTypes, static_cast<std::uint64_t>(d.type)), d.cq_mode);
  if (d.dlvr_mode != 0) add(", dlvr_mode 0x%x", d.dlvr_mode);
  if (d.type != GNI_POST_CQWRITE) {
    add(", local 0x%llx in ", wide(d.local_addr));
    show(&d.local_mem_hndl);
    add(", remote 0x%llx", wide(d.remote_addr));
  } else {
    add(", value 0x%llx, remote", wide(d.cqwrite_value));
  }
  add(" in ");
  show(&d.remote_mem_hndl);
  if (d.type != GNI_POST_CQWRITE) add(", length %llu", wide(d.length));
  switch (d.type) {
    case GNI_POST_RDMA_PUT:
    case GNI_POST_RDMA_GET:
      if (d.rdma_mode != 0) add(", rdma_mode 0x%x", d.rdma_mode);
      if (d.src_cq_hndl != nullptr) add(", src_cq_hndl %p", static_cast<const void*>(d.src_cq_hndl));
      break;
    case GNI_POST_FMA_PUT_W_SYNCFLAG:
      add(", flag 0x%llx to 0x%llx", wide(d.sync_flag_value), wide(d.sync_flag_addr));
      break;
    case GNI_POST_FMA_GET_W_FLAG:
      add(", flag 0x%llx", wide(d.sync_flag_value));
      break;
    case GNI_POST_AMO:
    case GNI_POST_AMO_W_FLAG:
      add(", amo_cmd 0x%x, operands 0x%llx 0x%llx", static_cast<unsigned>(d.amo_cmd), wide(d.first_operand),
          wide(d.second_operand));
      break;
    case GNI_POST_CE:
      add(", ce_cmd 0x%x, ce_mode 0x%x, operands 0x%llx 0x%llx, red_id %llu", static_cast<unsigned>(d.ce_cmd),
          d.ce_mode, wide(d.first_operand), wide(d.second_operand), wide(d.ce_red_id));
      break;
    default:
      break;
  }
  add("}");
}

void Call::show(const gni_smsg_attr_t* attributes) {
  if (attributes == nullptr) return show(static_cast<const void*>(attributes));
  const gni_smsg_attr_t& a = *attributes;
  add("{type %u, buffer %p, buff_size %u, handle ", static_cast<unsigned>(a.msg_type), a.msg_buffer,
      a.buff_size);
  show(&a.mem_hndl);
  add(", offset %u, credits %u, maxsize %u}", a.mbox_offset, a.mbox_maxcredit, a.msg_maxsize);
}

void Call::show(const gni_job_limits_t* limits) {
  if (limits == nullptr) return show(static_cast<const void*>(limits));
  add("{mdd %d, fma %d, bte %d, cq %d}", limits->mdd_limit, limits->fma_limit, limits->bte_limit,
      limits->cq_limit);
}

void Call::show(const gni_msgq_attr_t* attributes) {
  if (attributes == nullptr) return show(static_cast<const void*>(attributes));
  const gni_msgq_attr_t& a = *attributes;
  add("{max_msg_sz %u, smsg_q_sz %u, rcv_pool_sz %u, num_msgq_eps %u, nloc_insts %u, modes 0x%x, rcv_cq_sz "
      "%u}",
      a.max_msg_sz, a.smsg_q_sz, a.rcv_pool_sz, a.num_msgq_eps, a.nloc_insts, a.modes, a.rcv_cq_sz);
}

void Call::show(const gni_dqueue_in_attr_t* attributes) {
  if (attributes == nullptr) return show(static_cast<const void*>(attributes));
  add("{entries %u, msg_size %u, npeers %u}", attributes->entries, attributes->msg_size, attributes->npeers);
}

void Call::show(const gni_mem_segment_t* segment) {
  if (segment == nullptr) return show(static_cast<const void*>(segment));
  add("%p {first 0x%llx, length %llu}", static_cast<const void*>(segment),
      static_cast<unsigned long long>(segment->address), static_cast<unsigned long long>(segment->length));
}

void Call::before(const gni_cq_entry_t* entry) {
  if (entry != nullptr) entry_before_ = *entry;
}

void Call::event(const char* name, const gni_cq_entry_t* entry) {
  if (entry == nullptr) return;
  // An overrun is an entry too; a queue that does not block has none to give to who waits.
  const bool overrun = result_ == GNI_RC_ERROR_RESOURCE && *entry != entry_before_;
  if (!has_output_ && !overrun) return;
  using Reader = std::uint64_t (*)(gni_cq_entry_t);
  static const auto type = reinterpret_cast<Reader>(find_next("gni_cq_get_type"));
  static const auto instance = reinterpret_cast<Reader>(find_next("gni_cq_get_inst_id"));
  static const auto status = reinterpret_cast<Reader>(find_next("gni_cq_get_status"));
  begin(name);
  add("0x%llx {%s, inst_id %llu, status 0x%llx}", static_cast<unsigned long long>(*entry),
      name_of(kEventTypes, type(*entry)), static_cast<unsigned long long>(instance(*entry)),
      static_cast<unsigned long long>(status(*entry)));
}

void Call::about_to_wait() {
  const int saved = errno;
  const std::size_t length = length_;
  add(") ...");
  // Told once while nothing else happens, like the looks that found nothing.
  if (!t_looks.counts(text_.data(), true)) write_line(text_.data());
  length_ = length;
  text_[length_] = 0;
  errno = saved;
}

void Call::returned(gni_return_t result) {
  result_ = result;
  has_output_ = result == GNI_RC_SUCCESS || result == GNI_RC_TRANSACTION_ERROR;
  add(") = %s", name_of(kResults, static_cast<std::uint64_t>(result)));
  if (std::strcmp(name_of(kResults, static_cast<std::uint64_t>(result)), "?") == 0)
    add(" %u", static_cast<unsigned>(result));
}

gni_return_t Call::end() {
  const int saved = errno;
  // What a client that polls hears again and again: nothing there, not now, no; of a test of a datagram
  // PENDING.
  const bool nothing = (result_ != GNI_RC_SUCCESS && result_ != GNI_RC_TRANSACTION_ERROR) ||
                       std::strstr(text_.data(), "post_state PENDING") != nullptr || asks_alone(text_.data());
  if (!nothing) t_looks.tell();
  if (!nothing || !t_looks.counts(text_.data(), false)) write_line(text_.data());
  errno = saved;
  return result_;
}

}  // namespace orrery::gni::log
