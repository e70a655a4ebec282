#include "series.hpp"

#include <algorithm>
#include <stdexcept>

namespace kedge_bench {

Summary summarize(std::vector<double> values) {
  if (values.empty()) throw std::invalid_argument("nothing was measured");
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {median, values.front(), values.back()};
}

std::vector<double> ratios(const std::vector<double>& values, const std::vector<double>& reference) {
  if (values.size() != reference.size()) throw std::invalid_argument("rows of different numbers of rounds");
  std::vector<double> result;
  std::ranges::transform(values, reference, std::back_inserter(result), std::divides());
  return result;
}

}  // namespace kedge_bench
