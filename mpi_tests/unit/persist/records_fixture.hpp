// The records of a run on a disk that can lose power.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "harness/faulty_fixture.hpp"
#include "persist/run_record.hpp"
#include "persist/run_start.hpp"

namespace kedge::persist::testing {

constexpr std::uint64_t kSeeds = 12;  // of what a power loss leaves of what is not synced

inline Id128 id_of(std::uint8_t number) {
  Id128 id;
  id.bytes[0] = number;
  return id;
}

inline const RunRecord kRecord{id_of(7),
                               "/d/prefix",
                               {"/old place", "/older"},
                               id_of(8),
                               "caf\xe9.in (4 bytes)",
                               "/dev/shm/kedge-1000-heat-12345678"};

class RecordsTest : public faults::Faulty {
 protected:
  void SetUp() override {
    Faulty::SetUp();
    make_prefix();
  }
  void make_prefix() {
    disk.remove_all("/d/prefix");
    disk.restart();
    disk.make_directories("/d/prefix", 0755);
  }
  /// Another start, which has no number yet.
  [[nodiscard]] RunStart next_start() const { return RunStart({system, "/d/prefix", "heat"}); }
  /// Another start, which has taken its number.
  [[nodiscard]] RunStart start() const {
    RunStart mine = next_start();
    (void)mine.take_incarnation();
    return mine;
  }
  [[nodiscard]] RunStart begun() const {
    RunStart mine = start();
    mine.mark_begun({});
    return mine;
  }
  [[nodiscard]] FoundRecord found() const { return read_run_record(*system, next_start().directory().path()); }
  [[nodiscard]] std::optional<RunRecord> kept() const {
    return read_record_of_newest_start(*system, next_start().directory().path());
  }
  [[nodiscard]] static std::string path_of(const std::string& name) { return "/d/prefix/.kedge/heat/" + name; }
  [[nodiscard]] bool has(const std::string& name) const { return system->status(path_of(name)).has_value(); }
  void plant(const std::string& name, const std::string& text = "x") {
    disk.write_all(path_of(name), std::as_bytes(std::span(text)));
  }
  static std::optional<ErrorCode> code_of(const std::function<void()>& step) {
    const auto failure = faults::failure_of(step);
    return failure ? std::optional(failure->code) : std::nullopt;
  }
};

}  // namespace kedge::persist::testing
