#include "store/failed_flush.hpp"

#include "base/json.hpp"
#include "store/file_name.hpp"
#include "store/store_record.hpp"

namespace kedge::store {

std::string to_text(const FailedFlush& failed) {
  const Json json = {{"commit_id", to_string(failed.commit_id)},
                     {"generation", failed.generation},
                     {"tag", failed.tag},
                     {"time_ns", failed.time_ns},
                     {"tries", failed.tries},
                     {"reason", failed.reason}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<FailedFlush> parse_failed_flush(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    const auto commit_id = parse_id(json.at("commit_id").get<std::string>());
    if (!commit_id) return std::nullopt;
    return FailedFlush{*commit_id,
                       json.at("generation").get<std::uint64_t>(),
                       json.at("tag").get<std::string>(),
                       json.at("time_ns").get<std::int64_t>(),
                       json.at("tries").get<std::uint64_t>(),
                       json.at("reason").get<std::string>()};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::optional<FailedFlush> read_failed_flush(fs::FileSystem& file_system, const std::string& directory) {
  const std::string text = read_small_file(file_system, directory, kFlushRecord);
  return text.empty() ? std::nullopt : parse_failed_flush(text);
}

}  // namespace kedge::store
