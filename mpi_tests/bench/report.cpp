#include "report.hpp"

#include <string_view>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "series.hpp"

namespace kedge_bench {
namespace {

using kedge::compose;
using kedge::Json;

constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

/// A row with its statistics.
struct Judged {
  const Row& row;
  Summary seconds;
  double gib_per_s = 0;  // of the data of all ranks
  std::optional<Summary> ratio;
  std::string verdict;
};

/// Of the baselines W and D.
constexpr std::string_view kWrite = "write";
constexpr std::string_view kDiskWrite = "disk_write";

double spread_of(const Results& results, std::string_view baseline) {
  const Row* row = results.table.find(std::string(baseline));
  return row == nullptr ? 0 : summarize(row->seconds).spread();
}

std::string verdict(const Row& row, const std::optional<Summary>& ratio, const Results& results) {
  if (!row.target || !ratio) return "";
  const bool on_disk = row.against == kDiskWrite;
  if (on_disk && results.disk.memory) return "no disk";
  if (spread_of(results, on_disk ? kDiskWrite : kWrite) > kMostSpread) return "too noisy";
  return ratio->median <= *row.target ? "reached" : "missed";
}

std::vector<Judged> judge(const Results& results) {
  const double gibibytes =
      static_cast<double>(results.arguments.size_bytes) * static_cast<double>(results.ranks) / kGibibyte;
  std::vector<Judged> judged;
  for (const Row& row : results.table.rows()) {
    Judged one{row, summarize(row.seconds), 0, {}, {}};
    one.gib_per_s = gibibytes / one.seconds.median;
    if (const Row* against = results.table.find(row.against)) {
      one.ratio = summarize(ratios(row.seconds, against->seconds));
    }
    one.verdict = verdict(row, one.ratio, results);
    judged.push_back(one);
  }
  return judged;
}

std::string percent(double part) { return compose("{:.0f} %", part * 100); }

std::string noise(const Results& results, std::string_view baseline, std::string_view letter) {
  const double spread = spread_of(results, baseline);
  std::string text = compose("{} spreads by {} over the rounds", letter, percent(spread));
  if (spread > kMostSpread) text += ": too noisy to judge (more than " + percent(kMostSpread) + ")";
  return text;
}

std::string dd_line(const Results& results) {
  if (!results.dd_s) return "dd is not here: the plain figures were not checked against it";
  return compose("plain files copied by dd: {:.3f} s; read and written by this program right after: {:.3f} s",
                 *results.dd_s, results.write_and_read_s);
}

Json to_json(const Summary& summary) {
  return {{"median", summary.median}, {"min", summary.min}, {"max", summary.max}};
}

}  // namespace

std::string as_text(const Results& results) {
  const Surroundings& around = results.surroundings;
  std::string text = compose("{} ranks as {} nodes, {} each, scheme {}, {} rounds\n", results.ranks, results.ranks,
                             kedge::human_bytes(results.arguments.size_bytes), to_string(results.arguments.scheme),
                             results.arguments.rounds);
  text += compose("{}, huge pages for shared memory: {}, {} cores, load {:.1f}\n", around.kernel, around.huge_pages,
                  around.cores, around.load);
  text +=
      "plain files fresh in every round; containers and parity recycled, but those of the lost node fresh; a ratio is "
      "the median over the rounds\n\n";
  text += compose("{:<56} {:>8} {:>17} {:>6}  {:>5} {:<10} {:>11} {:>7}\n", "", "s", "min .. max", "GiB/s", "ratio",
                  "to", "min .. max", "target");
  for (const Judged& one : judge(results)) {
    text += compose("{:<56} {:>8.3f} {:>17} {:>6.2f}", one.row.what, one.seconds.median,
                    compose("{:.3f} .. {:.3f}", one.seconds.min, one.seconds.max), one.gib_per_s);
    if (one.ratio) {
      text += compose("  {:>5.2f} {:<10} {:>11}", one.ratio->median, one.row.against,
                      compose("{:.2f}..{:.2f}", one.ratio->min, one.ratio->max));
    }
    if (one.row.target) text += compose(" {:>7.2f}  {}", *one.row.target, one.verdict);
    text += '\n';
  }
  text += compose("\n{}\n", noise(results, kWrite, "W"));
  if (results.arguments.persistent) {
    text += compose("{}; the prefix lies on {}\n", noise(results, kDiskWrite, "D"), results.disk.name);
  }
  text += dd_line(results) + "\n";
  text += compose("private memory beyond the data, at most: {} on a rank\n",
                  kedge::human_bytes(results.peak_private_bytes));
  return text;
}

std::string as_json(const Results& results) {
  const Surroundings& around = results.surroundings;
  Json json = {{"ranks", results.ranks},
               {"bytes_per_rank", results.arguments.size_bytes},
               {"scheme", to_string(results.arguments.scheme)},
               {"rounds", results.arguments.rounds},
               {"kernel", around.kernel},
               {"huge_pages", around.huge_pages},
               {"cores", around.cores},
               {"load", around.load},
               {"write_spread", spread_of(results, kWrite)},
               {"too_noisy", spread_of(results, kWrite) > kMostSpread},
               {"peak_private_bytes", results.peak_private_bytes},
               {"write_and_read_s", results.write_and_read_s},
               {"dd_s", results.dd_s ? Json(*results.dd_s) : Json()},
               {"rows", Json::array()}};
  if (results.arguments.persistent) {
    json["disk"] = {{"filesystem", results.disk.name},
                    {"memory", results.disk.memory},
                    {"write_spread", spread_of(results, kDiskWrite)},
                    {"too_noisy", spread_of(results, kDiskWrite) > kMostSpread}};
  }
  for (const Judged& one : judge(results)) {
    Json row = {{"key", one.row.key},
                {"what", one.row.what},
                {"seconds", to_json(one.seconds)},
                {"all_seconds", one.row.seconds},
                {"gib_per_s", one.gib_per_s}};
    if (one.ratio) {
      row["against"] = one.row.against;
      row["ratio"] = to_json(*one.ratio);
    }
    if (one.row.target) {
      row["target"] = *one.row.target;
      row["verdict"] = one.verdict;
    }
    json["rows"].push_back(row);
  }
  return json.dump(2) + "\n";
}

}  // namespace kedge_bench
