// What the machine does without Kedge: copies in memory, plain writes and reads. Nothing of Kedge is used here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "data.hpp"

namespace kedge_bench {

/// The plain files of one rank, in a directory on the filesystem of the stores, or of the prefix. All calls are
/// COLLECTIVE, give seconds of the slowest rank, and throw std::runtime_error on all ranks.
class Baselines {
 public:
  Baselines(std::string directory, int rank, Buffers& buffers);

  /// Writes a file as large as data and removes it: for what is measured next, and takes fresh pages, there is memory
  /// that this machine has. (A virtual machine may have given free pages back to its host; each then costs several
  /// times as much, which is nobody's doing.)
  void bring_small_pages();
  /// Brings small pages, and then those of a file of huge pages.
  void bring_memory();
  /// data to back; and the processor time that it took, on all ranks.
  [[nodiscard]] std::pair<double, double> copy();
  /// W: data to a new file, 4 MiB at a time, after bring_small_pages(); the one before was removed.
  [[nodiscard]] double write_fresh();
  /// D: the same, and brought to stable storage.
  [[nodiscard]] double write_synced();
  /// The file of write_fresh() or write_synced() to a new file in `directory`, 4 MiB at a time; that is removed,
  /// outside of the time.
  [[nodiscard]] double copy_to(const std::string& directory);
  /// The same file is no longer in the page cache, if it was brought to stable storage.
  void evict();
  /// That file is gone: pages of memory that it had are not those that the next one gets.
  void remove();
  /// The beginning of data to a new file, in so many pieces, each by a pwrite of its own, after bring_small_pages();
  /// the one before was removed. What is in the file then is compared, outside of the time.
  [[nodiscard]] double write_pieces(std::uint64_t piece_bytes, std::uint64_t pieces);
  /// The file of write_fresh() or write_synced() to back, 4 MiB at a time. What came back is compared, outside of the
  /// time.
  [[nodiscard]] double read();
  /// The files of all ranks copied at once, each by a dd of its own that its rank sleeps for, after
  /// bring_small_pages(). Nothing if there is no dd.
  [[nodiscard]] std::optional<double> copy_by_dd();

 private:
  [[nodiscard]] double write(const std::string& kind, bool synced);
  void remove(const std::string& kind);
  [[nodiscard]] double read_back(const std::string& kind, std::uint64_t size_bytes);
  [[nodiscard]] std::string path(const std::string& kind, int rank) const;

  std::string directory_;
  int rank_;
  Buffers& buffers_;
};

}  // namespace kedge_bench
