#include "base/json.hpp"
#include "report.hpp"

namespace kedge_bench {
namespace {

using kedge::Json;

Json to_json(const Summary& summary) {
  return {{"median", summary.median}, {"min", summary.min}, {"max", summary.max}};
}

const char* name_of(Unit unit) {
  switch (unit) {
    case Unit::seconds: return "s";
    case Unit::microseconds: return "us";
    case Unit::kibibytes: return "KiB";
    case Unit::mebibytes: return "MiB";
    case Unit::bytes_per_byte: return "B/B";
  }
  return "";
}

const char* name_of(Messages messages) {
  if (messages == Messages::any) return "any";
  return messages == Messages::network ? "network" : "shared memory";
}

Json to_json(const Judged& judged) {
  const Row& row = *judged.row;
  Json json = {{"key", row.key},
               {"what", row.what},
               {"unit", name_of(row.unit)},
               {"value", to_json(judged.values)},
               {"all_values", row.values},
               {"spread", judged.values.spread()}};
  if (row.bytes > 0) {
    json["bytes"] = row.bytes;
    json["gib_per_s"] = static_cast<double>(row.bytes) / kGibibyte / judged.values.median;
  }
  if (judged.ratio) {
    json["against"] = row.against;
    json["ratio"] = to_json(*judged.ratio);
    json["too_noisy"] = judged.base_spread > kMostSpread;
  }
  if (judged.target != nullptr) {
    json["target"] = judged.target->at_most;
    json["verdict"] = to_string(judged.verdict);
  }
  return json;
}

Json to_json(const Results& results, const Measured& measured) {
  Json json = {{"scheme", to_string(measured.scheme)},
               {"parity", measured.parity},
               {"members", measured.members},
               {"set_aside", measured.set_aside},
               {"shared_bytes", measured.held.bytes},
               {"shared_huge_bytes", measured.held.huge_bytes},
               {"rows", Json::array()}};
  for (const Judged& one : judge(results, measured)) json["rows"].push_back(to_json(one));
  return json;
}

Json targets() {
  Json json = Json::array();
  for (const Target& target : kTargets) {
    json.push_back({{"row", target.row},
                    {"scheme", target.kind.scheme},
                    {"parity", target.kind.parity},
                    {"members", target.kind.members},
                    {"messages", name_of(target.kind.messages)},
                    {"against", target.against},
                    {"at_most", target.at_most}});
  }
  return json;
}

}  // namespace

std::string as_json(const Results& results) {
  const LocationOptions& around = results.surroundings;
  Json json = {{"ranks", results.ranks},
               {"nodes", results.nodes},
               {"network", results.network},
               {"bytes_per_rank", results.arguments.size_bytes},
               {"set_size", results.arguments.set_size},
               {"rounds", results.arguments.rounds},
               {"kernel", around.kernel},
               {"huge_pages", around.huge_pages},
               {"cores", around.cores},
               {"load", around.load},
               {"dd_s", results.dd_s ? Json(*results.dd_s) : Json()},
               {"write_and_read_s", results.write_and_read_s},
               {"targets", targets()},
               {"exit_code", exit_code(results)},
               {"tables", Json::array()}};
  if (results.arguments.persistent) {
    json["disk"] = {{"filesystem", results.disk.name}, {"memory", results.disk.memory}};
  }
  for (const Measured& measured : results.measured) json["tables"].push_back(to_json(results, measured));
  return json.dump(2) + "\n";
}

}  // namespace kedge_bench
