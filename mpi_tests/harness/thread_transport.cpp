#include "harness/thread_transport.hpp"

#include <algorithm>

#include "kedge/error.hpp"

namespace kedge::testing {

class ThreadTransfer final : public Transport::Transfer {
 public:
  ThreadTransfer(ThreadMessages& all, std::shared_ptr<ThreadMessages::Entry> entry)
      : all_(all), entry_(std::move(entry)) {}

  [[nodiscard]] bool test() override { return wait(Deadline::after(std::chrono::seconds(0))); }
  [[nodiscard]] bool wait(Deadline deadline) override {
    std::unique_lock lock(all_.mutex_);
    while (!entry_->done && !all_.lost(*entry_) && !deadline.passed()) {
      all_.changed_.wait_for(lock, std::chrono::milliseconds(1));
    }
    if (entry_->done && entry_->too_large) throw Error(ErrorCode::rank_failed, "the message was too large");
    if (!entry_->done && all_.lost(*entry_)) throw Error(ErrorCode::rank_failed, "the connection was closed");
    return entry_->done;
  }

 private:
  ThreadMessages& all_;
  std::shared_ptr<ThreadMessages::Entry> entry_;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(ThreadMessages& all, int rank, int channel) : all_(all), rank_(rank), channel_(channel) {}

  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return all_.size(); }
  [[nodiscard]] std::string library() const override { return "threads"; }
  [[nodiscard]] std::unique_ptr<Transport> open_channel(Deadline) override {
    const std::lock_guard lock(all_.mutex_);
    return std::make_unique<ThreadTransport>(all_, rank_, ++all_.opened_[static_cast<std::size_t>(rank_)]);
  }
  [[nodiscard]] std::unique_ptr<Transfer> send(int to, int tag, std::span<const std::byte> bytes) override {
    return started({rank_, to, lane(tag), bytes, {}}, true);
  }
  [[nodiscard]] std::unique_ptr<Transfer> receive(int from, int tag, std::span<std::byte> bytes) override {
    return started({from, rank_, lane(tag), {}, bytes}, false);
  }

 private:
  [[nodiscard]] int lane(int tag) const {
    if (tag < 0 || tag > 4095) throw Error(ErrorCode::invalid_argument, "no such tag");
    return channel_ * 4096 + tag;
  }
  [[nodiscard]] std::unique_ptr<Transfer> started(ThreadMessages::Entry what, bool sends) {
    auto entry = std::make_shared<ThreadMessages::Entry>(what);
    if (what.from == what.to) throw Error(ErrorCode::invalid_argument, "to itself");
    const std::lock_guard lock(all_.mutex_);
    all_.match(entry, sends);
    return std::make_unique<ThreadTransfer>(all_, std::move(entry));
  }

  ThreadMessages& all_;
  int rank_;
  int channel_;
};

void ThreadMessages::match(const std::shared_ptr<Entry>& entry, bool sends) {
  auto& others = sends ? receives_ : sends_;
  const auto fits = [&](const std::shared_ptr<Entry>& other) {
    return entry->from == other->from && entry->to == other->to && entry->lane == other->lane;
  };
  const auto found = std::ranges::find_if(others, fits);
  if (found == others.end()) {
    (sends ? sends_ : receives_).push_back(entry);
    return;
  }
  Entry& send = sends ? *entry : **found;
  Entry& receive = sends ? **found : *entry;
  send.too_large = receive.too_large = send.source.size() > receive.target.size();
  if (!send.too_large) std::ranges::copy(send.source, receive.target.begin());
  send.done = receive.done = true;
  others.erase(found);
  changed_.notify_all();
}

bool ThreadMessages::lost(const Entry& entry) const {
  const auto is_lost = [&](int rank) { return rank >= 0 && lost_[static_cast<std::size_t>(rank)]; };
  return is_lost(entry.from) || is_lost(entry.to);
}

void ThreadMessages::lose(int rank) {
  const std::lock_guard lock(mutex_);
  lost_[static_cast<std::size_t>(rank)] = true;
  changed_.notify_all();
}

std::unique_ptr<Transport> ThreadMessages::transport(int rank) {
  return std::make_unique<ThreadTransport>(*this, rank, 0);
}

}  // namespace kedge::testing
