#include "bindings/python/transport.hpp"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "bindings/python/calls.hpp"
#include "bindings/python/text.hpp"
#include "bindings/python/thread_state.hpp"
#include "kedge/error.hpp"

namespace nb = nanobind;

namespace kedge::python {
namespace {

/// A Python object owned by a C++ one, which may be destroyed in any thread and at any time.
class Held {
 public:
  explicit Held(nb::object object) : object_(new nb::object(std::move(object))) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    if (is_interpreter_ending()) return;  // the interpreter has freed the object
    in_interpreter([&] { delete object_; });
  }
  [[nodiscard]] nb::object& operator*() const noexcept { return *object_; }

 private:
  nb::object* object_;
};

/// Runs a call into Python; an exception becomes a failure of communication.
template <class Body>
auto in_python(const std::string& what, Body&& body) {
  return in_interpreter([&] {
    try {
      return body();
    } catch (nb::python_error& error) {
      const std::string text = nb::cast<Text>(nb::str(error.value())).bytes;
      throw Error(ErrorCode::rank_failed,
                  compose("{} failed: {}; a rank may have died, or the network failed: start the job again", what,
                          text.substr(0, text.find('\n'))));
    }
  });
}

class PythonTransfer final : public Transport::Transfer {
 public:
  PythonTransfer(nb::object transfer, std::string what) : transfer_(std::move(transfer)), what_(std::move(what)) {}

  [[nodiscard]] bool test() override {
    return in_python(what_, [&] { return nb::cast<bool>((*transfer_).attr("test")()); });
  }
  [[nodiscard]] bool wait(Deadline deadline) override {
    WaitTimer wait_timer(deadline);
    while (true) {
      const double slice_s = wait_timer.slice().count();
      if (in_python(what_, [&] { return nb::cast<bool>((*transfer_).attr("wait")(slice_s)); })) return true;
      if (wait_timer.is_over()) return false;
    }
  }

 private:
  Held transfer_;
  std::string what_;
};

class PythonTransport final : public Transport {
 public:
  explicit PythonTransport(nb::object transport)
      : rank_(nb::cast<int>(transport.attr("rank"))),
        size_(nb::cast<int>(transport.attr("size"))),
        library_(nb::cast<std::string>(transport.attr("library"))),
        transport_(std::move(transport)) {}

  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return size_; }
  [[nodiscard]] std::string library() const override { return library_; }
  [[nodiscard]] std::unique_ptr<Transport> open_channel(Deadline deadline) override {
    return in_python("opening a channel", [&]() -> std::unique_ptr<Transport> {
      return python_transport((*transport_).attr("open_channel")(deadline.seconds_left()));
    });
  }
  [[nodiscard]] std::unique_ptr<Transfer> send(int to, int tag, std::span<const std::byte> bytes) override {
    return started("send", compose("a message to rank {}", to), to, tag, bytes);
  }
  [[nodiscard]] std::unique_ptr<Transfer> receive(int from, int tag, std::span<std::byte> bytes) override {
    return started("receive", compose("a message from rank {}", from), from, tag, bytes);
  }

 private:
  std::unique_ptr<Transfer> started(const char* method, std::string what, int peer, int tag,
                                    std::span<const std::byte> bytes) {
    return in_python(what, [&]() -> std::unique_ptr<Transfer> {
      const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
      return std::make_unique<PythonTransfer>((*transport_).attr(method)(peer, tag, address, bytes.size()), what);
    });
  }

  int rank_;
  int size_;
  std::string library_;
  Held transport_;
};

}  // namespace

std::unique_ptr<Transport> python_transport(nb::object transport) {
  return std::make_unique<PythonTransport>(std::move(transport));
}

}  // namespace kedge::python
