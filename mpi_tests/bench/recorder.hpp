// Times what all ranks do together, into a table; slower than it was where a test of --check wants that.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "arguments.hpp"
#include "table.hpp"
#include "timing.hpp"

namespace kedge_bench {

class Recorder {
 public:
  Recorder(Table& table, const Slow& slow) : table_(table), slow_(slow) {}

  /// COLLECTIVE. Seconds until the last rank was done, which are recorded under this key.
  template <class Work>
  double time(const std::string& key, Work&& work) {
    const double spent_s = seconds_of(key, work);
    table_.record(key, spent_s);
    return spent_s;
  }
  /// COLLECTIVE. Measures a part of a row: nothing is recorded. `stage` may be made slower.
  template <class Work>
  [[nodiscard]] double seconds_of(const std::string& stage, Work&& work) const {
    return timed([&] {
      const double begin_s = MPI_Wtime();
      work();
      if (stage == slow_.row) sleep(MPI_Wtime() - begin_s);
    });
  }
  /// Local. What was measured otherwise; the same on all ranks.
  void record(const std::string& key, double value) { table_.record(key, value); }

 private:
  void sleep(double spent_s) const {
    std::this_thread::sleep_for(std::chrono::duration<double>(spent_s > slow_.at_least_s ? spent_s : slow_.at_least_s));
  }

  Table& table_;
  const Slow& slow_;
};

}  // namespace kedge_bench
