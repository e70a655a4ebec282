#include "engine/commit_markers.hpp"

#include "base/attempt.hpp"
#include "persist/run_record.hpp"

namespace kedge::engine {

void CommitMarkers::mark(const Id128& commit_id) {
  if (!found_.in_store) {
    const auto failure = attempt([&] { node_records_.write_commit_marker(run_id_); });
    found_.in_store = !failure.has_value();
    if (failure) {
      log_.warning(
          "the node-local store could not record that a commit exists (will retry at the next commit or open): " +
          to_string(*failure));
    }
  }
  record_store();
  if (found_.on_prefix) return;
  const auto failure = group_.try_on_all_ranks([&] {
    if (on_prefix_.markers != nullptr) on_prefix_.markers->mark_first_commit(run_id_, commit_id);
  });
  found_.on_prefix = !failure.has_value();
  if (!failure) {
    said_.reset();
    return;
  }
  if (failure->code == ErrorCode::busy) throw Error(*failure);
  if (group_.is_root() && std::exchange(said_, failure->code) != failure->code) {
    log_.warning("the prefix could not record that a commit exists (will retry at the next commit or open): " +
                 to_string(*failure));
  }
}

/// Local, once. A later start that uses other stores says where the newest checkpoints were; without it, it says less.
void CommitMarkers::record_store() {
  if (on_prefix_.start == nullptr || !found_.in_store || found_.store_recorded) return;
  found_.store_recorded = true;
  const auto failure = attempt([&] { persist::record_store(*on_prefix_.start, node_records_.directory()); });
  if (!failure || failure->code == ErrorCode::busy) return;
  log_.warning("the prefix could not record where the node-local store is: " + to_string(*failure));
}

void CommitMarkers::store_lost() {
  if (!std::exchange(found_.in_store, false)) return;
  found_.in_store = !attempt([&] { node_records_.write_commit_marker(run_id_); });
}

bool CommitMarkers::is_marked_damaged() {
  if (!damaged_) (void)attempt([&] { damaged_ = node_records_.has_damage_marker(); });
  return damaged_.value_or(false);
}

void CommitMarkers::mark_damage(const std::string& what) {
  damaged_ = true;
  (void)attempt([&] { node_records_.write_damage_marker(what); });
}

void CommitMarkers::mark_committed(const Id128& commit_id) {
  mark(commit_id);
  if (!is_marked_damaged()) return;
  damaged_ = false;
  (void)attempt([&] { node_records_.remove_damage_marker(); });
}

void CommitMarkers::clear_cache() {
  group_.run_on_all_ranks([&] {
    node_records_.remove_commit_marker();
    if (on_prefix_.markers != nullptr) on_prefix_.markers->remove_first_commit();
  });
  found_.on_prefix = found_.in_store = false;
}

}  // namespace kedge::engine
