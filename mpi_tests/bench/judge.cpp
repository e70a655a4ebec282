#include "judge.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace kedge_bench {
namespace {

constexpr std::string_view kDiskWrite = "disk_write";

/// The row at its fastest over its base at its slowest: noise in either does not explain a ratio above that.
double best_pairing(const Judged& judged, const Row* base) {
  return base == nullptr ? judged.values.min : judged.values.min / summarize(base->values).max;
}

Verdict verdict(const Judged& judged, const Row* base, bool on_disk) {
  if (judged.target == nullptr) return Verdict::none;
  const double at_most = judged.target->at_most;
  if (base == nullptr) return judged.values.median <= at_most ? Verdict::reached : Verdict::missed;
  if (base->key == kDiskWrite && !on_disk) return Verdict::no_disk;
  const bool few = base->unit != Unit::mebibytes && base->values.size() < kLeastRounds;
  if (few || judged.base_spread > kMostSpread) {
    if (best_pairing(judged, base) > at_most) return Verdict::missed;
    return few ? Verdict::too_few_rounds : Verdict::too_noisy;
  }
  return judged.ratio->median <= at_most ? Verdict::reached : Verdict::missed;
}

}  // namespace

std::string_view to_string(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::none: return "";
    case Verdict::reached: return "reached";
    case Verdict::missed: return "MISSED";
    case Verdict::too_noisy: return "too noisy";
    case Verdict::too_few_rounds: return "too few rounds";
    case Verdict::no_disk: return "no disk";
  }
  return "";
}

std::vector<Judged> judge(const Table& table, const Kind& kind, bool on_disk) {
  std::vector<Judged> all;
  for (const Row& row : table.rows()) {
    Judged one{&row, summarize(row.values), {}, 0, target_of(row.key, kind), Verdict::none};
    if (one.target != nullptr && one.target->against != row.against) {
      throw std::invalid_argument("the target of " + row.key + " is against another row");
    }
    const Row* const base = table.find(row.against);
    if (base != nullptr) {
      one.ratio = summarize(ratios(row.values, base->values));
      one.base_spread = summarize(base->values).spread();
    }
    one.verdict = verdict(one, base, on_disk);
    all.push_back(one);
  }
  return all;
}

std::optional<std::size_t> disturbed_round(const Table& table, const Kind& kind) {
  for (const Row& row : table.rows()) {
    const Row* const base = target_of(row.key, kind) == nullptr ? nullptr : table.find(row.against);
    // Memory is measured once, apart from the rounds.
    if (base == nullptr || base->unit == Unit::mebibytes || summarize(base->values).spread() <= kMostSpread) continue;
    return static_cast<std::size_t>(std::ranges::max_element(base->values) - base->values.begin());
  }
  return std::nullopt;
}

int exit_code(const std::vector<Judged>& rows) noexcept {
  const auto count = [&](Verdict verdict) { return std::ranges::count(rows, verdict, &Judged::verdict); };
  if (count(Verdict::missed) > 0) return 1;
  const auto reached = count(Verdict::reached);
  return reached > 0 && reached + count(Verdict::none) == std::ssize(rows) ? 0 : 2;
}

}  // namespace kedge_bench
