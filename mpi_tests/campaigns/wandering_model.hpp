// What a random walk of prefixes and stores may find: whose each step is, and where it may still be.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/text.hpp"

namespace kedge::faults::wandering_test {

/// A start: the directory that its path leads to, the path, and the run's name.
struct Where {
  std::string prefix;
  std::string path;
  std::string run;
};

/// Knows of each run in each directory which *line* of steps it is on: a line begins with a run, with a fresh start,
/// and with a copy. Where it cannot know, it permits.
class Model {
 public:
  void move(const std::string& from, const std::string& to) {
    places_[to] = std::exchange(places_[from], {});
    for (auto& [run, here] : places_[to]) here.disturbed = true;
  }

  void copy(const std::string& from, const std::string& to) {
    places_[to] = places_[from];
    for (auto& [run, here] : places_[to]) {
      here.disturbed = true;
      if (here.line < 0) continue;
      const int copied = begin_line(run);
      lines_[copied].inherited = here.persistent;
      // A copy that was never started is as good as what it was copied from.
      const Line& source = lines_[here.line];
      lines_[copied].root = source.root;
      lines_[copied].copied_from = source.copied_from >= 0 ? source.copied_from : here.line;
      lines_[copied].copied_out_of = source.copied_from >= 0 ? source.copied_out_of : here.recorded;
      here.line = copied;
    }
  }

  void link(const std::string& path, const std::string& prefix) { links_[path] = prefix; }
  [[nodiscard]] std::optional<std::string> target(const std::string& path) const {
    const auto found = links_.find(path);
    return found == links_.end() ? std::nullopt : std::optional(found->second);
  }
  void remove(const std::string& prefix) { places_.erase(prefix); }
  void lose_records(const std::string& prefix) {
    for (auto& [run, here] : places_[prefix]) here.records = false, here.disturbed = true;
  }
  void keep_records(const std::string& prefix) { kept_[prefix] = places_[prefix]; }
  void set_back_records(const std::string& prefix) {
    lose_records(prefix);
    for (const auto& [run, then] : kept_[prefix]) {
      if (!then.records) continue;
      Here& here = places_[prefix][run];
      here.line = then.line;
      here.newest = then.newest;
      here.recorded = then.recorded;
      here.given_up = then.given_up;
      here.records = here.disturbed = true;
    }
  }
  void lose_node() {
    for (auto& [prefix, runs] : places_) {
      for (auto& [run, here] : runs) here.disturbed = true;
    }
    for (auto& [line, of] : lines_) of.intact = false, of.sure_names.clear();
  }

  /// Why this step is not this start's; empty: it may be.
  [[nodiscard]] std::string wrong_step(const Where& where, int step) {
    const Here& here = places_[where.prefix][where.run];
    if (here.line >= 0 && here.records) {
      // Of the run's own id, it may be on the prefix, or in stores that name it.
      const int line = line_of_.at(step);
      const bool is_own =
          lines_[line].root == lines_[here.line].root && (here.persistent.contains(step) || names(line, where));
      if (!is_own && !visible(here.line).contains(step)) return compose("step {} is another's", step);
      if (here.disturbed || step == here.newest) return {};
      return compose("step {} is opened, and nothing happened to the newest, {}", step, here.newest);
    }
    // Of a run that has no records here.
    const int line = line_of_.at(step);
    if (lines_[line].run != where.run) return compose("step {} is another run's", step);
    if (!here.persistent.contains(step) && !names(line, where)) return compose("step {} is another place's", step);
    const bool later_is_there = here.line >= 0 && (lines_[here.line].intact || has_persistent(here, here.line));
    if (here.given_up.contains(line) && later_is_there) return compose("step {} was given up", step);
    return {};
  }

  /// Why there is something to begin from; empty: perhaps there is nothing.
  [[nodiscard]] std::string wrong_zero(const Where& where) {
    const Here& here = places_[where.prefix][where.run];
    const bool knows = here.line >= 0 && here.records;
    if (knows && here.newest >= 0) return compose("the prefix knew of step {}", here.newest);
    if (!here.records && !here.persistent.empty()) return "the prefix has checkpoints";
    for (int line = 0; line < static_cast<int>(lines_.size()); ++line) {
      if (line == here.line || lines_[line].run != where.run || !lines_[line].intact) continue;
      if (knows && (here.given_up.contains(line) || lines_[line].prefix != where.prefix)) continue;
      if (lines_[line].prefix == where.prefix || lines_[line].sure_names.contains(where.path))
        return compose("a store names this prefix, with line {}", line);
    }
    return {};
  }

  [[nodiscard]] bool may_refuse(const Where& where) {
    const Here& here = places_[where.prefix][where.run];
    if (here.disturbed) return true;
    for (int line = 0; line < static_cast<int>(lines_.size()); ++line) {
      if (line != here.line && lines_[line].run == where.run && !here.given_up.contains(line) && names(line, where))
        return true;
    }
    return false;
  }

  [[nodiscard]] std::string wrong_adoption(const Where& where, int step) {
    const Here& here = places_[where.prefix][where.run];
    const int line = line_of_.at(step);
    if (lines_[line].run != where.run) return "another run's";
    if (here.persistent.contains(step) || (here.line >= 0 && visible(here.line).contains(step))) return {};
    for (int other = 0; other < static_cast<int>(lines_.size()); ++other) {
      if (names(other, where) && visible(other).contains(step)) return {};
    }
    return compose("step {} is another place's", step);
  }

  void started(const Where& where, std::optional<int> step) {
    Here& here = places_[where.prefix][where.run];
    const bool knew = here.line >= 0 && here.records;
    if (!knew) {
      const int before = here.line;
      here.line = step && names(line_of_.at(*step), where) ? line_of_.at(*step) : begin_line(where.run);
      if (step) lines_[here.line].inherited.merge(visible(line_of_.at(*step)));
      if (before >= 0 && !step) here.given_up.insert(before);
    }
    take_place(where, here);
    here.newest = step.value_or(-1);
    if (step) lines_[here.line].has_local = true;  // what is fetched is in the stores
  }
  void begun_afresh(const Where& where) {
    Here& here = places_[where.prefix][where.run];
    if (here.line >= 0) here.given_up.insert(here.line);
    for (int line = 0; line < static_cast<int>(lines_.size()); ++line) {
      if (names(line, where)) here.given_up.insert(line);
    }
    here.line = begin_line(where.run);
    here.newest = -1;
    take_place(where, here);
  }
  void adopted(const Where& where, int step) {
    Here& here = places_[where.prefix][where.run];
    int line = line_of_.at(step);
    for (int other = 0; other < static_cast<int>(lines_.size()); ++other) {
      if (names(other, where) && visible(other).contains(step)) line = other;
    }
    if (here.line >= 0 && here.line != line) here.given_up.insert(here.line);
    here.line = line;
    here.newest = step;
    take_place(where, here);
  }
  void committed(const Where& where, int step, bool persistent) {
    Here& here = places_[where.prefix][where.run];
    line_of_[step] = here.line;
    lines_[here.line].own.insert(step);
    lines_[here.line].has_local = lines_[here.line].intact = true;
    here.newest = step;
    if (persistent) here.persistent.insert(step);
  }

 private:
  struct Line {
    std::string run;
    int root = -1;  ///< that it was copied from in the end: copies share the run's id
    std::set<int> own;
    std::set<int> inherited;
    int copied_from = -1;              ///< until its first start, which tells whether it was copied or moved
    std::string copied_out_of;         ///< the prefix
    std::string prefix;                ///< as its stores say it for sure
    std::set<std::string> names;       ///< prefixes and paths that they may know
    std::set<std::string> sure_names;  ///< and those that they know for sure
    bool has_local = false;
    bool intact = false;  ///< its stores have its newest step for sure
  };
  struct Here {
    int line = -1;
    int newest = -1;       ///< opened or committed last
    std::string recorded;  ///< the prefix, as the last start recorded it
    bool records = false;
    bool disturbed = false;  ///< something happened since the last start
    std::set<int> persistent;
    std::set<int> given_up;
  };

  int begin_line(const std::string& run) {
    const int line = static_cast<int>(lines_.size());
    lines_[line].run = run;
    lines_[line].root = line;
    return line;
  }

  [[nodiscard]] bool is_original_there(const Line& copied) const {
    const auto place = places_.find(copied.copied_out_of);
    if (place == places_.end()) return false;
    const auto here = place->second.find(copied.run);
    return here != place->second.end() && here->second.line == copied.copied_from && here->second.records;
  }
  [[nodiscard]] std::set<int> visible(int line) const {
    const Line& of = lines_.at(line);
    std::set<int> steps = of.own;
    steps.insert(of.inherited.begin(), of.inherited.end());
    if (of.copied_from >= 0 && !is_original_there(of)) steps.merge(visible(of.copied_from));
    return steps;
  }
  [[nodiscard]] bool has_persistent(const Here& here, int line) const {
    return std::ranges::any_of(here.persistent, [&](int step) { return line_of_.at(step) == line; });
  }
  /// Whether its stores name this place.
  [[nodiscard]] bool names(int line, const Where& where) const {
    const Line& of = lines_.at(line);
    return of.run == where.run && of.has_local && (of.names.contains(where.prefix) || of.names.contains(where.path));
  }
  void take_place(const Where& where, Here& here) {
    Line& line = lines_[here.line];
    if (line.copied_from >= 0) {
      if (!is_original_there(line)) {  // it counts as moved, and may have taken the stores
        Line& original = lines_[line.copied_from];
        line.inherited = visible(here.line);
        line.has_local = line.has_local || original.has_local;
        original.prefix.clear();
        original.sure_names.clear();
      }
      line.copied_from = -1;
    }
    if (line.prefix != where.prefix) line.sure_names.clear();
    line.prefix = where.prefix;
    line.names.insert({where.prefix, where.path});
    line.sure_names.insert(where.path);
    here.given_up.erase(here.line);
    here.recorded = where.prefix;
    here.records = true;
    here.disturbed = false;
  }

  std::map<std::string, std::map<std::string, Here>> places_;  ///< by prefix and run
  std::map<std::string, std::map<std::string, Here>> kept_;
  std::map<std::string, std::string> links_;
  std::map<int, Line> lines_;
  std::map<int, int> line_of_;
};

}  // namespace kedge::faults::wandering_test
