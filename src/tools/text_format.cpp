#include "tools/text_format.hpp"

#include <chrono>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace kedge::tools {
namespace {

// `between` separates date and time.
std::string utc_with(std::int64_t time_ns, char between) {
  using namespace std::chrono;
  const sys_time<nanoseconds> time{nanoseconds(time_ns)};
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(floor<seconds>(time - day));
  return compose("{:04}-{:02}-{:02}{}{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                 static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), between, clock.hours().count(),
                 clock.minutes().count(), clock.seconds().count());
}

}  // namespace

std::string utc(std::int64_t time_ns) { return utc_with(time_ns, 'T') + "Z"; }

std::string utc_cell(std::int64_t time_ns) { return utc_with(time_ns, ' '); }

std::string id_or_none(const Id128& id) { return id.is_none() ? "none" : to_string(id); }

std::string short_id(const Id128& id) { return to_string(id).substr(0, 8); }

Json id_json(const Id128& id) { return id.is_none() ? Json() : Json(to_string(id)); }

std::string size_text(std::uint64_t size_bytes) {
  return size_bytes < 1024 ? compose("{} bytes", size_bytes)
                           : compose("{} ({} bytes)", human_bytes(size_bytes), size_bytes);
}

std::string count_text(std::uint64_t count, const std::string& noun) {
  return compose("{} {}{}", count, noun, count == 1 ? "" : "s");
}

Json shape_json(const Shape& shape) {
  Json extents = Json::array();
  for (const std::uint64_t extent : shape.extents()) extents.push_back(extent);
  return extents;
}

Json attribute_json(const AttributeValue& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

std::string json_text(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string dtype_text(DataType dtype, std::string_view members) {
  return members.empty() ? std::string(to_string(dtype)) : "struct";
}

}  // namespace kedge::tools
