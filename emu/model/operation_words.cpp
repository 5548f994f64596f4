// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/operation_words.hpp"

#include <array>

namespace orrery::model {

namespace {

constexpr auto kWords = std::to_array<OperationWord>({
    {"gni", "POST_FMA_PUT", Op::fma_put, ""},
    {"gni", "POST_FMA_PUT.launch", Op::launch_put, "one word through an FMA Launch window"},
    {"gni", "POST_FMA_PUT_W_SYNCFLAG", Op::fma_put, "the flag rides in the last packet"},
    {"gni", "POST_FMA_GET", Op::fma_get, ""},
    {"gni", "POST_FMA_GET_W_FLAG", Op::fma_get, "the flag is written at the target"},
    {"gni", "POST_RDMA_PUT", Op::bte_put, ""},
    {"gni", "POST_RDMA_GET", Op::bte_get, ""},
    {"gni", "POST_AMO", Op::amo, "without a result, variable in the atomic unit's cache"},
    {"gni", "POST_AMO.uncached", Op::amo_miss, "without a result, variable in host memory"},
    {"gni", "POST_AMO.fetch", Op::fetch_amo, "with a result, variable in the atomic unit's cache"},
    {"gni", "POST_AMO.fetch_uncached", Op::fetch_amo_miss, "with a result, variable in host memory"},
    {"gni", "POST_AMO_W_FLAG", Op::amo, "the flag is written at the target"},
    {"gni", "POST_CQWRITE", Op::cq_write, ""},
    {"gni", "POST_CE", Collective::allreduce, ""},
    {"gni", "POST_CE.join", Collective::hardware_barrier, "nothing to combine"},
    {"gni", "CtPostFma", Op::fma_put, ""},
    {"gni", "CtPostCqWrite", Op::cq_write, ""},
    {"gni", "SmsgSend", Op::message, ""},
    {"gni", "MsgqSend", Op::message, ""},
    {"gni", "EpPostData", Op::send_reliable, "datagram: matched with the peer's and answered"},
    {"dmapp", "put", Op::fma_put, "put_nb and put_nbi too; below the offload threshold"},
    {"dmapp", "put.offload", Op::bte_put, "from the offload threshold on"},
    {"dmapp", "put_flag", Op::fma_put, "the flag rides in the last packet"},
    {"dmapp", "iput", Op::fma_put, "ixput, scatter_ixpe, put_ixpe too: element by element"},
    {"dmapp", "get", Op::fma_get, "get_nb and get_nbi too; below the offload threshold"},
    {"dmapp", "get.offload", Op::bte_get, "from the offload threshold on"},
    {"dmapp", "iget", Op::fma_get, "ixget, gather_ixpe too: element by element"},
    {"dmapp", "aadd", Op::amo_miss, "aand, aor, axor, amin, amax too: past the atomic unit's cache"},
    {"dmapp", "afadd", Op::fetch_amo_miss, "afand, afor, afxor, afax, aswap, acswap too"},
    {"dmapp", "lock_acquire", Op::fetch_amo_miss, "lock_try and lock_release too: one try"},
    {"dmapp", "queue_put", Op::send, ""},
    {"dmapp", "c_barrier_join", Collective::software_barrier,
     "by puts: nine members tell each other, more stand in a tree"},
    {"dmapp", "c_greduce_start", Collective::software_barrier, "the same, with the data"},
    {"portals", "Put", Op::matched_put, "no acknowledgement asked for"},
    {"portals", "Put.ack", Op::matched_put_ack, ""},
    {"portals", "PutRegion", Op::matched_put, ""},
    {"portals", "Get", Op::matched_get, "GetRegion too"},
    {"portals", "GetPut", Op::matched_get, "the data of both ways is counted once"},
    {"portals", "Atomic", Op::amo, ""},
    {"portals", "FetchAtomic", Op::fetch_amo, "Swap too"},
    {"cci", "send.UU", Op::send, ""},
    {"cci", "send.RU", Op::send_reliable, ""},
    {"cci", "send.RO", Op::send_reliable, ""},
    {"cci", "rma.WRITE", Op::bte_put, ""},
    {"cci", "rma.READ", Op::bte_get, ""},
    {"pmi", "Barrier", Collective::hardware_barrier, "or what the machine has instead"},
    {"qsnet", "broadcast", Collective::broadcast, "hardware multicast to neighbouring nodes"},
});

}  // namespace

std::span<const OperationWord> operation_words() { return kWords; }

std::optional<Priced> priced_by_word(std::string_view api_and_word) {
  const std::size_t dot = api_and_word.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  for (const OperationWord& w : kWords) {
    if (w.api == api_and_word.substr(0, dot) && w.word == api_and_word.substr(dot + 1)) return w.priced;
  }
  return std::nullopt;
}

std::string_view priced_name(Priced priced) {
  const Op* const op = std::get_if<Op>(&priced);
  return op != nullptr ? op_name(*op) : collective_name(std::get<Collective>(priced));
}

}  // namespace orrery::model
