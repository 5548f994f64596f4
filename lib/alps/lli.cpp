// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/job.hpp"

#include "include/alps/alps/libalpslli.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

// The line to the launcher. What it asks the job's directory knows, so nothing leaves the process.
namespace {

struct Line {
  std::mutex taken;  // between lock and unlock
  std::mutex mu;
  std::optional<int> status;      // of the request that was put last; guarded by mu
  std::vector<std::byte> answer;  // guarded by mu
  std::size_t read = 0;           // guarded by mu
};
Line& line() {
  static Line* const one = new Line;  // exit handlers may still ask
  return *one;
}

template <typename T>
void append(std::vector<std::byte>& bytes, const T& value) {
  const auto* const at = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), at, at + sizeof value);
}

// Fills the answer; whether there is one.
bool answer(int request, std::vector<std::byte>& bytes) {
  if (request == ALPS_APP_LLI_ALPS_REQ_START || request == ALPS_APP_LLI_ALPS_REQ_EXITING) return true;
  if (request != ALPS_APP_LLI_ALPS_REQ_APID && request != ALPS_APP_LLI_ALPS_REQ_GNI) return false;
  const auto job = orrery::job::Job::of_process();
  if (!job.ok()) return false;
  if (request == ALPS_APP_LLI_ALPS_REQ_APID) {
    append(bytes, job.value()->directory().job_id());
    return true;
  }
  std::vector<alpsAppGni_t> domains;
  for (const auto& domain : job.value()->directory().domains()) {
    if (domain.ptag == 255) continue;  // the library's own
    // A tag's further cookies are those that a client makes of the first.
    if (std::any_of(domains.begin(), domains.end(), [&](const auto& one) { return one.ptag == domain.ptag; }))
      continue;
    alpsAppGni_t one;
    std::memset(&one, 0, sizeof one);
    one.local_addr = job.value()->nic_address();
    one.cookie = domain.cookie;
    one.ptag = domain.ptag;
    domains.push_back(one);
  }
  append(bytes, static_cast<std::uint64_t>(domains.size()));
  for (const alpsAppGni_t& one : domains) append(bytes, one);
  // A reader of an alpsAppLLIGni_t reads a whole one.
  if (bytes.size() < sizeof(alpsAppLLIGni_t)) bytes.resize(sizeof(alpsAppLLIGni_t));
  return true;
}

}  // namespace

extern "C" {

int alps_app_lli_lock(void) {
  line().taken.lock();
  return 0;
}

int alps_app_lli_unlock(void) {
  // Of a lock that may be free: taken first, so that the unlock is good.
  (void)line().taken.try_lock();
  line().taken.unlock();
  return 0;
}

int alps_app_lli_put_request(int request, const void* data, size_t bytes) {
  if (data == nullptr && bytes != 0) return -1;
  const std::lock_guard lock(line().mu);
  line().answer.clear();
  line().read = 0;
  line().status = answer(request, line().answer) ? ALPS_APP_LLI_ALPS_STAT_OK : ALPS_APP_LLI_ALPS_STAT_ERROR;
  return 0;
}

int alps_app_lli_get_response(int* status, size_t* count) {
  const std::lock_guard lock(line().mu);
  if (status == nullptr || count == nullptr || !line().status) return -1;
  *status = *line().status;
  *count = line().answer.size();
  line().status.reset();
  return 0;
}

int alps_app_lli_get_response_bytes(void* data, size_t bytes) {
  const std::lock_guard lock(line().mu);
  if (data == nullptr || bytes > line().answer.size() - line().read) return -1;
  std::memcpy(data, line().answer.data() + line().read, bytes);
  line().read += bytes;
  return 0;
}

int alps_app_lli_pipes(int to_launcher[2], int from_launcher[2]) {
  if (to_launcher == nullptr || from_launcher == nullptr) return -1;
  to_launcher[0] = to_launcher[1] = from_launcher[0] = from_launcher[1] = -1;
  return 0;
}

}  // extern "C"
