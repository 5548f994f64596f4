// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/scene/report.hpp"

#include <fmt/format.h>

namespace orrery::sim {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 32) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string list(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const std::string& item : items) out += (out.size() > 1 ? ", " : "") + quoted(item);
  return out + "]";
}

const char* yes(bool b) { return b ? "true" : "false"; }

}  // namespace

std::string to_json(const SimResult& r) {
  const Counters m = r.measured();
  const Counters& t = r.outcome.total;
  const auto ns = [&](Tick ticks) { return static_cast<double>(ticks) * r.tick_ns; };
  std::string vc;
  for (std::size_t v = 0; v < r.vc_names.size() && v < t.vc_hops.size(); ++v)
    vc += fmt::format("{}{}: {}", v ? ", " : "", quoted(r.vc_names[v]), t.vc_hops[v]);
  std::string samples, occupancy;
  Counters before;
  Tick since = 0;
  for (const Sample& s : r.outcome.samples) {
    const double span = ns(s.at - since);
    samples += fmt::format("{}[{:.1f}, {:.6g}, {:.6g}, {}]", samples.empty() ? "" : ", ", ns(s.at),
                           static_cast<double>(s.totals.delivered_bytes - before.delivered_bytes) / span,
                           r.links == 0 ? 0.0
                                        : static_cast<double>(s.totals.link_ticks - before.link_ticks) *
                                              r.tick_ns / span / static_cast<double>(r.links),
                           s.buffered);
    before = s.totals;
    since = s.at;
    if (s.vcs.empty()) continue;
    occupancy += fmt::format("{}[{:.1f}", occupancy.empty() ? "" : ", ", ns(s.at));
    for (const VcUse& use : s.vcs) occupancy += fmt::format(", {:.5g}, {:.5g}", use.mean(), use.fullest);
    occupancy += ']';
  }
  const auto latency = [&](const LatencyHistogram& of) {
    return fmt::format(
        "{{\"mean\": {:.1f}, \"p50\": {:.1f}, \"p90\": {:.1f}, \"p99\": {:.1f}, \"max\": {:.1f}, "
        "\"packets\": {}}}",
        of.mean() * r.tick_ns, ns(of.percentile(0.5)), ns(of.percentile(0.9)), ns(of.percentile(0.99)),
        ns(of.max()), of.count());
  };
  std::string classes;
  if (r.outcome.others)
    classes = fmt::format(" \"priority_latency_ns\": {},\n \"other_latency_ns\": {},\n",
                          latency(r.outcome.urgent), latency(*r.outcome.others));
  std::vector<std::string> occupancy_columns{"ns"};
  if (!occupancy.empty())
    for (const std::string& name : r.vc_names)
      occupancy_columns.insert(occupancy_columns.end(), {name + " mean", name + " fullest"});
  return fmt::format(
      "{{\"machine\": {}, \"shape\": {}, \"nodes\": {}, \"links\": {}, \"workload\": {}, \"preset\": {}, "
      "\"stop\": {},\n"
      " \"conserved\": {}, \"saturated\": {}, \"steady\": {}, \"offered_load\": {:.6g}, \"accepted_load\": "
      "{:.6g},\n"
      " \"load_unit\": \"packets per node and tick\", \"tick_ns\": {:.6g}, \"simulated_ns\": {:.1f}, "
      "\"measured_from_ns\": {:.1f},\n"
      " \"link_utilisation\": {:.5f}, \"payload_gb_per_s_per_node\": {:.5f},\n"
      " \"latency_ns\": {},\n{}"
      " \"injected\": {}, \"responses\": {}, \"delivered\": {}, \"responses_back\": {}, \"dropped\": {}, "
      "\"in_flight\": {}, \"copies\": {}, \"retries\": {}, \"resent\": {}, \"quiesce_ns\": [{:.1f}, {:.1f}, "
      "{:.1f}],\n"
      " \"packet_hops\": {}, \"measured_packet_hops\": {}, \"delivered_hops\": {}, \"escape_hops\": {}, "
      "\"nonminimal\": {}, \"receive_stalls\": {}, \"receive_stall_ns\": {:.1f},\n"
      " \"vc_hops\": {{{}}}, \"cycle\": {},\n"
      " \"events\": {}, \"threads\": {}, \"wall_seconds\": {:.3f}, \"packet_hops_per_second\": {:.0f}, "
      "\"bytes_per_node\": {:.0f}, \"router_bytes_per_node\": {:.0f},\n"
      " \"samples_columns\": [\"ns\", \"delivered_gb_per_s\", \"link_utilisation\", \"packets_in_flight\"],\n"
      " \"samples\": [{}],\n"
      " \"vc_occupancy_columns\": {},\n"
      " \"vc_occupancy\": [{}]}}",
      quoted(r.machine), quoted(r.shape), r.nodes, r.links, quoted(r.workload), quoted(r.preset),
      quoted(stop_name(r.outcome.stop)), yes(r.outcome.conserved), yes(r.saturated()), yes(r.outcome.steady),
      r.offered, r.accepted(), r.tick_ns, ns(r.outcome.end), ns(r.outcome.measured_from),
      r.link_utilisation(), r.payload_gb_per_node(), latency(r.outcome.latency), classes, t.injected,
      t.responses, t.delivered, t.responses_back, t.dropped, r.outcome.in_flight, t.copies, t.retries,
      t.resent, ns(r.quiesce.began), ns(r.quiesce.drained), ns(r.quiesce.released), t.link_hops, m.link_hops,
      t.delivered_hops, t.escape_hops, t.nonminimal, t.receive_stalls, ns(t.receive_stall_ticks), vc,
      list(r.cycle), t.events, r.threads, r.wall_seconds, r.packet_hops_per_second(),
      static_cast<double>(r.state_bytes + r.outcome.engine_bytes) / r.nodes,
      static_cast<double>(r.state_bytes) / r.nodes, samples, list(occupancy_columns), occupancy);
}

std::string to_text(const SimResult& r) {
  const auto us = [&](double ticks) { return ticks * r.tick_ns / 1000; };
  std::string out = fmt::format(
      "{} {}, {} nodes: {}{}{}\n"
      "ended: {} after {:.2f} us simulated, measured from {:.2f} us{}\n",
      r.machine, r.shape, r.nodes, r.workload, r.preset.empty() ? "" : ", preset ", r.preset,
      stop_name(r.outcome.stop), us(static_cast<double>(r.outcome.end)),
      us(static_cast<double>(r.outcome.measured_from)), r.outcome.steady ? ", steady" : "");
  out += fmt::format("link utilisation {:.2f} %, payload {:.4f} GB/s a node, {} packets delivered\n",
                     100 * r.link_utilisation(), r.payload_gb_per_node(), r.outcome.total.delivered);
  if (r.offered > 0)
    out += fmt::format("{}offered {:.6f}, accepted {:.6f} packets a node and tick\n",
                       r.saturated() ? "SATURATED: " : "", r.offered, r.accepted());
  if (r.outcome.latency.count() > 0)
    out += fmt::format("latency mean {:.3f} us, median {:.3f}, 99 % {:.3f}, largest {:.3f}\n",
                       r.mean_latency_ns() / 1000, us(static_cast<double>(r.outcome.latency.percentile(0.5))),
                       us(static_cast<double>(r.outcome.latency.percentile(0.99))),
                       us(static_cast<double>(r.outcome.latency.max())));
  if (r.outcome.others)
    for (const auto& [name, of] :
         {std::pair("with priority", &r.outcome.urgent), {"without", r.outcome.others.get()}})
      out += fmt::format("{}: {} packets, latency mean {:.3f} us, 99 % {:.3f}, largest {:.3f}\n", name,
                         of->count(), us(of->mean()), us(static_cast<double>(of->percentile(0.99))),
                         us(static_cast<double>(of->max())));
  const Counters& t = r.outcome.total;
  out += fmt::format(
      "packets: {} sent and {} responses, {} delivered, {} responses back, {} dropped, {} in flight: {}\n",
      t.injected, t.responses, t.delivered, t.responses_back, t.dropped, r.outcome.in_flight,
      r.outcome.conserved ? "conserved" : "NOT CONSERVED");
  if (t.receive_stalls != 0)
    out += fmt::format("receivers stalled {} times until their firmware had acted, {:.2f} us in all\n",
                       t.receive_stalls, us(static_cast<double>(t.receive_stall_ticks)));
  if (r.quiesce.began != 0)
    out += fmt::format("quiesced at {:.2f} us, drained at {:.2f}, with new tables from {:.2f} on\n",
                       us(static_cast<double>(r.quiesce.began)), us(static_cast<double>(r.quiesce.drained)),
                       us(static_cast<double>(r.quiesce.released)));
  if (t.resent != 0)
    out += fmt::format("{} packets that a lost link or router held were sent again\n", t.resent);
  if (r.stuck())
    out += fmt::format("stuck: {} of {} records never ran: what their processes wait for is never sent\n",
                       r.never_ran, r.records);
  if (r.outcome.stop == Stop::deadlock) {
    out += "DEADLOCK";
    if (r.cycle.empty()) out += ": no cycle of channels found";
    for (const std::string& channel : r.cycle) out += fmt::format("\n  {} waits for", channel);
    out += r.cycle.empty() ? "\n" : "\n  the first again\n";
  }
  out += fmt::format("{} packet-hops in {:.2f} s on {} thread{}: {:.2f} M/s\n", r.outcome.total.link_hops,
                     r.wall_seconds, r.threads, r.threads == 1 ? "" : "s", r.packet_hops_per_second() / 1e6);
  return out;
}

std::string csv_header() {
  return "machine,shape,nodes,workload,preset,stop,offered,accepted,saturated,link_utilisation,"
         "payload_gb_per_s_per_node,latency_mean_ns,latency_p50_ns,latency_p99_ns,latency_max_ns,delivered,"
         "in_flight,"
         "conserved,packet_hops,packet_hops_per_second";
}

std::string to_csv(const SimResult& r) {
  const auto ns = [&](Tick ticks) { return static_cast<double>(ticks) * r.tick_ns; };
  return fmt::format(
      "{},{},{},{},{},{},{:.6g},{:.6g},{},{:.5f},{:.5f},{:.1f},{:.1f},{:.1f},{:.1f},{},{},{},{},{:.0f}",
      r.machine, r.shape, r.nodes, r.workload, r.preset, stop_name(r.outcome.stop), r.offered, r.accepted(),
      yes(r.saturated()), r.link_utilisation(), r.payload_gb_per_node(), r.mean_latency_ns(),
      ns(r.outcome.latency.percentile(0.5)), ns(r.outcome.latency.percentile(0.99)),
      ns(r.outcome.latency.max()), r.outcome.total.delivered, r.outcome.in_flight, yes(r.outcome.conserved),
      r.outcome.total.link_hops, r.packet_hops_per_second());
}

}  // namespace orrery::sim
