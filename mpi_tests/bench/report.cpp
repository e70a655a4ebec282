#include "report.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace kedge_bench {
namespace {

using kedge::compose;

std::string value_text(const Row& row, double value) {
  switch (row.unit) {
    case Unit::seconds: return compose("{:.3f}", value);
    case Unit::microseconds: return compose("{:.2f} us", value);
    case Unit::kibibytes: return compose("{:.1f} KiB", value);
    case Unit::mebibytes: return compose("{:.1f} MiB", value);
    case Unit::bytes_per_byte: return compose("{:.3f} B/B", value);
  }
  return "";
}

/// Least and most; nothing of a single value.
std::string range_text(const Row& row, const Summary& values) {
  if (row.values.size() < 2) return "";
  const bool has_two_digits = row.unit == Unit::microseconds || row.unit == Unit::mebibytes;
  return has_two_digits ? compose("{:.2f} .. {:.2f}", values.min, values.max)
                        : compose("{:.3f} .. {:.3f}", values.min, values.max);
}

std::string line(const Judged& judged) {
  const Row& row = *judged.row;
  const Summary& values = judged.values;
  std::string text = compose("{:<60} {:>8} {:>17}", row.what, value_text(row, values.median), range_text(row, values));
  text += row.bytes == 0 ? compose(" {:>6}", "")
                         : compose(" {:>6.2f}", static_cast<double>(row.bytes) / kGibibyte / values.median);
  if (judged.ratio) {
    text += compose("  {:>5.2f} {:<10} {:>11}", judged.ratio->median, row.against,
                    compose("{:.2f}..{:.2f}", judged.ratio->min, judged.ratio->max));
  } else if (judged.target != nullptr) {
    text += compose("  {:>28}", "");
  }
  if (judged.target != nullptr) text += compose(" {:>6.2f}  {}", judged.target->at_most, to_string(judged.verdict));
  return text + "\n";
}

/// "rs, 2 losses in a set of 4", "single".
std::string redundancy(const Measured& measured) {
  std::string text(to_string(measured.scheme));
  if (measured.parity == 0) return text;
  return text + compose(", {} of {} members of a set may be lost", measured.parity, measured.members);
}

/// How far each row spreads that others are judged against.
std::string noise(const Measured& measured, const std::vector<Judged>& rows) {
  std::string text = "spread over the rounds:";
  for (const Row& base : measured.table.rows()) {
    const auto needs = [&](const Judged& one) { return one.target != nullptr && one.row->against == base.key; };
    if (std::ranges::none_of(rows, needs)) continue;
    const double spread = summarize(base.values).spread();
    text += compose(" {} {:.0f} %{},", base.key, spread * 100, spread > kMostSpread ? " (too noisy)" : "");
  }
  text.back() = ';';
  if (measured.set_aside > 0) text += compose(" rounds measured again because of the slowest: {};", measured.set_aside);
  return text + compose(" above {:.0f} % it is too noisy to judge against\n", kMostSpread * 100);
}

std::string huge_line(const SharedMemory& held) {
  return held.bytes == 0 ? ""
                         : compose("huge pages: {} of the {} that memory filesystems held after the rounds\n",
                                   kedge::human_bytes(held.huge_bytes), kedge::human_bytes(held.bytes));
}

std::string table_text(const Results& results, const Measured& measured) {
  std::string text = compose("\n{:<60} {:>8} {:>17} {:>6}  {:>5} {:<10} {:>11} {:>6}\n", redundancy(measured), "s",
                             "min .. max", "GiB/s", "ratio", "to", "min .. max", "target");
  const auto rows = judge(results, measured);
  for (const Judged& one : rows) text += line(one);
  return text + noise(measured, rows) + huge_line(measured.held);
}

std::string dd_line(const Results& results) {
  if (!results.dd_s) return "dd is not here: the plain figures were not checked against it\n";
  return compose("plain files copied by dd: {:.3f} s; read and written by this program right after: {:.3f} s\n",
                 *results.dd_s, results.write_and_read_s);
}

std::string check_line(int code) {
  if (code == 0) return "check: every target was reached\n";
  return code == 1 ? "check: a target was MISSED\n" : "check: it cannot be said whether all targets were reached\n";
}

}  // namespace

Kind kind_of(const Results& results, const Measured& measured) {
  return {to_string(measured.scheme), measured.parity, measured.members,
          results.network ? Messages::network : Messages::shared_memory};
}

std::vector<Judged> judge(const Results& results, const Measured& measured) {
  return judge(measured.table, kind_of(results, measured), !results.disk.memory);
}

int exit_code(const Results& results) {
  std::vector<Judged> all;
  for (const Measured& measured : results.measured) {
    const auto rows = judge(results, measured);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return exit_code(all);
}

std::string as_text(const Results& results) {
  const LocationOptions& around = results.surroundings;
  std::string text = compose("{} ranks as {} nodes, {} each, {} rounds\n", results.ranks, results.nodes,
                             kedge::human_bytes(results.arguments.size_bytes), results.arguments.rounds);
  text +=
      compose("{}, huge pages for shared memory unasked: {}, {} cores, load {:.1f}, messages over {}\n", around.kernel,
              around.huge_pages, around.cores, around.load, results.network ? "a network" : "shared memory");
  text +=
      "plain files fresh in every round, the faster of two writes or reads; containers and parity recycled, but those "
      "of lost nodes fresh; a ratio is the median over the rounds\n";
  for (const Measured& measured : results.measured) text += table_text(results, measured);
  text += '\n';
  if (results.arguments.persistent) text += compose("the prefix lies on {}\n", results.disk.name);
  text += dd_line(results);
  if (results.arguments.check) text += check_line(exit_code(results));
  return text;
}

}  // namespace kedge_bench
