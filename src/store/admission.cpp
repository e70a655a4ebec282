#include "store/admission.hpp"

#include <charconv>
#include <chrono>
#include <string_view>
#include <thread>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "comm/group.hpp"
#include "kedge/communicator.hpp"
#include "store/file_name.hpp"

namespace kedge::store {
namespace {

constexpr std::string_view kQueue = "taking.queue";
constexpr int kNotesMax = 8;  // of one process
constexpr std::chrono::milliseconds kAdmissionPollInterval{1};

std::uint64_t number_in(const std::string& text) {
  std::uint64_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

std::string Admission::own_prefix() const { return compose("{}{}.", kReservationPrefix, own_rank_.value); }

/// Without a file or lock the reservation is not visible to other processes, but this one still sees theirs.
Admission::Reservation Admission::write_reservation(std::uint64_t bytes) const {
  Reservation announced;
  (void)attempt([&] {
    for (int i = 0; i < kNotesMax && !announced.lock; ++i) {
      announced.name = compose("{}{}", own_prefix(), i);
      announced.lock = file_system_->try_lock(fs::join(directory_, announced.name), compose("{}", bytes));
    }
  });
  return announced;
}

/// Ignores reservations that cannot be opened, like those that could not be written.
std::uint64_t Admission::reserved_by_others(const Reservation& own) const {
  std::uint64_t bytes = 0;
  for (const std::string& name : file_system_->list(directory_)) {
    if (!name.starts_with(kReservationPrefix) || name == kQueue || (own.lock && name == own.name)) continue;
    const auto failure = attempt([&] {
      if (const auto text = file_system_->lock_holder(fs::join(directory_, name))) bytes += number_in(*text);
    });
    if (failure && failure->code != ErrorCode::io) throw Error(*failure);
  }
  return bytes;
}

Admission::Admitted Admission::admit(std::uint64_t bytes, const CheckFits& fits) const {
  if (!shared_) {
    comm::throw_if(fits(bytes));
    return nullptr;
  }
  {
    // Reads the others' reservations before the free space: what they take in between counts twice rather than not at
    // all.
    Reservation announced = write_reservation(bytes);
    if (!fits(bytes + reserved_by_others(announced))) return std::move(announced.lock);
  }
  return wait_for_turn(bytes, fits);
}

/// Waits in a queue of processes: bytes that do not fit beside the others' reservations may fit once those are taken.
Admission::Admitted Admission::wait_for_turn(std::uint64_t bytes, const CheckFits& fits) const {
  WaitTimer wait_timer(Deadline::after(wait_max_));
  std::unique_ptr<fs::Lock> turn;
  // Continues without a turn, too: the reservations still count.
  (void)attempt([&] {
    while (!wait_timer.is_over()) {
      turn = file_system_->try_lock(fs::join(directory_, kQueue), compose("rank {}", own_rank_.value));
      if (turn) return;
      std::this_thread::sleep_for(kAdmissionPollInterval);
    }
  });
  while (true) {
    Reservation announced = write_reservation(bytes);
    const std::uint64_t others = reserved_by_others(announced);
    auto failure = fits(bytes + others);
    if (!failure) return std::move(announced.lock);
    if (others == 0 || wait_timer.is_over()) throw Error(*std::move(failure));
    announced.lock.reset();
    std::this_thread::sleep_for(kAdmissionPollInterval);
  }
}

void Admission::remove_reservations() const {
  for (const std::string& name : file_system_->list(directory_)) {
    if (name.starts_with(own_prefix())) (void)attempt([&] { file_system_->remove(fs::join(directory_, name)); });
  }
}

}  // namespace kedge::store
