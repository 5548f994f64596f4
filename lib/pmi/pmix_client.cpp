// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/pmi/pmix_client.hpp"

#include "emu/base/log.hpp"
#include "emu/base/own_descriptor.hpp"
#include "emu/base/wait.hpp"
#include "emu/job/pmi_line.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include <dlfcn.h>

namespace orrery::pmi {

namespace {

// The part of PMIx's binary interface that we use, as the PMIx standard has it (chapters "Data structures and
// types", "Key/value management"): nothing of the library is needed to build. Values of versions 2 to 5.
constexpr int kSuccess = 0;
constexpr int kDoneAlready = -157;   // PMIX_OPERATION_SUCCEEDED: no callback comes
constexpr std::uint8_t kGlobal = 3;  // scope: for all processes
constexpr std::uint32_t kRankWildcard = UINT32_MAX - 1;
constexpr std::uint16_t kBool = 1;
constexpr std::uint16_t kString = 3;
constexpr std::uint16_t kUint32 = 14;
constexpr std::size_t kNamespaceBytes = 256;
constexpr std::size_t kKeyBytes = 512;

struct Proc {
  char nspace[kNamespaceBytes];
  std::uint32_t rank;
};
struct Value {
  std::uint16_t type;
  union {
    bool flag;
    char* string;
    std::uint32_t uint32;
    std::uint64_t room[3];
  } data;
};
static_assert(offsetof(Value, data) == 8 && sizeof(Value) == 32);
struct Info {
  char key[kKeyBytes];
  std::uint32_t flags;
  Value value;
};
static_assert(offsetof(Info, value) == 520 && sizeof(Info) == 552);

Info flag(const char* key) {
  Info info{};
  std::strncpy(info.key, key, sizeof info.key - 1);
  info.value.type = kBool;
  info.value.data.flag = true;
  return info;
}

}  // namespace

struct PmixClient::Library {
  int (*init)(Proc*, Info*, std::size_t) = nullptr;
  int (*finalize)(const Info*, std::size_t) = nullptr;
  int (*put)(std::uint8_t, const char*, Value*) = nullptr;
  int (*commit)() = nullptr;
  int (*fence)(const Proc*, std::size_t, const Info*, std::size_t, void (*)(int, void*), void*) = nullptr;
  int (*get)(const Proc*, const char*, const Info*, std::size_t, Value**) = nullptr;
  int (*abort)(int, const char*, Proc*, std::size_t) = nullptr;
  const char* (*error_string)(int) = nullptr;
  Proc self{};

  // The fence under way. PMIx's own thread says when it is over.
  const Info collect = flag("pmix.collect");
  FutexWord fences_over{0};
  int fence_result = kSuccess;  // of the one that is over
  static void on_fence(int result, void* library) {
    // That thread lives in real time, however it is that it asks for it (under a sanitizer all calls come
    // from the sanitizer's library).
    mark_runtime_thread();
    static_cast<Library*>(library)->fence_is_over(result);
  }
  void fence_is_over(int result) {
    fence_result = result;
    // Release: pairs with barrier_leave.
    fences_over.fetch_add(1, std::memory_order_release);
    futex_wake(fences_over, 1);
  }

  // Never closed again: it leaves a thread behind.
  bool open(std::string* why) {
    void* const handle = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == nullptr) {
      const char* const error = dlerror();
      *why = error == nullptr ? "libpmix.so.2 is not here" : error;
      return false;
    }
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
      return function != nullptr;
    };
    const bool all = find("PMIx_Init", init) && find("PMIx_Finalize", finalize) && find("PMIx_Put", put) &&
                     find("PMIx_Commit", commit) && find("PMIx_Fence_nb", fence) && find("PMIx_Get", get) &&
                     find("PMIx_Abort", abort) && find("PMIx_Error_string", error_string);
    if (!all) *why = "libpmix.so.2 lacks functions of PMIx 2";
    return all;
  }
};

PmixClient::PmixClient() : library_(std::make_unique<Library>()) {}
// A fence that did not end may still be over some day: then PMIx's thread writes here.
PmixClient::~PmixClient() {
  if (in_fence_) (void)library_.release();
}

Result<std::unique_ptr<PmixClient>> PmixClient::open() {
  std::unique_ptr<PmixClient> client(new PmixClient);
  Library& pmix = *client->library_;
  constexpr const char* kInstead =
      "start the program with 'orrery run', MPICH's mpiexec.hydra or 'srun --mpi=pmi2' instead";
  std::string why;
  hold_standard_descriptors();
  if (!pmix.open(&why)) {
    log::error("started by a PMIx launcher (PMIX_NAMESPACE is set), but {}: install libpmix2, or {}", why,
               kInstead);
    return Errc::unsupported;
  }
  const int rc = pmix.init(&pmix.self, nullptr, 0);
  if (rc != kSuccess) {
    log::error("started by a PMIx launcher, which refuses this process: {}; {}", pmix.error_string(rc),
               kInstead);
    return Errc::unsupported;
  }
  client->open_ = true;
  client->rank_ = static_cast<int>(pmix.self.rank);
  client->name_.assign(pmix.self.nspace, strnlen(pmix.self.nspace, sizeof pmix.self.nspace));
  // What MPICH's launcher has: keys of ours are made for that.
  client->limits_ = {job::kPmiKvsNameMax - 1, job::kPmiKeyMax - 1, job::kPmiValueMax - 1};
  const auto size = client->job_number("pmix.job.size");
  if (!size.ok() || size.value() < 1 || client->rank_ < 0 || client->rank_ >= size.value()) {
    log::error("the PMIx launcher says rank {} of {}: expected 0 <= rank < size", client->rank_,
               size.ok() ? size.value() : 0);
    return Errc::corrupt;
  }
  client->size_ = size.value();
  return client;
}

Result<int> PmixClient::job_number(const char* key) {
  Proc job = library_->self;
  job.rank = kRankWildcard;
  Value* value = nullptr;
  const int rc = library_->get(&job, key, nullptr, 0, &value);
  if (rc != kSuccess || value == nullptr) return Errc::no_match;
  const Result<int> number =
      value->type == kUint32 ? Result<int>(static_cast<int>(value->data.uint32)) : Result<int>(Errc::corrupt);
  std::free(value);
  return number;
}

Result<int> PmixClient::appnum() {
  Value* value = nullptr;
  if (library_->get(&library_->self, "pmix.appnum", nullptr, 0, &value) != kSuccess || value == nullptr)
    return 0;
  const int number = value->type == kUint32 ? static_cast<int>(value->data.uint32) : 0;
  std::free(value);
  return number;
}

Result<int> PmixClient::universe_size() {
  const auto size = job_number("pmix.univ.size");
  return size.ok() ? size : Result<int>(size_);
}

Status PmixClient::put(std::string_view key, std::string_view value) {
  if (!open_) return Errc::invalid_state;
  if (!job::is_pmi_token(key) || !job::is_pmi_token(value)) return Errc::invalid_param;
  if (key.size() > limits_.key || value.size() > limits_.value) return Errc::size;
  // PMIx would put the new value in the old one's place, which no other manager does.
  if (!own_keys_.emplace(key).second) return Errc::invalid_state;
  std::string text(value);
  Value of{};
  of.type = kString;
  of.data.string = text.data();
  const int rc = library_->put(kGlobal, std::string(key).c_str(), &of);
  if (rc == kSuccess) return {};
  log::error("PMIx_Put: {}", library_->error_string(rc));
  return Errc::invalid_state;
}

Result<std::string> PmixClient::get(std::string_view key, int from) {
  if (!open_) return Errc::invalid_state;
  if (!job::is_pmi_token(key)) return Errc::invalid_param;
  if (key.size() > limits_.key) return Errc::size;
  if (from == kAnybody) {
    for (int rank = 0; rank < size_; ++rank) {
      auto found = get(key, rank);
      if (found.code() != Errc::no_match) return found;
    }
    return Errc::no_match;
  }
  Proc who = library_->self;
  who.rank = static_cast<std::uint32_t>(from);
  // Not asking the server, which would wait for a pair that is never put: the last fence brought all.
  const Info here_only = flag("pmix.optional");
  Value* value = nullptr;
  const int rc = library_->get(&who, std::string(key).c_str(), &here_only, 1, &value);
  if (rc != kSuccess || value == nullptr) return Errc::no_match;
  Result<std::string> text = Errc::corrupt;
  if (value->type == kString && value->data.string != nullptr) {
    text = std::string(value->data.string);
    std::free(value->data.string);
  }
  std::free(value);
  return text;
}

Status PmixClient::barrier_enter() {
  if (!open_ || in_fence_) return Errc::invalid_state;
  fences_seen_ = library_->fences_over.load(std::memory_order_relaxed);
  int rc = library_->commit();
  if (rc == kSuccess)
    rc = library_->fence(nullptr, 0, &library_->collect, 1, &Library::on_fence, library_.get());
  if (rc == kDoneAlready) library_->fence_is_over(kSuccess);
  if (rc != kSuccess && rc != kDoneAlready) {
    log::error("PMIx_Fence_nb: {}", library_->error_string(rc));
    return Errc::unreachable;
  }
  in_fence_ = true;
  return {};
}

Status PmixClient::barrier_leave() {
  if (!open_ || !in_fence_) return Errc::invalid_state;
  FutexWord& over = library_->fences_over;
  // Acquire: pairs with on_fence.
  while (over.load(std::memory_order_acquire) == fences_seen_) futex_wait(over, fences_seen_, std::nullopt);
  in_fence_ = false;
  if (library_->fence_result == kSuccess) return {};
  log::error("PMIx_Fence_nb: {}", library_->error_string(library_->fence_result));
  return Errc::unreachable;
}

Status PmixClient::finalize() {
  if (!open_) return Errc::invalid_state;
  open_ = false;
  return library_->finalize(nullptr, 0) == kSuccess ? Status{} : Status{Errc::unreachable};
}

Status PmixClient::abort(int code) {
  if (!open_) return Errc::invalid_state;
  return library_->abort(code, "PMI_Abort", nullptr, 0) == kSuccess ? Status{} : Status{Errc::unreachable};
}

}  // namespace orrery::pmi
