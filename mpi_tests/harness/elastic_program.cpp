#include "harness/elastic_program.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "base/text.hpp"

namespace kedge::faults {
namespace {

constexpr std::uint64_t kParticlesOfARank = 5;

std::uint64_t particles_before(int rank) {
  std::uint64_t count = 0;
  for (int r = 0; r < rank; ++r) count += kParticlesOfARank + static_cast<std::uint64_t>(r % 3);
  return count;
}

double element(int step, std::uint64_t index) { return step * 1000.0 + static_cast<double>(index); }
std::uint64_t particle(int step, std::uint64_t number) { return static_cast<std::uint64_t>(step) * 1000 + number; }
std::string own_bytes(int step, std::uint32_t rank) { return compose("rank {} at step {}", rank, step); }

}  // namespace

ElasticProgram::ElasticProgram(int rank, int ranks, std::uint64_t row_count)
    : rank_(rank), ranks_(ranks), rows_(row_count) {
  field_.resize((first_row(rank + 1) - first_row(rank)) * kColumns);
  state_.add("field", field_, Block(Shape{first_row(rank + 1) - first_row(rank), kColumns}, rows()));
  state_.add("particles", particles_, [this] {
    return Block(Shape{particles_.size()}, Shard{Shape{particles_before(ranks_)}, Shape{particles_before(rank_)}});
  });
  state_.add("step", step_, Replicated{});
  state_.add("own", own_, PerRank{[this](LogicalRank saved_by, std::span<const std::byte> bytes) {
               own_of_others_[saved_by.value] = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
             }});
}

std::uint64_t ElasticProgram::first_row(int rank) const {
  return rows_ * static_cast<std::uint64_t>(rank) / static_cast<std::uint64_t>(ranks_);
}

Shard ElasticProgram::rows() const { return Shard{Shape{rows_, kColumns}, Shape{first_row(rank_), 0}}; }

void ElasticProgram::set(int step) {
  step_ = step;
  for (std::uint64_t i = 0; i < field_.size(); ++i) field_[i] = element(step, first_row(rank_) * kColumns + i);
  particles_.clear();
  for (std::uint64_t n = particles_before(rank_); n < particles_before(rank_ + 1); ++n) {
    particles_.push_back(particle(step, n));
  }
  own_ = own_bytes(step, static_cast<std::uint32_t>(rank_));
}

void ElasticProgram::expect(int step, int saved_by, Found& found) const {
  EXPECT_EQ(step_, step);
  for (std::uint64_t i = 0; i < field_.size(); ++i) {
    ASSERT_EQ(field_[i], element(step, first_row(rank_) * kColumns + i)) << "rank " << rank_ << ", element " << i;
  }
  const std::lock_guard guard(found.mutex);
  found.particles.insert(particles_.begin(), particles_.end());
  if (saved_by == ranks_) found.own[static_cast<std::uint32_t>(rank_)] = own_;
  for (const auto& [rank, bytes] : own_of_others_) EXPECT_TRUE(found.own.emplace(rank, bytes).second) << "twice";
}

void ElasticProgram::expect_whole(const Found& found, int step, int saved_by) {
  ASSERT_EQ(found.particles.size(), particles_before(saved_by));
  std::uint64_t number = 0;
  for (const std::uint64_t one : found.particles) EXPECT_EQ(one, particle(step, number++));
  ASSERT_EQ(found.own.size(), static_cast<std::size_t>(saved_by));
  for (const auto& [rank, bytes] : found.own) EXPECT_EQ(bytes, own_bytes(step, rank));
}

}  // namespace kedge::faults
