// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Data movement: each call checks its arguments, builds an Operation, and carries it out or arms a trigger.
#include "emu/nic/target/match_plain.hpp"
#include "lib/portals4/process.hpp"

#include <cstring>

namespace orrery::portals4 {

namespace {

// Where and how an operation goes, as the calls are given it.
struct To {
  ptl_process_t target;
  ptl_pt_index_t portal;
  ptl_match_bits_t bits;
  ptl_size_t offset;
  void* user;
  ptl_hdr_data_t header_data;
};
// Nothing: at once.
struct When {
  bool triggered = false;
  ptl_handle_ct_t counter = PTL_CT_NONE;
  ptl_size_t threshold = 0;
};

// In line, as all that PtlPut() needs for a short message: its arguments are moved in registers then.
// The descriptor, when [offset, offset + length) lies in it; else null.
[[gnu::always_inline]] inline const MemoryDescriptor* descriptor_with(ptl_handle_md_t handle,
                                                                      ptl_size_t offset, ptl_size_t length) {
  const MemoryDescriptor* const descriptor = find_descriptor(handle);
  if (descriptor == nullptr || offset > descriptor->binding.length ||
      length > descriptor->binding.length - offset)
    return nullptr;
  // What may be used again at once has to be short enough to be kept.
  if ((descriptor->binding.options & PTL_MD_VOLATILE) != 0 &&
      length > Process::get().interfaces[descriptor->interface].limits.max_volatile_size)
    return nullptr;
  return descriptor;
}

bool bind(ptl_handle_md_t handle, ptl_size_t offset, ptl_size_t length, match::Binding* binding,
          std::uint32_t* interface) {
  const MemoryDescriptor* const descriptor = descriptor_with(handle, offset, length);
  if (descriptor == nullptr) return false;
  *binding = descriptor->binding;
  *interface = descriptor->interface;
  return true;
}

// The process that a call names. False: it is none of the interface's.
[[gnu::always_inline]] inline bool resolve(Process& process, std::uint32_t interface, const To& to,
                                           match::ProcessId* target) {
  if (to.portal >= match::kMaxPortals) return false;
  if ((process.own().interface(interface).options & PTL_NI_LOGICAL) != 0) {
    const LocalInterface& local = process.interfaces[interface];
    if (!local.mapped || to.target.rank >= local.map.size()) return false;
    *target = {local.map[to.target.rank].phys.nid, local.map[to.target.rank].phys.pid};
  } else {
    *target = {to.target.phys.nid, to.target.phys.pid};
  }
  return true;
}

int address(match::Operation* op, std::uint32_t interface, const To& to) {
  if (!resolve(Process::get(), interface, to, &op->target)) return PTL_ARG_INVALID;
  op->interface = static_cast<std::uint8_t>(interface);
  op->portal = to.portal;
  op->match_bits = to.bits;
  op->remote_offset = to.offset;
  op->user = reinterpret_cast<std::uint64_t>(to.user);
  op->header_data = to.header_data;
  return PTL_OK;
}

// An acknowledgement needs something that hears of it.
bool can_acknowledge(const match::Binding& binding, ptl_ack_req_t ack) {
  switch (ack) {
    case PTL_NO_ACK_REQ:
      return true;
    case PTL_ACK_REQ:
      return binding.queue != 0;
    case PTL_CT_ACK_REQ:
    case PTL_OC_ACK_REQ:
      return binding.counter != 0;
    default:
      return false;
  }
}

int submit(const match::Operation& op, const When& when) {
  Process& process = Process::get();
  if (!when.triggered) {
    perform(process.self(), op);
    return PTL_OK;
  }
  std::uint32_t counter = 0;
  if (!find_counter(when.counter, &counter) || counter == 0) return PTL_ARG_INVALID;
  if (process.own().counter(counter).interface != op.interface) return PTL_ARG_INVALID;
  Status armed;
  {
    match::Session session(process.own());
    armed = match::arm(session, counter, when.threshold, op);
  }
  run_due(process.self());
  return armed.ok() ? PTL_OK : PTL_NO_SPACE;
}

// A short put that its initiator hears nothing of, to a target that takes it as it is: without an Operation.
// False: nothing has happened, and it is one for perform().
[[gnu::noinline]] bool put_shortly(Process& process, const MemoryDescriptor& md, ptl_size_t offset,
                                   ptl_size_t length, ptl_ack_req_t ack, const To& to) {
  match::ProcessId id;
  if (length > kShort || ack != PTL_NO_ACK_REQ || md.binding.pieces != 0 || hears(md.binding) ||
      process.clock() != nullptr || !resolve(process, md.interface, to, &id))
    return false;
  Peer* const target = process.find(id);
  if (target == nullptr || target->memory == nullptr) return false;
  const match::Interface& from = process.own().interface(md.interface);
  match::Arrival arrival;
  arrival.move = match::Move::put;
  arrival.interface = static_cast<std::uint8_t>(md.interface);
  arrival.portal = to.portal;
  name_initiator(from, &arrival);
  arrival.match_bits = to.bits;
  arrival.remote_offset = to.offset;
  arrival.length = length;
  arrival.header_data = to.header_data;
  const auto* const source = reinterpret_cast<const std::byte*>(md.binding.start + offset);
  {
    match::Session session(target->match);
    match::Place place;
    if (!match::deliver_plain(session, arrival, &place, [&](std::uint64_t there, std::uint64_t bytes) {
          return target->memory->try_put(there, source, bytes) == Errc::ok;
        }))
      return false;
  }
  if (match::has_due(target->match)) run_due(*target);
  if (match::has_due(process.own())) run_due(process.self());
  return true;
}

[[gnu::always_inline]] inline int put(ptl_handle_md_t md, ptl_size_t offset, ptl_size_t length,
                                      ptl_ack_req_t ack, const To& to, const When& when) {
  Process& process = Process::get();
  const MemoryDescriptor* const descriptor = descriptor_with(md, offset, length);
  if (descriptor == nullptr || !can_acknowledge(descriptor->binding, ack)) return PTL_ARG_INVALID;
  const std::uint32_t interface = descriptor->interface;
  if (length > process.interfaces[interface].limits.max_msg_size) return PTL_ARG_INVALID;
  if (!when.triggered && put_shortly(process, *descriptor, offset, length, ack, to)) return PTL_OK;
  match::Operation op{};
  op.source = descriptor->binding;
  op.kind = match::OpKind::put;
  op.ack = ack;
  op.length = length;
  op.source_offset = offset;
  const int addressed = address(&op, interface, to);
  return addressed != PTL_OK ? addressed : submit(op, when);
}

int get(ptl_handle_md_t md, ptl_size_t offset, ptl_size_t length, const To& to, const When& when) {
  match::Operation op{};
  std::uint32_t interface = 0;
  if (!bind(md, offset, length, &op.result, &interface)) return PTL_ARG_INVALID;
  if (length > Process::get().interfaces[interface].limits.max_msg_size) return PTL_ARG_INVALID;
  op.kind = match::OpKind::get;
  op.length = length;
  op.result_offset = offset;
  const int addressed = address(&op, interface, to);
  return addressed != PTL_OK ? addressed : submit(op, when);
}

int atomic(ptl_handle_md_t md, ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack, const To& to,
           ptl_op_t operation, ptl_datatype_t type, const When& when) {
  match::Operation op{};
  std::uint32_t interface = 0;
  if (!bind(md, offset, length, &op.source, &interface) || !can_acknowledge(op.source, ack) ||
      !is_simple(operation, type) || length % size_of(type) != 0 ||
      length > Process::get().interfaces[interface].limits.max_atomic_size)
    return PTL_ARG_INVALID;
  op.kind = match::OpKind::atomic;
  op.ack = ack;
  op.length = length;
  op.source_offset = offset;
  op.operation = operation;
  op.datatype = type;
  const int addressed = address(&op, interface, to);
  return addressed != PTL_OK ? addressed : submit(op, when);
}

struct Fetch {
  ptl_handle_md_t get_md;
  ptl_size_t get_offset;
  ptl_handle_md_t put_md;
  ptl_size_t put_offset;
  ptl_size_t length;
};

int fetch(const Fetch& what, const To& to, bool swap, const void* operand, ptl_op_t operation,
          ptl_datatype_t type, const When& when) {
  match::Operation op{};
  std::uint32_t interface = 0;
  std::uint32_t other = 0;
  if (!bind(what.get_md, what.get_offset, what.length, &op.result, &interface) ||
      !bind(what.put_md, what.put_offset, what.length, &op.source, &other) || interface != other)
    return PTL_ARG_INVALID;
  const bool known = swap ? is_swap(operation, type) : is_simple(operation, type);
  if (!known || what.length % size_of(type) != 0 ||
      what.length > Process::get().interfaces[interface].limits.max_fetch_atomic_size)
    return PTL_ARG_INVALID;
  if (swap && operation != PTL_SWAP) {
    // The swaps that compare or mask have one operand, and so one item.
    if (operand == nullptr || what.length > size_of(type)) return PTL_ARG_INVALID;
    std::memcpy(op.operand, operand, size_of(type));
  }
  op.kind = swap ? match::OpKind::swap : match::OpKind::fetch_atomic;
  op.length = what.length;
  op.source_offset = what.put_offset;
  op.result_offset = what.get_offset;
  op.operation = operation;
  op.datatype = type;
  const int addressed = address(&op, interface, to);
  return addressed != PTL_OK ? addressed : submit(op, when);
}

int trigger_counter(match::OpKind kind, ptl_handle_ct_t handle, ptl_ct_event_t value, const When& when) {
  match::Operation op{};
  if (!find_counter(handle, &op.counter) || op.counter == 0) return PTL_ARG_INVALID;
  if (kind == match::OpKind::counter_add && value.success != 0 && value.failure != 0) return PTL_ARG_INVALID;
  op.kind = kind;
  op.counter_generation = Process::get().own().counter(op.counter).generation;
  op.interface = static_cast<std::uint8_t>(Process::get().own().counter(op.counter).interface);
  op.success = value.success;
  op.failure = value.failure;
  return submit(op, when);
}

}  // namespace

}  // namespace orrery::portals4

using namespace orrery::portals4;

extern "C" {

int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
           ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
           ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data) {
  ORRERY_PORTALS_NEEDS_INIT;
  return put(md_handle, local_offset, length, ack_req,
             {target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data}, {});
}

int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_process_t target_id,
           ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr) {
  ORRERY_PORTALS_NEEDS_INIT;
  return get(md_handle, local_offset, length, {target_id, pt_index, match_bits, remote_offset, user_ptr, 0},
             {});
}

int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
              ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
              ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
              ptl_datatype_t datatype) {
  ORRERY_PORTALS_NEEDS_INIT;
  return atomic(md_handle, local_offset, length, ack_req,
                {target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data}, operation, datatype,
                {});
}

int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                   ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id,
                   ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                   void* user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype) {
  ORRERY_PORTALS_NEEDS_INIT;
  return fetch({get_md_handle, local_get_offset, put_md_handle, local_put_offset, length},
               {target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data}, false, nullptr,
               operation, datatype, {});
}

int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
            ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
            ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data,
            const void* operand, ptl_op_t operation, ptl_datatype_t datatype) {
  ORRERY_PORTALS_NEEDS_INIT;
  return fetch({get_md_handle, local_get_offset, put_md_handle, local_put_offset, length},
               {target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data}, true, operand, operation,
               datatype, {});
}

int PtlAtomicSync(void) {
  ORRERY_PORTALS_NEEDS_INIT;
  return PTL_OK;
}

int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                    ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
                    ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
                    ptl_hdr_data_t hdr_data, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) {
  ORRERY_PORTALS_NEEDS_INIT;
  return put(md_handle, local_offset, length, ack_req,
             {target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data},
             {true, trig_ct_handle, threshold});
}

int PtlTriggeredGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                    ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                    ptl_size_t remote_offset, void* user_ptr, ptl_handle_ct_t trig_ct_handle,
                    ptl_size_t threshold) {
  ORRERY_PORTALS_NEEDS_INIT;
  return get(md_handle, local_offset, length, {target_id, pt_index, match_bits, remote_offset, user_ptr, 0},
             {true, trig_ct_handle, threshold});
}

int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                       ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
                       ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
                       ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
                       ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) {
  ORRERY_PORTALS_NEEDS_INIT;
  return atomic(md_handle, local_offset, length, ack_req,
                {target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data}, operation, datatype,
                {true, trig_ct_handle, threshold});
}

int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                            ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
                            ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                            ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data,
                            ptl_op_t operation, ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle,
                            ptl_size_t threshold) {
  ORRERY_PORTALS_NEEDS_INIT;
  return fetch({get_md_handle, local_get_offset, put_md_handle, local_put_offset, length},
               {target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data}, false, nullptr,
               operation, datatype, {true, trig_ct_handle, threshold});
}

int PtlTriggeredSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                     ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
                     ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                     ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data, const void* operand,
                     ptl_op_t operation, ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle,
                     ptl_size_t threshold) {
  ORRERY_PORTALS_NEEDS_INIT;
  return fetch({get_md_handle, local_get_offset, put_md_handle, local_put_offset, length},
               {target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data}, true, operand, operation,
               datatype, {true, trig_ct_handle, threshold});
}

int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment, ptl_handle_ct_t trig_ct_handle,
                      ptl_size_t threshold) {
  ORRERY_PORTALS_NEEDS_INIT;
  return trigger_counter(match::OpKind::counter_add, ct_handle, increment, {true, trig_ct_handle, threshold});
}

int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct, ptl_handle_ct_t trig_ct_handle,
                      ptl_size_t threshold) {
  ORRERY_PORTALS_NEEDS_INIT;
  return trigger_counter(match::OpKind::counter_set, ct_handle, new_ct, {true, trig_ct_handle, threshold});
}

// Bundles are hints: every operation here goes out at once.
int PtlStartBundle(ptl_handle_ni_t ni_handle) {
  ORRERY_PORTALS_NEEDS_INIT;
  std::uint32_t interface = 0;
  return interface_of(ni_handle, &interface);
}

int PtlEndBundle(ptl_handle_ni_t ni_handle) {
  ORRERY_PORTALS_NEEDS_INIT;
  std::uint32_t interface = 0;
  return interface_of(ni_handle, &interface);
}

}  // extern "C"
